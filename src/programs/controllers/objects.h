// Helpers for controllers: decoding cached objects, and calling the API about them.
#pragma once

#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/error.h"
#include "own_calls/requests.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::controllers {

// Decodes a canonical body. Strings point into `body`.
Result<Value> object_tree(Arena& arena, const types::Type& type, std::string_view body);
// Decodes only `metadata`, for an object of any type, and returns its value.
Result<Value> metadata_of(Arena& arena, std::string_view body);

// The field manager of changes made by controllers.
inline constexpr std::string_view kControllerManager = "kube-controller-manager";

// An object as the target of a call. `key` is the cache key: "namespace/name" or "name".
own_calls::Target target_of(const types::Resource& resource, std::string_view key);
// The namespace in the key of a namespaced resource; empty otherwise.
std::string_view namespace_of(const types::Resource& resource, std::string_view key);
std::string_view name_of(const types::Resource& resource, std::string_view key);

bool has_verb(const types::Resource& resource, std::string_view verb);

}  // namespace holdfast::controllers
