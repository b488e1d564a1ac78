#include "access/escalation.h"

#include "base/api_error.h"
#include "rbac/rbac.h"

namespace holdfast::access {
namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
// Comparing so many verbs, resources and so on of a user's rules takes about a millisecond.
constexpr size_t kManyTexts = 10'000;

// Updates that only change fields used by garbage collection need no extra permissions. Matches upstream's
// IsOnlyMutatingGCFields.
bool only_collects(Arena& arena, const Value& next, const Value& old) {
  auto without = [&arena](const Value& object) {
    Value bare = object;
    for (const std::string_view key : {"ownerReferences", "finalizers", "resourceVersion", "managedFields"}) {
      const std::string_view path[] = {"metadata", key};
      bare = without_path(arena, bare, path);
    }
    return bare;
  };
  return equal(without(next), without(old));
}

// The roles of the user.
struct Held {
  std::vector<rbac::RulesRef> roles;
  std::string problem;

  Held(const call::Call& call, const RbacAuthorizer& rbac) {
    if (const std::shared_ptr<const rbac::Index> index = rbac.index()) {
      roles = index->rules_for(*call.user, call.ns(), &problem);
    }
  }
};

Result<Unit> check_held(const call::Call& call, const Held& held, const std::vector<rbac::Rule>& wanted,
                        std::string_view name) {
  std::vector<rbac::Rule> missing;
  if (rbac::covers(held.roles, wanted, &missing)) return Unit{};
  Error error = rbac::escalation_error(*call.user, to_string(call.group_resource()), name, missing);
  if (!held.problem.empty()) error.message += "; resolution errors: [" + held.problem + "]";
  return error;
}

bool aggregates(const Value& role) { return !role.items_at("aggregationRule", "clusterRoleSelectors").empty(); }

Result<Unit> check_role(const call::Call& call, const Held& own, const Value& role, const Value* old) {
  const std::string_view name = role.text_at("metadata", "name");
  Result<Unit> held = check_held(call, own, rbac::rules_from(role.find("rules")), name);
  if (!held) return held;
  if (!aggregates(role) && (old == nullptr || !aggregates(*old))) return Unit{};
  // An aggregated role can pick up arbitrary rules.
  const std::vector<rbac::Rule> everything = {
      {.verbs = {"*"}, .groups = {"*"}, .resources = {"*"}, .names = {}, .paths = {}},
      {.verbs = {"*"}, .groups = {}, .resources = {}, .names = {}, .paths = {"*"}}};
  if (check_held(call, own, everything, name)) return Unit{};
  return forbidden(call.group_resource(), name, "must have cluster-admin privileges to use the aggregationRule");
}

Task<Result<Unit>> check_binding(call::Call& call, const auth::Authorizer& authorizer, const Held& own,
                                 const Value& binding) {
  const std::string_view kind = binding.text_at("roleRef", "kind"), role = binding.text_at("roleRef", "name");
  const std::string_view plural = kind == "Role" ? "roles" : "clusterroles";
  if (kind != "Role" && kind != "ClusterRole")
    co_return untyped("unsupported role reference kind: \"" + std::string(kind) + "\"");
  const auth::Attributes bind(
      call.user.get(), "bind",
      {.group = binding.text_at("roleRef", "apiGroup"), .resource = plural, .ns = call.ns(), .name = role});
  if (authorizer.allows(bind)) co_return Unit{};
  // From the store: the index may not include a role that was just created.
  resource::Storage& storage = *call.registry->storage_of(kGroup, plural);
  Result<cache::Cache::Latest> latest = co_await storage.cache().latest(
      storage.short_key(kind == "Role" ? call.ns() : std::string_view(), role), call.executor());
  if (!latest) co_return latest.take_error();
  // Matches upstream: the error names the resource of the request.
  if (!latest->entry) co_return not_found(call.group_resource(), role);
  if (latest->entry->body_bytes() > call::kLongBytes) co_await leave_loop(call);
  const store::Blob body = latest->entry->body();
  Result<Value> tree = storage.codec().tree(call.arena, call.arena.copy(*body));
  if (!tree) co_return tree.take_error();
  co_return check_held(call, own, rbac::rules_from(tree->find("rules")), binding.text_at("metadata", "name"));
}

}  // namespace

Task<Result<Unit>> check_escalation(call::Call& call, const auth::Authorizer& authorizer, const RbacAuthorizer* rbac,
                                    const Value& next, const Value* old) {
  const types::Resource& resource = *call.served->resource;
  if (resource.group != kGroup || rbac == nullptr) co_return Unit{};
  const bool is_role = resource.plural == "roles" || resource.plural == "clusterroles";
  const bool is_binding = resource.plural == "rolebindings" || resource.plural == "clusterrolebindings";
  if (!is_role && !is_binding) co_return Unit{};
  if (call.user->in_group(auth::kMastersGroup)) co_return Unit{};
  if (is_role && authorizer.allows(call.attributes("escalate"))) co_return Unit{};
  if (old != nullptr && only_collects(call.arena, next, *old)) co_return Unit{};
  const Held own(call, *rbac);
  // A user may hold megabytes of rules.
  if (rbac::texts_in(own.roles) > kManyTexts) co_await leave_loop(call);
  if (is_role) co_return check_role(call, own, next, old);
  co_return co_await check_binding(call, authorizer, own, next);
}

}  // namespace holdfast::access
