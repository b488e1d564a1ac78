// Go's names for decoded values, as Kubernetes' error messages print them.
#pragma once

#include <string_view>

#include "value/value.h"

namespace holdfast::codec {

// In the words of Go's JSON decoder: "cannot unmarshal array into ...".
std::string_view json_kind(const Value& value);
// As %T prints it: "map[string]interface {}".
std::string_view go_type(const Value& value);
// As reflect.Kind prints it: "slice".
std::string_view go_kind(const Value& value);

}  // namespace holdfast::codec
