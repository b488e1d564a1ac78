#include "admission/quota.h"

#include <algorithm>
#include <set>

#include "admission/amounts.h"
#include "admission/plugin.h"
#include "base/strings.h"
#include "kinds/kinds.h"

// Follows pkg/quota/v1/evaluator/core and the resourcequota plugin of k8s.io/apiserver.

namespace holdfast::admission::quota {
namespace {

using codec::Quantity;

constexpr std::string_view kRequests = "requests.";
constexpr std::string_view kStorageClass = ".storageclass.storage.k8s.io/";

constexpr std::string_view kPodNames[] = {"count/pods",
                                          "cpu",
                                          "memory",
                                          "ephemeral-storage",
                                          "requests.cpu",
                                          "requests.memory",
                                          "requests.ephemeral-storage",
                                          "limits.cpu",
                                          "limits.memory",
                                          "limits.ephemeral-storage",
                                          "pods"};
// Every container must specify these if a quota limits them.
constexpr std::string_view kDemanded[] = {"cpu",        "memory",       "requests.cpu", "requests.memory",
                                          "limits.cpu", "limits.memory"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_pod_name(std::string_view name) {
  return is_one_of(kPodNames, name) || name.starts_with("hugepages-") || name.starts_with("requests.hugepages-") ||
         (name.starts_with(kRequests) &&
          (!kinds::is_native_resource(name) || name.starts_with("requests.deviceclass.resource.kubernetes.io/")));
}

std::string count_name(const types::Resource& resource) {
  std::string name = "count/" + std::string(resource.plural);
  if (!resource.group.empty()) name.append(".").append(resource.group);
  return name;
}

// Kinds that had a quota resource name before every kind could be counted.
bool has_old_name(const types::Resource& resource) {
  constexpr std::string_view kPlurals[] = {"configmaps", "resourcequotas", "replicationcontrollers", "secrets"};
  return resource.group.empty() && is_one_of(kPlurals, resource.plural);
}

// --- Pods ---

Usage named_amounts(const Usage& requests, const Usage& limits) {
  Usage used;
  used["pods"] = Quantity::of(1);
  for (const std::string_view name : {"cpu", "memory", "ephemeral-storage"}) {
    if (const auto found = requests.find(name); found != requests.end()) {
      used[std::string(name)] = found->second;
      used["requests." + std::string(name)] = found->second;
    }
    if (const auto found = limits.find(name); found != limits.end()) {
      used["limits." + std::string(name)] = found->second;
    }
  }
  for (const auto& [name, amount] : requests) {
    if (name.starts_with("hugepages-")) {
      used[name] = amount;
      used["requests." + name] = amount;
    } else if (!kinds::is_native_resource(name) || name.starts_with("deviceclass.resource.kubernetes.io/")) {
      used["requests." + name] = amount;
    }
  }
  return used;
}

// Pods that have terminated, or whose grace period has expired, only use their object count.
bool still_uses(const Value& pod, UnixTime now) {
  const std::string_view phase = pod.text_at("status", "phase");
  if (phase == "Failed" || phase == "Succeeded") return false;
  const Value* grace = pod.get("metadata", "deletionGracePeriodSeconds");
  const std::optional<UnixTime> deleted = parse_rfc3339(pod.text_at("metadata", "deletionTimestamp"));
  return !deleted || grace == nullptr || !grace->is_int() || now.seconds <= deleted->seconds + grace->as_int();
}

Usage pod_usage(const Value& pod, UnixTime now) {
  Usage used;
  used["count/pods"] = Quantity::of(1);
  if (!still_uses(pod, now)) return used;
  Amounts requests = pod_amounts(pod, "requests", PodView::Running);
  Amounts limits = pod_amounts(pod, "limits", PodView::Running);
  for (const Member& member : pod.members_at("spec", "overhead")) {
    const std::string name(member.key);
    requests[name] = requests[name] + quantity_of(&member.value);
    // Overhead is only added to an existing limit.
    if (const auto found = limits.find(name); found != limits.end() && !found->second.is_zero()) {
      found->second = found->second + quantity_of(&member.value);
    }
  }
  used.merge(named_amounts(requests, limits));
  return used;
}

bool is_terminating(const Value& pod) { return pod.int_at_or(-1, "spec", "activeDeadlineSeconds") >= 0; }

bool is_best_effort(const Value& pod) {
  if (const std::string_view known = pod.text_at("status", "qosClass"); !known.empty()) return known == "BestEffort";
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const Value& container : pod.items_at("spec", list)) {
      for (const std::string_view side : {"requests", "limits"}) {
        for (const std::string_view name : {"cpu", "memory"}) {
          if (quantity_of(container.get("resources", side, name)).sign() > 0) return false;
        }
      }
    }
  }
  return true;
}

bool crosses_namespaces(const Value& pod) {
  const auto leaves = [](const Value& term) {
    return !term.items_at("namespaces").empty() || term.has("namespaceSelector");
  };
  for (const std::string_view side : {"podAffinity", "podAntiAffinity"}) {
    for (const Value& term : pod.items_at("spec", "affinity", side, "requiredDuringSchedulingIgnoredDuringExecution")) {
      if (leaves(term)) return true;
    }
    for (const Value& weighted :
         pod.items_at("spec", "affinity", side, "preferredDuringSchedulingIgnoredDuringExecution")) {
      if (const Value* term = weighted.find("podAffinityTerm"); term != nullptr && leaves(*term)) return true;
    }
  }
  return false;
}

// Matches a class name against In, NotIn, Exists or DoesNotExist; an empty name means no class.
bool selects(const Scope& scope, std::string_view class_name) {
  const std::string_view op = scope.op;
  const bool listed = std::find(scope.values.begin(), scope.values.end(), class_name) != scope.values.end();
  if (op == "In") return !class_name.empty() && listed;
  if (op == "NotIn") return class_name.empty() || !listed;
  if (op == "DoesNotExist") return class_name.empty();
  return !class_name.empty();
}

bool pod_in_scope(const Scope& scope, const Value& pod) {
  if (scope.name == "Terminating") return is_terminating(pod);
  if (scope.name == "NotTerminating") return !is_terminating(pod);
  if (scope.name == "BestEffort") return is_best_effort(pod);
  if (scope.name == "NotBestEffort") return !is_best_effort(pod);
  if (scope.name == "PriorityClass") return selects(scope, pod.text_at("spec", "priorityClassName"));
  return scope.name == "CrossNamespacePodAffinity" && crosses_namespaces(pod);
}

// "must specify limits.cpu for: a,b; limits.memory for: a"; empty if nothing is missing.
std::string pod_omissions(const Value& pod, std::span<const std::string> names) {
  if (!pod.members_at("spec", "resources").empty()) return {};  // Pod-level resources are set.
  std::map<std::string, std::set<std::string>> missing;
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const Value& container : pod.items_at("spec", list)) {
      const Usage said = named_amounts(amounts_of(container, "requests"), amounts_of(container, "limits"));
      for (const std::string& name : names) {
        if (is_one_of(kDemanded, name) && !said.contains(name)) {
          missing[name].insert(std::string(container.text_at("name")));
        }
      }
    }
  }
  std::string text;
  for (const auto& [name, containers] : missing) {
    text += (text.empty() ? "must specify " : "; ") + name + " for: ";
    bool first = true;
    for (const std::string& container : containers) {
      text += (first ? "" : ",") + container;
      first = false;
    }
  }
  return text;
}

