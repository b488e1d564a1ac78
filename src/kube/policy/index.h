// Finds the policies that may apply to a request: those with a binding, by operation, group and resource. Policies for
// other resources cost a request nothing. Immutable.
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
  // A policy and its bindings, sorted by name.
  struct Bound {
    PolicyRef policy;
    std::vector<BindingRef> bindings;
  };
  // Two resources with the same objects: events of the core group and of events.k8s.io. Symmetric.
  using Alias = std::pair<GroupResource, GroupResource>;

  // `aliases` are not kept.
  static std::shared_ptr<const Index> build(std::vector<PolicyRef> policies, std::vector<BindingRef> bindings,
                                            std::span<const Alias> aliases);

  // Candidates, sorted by policy name. The caller still has to check their rules, exclusions and selectors.
  std::vector<const Bound*> find(webhook::Operation operation, GroupResource resource) const;
  bool has_any(webhook::Operation operation, GroupResource resource) const;
  // Whether any policy has params of this kind.
  bool has_params_of(GroupKind kind) const;
  std::span<const PolicyRef> policies() const { return policies_; }

 private:
  static constexpr size_t kOperations = 4;
  using Places = std::array<std::vector<uint32_t>, kOperations>;  // Indexes into bound_, by operation, ascending.

  template <class F>
  void for_each_list(webhook::Operation operation, GroupResource resource, F f) const;

  std::vector<PolicyRef> policies_;                      // All of them, sorted by name.
  std::vector<Bound> bound_;                             // Sorted by name.
  std::unordered_map<std::string, Places> by_resource_;  // "group/plural"; either may be "*".
};

}  // namespace holdfast::policy
