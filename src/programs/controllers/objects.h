// Helpers for controllers: decoding cached objects, and their API paths.
#pragma once

#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/error.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::controllers {

// Decodes a canonical body. Strings point into `body`.
Result<Value> object_tree(Arena& arena, const types::Type& type, std::string_view body);
// Decodes only `metadata`, for an object of any type, and returns its value.
Result<Value> metadata_of(Arena& arena, std::string_view body);

// The path of an object. `key` is the cache key: "namespace/name" or "name".
std::string object_path(const types::Resource& resource, std::string_view key);
// The namespace in the key of a namespaced resource; empty otherwise.
std::string_view namespace_of(const types::Resource& resource, std::string_view key);
std::string_view name_of(const types::Resource& resource, std::string_view key);

bool has_verb(const types::Resource& resource, std::string_view verb);

}  // namespace holdfast::controllers