// --- Services and claims ---

Usage service_usage(const Value& service) {
  const std::string_view type = service.text_at("spec", "type");
  const auto ports = service.items_at("spec", "ports");
  int64_t node_ports = 0;
  if (type == "NodePort" || type == "LoadBalancer") {
    const Value* allocates = service.get("spec", "allocateLoadBalancerNodePorts");
    const bool only_chosen =
        type == "LoadBalancer" && allocates != nullptr && allocates->is_bool() && !allocates->as_bool();
    for (const Value& port : ports) node_ports += !only_chosen || port.int_at_or(0, "nodePort") != 0 ? 1 : 0;
  }
  Usage used;
  used["count/services"] = Quantity::of(1);
  used["services"] = Quantity::of(1);
  used["services.nodeports"] = Quantity::of(node_ports);
  used["services.loadbalancers"] = Quantity::of(type == "LoadBalancer" ? 1 : 0);
  return used;
}

Usage claim_usage(const Value& claim) {
  Usage used;
  used["count/persistentvolumeclaims"] = Quantity::of(1);
  used["persistentvolumeclaims"] = Quantity::of(1);
  const std::string prefix = std::string(kinds::storage_class_of(claim)) + std::string(kStorageClass);
  const bool has_class = prefix.size() > kStorageClass.size();
  if (has_class) used[prefix + "persistentvolumeclaims"] = Quantity::of(1);
  if (const Value* request = claim.get("spec", "resources", "requests", "storage")) {
    Quantity storage = quantity_of(request);
    const Quantity allocated = quantity_of(claim.get("status", "allocatedResources", "storage"));
    if (allocated > storage) storage = allocated;  // A failed expansion still counts.
    storage = storage.rounded_up(0);
    used["requests.storage"] = storage;
    if (has_class) used[prefix + "requests.storage"] = storage;
  }
  return used;
}

