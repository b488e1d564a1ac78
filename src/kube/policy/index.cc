#include "policy/index.h"

#include <algorithm>
#include <map>
#include <set>

namespace holdfast::policy {
namespace {

std::string key_of(std::string_view group, std::string_view resource) {
  std::string key;
  key.reserve(group.size() + 1 + resource.size());
  return key.append(group).append(1, '/').append(resource);
}

std::string_view without_subresource(std::string_view resource) { return resource.substr(0, resource.find('/')); }

bool names(std::span<const std::string> items, std::string_view wanted) {
  return std::any_of(items.begin(), items.end(), [&](std::string_view item) {
    return without_subresource(item) == "*" || without_subresource(item) == wanted;
  });
}

}  // namespace

std::shared_ptr<const Index> Index::build(std::vector<PolicyRef> policies, std::vector<BindingRef> bindings,
                                          std::span<const Alias> aliases) {
  auto index = std::make_shared<Index>();
  const auto by_name = [](const auto& a, const auto& b) { return a->name < b->name; };
  std::sort(policies.begin(), policies.end(), by_name);
  std::sort(bindings.begin(), bindings.end(), by_name);
  std::map<std::string_view, std::vector<BindingRef>> of_policy;
  for (BindingRef& binding : bindings) of_policy[binding->policy].push_back(binding);
  for (const PolicyRef& policy : policies) {
    const auto found = of_policy.find(policy->name);
    if (found == of_policy.end()) continue;
    const auto place = static_cast<uint32_t>(index->bound_.size());
    std::set<std::string> keys[kOperations];
    const auto add = [&](const webhook::Rule& rule, std::string_view group, std::string_view resource) {
      for (size_t i = 0; i < kOperations; ++i) {
        const std::string_view operation = webhook::to_string(static_cast<webhook::Operation>(i));
        if (names(rule.operations, operation)) keys[i].insert(key_of(group, resource));
      }
    };
    if (!policy->match) continue;
    for (const webhook::Rule& rule : policy->match->rules) {
      for (const std::string& group : rule.groups) {
        for (const std::string& resource : rule.resources) add(rule, group, without_subresource(resource));
      }
      if (!policy->match->equivalent) continue;
      for (const auto& [asked, same] : aliases) {
        if (names(rule.groups, same.group) && names(rule.resources, same.resource)) {
          add(rule, asked.group, asked.resource);
        }
      }
    }
    for (size_t i = 0; i < kOperations; ++i) {
      for (const std::string& key : keys[i]) index->by_resource_[key][i].push_back(place);
    }
    index->bound_.push_back({policy, found->second});
  }
  index->policies_ = std::move(policies);
  return index;
}

template <class F>
void Index::for_each_list(webhook::Operation operation, GroupResource resource, F f) const {
  if (by_resource_.empty()) return;
  for (const std::string_view group : {resource.group, std::string_view("*")}) {
    for (const std::string_view plural : {resource.resource, std::string_view("*")}) {
      const auto found = by_resource_.find(key_of(group, plural));
      if (found != by_resource_.end()) f(found->second[static_cast<size_t>(operation)]);
    }
  }
}

std::vector<const Index::Bound*> Index::find(webhook::Operation operation, GroupResource resource) const {
  std::vector<uint32_t> places;
  for_each_list(operation, resource,
                [&](const std::vector<uint32_t>& list) { places.insert(places.end(), list.begin(), list.end()); });
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  std::vector<const Bound*> found;
  found.reserve(places.size());
  for (const uint32_t place : places) found.push_back(&bound_[place]);
  return found;
}

bool Index::has_any(webhook::Operation operation, GroupResource resource) const {
  bool any = false;
  for_each_list(operation, resource, [&](const std::vector<uint32_t>& list) { any = any || !list.empty(); });
  return any;
}

bool Index::has_params_of(GroupKind kind) const {
  return std::any_of(policies_.begin(), policies_.end(), [&](const PolicyRef& policy) {
    return policy->param_kind && policy->param_kind->kind == kind.kind && policy->param_kind->group() == kind.group;
  });
}

}  // namespace holdfast::policy
