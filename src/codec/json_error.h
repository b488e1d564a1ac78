// What Go's JSON scanner says about text that is not JSON. Private to the module.
#pragma once

#include <string_view>

#include "codec/json.h"

namespace holdfast::codec {

// The first syntax error; an empty message when `source` is valid JSON.
JsonError find_json_error(std::string_view source);

}  // namespace holdfast::codec
