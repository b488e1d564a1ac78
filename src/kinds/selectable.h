// The fields that built-in kinds can be selected by, and their values in an object.
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

// Which fields of a resource can be selected beside metadata.name and metadata.namespace.
struct SelectableFields {
  std::span<const std::string_view> names = {};  // In the order of selectable_values().
  bool namespaced = true;
  // Kinds with a list of their own word a refusal so ("field label not supported: %s"); empty: the general wording.
  std::string_view refusal = {};
  // Names that mean another: pods' spec.host is spec.nodeName. Pairs of alias and name.
  std::span<const std::pair<std::string_view, std::string_view>> aliases = {};
  bool only_aliases = false;  // The names themselves are not known under this version.
};

// By the resource as requested: events.k8s.io names them differently from core/v1.
SelectableFields selectable_fields(const types::Resource& resource);
// Positions in its names that deserve an index.
std::span<const uint16_t> indexed_fields(const types::Resource& resource);

// The values in an object of the stored version, in the order of the names. Strings are in the object or in `arena`.
std::vector<std::string_view> selectable_values(Arena& arena, const types::Resource& stored, const Value& object);

}  // namespace holdfast::kinds
