// Objects that older servers stored: in versions that are no longer served, but that Kubernetes still reads from the
// store (those that are registered in its legacyscheme), and Services without the fields of today.
//
//   stored value -> decode as type_of(version) -> upgraded() -> an object of served_version(version)
//
// Pure functions; results are in the arena.
#pragma once

#include <span>
#include <string_view>

#include "types/types.h"
#include "value/value.h"

namespace holdfast::kinds {

struct StoredVersion {
  std::string_view api_version, kind;
  std::string_view served_as;  // The version of today: "apps/v1".
  std::string_view type = {};  // If it has other fields or numbers than today's.
  void (*upgrade)(Arena& arena, Draft::Node object) = nullptr;
};
std::span<const StoredVersion> stored_versions();
// Null if there is none.
const StoredVersion* find_stored_version(std::string_view api_version, std::string_view kind);
const types::Resource& served_version(const StoredVersion& version);
const types::Type& type_of(const StoredVersion& version);
// With the defaults that the version had.
Value upgraded(Arena& arena, const StoredVersion& version, const Value& object);

// Adds to a Service, after defaults, what it lacks if it was stored before Services had several cluster IPs and
// families: a headless one is of the default family. Removes the traffic policy inside the cluster from one of type
// ExternalName, for which it has no meaning.
void complete_stored_service(Arena& arena, Draft::Node service, std::string_view default_family);

}  // namespace holdfast::kinds
