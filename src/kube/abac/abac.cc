#include "abac/abac.h"

#include <algorithm>

#include "base/api_error.h"
#include "base/arena.h"
#include "base/strings.h"
#include "codec/codec.h"
#include "value/value.h"

namespace holdfast::abac {
namespace {

constexpr std::string_view kVersion = "abac.authorization.kubernetes.io/v1beta1";
constexpr std::string_view kAny = "*";

bool matches(std::string_view pattern, std::string_view text) { return pattern == kAny || pattern == text; }

// A "*" for users means those who are authenticated.
void mean_authenticated(Policy& policy) {
  policy.group = auth::kAuthenticatedGroup;
  policy.user.clear();
}

// Policies without a version: what they leave out matches everything.
void convert_unversioned(Policy& policy) {
  if (policy.user.empty() && policy.group.empty()) policy.group = auth::kAuthenticatedGroup;
  if (policy.ns.empty() && policy.resource.empty()) policy.path = kAny;
  if (policy.ns.empty()) policy.ns = kAny;
  if (policy.resource.empty()) policy.resource = kAny;
  policy.api_group = kAny;
}

Result<Policy> read_policy(Arena& arena, std::string_view line) {
  Result<Value> tree = codec::decode_json(arena, line);
  if (!tree) return tree.take_error();
  if (!tree->is_map()) return bad_request("not an object");
  const std::string_view version = tree->text_at("apiVersion"), kind = tree->text_at("kind");
  const bool versioned = version == kVersion && kind == "Policy";
  if (!versioned && (!version.empty() || !kind.empty())) {
    return bad_request("unknown kind " + std::string(kind) + " of " + std::string(version) + "; supported: Policy of " +
                       std::string(kVersion));
  }
  static const Value kNothing = Value::empty_map();
  const Value* spec = versioned ? tree->find("spec") : &*tree;
  if (spec == nullptr) spec = &kNothing;
  Policy policy;
  const std::pair<std::string_view, std::string*> texts[] = {
      {"user", &policy.user},         {"group", &policy.group},  {"apiGroup", &policy.api_group},
      {"resource", &policy.resource}, {"namespace", &policy.ns}, {"nonResourcePath", &policy.path}};
  if (!spec->is_map()) return bad_request("spec: not an object");
  for (const auto& [name, into] : texts) {
    const Value* found = spec->find(name);
    if (found == nullptr || found->is_null()) continue;
    if (!found->is_string()) return bad_request(std::string(name) + ": not a string");
    *into = found->as_string();
  }
  if (const Value* found = spec->find("readonly"); found != nullptr && !found->is_null()) {
    if (!found->is_bool()) return bad_request("readonly: not true or false");
    policy.read_only = found->as_bool();
  }
  if (!versioned) convert_unversioned(policy);
  if (policy.user == kAny || policy.group == kAny) mean_authenticated(policy);
  return policy;
}

bool matches_user(const Policy& policy, const auth::UserInfo& user) {
  if (policy.user.empty() && policy.group.empty()) return false;
  if (!policy.user.empty() && policy.user != user.name) return false;
  return policy.group.empty() || user.in_group(policy.group);
}

bool matches_path(const Policy& policy, std::string_view path) {
  if (policy.path == kAny || policy.path == path) return true;
  if (!policy.path.ends_with('*')) return false;
  return path.starts_with(std::string_view(policy.path).substr(0, policy.path.find_last_not_of('*') + 1));
}

bool matches_request(const Policy& policy, const auth::Attributes& attributes) {
  const bool reads = attributes.verb == "get" || attributes.verb == "list" || attributes.verb == "watch";
  if (policy.read_only && !reads) return false;
  if (!attributes.is_resource) return matches_path(policy, attributes.path);
  return matches(policy.ns, attributes.ns) && matches(policy.resource, attributes.resource) &&
         matches(policy.api_group, attributes.group);
}

}  // namespace

Result<std::vector<Policy>> parse(std::string_view text, std::string_view source) {
  std::vector<Policy> policies;
  size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos || line[begin] == '#') continue;
    Arena arena;
    Result<Policy> policy = read_policy(arena, line);
    if (!policy) {
      return bad_request("error reading policy file " + std::string(source) + ", line " + std::to_string(number) +
                         ": " + policy.error().message);
    }
    policies.push_back(std::move(*policy));
  }
  return policies;
}

auth::Decision authorize(const std::vector<Policy>& policies, const auth::Attributes& attributes) {
  const bool allowed =
      attributes.user != nullptr && std::any_of(policies.begin(), policies.end(), [&attributes](const Policy& policy) {
        return matches_user(policy, *attributes.user) && matches_request(policy, attributes);
      });
  if (allowed) return {auth::Decision::Verdict::Allow, {}};
  return {auth::Decision::Verdict::NoOpinion, "No policy matched."};
}

std::vector<rbac::Rule> rules_for(const std::vector<Policy>& policies, const auth::UserInfo& user,
                                  std::string_view ns) {
  std::vector<rbac::Rule> rules;
  for (const Policy& policy : policies) {
    if (!matches_user(policy, user) || !matches(policy.ns, ns)) continue;
    std::vector<std::string> verbs = {"*"};
    if (policy.read_only) verbs = {"get", "list", "watch"};
    if (!policy.resource.empty()) {
      rules.push_back({.verbs = verbs, .groups = {policy.api_group}, .resources = {policy.resource}});
    }
    if (!policy.path.empty()) rules.push_back({.verbs = verbs, .paths = {policy.path}});
  }
  return rules;
}

}  // namespace holdfast::abac
