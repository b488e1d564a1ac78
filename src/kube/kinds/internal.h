// Values as printed by the structs inside kube-apiserver, which some errors quote. Private to the module.
#pragma once

#include "kinds/field_errors.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::kinds {

// With Go's field names instead of the API's, and every field shown: {"Kind":"Pod","Name":"","UID":"", ...}. A null
// `value` or pointer means Go's zero value. metav1 types are the same internally.
Value internal_form(Arena& arena, const types::Type& type, const Value* value);
// The same as the text of an error.
Shown shown_internal(const types::Type& type, const Value* value);
// A member of a struct: if absent, Go's nil or the zero value of a non-pointer.
Shown shown_internal(const types::Type& parent, const Value& object, std::string_view key);

}  // namespace holdfast::kinds
