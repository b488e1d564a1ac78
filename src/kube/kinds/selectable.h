// The selectable fields of built-in kinds, and their values in an object.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::kinds {

// Selectable fields of a resource other than metadata.name and metadata.namespace.
struct SelectableFields {
  std::span<const std::string_view> names = {};  // In the order of selectable_values().
  bool namespaced = true;
  // Error for unknown fields, for kinds that have their own ("field label not supported: %s"); empty for the general
  // one.
  std::string_view refusal = {};
  // Alternative names, as pairs of alias and name: for pods, spec.host is spec.nodeName.
  std::span<const std::pair<std::string_view, std::string_view>> aliases = {};
  bool only_aliases = false;  // The names themselves are not known in this version.
};

// For the resource as requested: events.k8s.io uses other names than core/v1.
SelectableFields selectable_fields(const types::Resource& resource);
// Positions in its names that are worth an index.
std::span<const uint16_t> indexed_fields(const types::Resource& resource);

// The values in an object of the stored version, in the order of the names. They point into the object or `arena`.
std::vector<std::string_view> selectable_values(Arena& arena, const types::Resource& stored, const Value& object);

}  // namespace holdfast::kinds
