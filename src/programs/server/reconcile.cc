#include "server/reconcile.h"

#include <algorithm>

#include "base/strings.h"
#include "codec/codec.h"
#include "rbac/rbac.h"

namespace holdfast::server {
namespace {

constexpr std::string_view kAutoUpdateSpec = "apf.kubernetes.io/autoupdate-spec";
constexpr std::string_view kAutoUpdate = "rbac.authorization.kubernetes.io/autoupdate";

// Adds the members of metadata.`key` that the live object lacks.
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

// Adds missing items to a list.
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

// The certificates of a bundle, without any text between them.
std::vector<std::string> certificates_of(std::string_view bundle) {
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----", kEnd = "-----END CERTIFICATE-----";
  std::vector<std::string> all;
  while (true) {
    const size_t begin = bundle.find(kBegin);
    const size_t end = begin == std::string_view::npos ? begin : bundle.find(kEnd, begin);
    if (end == std::string_view::npos) return all;
    all.push_back(std::string(bundle.substr(begin, end + kEnd.size() - begin)) + "\n");
    bundle.remove_prefix(end + kEnd.size());
  }
}

std::vector<std::string> list_of(std::string_view json) {
  Arena arena;
  const Result<Value> list = codec::decode_json(arena, json);
  return list && list->is_list() ? texts_of(list->items()) : std::vector<std::string>();
}

void add_missing(std::vector<std::string>& to, const std::vector<std::string>& from) {
  for (const std::string& item : from) {
    if (std::find(to.begin(), to.end(), item) == to.end()) to.push_back(item);
  }
}

// Merges both values in the format of this member of the ConfigMap.
std::string united(std::string_view member, std::string_view live, std::string_view wanted) {
  if (member.ends_with("ca-file")) {
    std::vector<std::string> all;
    add_missing(all, certificates_of(live));
    add_missing(all, certificates_of(wanted));
    return join(all, "");
  }
  std::vector<std::string> all;
  add_missing(all, list_of(live));
  add_missing(all, list_of(wanted));
  Arena arena;
  ListBuilder list(arena);
  for (const std::string& item : all) list.add(Value::string(item));
  return codec::encode_json(list.build());
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
    // Its rules are maintained by the controller.
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

bool is_kept_flow(const Value& live) {
  return parse_bool(live.text_at("metadata", "annotations", kAutoUpdateSpec)).value_or(false);
}

std::optional<Value> reconcile_flow(Arena& arena, const Value& live, const Value& wanted) {
  const std::string_view name = wanted.text_at("metadata", "name");
  const std::optional<bool> said = parse_bool(live.text_at("metadata", "annotations", kAutoUpdateSpec));
  const bool mandatory = name == "exempt" || name == "catch-all";
  // Without the annotation: ours if the spec has never been changed.
  const bool ours = mandatory || said.value_or(live.int_at_or(0, "metadata", "generation") == 1);
  const Value* now = live.find("spec");
  Value then = *wanted.find("spec");
  // Users may configure how much the exempt level lends.
  const Value* exempt = now == nullptr ? nullptr : now->find("exempt");
  if (exempt != nullptr && then.has("exempt")) then = with_member(arena, then, "exempt", *exempt);
  const bool differs = ours && (now == nullptr || !equal(*now, then));
  if (!differs && said == ours) return std::nullopt;
  Draft draft(arena, live);
  if (differs) draft.root().set("spec", then);
  if (said != ours) {
    draft.root().child("metadata").child("annotations").set(kAutoUpdateSpec, Value::string(ours ? "true" : "false"));
  }
  return draft.value();
}

std::optional<Value> reconcile_authentication(Arena& arena, const Value& live, const Value& wanted) {
  Draft draft(arena, live);
  bool changed = false;
  for (const Member& member : wanted.members_at("data")) {
    const std::string_view before = live.text_at("data", member.key);
    const std::string after = united(member.key, before, member.value.as_string());
    if (after == before) continue;
    draft.root().child("data").set(member.key, Value::string(arena, after));
    changed = true;
  }
  if (!changed) return std::nullopt;
  return draft.value();
}

ServiceCidrRepair reconcile_service_cidr(Arena& arena, const Value& live, const Value& wanted) {
  const std::span<const Value> now = live.items_at("spec", "cidrs"), flag = wanted.items_at("spec", "cidrs");
  if (now.size() == 1 && flag.size() == 2 && equal(now[0], flag[0])) {
    Draft draft(arena, live);
    draft.root().child("spec").set("cidrs", *wanted.get("spec", "cidrs"));
    return {.object = draft.value()};
  }
  if (!live.text_at("metadata", "deletionTimestamp").empty()) return {};
  const bool same = std::equal(now.begin(), now.end(), flag.begin(), flag.end(),
                               [](const Value& a, const Value& b) { return equal(a, b); });
  if (!same) return {.differs = true};
  for (const Value& condition : live.items_at("status", "conditions")) {
    if (condition.text_at("type") == "Ready") return {.not_ready = condition.text_at("status") == "Unknown"};
  }
  return {.not_ready = true};
}

}  // namespace holdfast::server
