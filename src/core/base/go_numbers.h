// Numbers parsed as Go's strconv parses them, with its error texts, which clients see.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace holdfast {

// Go's strconv.ParseInt and ParseUint in base 10. BadRequest with Go's text otherwise.
Result<int64_t> go_parse_int(std::string_view text);
Result<uint64_t> go_parse_uint(std::string_view text);

}  // namespace holdfast
