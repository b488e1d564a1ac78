#include <algorithm>
#include <vector>

#include "patch/patch.h"
#include "patch/unfold.h"

namespace holdfast::patch {
namespace {

Value sorted_map(Arena& arena, std::vector<Member> members) {
  std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.key < b.key; });
  return Value::map(arena, arena.copy(std::span<const Member>(members)));
}

// Removes nulls from added values, except from lists.
Value without_nulls(Arena& arena, const Value& value) {
  if (value.is_map()) {
    std::vector<Member> members;
    members.reserve(value.count());
    for (const Member& member : value.members()) {
      if (!member.value.is_null()) members.push_back({member.key, without_nulls(arena, member.value)});
    }
    return sorted_map(arena, std::move(members));
  }
  if (value.is_list()) {
    ListBuilder list(arena);
    for (const Value& item : value.items()) list.add(without_nulls(arena, item));
    return list.build();
  }
  return value;
}

Value merge_maps(Arena& arena, const Value& object, const Value& patch) {
  std::vector<Member> members;
  members.reserve(object.count() + patch.count());
  for (const Member& member : object.members()) {
    const Value* change = patch.find(member.key);
    if (change == nullptr) {
      members.push_back(member);
      continue;
    }
    if (change->is_null()) continue;
    const Value before = unfolded(arena, member.value);
    if (before.is_map() && change->is_map()) {
      members.push_back({member.key, merge_maps(arena, before, *change)});
    } else if (before.is_map()) {
      // Upstream does not remove nulls from a value that replaces a map.
      members.push_back({member.key, *change});
    } else {
      members.push_back({member.key, without_nulls(arena, *change)});
    }
  }
  for (const Member& change : patch.members()) {
    if (!change.value.is_null() && !object.has(change.key)) {
      members.push_back({change.key, without_nulls(arena, change.value)});
    }
  }
  return sorted_map(arena, std::move(members));
}

}  // namespace

Result<Value> apply_merge_patch(Arena& arena, const Value& object, const Value& patch) {
  if (!patch.is_map()) return bad_request("Invalid JSON Patch");
  if (!object.is_map()) return bad_request("Invalid JSON Document");
  return merge_maps(arena, object, patch);
}

}  // namespace holdfast::patch
