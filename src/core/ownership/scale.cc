// Ownership of the scale subresource, whose only field is a field of its parent (managedfields/scalehandler.go).
#include <algorithm>

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

const ReplicasPath* find(std::span<const ReplicasPath> paths, std::string_view api_version) {
  for (const ReplicasPath& path : paths) {
    if (path.api_version == api_version) return &path;
  }
  return nullptr;
}

}  // namespace

Managed scale_entries(Arena& arena, const Managed& parent, std::span<const ReplicasPath> paths) {
  Managed out;
  const FieldSet in_scale = path_set(arena, "spec.replicas");
  for (const ManagerEntry& entry : parent) {
    const ReplicasPath* path = find(paths, entry.api_version);
    if (path == nullptr || path->path.empty() || !entry.fields.includes(path_set(arena, path->path))) continue;
    ManagerEntry scale = entry;
    scale.api_version = kScaleVersion;
    scale.fields = in_scale;
    // Entries of several parent versions may become one manager here: the later one wins, as when reading the list.
    const auto same_manager_entry =
        std::find_if(out.begin(), out.end(), [&](const auto& e) { return same_manager(e, scale); });
    if (same_manager_entry == out.end()) {
      out.push_back(scale);
    } else {
      *same_manager_entry = scale;
    }
  }
  sort_managed(out);
  return out;
}

Managed parent_entries(Arena& arena, const Managed& parent, const Managed& scale, std::string_view api_version,
                       std::span<const ReplicasPath> paths) {
  Managed out;
  Managed left = scale;
  for (const ManagerEntry& entry : parent) {
    const ReplicasPath* path = find(paths, entry.api_version);
    if (path == nullptr) continue;  // A version that is no longer served: the entry is dropped.
    const FieldSet replicas = path->path.empty() ? FieldSet() : path_set(arena, path->path);
    if (replicas.empty() || !entry.fields.includes(replicas)) {
      out.push_back(entry);
      continue;
    }
    const auto kept = std::find_if(left.begin(), left.end(), [&](const auto& e) { return same_manager(e, entry); });
    if (kept != left.end()) {
      out.push_back(entry);
      left.erase(kept);
      continue;
    }
    ManagerEntry robbed = entry;
    robbed.fields = difference(arena, entry.fields, replicas);
    if (!robbed.fields.empty()) out.push_back(robbed);
  }
  const FieldSet in_scale = path_set(arena, "spec.replicas");
  const ReplicasPath* own = find(paths, api_version);
  for (const ManagerEntry& entry : left) {
    if (!entry.fields.includes(in_scale)) continue;
    ManagerEntry moved = entry;
    moved.api_version = api_version;
    moved.fields = own == nullptr || own->path.empty() ? FieldSet() : path_set(arena, own->path);
    // Upstream looks the time up by an identity that the parent's list does not contain and finds none, unless it has
    // an entry of that same manager.
    const auto same_manager_entry =
        std::find_if(parent.begin(), parent.end(), [&](const auto& e) { return same_manager(e, entry); });
    moved.time = same_manager_entry == parent.end() ? std::nullopt : same_manager_entry->time;
    const auto same = std::find_if(out.begin(), out.end(), [&](const auto& e) { return same_manager(e, entry); });
    if (same == out.end()) {
      out.push_back(moved);
    } else {
      *same = moved;
    }
  }
  sort_managed(out);
  return out;
}

}  // namespace holdfast::ownership
