#include "server/reconcile.h"

#include <algorithm>

#include "rbac/rbac.h"

namespace holdfast::server {
namespace {

constexpr std::string_view kAutoUpdate = "rbac.authorization.kubernetes.io/autoupdate";

// Adds the members of metadata.`key` that the live object does not have.
bool add_metadata(Draft::Node live, const Value& wanted, std::string_view key) {
  bool changed = false;
  for (const Member& member : wanted.members_at("metadata", key)) {
    Draft::Node map = live.child("metadata").child(key);
    if (map.find(member.key) != nullptr) continue;
    map.set(member.key, member.value);
    changed = true;
  }
  return changed;
}

// Adds the items of a list that are not in it.
bool add_items(Arena& arena, Draft::Node owner, std::string_view key, std::span<const Value> wanted) {
  const Value* found = owner.find(key);
  const std::span<const Value> live = found != nullptr && found->is_list() ? found->items() : std::span<const Value>();
  ListBuilder all(arena);
  for (const Value& item : live) all.add(item);
  bool changed = false;
  for (const Value& item : wanted) {
    if (std::any_of(live.begin(), live.end(), [&](const Value& other) { return equal(other, item); })) continue;
    all.add(item);
    changed = true;
  }
  if (changed) owner.set(key, all.build());
  return changed;
}

bool add_rules(Arena& arena, Draft::Node role, const Value& live, const Value& wanted) {
  const Value *held = live.find("rules"), *needed = wanted.find("rules");
  if (needed == nullptr || !needed->is_list() || (held != nullptr && equal(*held, *needed))) return false;
  std::vector<rbac::Rule> missing;
  if (rbac::covers(rbac::rules_from(held), rbac::rules_from(needed), &missing)) return false;
  ListBuilder rules(arena);
  if (held != nullptr && held->is_list()) {
    for (const Value& rule : held->items()) rules.add(rule);
  }
  for (const rbac::Rule& rule : missing) rules.add(rbac::to_value(arena, rule));
  role.set("rules", rules.build());
  return true;
}

}  // namespace

std::optional<Value> reconcile(Arena& arena, const Value& live, const Value& wanted) {
  if (live.text_at("metadata", "annotations", kAutoUpdate) == "false") return std::nullopt;
  Draft draft(arena, live);
  bool changed = add_metadata(draft.root(), wanted, "labels");
  changed = add_metadata(draft.root(), wanted, "annotations") || changed;
  if (const Value* role = wanted.find("roleRef")) {
    const Value* now = live.find("roleRef");
    if (now == nullptr || !equal(*now, *role)) {
      draft.root().set("roleRef", *role);
      changed = true;
    }
    changed = add_items(arena, draft.root(), "subjects", wanted.items_at("subjects")) || changed;
  } else if (wanted.has("aggregationRule")) {
    // Its rules are the controller's.
    changed = add_items(arena, draft.root().child("aggregationRule"), "clusterRoleSelectors",
                        wanted.items_at("aggregationRule", "clusterRoleSelectors")) ||
              changed;
  } else {
    changed = add_rules(arena, draft.root(), live, wanted) || changed;
  }
  if (!changed) return std::nullopt;
  return draft.value();
}

Value split_binding(Arena& arena, const Value& wanted, const Value& source) {
  Draft draft(arena, wanted);
  const Value* subjects = source.find("subjects");
  if (subjects == nullptr) {
    draft.root().remove("subjects");
  } else {
    draft.root().set("subjects", *subjects);
  }
  for (const std::string_view key : {"labels", "annotations"}) {
    const Value* map = source.get("metadata", key);
    if (map == nullptr) {
      draft.root().child("metadata").remove(key);
    } else {
      draft.root().child("metadata").set(key, *map);
    }
  }
  return draft.value();
}

}  // namespace holdfast::server