bool claim_in_scope(const Scope& scope, const Value& claim) {
  if (scope.name != "VolumeAttributesClass") return false;
  const std::string_view classes[] = {claim.text_at("spec", "volumeAttributesClassName"),
                                      claim.text_at("status", "currentVolumeAttributesClassName"),
                                      claim.text_at("status", "modifyVolumeStatus", "targetVolumeAttributesClassName")};
  bool named = false;
  for (const std::string_view each : classes) {
    if (each.empty()) continue;
    named = true;
    if (selects(scope, each)) return true;
  }
  return !named && selects(scope, "");
}

bool in_scope(const types::Resource& resource, const Scope& scope, const Value& object) {
  if (is_core(resource, "pods")) return pod_in_scope(scope, object);
  return is_core(resource, "persistentvolumeclaims") && claim_in_scope(scope, object);
}

std::vector<Scope> scopes_of(const Value& quota) {
  std::vector<Scope> scopes;
  for (const Value& scope : quota.items_at("spec", "scopes")) {
    if (scope.is_string()) scopes.push_back({.name = std::string(scope.as_string()), .op = "Exists"});
  }
  for (const Value& selector : quota.items_at("spec", "scopeSelector", "matchExpressions")) {
    Scope& scope = scopes.emplace_back();
    scope.name = selector.text_at("scopeName");
    scope.op = selector.text_at("operator");
    for (const Value& value : selector.items_at("values")) {
      if (value.is_string()) scope.values.emplace_back(value.as_string());
    }
  }
  return scopes;
}

// Formats a ScopedResourceSelectorRequirement as Go does: {PriorityClass In [high low]}
std::string go_text(const Scope& scope) {
  return "{" + scope.name + " " + scope.op + " [" + join(scope.values, " ") + "]}";
}

// --- Sums ---

std::string print(const Usage& usage, std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) {
    const auto found = usage.find(name);
    if (found == usage.end()) continue;
    text.append(text.empty() ? "" : ",").append(name).append("=").append(found->second.text());
  }
  return text;
}

std::string sorted_list(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return join(names, ",");
}

// Decreases are left to the controller, so usage never goes down here.
void subtract(Usage& usage, const Usage& before) {
  for (const auto& [name, amount] : before) {
    const auto found = usage.find(name);
    if (found == usage.end()) continue;
    found->second = found->second - amount;
    if (found->second.sign() < 0) found->second = Quantity();
  }
}

}  // namespace

