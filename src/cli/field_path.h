// Paths as errors show them (".spec.ports[port=80,protocol="TCP"].name"), found again in an object.
//
// Such a text can be read only together with the object: keys of maps may hold dots. Items of keyed lists are found by
// their keys, of which an object that was written by hand may leave out those with defaults.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "value/value.h"

namespace holdfast::cli {

struct PathStep {
  std::string_view key;  // Of a map's member.
  size_t index = 0;      // Of a list's item.
  bool in_list = false;
};
// Nothing where the object has no such field.
std::optional<std::vector<PathStep>> find_path(const Value& root, std::string_view path);

// The value there; null pointer where there is none.
const Value* value_at(const Value& root, std::string_view path);
// The object with another value there, or without the field (null pointer). As it was where it has no such field. A
// keyed item loses the field, not its key.
Value with_value_at(Arena& arena, const Value& root, std::string_view path, const Value* value);

// Whether `path` is the field `outer` or inside it.
bool is_within(std::string_view path, std::string_view outer);

}  // namespace holdfast::cli
