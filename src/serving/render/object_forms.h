// Forms of an object as a tree. Private to the module.
#pragma once

#include "base/arena.h"
#include "render/render.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::render {

Value with_sorted_members(Arena& arena, const Value& map);
// Orders members as Go prints a struct: in declaration order, with maps sorted. Needed for metadata of custom objects,
// whose members are all sorted, and for converted objects.
Value in_declared_order(Arena& arena, const types::Type& type, const Value& value);

// The PartialObjectMetadata of an object in the requested version.
Value partial_metadata(Arena& arena, const View& view, const Value& object);

}  // namespace holdfast::render
