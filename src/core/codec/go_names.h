// Decoded values and their types as Go prints them, for Kubernetes' error messages.
#pragma once

#include <string>
#include <string_view>

#include "value/value.h"

namespace holdfast::codec {

// As named by Go's JSON decoder: "cannot unmarshal array into ...".
std::string_view json_kind(const Value& value);
// As printed by %T: "map[string]interface {}".
std::string_view go_type(const Value& value);
// As printed by reflect.Kind: "slice".
std::string_view go_kind(const Value& value);

// The value as printed by %v: map[a:1 b:[x y]].
std::string go_text(const Value& value);
// The value as printed by %#v: map[string]interface {}{"a":1}.
std::string go_syntax(const Value& value);

}  // namespace holdfast::codec
