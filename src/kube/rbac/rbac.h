// Role-based access control, evaluated from Roles, ClusterRoles and their bindings.
//
// An Index holds the rules in the form needed for a decision: it maps subjects to bindings and bindings to rules. It is
// immutable; when one of these objects changes, the server builds a new one and swaps a pointer. A decision therefore
// takes no lock and reads only the bindings of one user and its groups.
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

// Whether the rules in `held` cover everything in `wanted`; what they do not cover is added to `missing` if given.
// Decides whether a user may write or bind a role.
bool covers(const std::vector<Rule>& held, const std::vector<Rule>& wanted, std::vector<Rule>* missing = nullptr);

class Index {
 public:
  // Keys are "namespace/name"; cluster-scoped objects have an empty namespace ("/name").
  using Objects = std::map<std::string, Value, std::less<>>;

  // All objects of the four kinds. Does not keep references to the Values.
  static std::shared_ptr<const Index> build(const Objects& roles, const Objects& cluster_roles,
                                            const Objects& role_bindings, const Objects& cluster_role_bindings);

  // The reason of a denial mentions the user's bindings to roles that do not exist.
  auth::Decision authorize(const auth::Attributes& attributes) const;
  // All rules that apply to the user in the namespace, including cluster-wide ones. `problem` receives the roles that
  // do not exist, with Kubernetes' message; empty if there are none.
  std::vector<Rule> rules_for(const auth::UserInfo& user, std::string_view ns, std::string* problem = nullptr) const;
  // The rules of a role referenced by a binding; nullopt if the role does not exist.
  std::optional<std::vector<Rule>> rules_of(std::string_view role_kind, std::string_view ns,
                                            std::string_view name) const;

 private:
  struct Binding {
    std::string ns, name, role_kind, role_name;
    std::shared_ptr<const std::vector<Rule>> rules;  // Null if the role does not exist.
  };
  struct Grant {
    const Binding* binding;
    std::string subject;  // As shown in the reason: User "u", Group "g", ServiceAccount "name/namespace".
  };
  static std::string missing_role(const Binding& binding);
  template <class Visit>
  void visit(const auth::UserInfo& user, std::string_view ns, Visit&& visit) const;

  // By namespace of the binding (empty for cluster-wide) and subject: "NS/u:NAME", "/g:NAME".
  std::unordered_map<std::string, std::vector<Grant>, KeyHash> grants_;
  std::vector<std::unique_ptr<Binding>> bindings_;
  // "Role/NS/NAME", "ClusterRole//NAME".
  std::unordered_map<std::string, std::shared_ptr<const std::vector<Rule>>, KeyHash> roles_;
};

// Aggregation: the rules of a ClusterRole with an aggregationRule. The union of the rules of all ClusterRoles selected,
// in the order of selectors, then role names, without duplicates.
Value aggregate(Arena& arena, const Value& cluster_role, const Index::Objects& cluster_roles);

// The 403 for writing rules into a role, or binding a role, without holding these permissions. The caller has already
// checked the verbs that allow it anyway (escalate and bind).
Error escalation_error(const auth::UserInfo& user, std::string_view group_resource, std::string_view name,
                       const std::vector<Rule>& missing);

}  // namespace holdfast::rbac
