#include "write/param_access.h"

#include <optional>

#include "base/api_error.h"
#include "policy/policy.h"

namespace holdfast::write {
namespace {

constexpr std::string_view kGroup = "admissionregistration.k8s.io";

std::optional<policy::ParamKind> param_kind(const Value& policy) {
  const Value* kind = policy.get("spec", "paramKind");
  if (kind == nullptr || !kind->is_map()) return std::nullopt;
  return policy::ParamKind{std::string(kind->text_at("apiVersion")), std::string(kind->text_at("kind"))};
}

// Formats a user as Go does.
std::string shown(const auth::UserInfo& user) {
  std::string text = "&{" + user.name + " " + user.uid + " [";
  for (const std::string& group : user.groups) text += (text.back() == '[' ? "" : " ") + group;
  text += "] map[";
  for (const auto& [key, values] : user.extra) {
    text += (text.back() == '[' ? "" : " ") + key + ":[";
    for (const std::string& value : values) text += (text.back() == '[' ? "" : " ") + value;
    text += "]";
  }
  return text + "]}";
}

bool same_member(const Value& a, const Value& b, std::string_view key) {
  const Value *of_a = a.get("spec", key), *of_b = b.get("spec", key);
  return of_a != nullptr && of_b != nullptr && equal(*of_a, *of_b);
}

// The resource that must be readable: everything, if the params' resource is unknown.
struct Wanted {
  std::string_view group = "*", version = "*", resource = "*";
  bool resolved = false;
};
Wanted wanted_of(const call::Call& call, const policy::ParamKind& kind) {
  Wanted wanted{kind.group(), kind.version()};
  if (const resource::Served* served = call.registry->find_kind(wanted.group, wanted.version, kind.kind)) {
    wanted.resource = served->resource->plural;
    wanted.resolved = true;
  }
  return wanted;
}

bool may(const call::Call& call, const auth::Authorizer& authorizer, std::string_view verb, const Wanted& wanted,
         std::string_view ns, std::string_view name) {
  return authorizer.allows(
      {call.user.get(),
       verb,
       {.group = wanted.group, .version = wanted.version, .resource = wanted.resource, .ns = ns, .name = name}});
}

Error refused(const call::Call& call, const Value& object, std::string_view field, const std::string& why) {
  return invalid(call.group_kind(), object.text_at("metadata", "name"), {field_forbidden(std::string(field), why)});
}

Result<Unit> check_policy(const call::Call& call, const auth::Authorizer& authorizer, const Value& next,
                          const Value* old) {
  const std::optional<policy::ParamKind> kind = param_kind(next);
  if (!kind || (old != nullptr && same_member(next, *old, "paramKind"))) return Unit{};
  if (may(call, authorizer, "get", wanted_of(call, *kind), "*", "*")) return Unit{};
  return refused(call, next, "spec.paramKind",
                 "user " + shown(*call.user) + " must have \"get\" permission on all objects of the referenced " +
                     "paramKind (kind=" + kind->kind + ", apiVersion=" + kind->api_version + ")");
}

Result<Unit> check_binding(const call::Call& call, const auth::Authorizer& authorizer, std::string_view policies,
                           const Value& next, const Value* old) {
  const Value* reference = next.get("spec", "paramRef");
  if (reference == nullptr || !reference->is_map()) return Unit{};
  if (old != nullptr && same_member(next, *old, "paramRef") && same_member(next, *old, "policyName")) return Unit{};
  const std::string_view policy_name = next.text_at("spec", "policyName"), name = reference->text_at("name");
  const std::string_view verb = name.empty() ? "list" : "get";
  Arena arena;
  std::optional<policy::ParamKind> kind;
  bool found = false;
  resource::Storage* storage = call.registry->storage_of(kGroup, policies);
  if (Result<cache::Snapshot> snapshot = storage->cache().snapshot()) {
    if (const cache::EntryRef entry = snapshot->find(policy_name)) {
      const store::Blob body = entry->body();
      if (Result<Value> tree = storage->codec().tree(arena, *body)) {
        found = true;
        kind = param_kind(*tree);
      }
    }
  }
  const Wanted wanted = kind ? wanted_of(call, *kind) : Wanted{};
  if (may(call, authorizer, verb, wanted, reference->text_at("namespace"), name)) return Unit{};
  const std::string user = "user " + shown(*call.user) + " does not have \"" + std::string(verb) + "\" permission ";
  const std::string minimum =
      " to determine minimum required permissions and " + user + "for all groups, versions and resources";
  std::string why = user + "on the object referenced by paramRef";
  if (!found) {
    why = "unable to get policy " + std::string(policy_name) + minimum;
  } else if (kind && !wanted.resolved) {
    why = "unable to resolve paramKind &{" + kind->api_version + " " + kind->kind + "}" + minimum;
  }
  return refused(call, next, "spec.paramRef", why);
}

}  // namespace

Result<Unit> check_param_access(const call::Call& call, const auth::Authorizer& authorizer, const Value& next,
                                const Value* old) {
  const types::Resource& resource = *call.served->resource;
  if (resource.group != kGroup || call.user->in_group(auth::kMastersGroup)) return Unit{};
  if (resource.kind == "ValidatingAdmissionPolicy" || resource.kind == "MutatingAdmissionPolicy") {
    return check_policy(call, authorizer, next, old);
  }
  if (resource.kind == "ValidatingAdmissionPolicyBinding") {
    return check_binding(call, authorizer, "validatingadmissionpolicies", next, old);
  }
  if (resource.kind == "MutatingAdmissionPolicyBinding") {
    return check_binding(call, authorizer, "mutatingadmissionpolicies", next, old);
  }
  return Unit{};
}

}  // namespace holdfast::write
