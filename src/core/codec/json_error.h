// The errors that Go's JSON scanner reports for invalid JSON. Private to the module.
#pragma once

#include <string_view>

#include "codec/json.h"

namespace holdfast::codec {

// The first syntax error; an empty message if `source` is valid JSON.
JsonError find_json_error(std::string_view source);

}  // namespace holdfast::codec
