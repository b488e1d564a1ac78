// The cells of an object's row in a meta.k8s.io Table, as printed by `kubectl get`.
//
// The cells of built-in kinds are computed like Kubernetes' printers do; a kind without a printer gets its name and
// creation time; custom resources get the JSONPath of each of their columns. Column definitions are part of the
// resource (types::Resource::columns).
//
// Objects are trees in the form that Go would print as JSON, in the version of the resource: absent means zero.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/clock.h"
#include "table/json_path.h"  // IWYU pragma: export
#include "types/types.h"
#include "value/value.h"

namespace holdfast::table {

// The cells of the row, one per column, in order. Strings are in `arena` or in the object.
Value cells(Arena& arena, const types::Resource& resource, const Value& object, UnixTime now);

// The row's conditions (finished pods have one); almost always an empty list.
Value row_conditions(Arena& arena, const types::Resource& resource, const Value& object);

// The cells of a scale subresource (autoscaling/v1 Scale). Built-in and custom resources print its age differently.
enum class ScaleOf : uint8_t { BuiltIn, Custom };
Value scale_cells(Arena& arena, ScaleOf owner, const Value& scale, UnixTime now);
std::span<const types::Column> scale_columns(ScaleOf owner);

// The columns of a custom resource that declares none: Name and Age.
std::span<const types::Column> default_custom_columns();

// "5m", "3d4h", ...: an age, as kubectl prints it.
std::string age_text(int64_t seconds);
std::string age_of(std::string_view rfc3339, UnixTime now);  // "<unknown>" for an empty or unreadable time.

}  // namespace holdfast::table
