// Resolves paths as written in errors (".spec.ports[port=80,protocol="TCP"].name") in an object.
//
// A path can only be parsed together with the object, because map keys may contain dots. Items of keyed lists are found
// by their keys; an object written by hand may omit keys that have defaults.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "value/value.h"

namespace holdfast::cli {

struct PathStep {
  std::string_view key;  // For a map member.
  size_t index = 0;      // For a list item.
  bool in_list = false;
};
// nullopt if the object has no such field.
std::optional<std::vector<PathStep>> find_path(const Value& root, std::string_view path);

// The value at `path`; null if there is none.
const Value* value_at(const Value& root, std::string_view path);
// The object with the field set to `value`, or removed if that is null; unchanged if it has no such field. The keys of
// a list item are never removed.
Value with_value_at(Arena& arena, const Value& root, std::string_view path, const Value* value);

// The paths of --force-fields: comma-separated, and also each value as a whole, since a map's keys may contain commas.
// Commas in brackets belong to the keys of a list item.
std::vector<std::string> split_paths(const std::vector<std::string>& values);

// `config` with an unset marker at `path`. The path is resolved in `live`, where map keys may contain dots; a field
// that does not exist there is split at its dots. BadRequest if an item of a list is not given by its keys, or an
// element of a set by its value.
Result<Value> with_marker_at(Arena& arena, const Value& config, const Value& live, std::string_view path);

// Whether `path` is the field `outer` or inside it.
bool is_within(std::string_view path, std::string_view outer);

}  // namespace holdfast::cli
