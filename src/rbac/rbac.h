// Role-based access control, evaluated from Roles, ClusterRoles and their bindings.
//
// An Index holds the rules in the form that a decision needs: subjects lead to bindings, bindings to rules. It is
// immutable; the server makes a new one when one of these objects changes and swaps a pointer, so a decision takes no
// lock and reads nothing but the bindings of one user and its groups.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "auth/auth.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "value/value.h"

namespace holdfast::rbac {

// One rbac/v1 PolicyRule.
struct Rule {
  std::vector<std::string> verbs, groups, resources, names, paths;

  static Rule from(const Value& policy_rule);
  bool allows(const auth::Attributes& attributes) const;
  bool operator==(const Rule&) const = default;
};

std::vector<Rule> rules_from(const Value* rules);
Value to_value(Arena& arena, const Rule& rule);

// Whether the rules in `held` cover everything in `wanted`; what is missing is added to `missing` if given.
// This is what decides whether a role may be written or bound by someone.
bool covers(const std::vector<Rule>& held, const std::vector<Rule>& wanted, std::vector<Rule>* missing = nullptr);

class Index {
 public:
  // Keys are "namespace/name"; cluster-scoped objects have an empty namespace ("/name").
  using Objects = std::map<std::string, Value, std::less<>>;

  // All objects of the four kinds. Nothing of the Values is kept.
  static std::shared_ptr<const Index> build(const Objects& roles, const Objects& cluster_roles,
                                            const Objects& role_bindings, const Objects& cluster_role_bindings);

  // The reason of a denial mentions bindings of the user whose role does not exist.
  auth::Decision authorize(const auth::Attributes& attributes) const;
  // Every rule that holds for the user in the namespace (and everywhere). `problem` says which roles do not exist, as
  // Kubernetes words it; empty when all are.
  std::vector<Rule> rules_for(const auth::UserInfo& user, std::string_view ns, std::string* problem = nullptr) const;
  // The rules of a role that a binding refers to; nothing when it does not exist.
  std::optional<std::vector<Rule>> rules_of(std::string_view role_kind, std::string_view ns,
                                            std::string_view name) const;

 private:
  struct Binding {
    std::string ns, name, role_kind, role_name;
    std::shared_ptr<const std::vector<Rule>> rules;  // Null: the role does not exist.
  };
  struct Grant {
    const Binding* binding;
    std::string subject;  // As the reason names it: User "u", Group "g", ServiceAccount "name/namespace".
  };
  static std::string missing_role(const Binding& binding);
  template <class Visit>
  void visit(const auth::UserInfo& user, std::string_view ns, Visit&& visit) const;

  // By namespace of the binding (empty: everywhere) and subject: "NS/u:NAME", "/g:NAME".
  std::unordered_map<std::string, std::vector<Grant>, KeyHash> grants_;
  std::vector<std::unique_ptr<Binding>> bindings_;
  // "Role/NS/NAME", "ClusterRole//NAME".
  std::unordered_map<std::string, std::shared_ptr<const std::vector<Rule>>, KeyHash> roles_;
};

// Aggregation: the rules of a ClusterRole with an aggregationRule, united from those that its selectors choose,
// selector by selector and in the order of their names, each rule once.
Value aggregate(Arena& arena, const Value& cluster_role, const Index::Objects& cluster_roles);

// The 403 for writing rules into a role, or binding a role, without holding these permissions. The verbs that allow it
// anyway (escalate and bind) are checked beforehand.
Error escalation_error(const auth::UserInfo& user, std::string_view group_resource, std::string_view name,
                       const std::vector<Rule>& missing);

}  // namespace holdfast::rbac