Usage usage_in(const Value& holder, std::string_view member) { return amounts_in(holder, member); }

Value to_value(Arena& arena, const Usage& usage) {
  MapBuilder map(arena);
  for (const auto& [name, amount] : usage) map.add(arena.copy(name), Value::string(arena, amount.text()));
  return map.build();
}

bool handles(const types::Resource& resource, std::string_view subresource, Operation operation, const Value& object,
             const Value* old) {
  const bool create = operation == Operation::Create, update = operation == Operation::Update;
  if (resource.plural == "events" && (resource.group.empty() || resource.group == "events.k8s.io")) return false;
  if (is_core(resource, "pods")) {
    if (subresource == "resize") return update;
    if (!subresource.empty()) return false;
    return create || (update && old != nullptr && is_terminating(*old) != is_terminating(object));
  }
  if (!subresource.empty()) return false;
  if (is_core(resource, "services") || is_core(resource, "persistentvolumeclaims")) return create || update;
  return create;
}

std::vector<std::string> counted_names(const types::Resource& resource, const Usage& hard) {
  std::vector<std::string> names;
  for (const auto& [name, amount] : hard) {
    bool counts = name == count_name(resource) || (has_old_name(resource) && name == resource.plural);
    if (is_core(resource, "pods")) counts = is_pod_name(name);
    if (is_core(resource, "services")) counts = counts || name == "services" || name.starts_with("services.");
    if (is_core(resource, "persistentvolumeclaims")) {
      counts = counts || name == "persistentvolumeclaims" || name == "requests.storage" ||
               name.ends_with(std::string(kStorageClass) + "persistentvolumeclaims") ||
               name.ends_with(std::string(kStorageClass) + "requests.storage");
    }
    if (counts) names.push_back(name);
  }
  return names;
}

bool counts_objects_only(const types::Resource& resource) {
  return !is_core(resource, "pods") && !is_core(resource, "services") && !is_core(resource, "persistentvolumeclaims");
}

bool in_scopes(const types::Resource& resource, const Value& quota, const Value& object) {
  const std::vector<Scope> scopes = scopes_of(quota);
  return std::all_of(scopes.begin(), scopes.end(),
                     [&](const Scope& scope) { return in_scope(resource, scope, object); });
}

Usage usage_of(const types::Resource& resource, const Value& object, UnixTime now) {
  if (is_core(resource, "pods")) return pod_usage(object, now);
  if (is_core(resource, "services")) return service_usage(object);
  if (is_core(resource, "persistentvolumeclaims")) return claim_usage(object);
  Usage used;
  used[count_name(resource)] = Quantity::of(1);
  if (has_old_name(resource)) used[std::string(resource.plural)] = Quantity::of(1);
  return used;
}

