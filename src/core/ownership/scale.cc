// Ownership of the scale subresource, whose only field is a field of its parent (managedfields/scalehandler.go).
#include <algorithm>

#include "ownership/manager_places.h"
#include "ownership/ownership.h"

namespace holdfast::ownership {
namespace {

constexpr std::string_view kScaleVersion = "autoscaling/v1";

FieldSet path_set(Arena& arena, std::string_view dotted) {
  std::vector<PathElement> path;
  if (dotted.starts_with('.')) dotted.remove_prefix(1);
  while (!dotted.empty()) {
    const size_t dot = dotted.find('.');
    path.push_back(PathElement::field(arena.copy(dotted.substr(0, dot))));
    dotted = dot == std::string_view::npos ? std::string_view() : dotted.substr(dot + 1);
  }
  return single(arena, path);
}

// The field of each version, as a set.
class VersionedPaths {
 public:
  VersionedPaths(Arena& arena, std::span<const ReplicasPath> paths) {
    sets_.reserve(paths.size());
    for (const ReplicasPath& path : paths) sets_.emplace_back(path.api_version, path_set(arena, path.path));
  }
  // Null if the version is not served; empty if it has no scale subresource.
  const FieldSet* find(std::string_view api_version) const {
    for (const auto& [version, set] : sets_) {
      if (version == api_version) return &set;
    }
    return nullptr;
  }

 private:
  std::vector<std::pair<std::string_view, FieldSet>> sets_;
};

}  // namespace

Managed scale_entries(Arena& arena, const Managed& parent, std::span<const ReplicasPath> paths) {
  Managed out;
  ManagerPlaces places(out);
  const VersionedPaths replicas(arena, paths);
  const FieldSet in_scale = path_set(arena, "spec.replicas");
  for (const ManagerEntry& entry : parent) {
    const FieldSet* path = replicas.find(entry.api_version);
    if (path == nullptr || path->empty() || !entry.fields.includes(*path)) continue;
    ManagerEntry scale = entry;
    scale.api_version = kScaleVersion;
    scale.fields = in_scale;
    // Entries of several parent versions may become one manager here: the later one wins, as when reading the list.
    places.put(scale);
  }
  sort_managed(out);
  return out;
}

Managed parent_entries(Arena& arena, const Managed& parent, const Managed& scale, std::string_view api_version,
                       std::span<const ReplicasPath> paths) {
  Managed out;
  const VersionedPaths replicas(arena, paths);
  Managed left = scale;
  ManagerPlaces places_left(left);
  std::vector<bool> matched(left.size());  // With an entry of the parent.
  for (const ManagerEntry& entry : parent) {
    const FieldSet* path = replicas.find(entry.api_version);
    if (path == nullptr) continue;  // A version that is no longer served: the entry is dropped.
    if (path->empty() || !entry.fields.includes(*path)) {
      out.push_back(entry);
      continue;
    }
    const size_t kept = places_left.find(entry);
    if (kept != left.size() && !matched[kept]) {
      out.push_back(entry);
      matched[kept] = true;
      continue;
    }
    ManagerEntry robbed = entry;
    robbed.fields = difference(arena, entry.fields, *path);
    if (!robbed.fields.empty()) out.push_back(robbed);
  }
  const FieldSet in_scale = path_set(arena, "spec.replicas");
  const FieldSet* own = replicas.find(api_version);
  Managed before = parent;
  ManagerPlaces places_before(before), places(out);
  for (size_t i = 0; i < left.size(); ++i) {
    if (matched[i] || !left[i].fields.includes(in_scale)) continue;
    ManagerEntry moved = left[i];
    // Upstream looks the time up by an identity that the parent's list does not contain and finds none, unless it has
    // an entry of that same manager.
    const size_t same = places_before.find(left[i]);
    moved.time = same == before.size() ? std::nullopt : before[same].time;
    moved.api_version = api_version;
    moved.fields = own == nullptr ? FieldSet() : *own;
    const size_t known = places.find(left[i]);
    if (known == out.size()) {
      out.push_back(moved);
    } else {
      out[known] = moved;
    }
  }
  sort_managed(out);
  return out;
}

}  // namespace holdfast::ownership
