// Objects of the watch caches as the controllers look at them, and where they are in the API.
#pragma once

#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/error.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::controllers {

// A canonical body as a tree. Texts point into `body`.
Result<Value> object_tree(Arena& arena, const types::Type& type, std::string_view body);
// Only what is in `metadata`, of an object of whatever type: the value of that member.
Result<Value> metadata_of(Arena& arena, std::string_view body);

// "/apis/apps/v1/namespaces/NS/deployments": of a namespaced resource in one namespace, else all.
std::string collection_path(const types::Resource& resource, std::string_view ns);
// `key` is "namespace/name" or "name", as caches have it.
std::string object_path(const types::Resource& resource, std::string_view key);
// Of a namespaced resource's key; empty otherwise.
std::string_view namespace_of(const types::Resource& resource, std::string_view key);
std::string_view name_of(const types::Resource& resource, std::string_view key);

bool has_verb(const types::Resource& resource, std::string_view verb);

}  // namespace holdfast::controllers