Verdict check(const types::Resource& resource, Operation operation, const Value& object, const Value* old,
              const Value& quota, UnixTime now) {
  Verdict verdict;
  const Value* status = quota.find("status");
  if (status == nullptr) return verdict;
  const Usage hard = usage_in(*status, "hard"), used = usage_in(*status, "used");
  const std::vector<std::string> names = counted_names(resource, hard);
  if (names.empty() || !in_scopes(resource, quota, object)) return verdict;

  const std::string quota_name(quota.text_at("metadata", "name"));
  if (is_core(resource, "pods")) {
    if (const std::string omitted = pod_omissions(object, names); !omitted.empty()) {
      verdict.refusal = "failed quota: " + quota_name + ": " + omitted;
      return verdict;
    }
  }
  if (std::any_of(names.begin(), names.end(), [&](const std::string& name) { return !used.contains(name); })) {
    verdict.refusal = "status unknown for quota: " + quota_name + ", resources: " + sorted_list(names);
    return verdict;
  }

  Usage more = usage_of(resource, object, now);
  std::vector<std::string> negative;
  for (const auto& [name, amount] : more) {
    if (amount.sign() < 0) negative.push_back(name);
  }
  if (!negative.empty()) {
    verdict.refusal = "quota usage is negative for resource(s): " + sorted_list(std::move(negative));
    return verdict;
  }
  if (operation == Operation::Update && old != nullptr && in_scopes(resource, quota, *old)) {
    subtract(more, usage_of(resource, *old, now));
  }
  std::erase_if(more, [&](const auto& each) { return each.second.is_zero() || !hard.contains(each.first); });
  if (more.empty()) return verdict;

  verdict.used = used;
  std::vector<std::string> exceeded;
  for (const auto& [name, amount] : more) {
    Quantity& sum = verdict.used[name];
    sum = sum + amount;
    if (sum > hard.find(name)->second) exceeded.push_back(name);
  }
  if (!exceeded.empty()) {
    verdict.refusal = "exceeded quota: " + quota_name + ", requested: " + print(more, exceeded) +
                      ", used: " + print(used, exceeded) + ", limited: " + print(hard, exceeded);
    verdict.exceeded = true;
    return verdict;
  }
  verdict.changes = true;
  return verdict;
}

// Follows CheckRequest in k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go.
std::optional<Uncovered> find_uncovered(const types::Resource& resource, Operation operation, const Value& object,
                                        const Value* old, std::span<const Value> quotas,
                                        std::span<const LimitedResource> limited, UnixTime now) {
  if (limited.empty()) return std::nullopt;
  const Usage used = usage_of(resource, object, now);
  Usage more = used;  // The increase over the old object; used if every matching quota already counted it.
  const bool update = operation == Operation::Update && old != nullptr;
  if (update) subtract(more, usage_of(resource, *old, now));

  std::set<std::string, std::less<>> covered;
  std::set<std::string, std::less<>> covered_scopes;
  bool counted_anew = false;
  for (const Value& quota : quotas) {
    // Also for quotas that do not count the object.
    for (const Scope& scope : scopes_of(quota)) {
      if (in_scope(resource, scope, object)) covered_scopes.insert(scope.name);
    }
    const Value* status = quota.find("status");
    if (status == nullptr || !in_scopes(resource, quota, object)) continue;
    const std::vector<std::string> names = counted_names(resource, usage_in(*status, "hard"));
    if (names.empty()) continue;
    counted_anew = counted_anew || !update || !in_scopes(resource, quota, *old);
    covered.insert(names.begin(), names.end());
  }
  // A write that does not increase usage needs no quota.
  const Usage& asked = update && !counted_anew ? more : used;
  if (std::all_of(asked.begin(), asked.end(), [](const auto& each) { return each.second.is_zero(); })) {
    return std::nullopt;
  }

  std::set<std::string> missing;
  for (const LimitedResource& each : limited) {
    if (each.group != resource.group || each.resource != resource.plural) continue;
    for (const auto& [name, amount] : used) {
      const bool is_limited = std::any_of(each.contains.begin(), each.contains.end(), [&](const std::string& part) {
        return name.find(part) != std::string::npos;
      });
      if (is_limited && amount.sign() > 0 && !covered.contains(name)) missing.insert(name);
    }
  }
  if (!missing.empty()) {
    return Uncovered{.why = "insufficient quota to consume: " + join(std::vector(missing.begin(), missing.end()), ",")};
  }
  std::vector<std::string> scopes;
  for (const LimitedResource& each : limited) {
    for (const Scope& scope : each.scopes) {
      if (in_scope(resource, scope, object) && !covered_scopes.contains(scope.name)) scopes.push_back(go_text(scope));
    }
  }
  if (scopes.empty()) return std::nullopt;
  return Uncovered{.why = "insufficient quota to match these scopes: [" + join(scopes, " ") + "]", .by_scope = true};
}

}  // namespace holdfast::admission::quota
