// Role-based access control, evaluated from Roles, ClusterRoles and their bindings.
//
// An Index holds the rules in the form needed for a decision: it maps subjects to bindings and bindings to rules. It is
// immutable; when one of these objects changes, the server makes another with that change (Index::Edit), which shares
// everything else, and swaps a pointer. A decision therefore takes no lock and reads only the bindings of one user and
// its groups.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "auth/auth.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "value/value.h"

namespace holdfast::rbac {

// Roles that do not exist named in one denial, and bytes of their names: a user may be bound to thousands, and anybody
// may be denied.
inline constexpr size_t kMissingRoles = 100, kMissingRoleBytes = 64 << 10;
// What covers() compares at most: verbs, groups, resources, names and paths of the rules that the user holds; and
// steps. Rules that would need more count as not held. Ordinary users hold some thousand, and need some million.
inline constexpr size_t kHeldTexts = 1 << 18, kCoverageSteps = 1 << 26;

// One rbac/v1 PolicyRule.
struct Rule {
  std::vector<std::string> verbs, groups, resources, names, paths;

  static Rule from(const Value& policy_rule);
  bool allows(const auth::Attributes& attributes) const;
  // How many verbs, groups, resources, names and paths there are.
  size_t texts() const { return verbs.size() + groups.size() + resources.size() + names.size() + paths.size(); }
  bool operator==(const Rule&) const = default;
};
// The rules of one role.
using RulesRef = std::shared_ptr<const std::vector<Rule>>;
// Of several roles together.
size_t texts_in(const std::vector<RulesRef>& roles);

std::vector<Rule> rules_from(const Value* rules);
Value to_value(Arena& arena, const Rule& rule);

// Whether the rules in `held` cover everything in `wanted`; what they do not cover is added to `missing` if given.
// Decides whether a user may write or bind a role. `missing` has no more than a client can be told.
bool covers(const std::vector<RulesRef>& held, const std::vector<Rule>& wanted, std::vector<Rule>* missing = nullptr);
bool covers(const std::vector<Rule>& held, const std::vector<Rule>& wanted, std::vector<Rule>* missing = nullptr);

enum class Kind : uint8_t { Role, ClusterRole, RoleBinding, ClusterRoleBinding };

class Index {
 public:
  // Keys are "namespace/name"; cluster-scoped objects have an empty namespace ("/name").
  using Objects = std::map<std::string, Value, std::less<>>;
  class Edit;

  // All objects of the four kinds. Does not keep references to the Values.
  static std::shared_ptr<const Index> build(const Objects& roles, const Objects& cluster_roles,
                                            const Objects& role_bindings, const Objects& cluster_role_bindings);

  // The reason of a denial mentions the user's bindings to roles that do not exist.
  auth::Decision authorize(const auth::Attributes& attributes) const;
  // The rules of all roles that apply to the user in the namespace, including cluster-wide ones: of each role once,
  // even if the user is bound to it many times. `problem` receives the roles that do not exist, with Kubernetes'
  // message; empty if there are none.
  std::vector<RulesRef> rules_for(const auth::UserInfo& user, std::string_view ns,
                                  std::string* problem = nullptr) const;
  // The rules of a role referenced by a binding; nullopt if the role does not exist.
  std::optional<std::vector<Rule>> rules_of(std::string_view role_kind, std::string_view ns,
                                            std::string_view name) const;

 private:
  struct Subject {
    std::string key;    // See grants_.
    std::string shown;  // As shown in the reason: User "u", Group "g", ServiceAccount "name/namespace".
    bool operator==(const Subject&) const = default;
  };
  struct Binding {
    std::string ns, name, role_kind, role_name;
    std::string role;               // Key in roles_, which may not have it.
    std::vector<Subject> subjects;  // With different keys.
    bool operator==(const Binding&) const = default;
  };
  using BindingRef = std::shared_ptr<const Binding>;
  struct Grant {
    BindingRef binding;
    uint32_t subject = 0;  // Position in binding->subjects.
  };
  // Sorted by name of the binding. All are of one kind and namespace.
  using GrantsRef = std::shared_ptr<const std::vector<Grant>>;

  // A hash table in pieces, so that a changed one shares the pieces without changes.
  template <class T>
  class Table {
   public:
    using Piece = std::unordered_map<std::string, T, KeyHash, std::equal_to<>>;
    static constexpr size_t kPieces = 256;

    const T* find(std::string_view key) const;
    // Replaces the values of these keys; null removes them.
    void change(std::unordered_map<std::string, T, KeyHash, std::equal_to<>> changes);

   private:
    static size_t piece_of(std::string_view key) { return hash_key(key) >> 56; }
    std::array<std::shared_ptr<const Piece>, kPieces> pieces_;  // Null if empty.
  };

  static BindingRef read_binding(const Value& object);
  static std::string missing_role(const Binding& binding);
  template <class Visit>
  void visit(const auth::UserInfo& user, std::string_view ns, Visit&& visit) const;

  // By namespace of the binding (empty for cluster-wide) and subject: "NS/u:NAME", "/g:NAME".
  Table<GrantsRef> grants_;
  // "RoleBinding/NS/NAME", "ClusterRoleBinding//NAME".
  Table<BindingRef> bindings_;
  // "Role/NS/NAME", "ClusterRole//NAME".
  Table<RulesRef> roles_;
};

// Changes to an index: the cost is that of the changed objects, and of a copy of 1/256 of a table for each.
class Index::Edit {
 public:
  // Null: an empty index.
  explicit Edit(std::shared_ptr<const Index> before);
  // Does not keep references to the Value.
  void put(Kind kind, std::string_view key, const Value& object);
  void erase(Kind kind, std::string_view key);
  // The index with these changes: the same one if they change no decision. Call once.
  std::shared_ptr<const Index> build();

 private:
  const std::shared_ptr<const Index> before_;
  std::unordered_map<std::string, RulesRef, KeyHash, std::equal_to<>> roles_;       // Null: removed.
  std::unordered_map<std::string, BindingRef, KeyHash, std::equal_to<>> bindings_;  // Null: removed.
};

// Aggregation: the rules of a ClusterRole with an aggregationRule. The union of the rules of all ClusterRoles selected,
// in the order of selectors, then role names, without duplicates.
Value aggregate(Arena& arena, const Value& cluster_role, const Index::Objects& cluster_roles);

// The 403 for writing rules into a role, or binding a role, without holding these permissions. The caller has already
// checked the verbs that allow it anyway (escalate and bind).
Error escalation_error(const auth::UserInfo& user, std::string_view group_resource, std::string_view name,
                       const std::vector<Rule>& missing);

}  // namespace holdfast::rbac
