// time.Parse for the two layouts of the API, with its errors. Private to the module.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace holdfast::codec {

enum class TimeLayout : uint8_t {
  Seconds,  // metav1.Time: RFC 3339, a fraction may follow.
  Micro,    // metav1.MicroTime: exactly six fractional digits.
};
// Nothing, and Go's text in `error`, when it is not such a time. (Go takes hours of one digit, too.)
std::optional<UnixTime> parse_go_time(std::string_view text, TimeLayout layout, std::string& error);

}  // namespace holdfast::codec
