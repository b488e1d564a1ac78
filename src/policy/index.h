// Which policies might be about a request: those with a binding, by operation, group and resource. Policies for other
// resources cost a request nothing. Immutable.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/api_error.h"
#include "policy/definition.h"

namespace holdfast::policy {

class Index {
 public:
  // A policy with its bindings, by name.
  struct Bound {
    PolicyRef policy;
    std::vector<BindingRef> bindings;
  };
  // Two resources that are the same objects: events of the core group and of events.k8s.io. Both directions.
  using Alias = std::pair<GroupResource, GroupResource>;

  // Aliases are read here only.
  static std::shared_ptr<const Index> build(std::vector<PolicyRef> policies, std::vector<BindingRef> bindings,
                                            std::span<const Alias> aliases);

  // Candidates by name of the policy: their rules, exclusions and selectors are still to be looked at.
  std::vector<const Bound*> find(webhook::Operation operation, GroupResource resource) const;
  bool has_any(webhook::Operation operation, GroupResource resource) const;
  // Whether some policy has params of this kind.
  bool has_params_of(GroupKind kind) const;
  std::span<const PolicyRef> policies() const { return policies_; }

 private:
  static constexpr size_t kOperations = 4;
  using Places = std::array<std::vector<uint32_t>, kOperations>;  // In bound_, by operation, ascending.

  template <class F>
  void for_each_list(webhook::Operation operation, GroupResource resource, F f) const;

  std::vector<PolicyRef> policies_;                      // All, by name.
  std::vector<Bound> bound_;                             // By name.
  std::unordered_map<std::string, Places> by_resource_;  // "group/plural"; either may be "*".
};

}  // namespace holdfast::policy
