// Percent-encoding, for parts of URLs.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

// Appends text as one segment of a path or one value of a query: letters, digits, "-", "_", "." and "~" as they are,
// all other bytes percent-encoded.
void append_percent_encoded(std::string& out, std::string_view text);

}  // namespace holdfast
