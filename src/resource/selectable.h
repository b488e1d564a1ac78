// The fields that built-in kinds can be selected by, and their values in an object.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "request/selectors.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::resource {

// By the resource as requested: events.k8s.io names them differently from core/v1.
request::SelectableFields selectable_fields(const types::Resource& resource);
// Positions in its names that deserve an index.
std::span<const uint16_t> indexed_fields(const types::Resource& resource);

// The values in an object of the stored version, in the order of the names. Strings are in the object or in `arena`.
std::vector<std::string_view> selectable_values(Arena& arena, const types::Resource& stored, const Value& object);

}  // namespace holdfast::resource
