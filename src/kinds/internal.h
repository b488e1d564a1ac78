// Values as the structs inside kube-apiserver print them. Some errors quote those. Private to the module.
#pragma once

#include "kinds/field_errors.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::kinds {

// Go's names instead of those of the API, and every field shown: {"Kind":"Pod","Name":"","UID":"", ...}.
// `value` may be null or absent: Go's zero value. metav1 types look the same on either side.
Value internal_form(Arena& arena, const types::Type& type, const Value* value);
// The same as text of an error.
Shown shown_internal(const types::Type& type, const Value* value);
// The member of a struct: an absent one is Go's nil, or the zero value of what is not a pointer.
Shown shown_internal(const types::Type& parent, const Value& object, std::string_view key);

}  // namespace holdfast::kinds
