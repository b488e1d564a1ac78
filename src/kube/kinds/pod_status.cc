// Validation of the status of a pod (ValidatePodStatusUpdate of Kubernetes).

#include <algorithm>
#include <set>
#include <tuple>

#include "codec/json.h"
#include "kinds/all.h"
#include "kinds/ip.h"
#include "kinds/names.h"
#include "kinds/pod.h"

namespace holdfast::kinds {
namespace {

bool has_code(const Value& codes, int64_t exit_code) {
  return std::ranges::any_of(codes.items_at("values"),
                             [&](const Value& code) { return code.is_int() && code.as_int() == exit_code; });
}

// The action of the container's first rule that matches this exit code; empty if there is none.
std::string_view restart_action(const Value& container, int64_t exit_code) {
  for (const Value& rule : container.items_at("restartPolicyRules")) {
    const Value& codes = sub(rule, "exitCodes");
    if (codes.is_null()) continue;
    if (has_code(codes, exit_code) == (codes.text_at("operator") == "In")) return rule.text_at("action");
  }
  return {};
}

bool runs_again(const Value& container, std::string_view pod_policy, int64_t exit_code) {
  const std::string_view own = container.text_at("restartPolicy");
  if (!own.empty() && !restart_action(container, exit_code).empty()) return true;  // Every action restarts it.
  const std::string_view policy = own.empty() ? pod_policy : own;
  if (policy == "Never") return false;
  return policy != "OnFailure" || exit_code != 0;
}

bool all_may_restart(const Value& spec) {
  for (const std::string_view list : {"initContainers", "containers"}) {
    for (const Value& container : spec.items_at(list)) {
      for (const Value& rule : container.items_at("restartPolicyRules")) {
        if (rule.text_at("action") == "RestartAllContainers") return true;
      }
    }
  }
  return false;
}

// A container that has terminated for good must not run again. `containers` is the name of the list in the spec; if
// empty, none of the containers may run again.
void validate_transitions(const Value& next, const Value& old, std::string_view statuses, std::string_view containers,
                          FieldErrors& errors) {
  const Path at("status");
  const Value& spec = sub(old, "spec");
  if (!containers.empty() && all_may_restart(spec)) return;
  const std::span<const Value> before = old.items_at("status", statuses);
  for (size_t i = 0; i < before.size(); ++i) {
    const Value& was = sub(before[i], "state", "terminated");
    if (was.is_null()) continue;
    const std::string_view name = before[i].text_at("name");
    for (const Value& status : next.items_at("status", statuses)) {
      if (status.text_at("name") != name || is_set(sub(status, "state"), "terminated")) continue;
      bool allowed = false;
      if (!containers.empty()) {
        const std::span<const Value> all = spec.items_at(containers);
        const auto found = std::ranges::find_if(all, [&](const Value& one) { return one.text_at("name") == name; });
        allowed = found != all.end() && runs_again(*found, spec.text_at("restartPolicy"), was.int_at_or(0, "exitCode"));
      }
      const Path here = at.item(statuses, i);
      if (!allowed) errors.forbidden(here.child("state"), "may not be transitioned to non-terminated state");
      if (!containers.empty()) break;
    }
  }
}

void validate_claim_statuses(const Value& pod, FieldErrors& errors) {
  const Path at("status");
  const std::span<const Value> claims = pod.items_at("spec", "resourceClaims");
  const std::span<const Value> statuses = pod.items_at("status", "resourceClaimStatuses");
  std::set<std::string_view> seen;
  for (size_t i = 0; i < statuses.size(); ++i) {
    const Path here = at.item("resourceClaimStatuses", i);
    const std::string_view name = statuses[i].text_at("name");
    if (std::ranges::none_of(claims, [&](const Value& claim) { return claim.text_at("name") == name; })) {
      errors.invalid(here.child("name"), name, "must match the name of an entry in `spec.resourceClaims`");
    }
    if (!seen.insert(name).second) errors.duplicate(here.child("name"), name);
    if (const Value* claim = statuses[i].find("resourceClaimName"); claim != nullptr && claim->is_string()) {
      errors.invalid_each(here.child("resourceClaimName"), claim, dns_subdomain_errors(claim->as_string()));
    }
  }
}

void validate_extended_claim(const Value& pod, FieldErrors& errors) {
  const Value& status = sub(pod, "status", "extendedResourceClaimStatus");
  if (status.is_null()) return;
  const Path top("status"), at = top.child("extendedResourceClaimStatus");
  const std::span<const Value> mappings = status.items_at("requestMappings");
  if (mappings.empty()) errors.required(at.child("requestMappings"), "at least one request mapping is required");
  std::set<std::tuple<std::string_view, std::string_view, std::string_view>> seen;
  for (size_t i = 0; i < mappings.size(); ++i) {
    const Path here = at.item("requestMappings", i);
    const std::string_view container = mappings[i].text_at("containerName");
    const std::string_view resource = mappings[i].text_at("resourceName"), request = mappings[i].text_at("requestName");
    const Value* found = nullptr;
    for (const std::string_view list : {"initContainers", "containers"}) {
      for (const Value& one : pod.items_at("spec", list)) {
        if (one.text_at("name") == container) found = &one;
      }
    }
    if (found == nullptr) {
      errors.invalid(here.child("containerName"), container,
                     "must match the name of an entry in spec.initContainers.name or spec.containers.name");
    } else if (found->get("resources", "requests", resource) == nullptr) {
      errors.invalid(here.child("resourceName"), resource,
                     "must match the extended resource name of an entry in spec.initContainers.resources.requests or "
                     "spec.containers.resources.requests");
    }
    errors.invalid_each(at.child("requestName"), request, dns_label_errors(request));
    if (!seen.emplace(container, resource, request).second) {
      errors.duplicate(here.child("containerName"), container);
      errors.duplicate(here.child("resourceName"), resource);
      errors.duplicate(here.child("requestName"), request);
    }
  }
  const std::string_view claim = status.text_at("resourceClaimName");
  errors.require_valid(at.child("resourceClaimName"), claim, dns_subdomain_errors);
}

// Existing addresses may stay as they are.
void validate_addresses(const Value& status, const Value& before, std::string_view list, FieldErrors& errors) {
  const Path at("status");
  const std::span<const Value> ips = status.items_at(list), old = before.items_at(list);
  std::vector<std::string_view> texts;
  Names known;
  for (const Value& one : old) known.push_back(one.text_at("ip"));
  std::string shown = "[";
  for (size_t i = 0; i < ips.size(); ++i) {
    const std::string_view ip = ips[i].text_at("ip");
    texts.push_back(ip);
    shown += (i == 0 ? "{\"IP\":" : ",{\"IP\":") + Shown(ip).text() + "}";
    validate_ip(ip, at.item(list, i), errors, known);
  }
  validate_ip_families(texts, at.child(list), Shown::verbatim(shown + "]"), errors);
}

void validate_conditions(const Value& status, FieldErrors& errors) {
  static constexpr std::string_view kKnown[] = {"PodScheduled", "Ready", "Initialized"};
  const Path at("status");
  const std::span<const Value> conditions = status.items_at("conditions");
  for (size_t i = 0; i < conditions.size(); ++i) {
    const Path here = at.item("conditions", i);
    const int64_t generation = conditions[i].int_at_or(0, "observedGeneration");
    if (generation < 0) errors.invalid(here.child("observedGeneration"), generation, "must be a non-negative integer");
    const std::string_view type = conditions[i].text_at("type");
    if (std::ranges::find(kKnown, type) != std::end(kKnown)) continue;
    errors.invalid_each(here.child("Type"), type, qualified_name_errors(type));
  }
}

// The user that a container runs as.
void validate_user(const Value& status, std::string_view os, const Path& at, FieldErrors& errors) {
  const Value& linux_user = sub(status, "user", "linux");
  if (linux_user.is_null()) return;
  const Path here = at.child("user.linux");
  if (os == "windows") return errors.forbidden(here, "cannot be set for a windows pod");
  if (os != "linux") return;
  for (const std::string_view key : {"uid", "gid"}) {
    const int64_t id = linux_user.int_at_or(0, key);
    errors.invalid_each(here.child(key), id, id_range_errors(id));
  }
  const std::span<const Value> groups = linux_user.items_at("supplementalGroups");
  for (size_t i = 0; i < groups.size(); ++i) {
    errors.invalid_each(here.item("supplementalGroups", i), groups[i], id_range_errors(groups[i].as_int()));
  }
}

bool is_claimed(const Value& container, std::string_view name) {
  for (const Value& claim : container.items_at("resources", "claims")) {
    const std::string_view request = claim.text_at("request");
    const std::string whole = "claim:" + std::string(claim.text_at("name"));
    if ((request.empty() ? whole : whole + "/" + std::string(request)) == name) return true;
  }
  return false;
}

// The health of a container's devices. `containers` is the list in the spec.
void validate_health(const Value& status, std::span<const Value> containers, const Path& at, FieldErrors& errors) {
  const auto container =
      std::ranges::find_if(containers, [&](const Value& one) { return one.text_at("name") == status.text_at("name"); });
  const std::span<const Value> allocated = status.items_at("allocatedResourcesStatus");
  for (size_t i = 0; i < allocated.size(); ++i) {
    const Path here = at.item("allocatedResourcesStatus", i);
    const std::string_view name = allocated[i].text_at("name");
    if (container != containers.end()) {
      if (name.starts_with("claim:")) {
        if (!is_claimed(*container, name)) {
          errors.invalid(here.child("name"), name,
                         "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' "
                         "or 'claim:<claimName>' if request is empty");
        }
      } else if (container->get("resources", "requests", name) == nullptr) {
        errors.invalid(here.child("name"), name, "must match one of the container's resource requests");
      }
    }
    Names seen;
    const std::span<const Value> resources = allocated[i].items_at("resources");
    for (size_t j = 0; j < resources.size(); ++j) {
      const Path resource = here.item("resources", j);
      validate_enum(resources[j], "health", {"Healthy", "Unhealthy", "Unknown"}, resource, errors);
      if (is_set(resources[j], "message")) {
        constexpr int64_t kMaxMessageBytes = 1024;
        const size_t bytes = resources[j].text_at("message").size();
        if (bytes == 0) errors.required(resource.child("message"), "must be non-empty if specified");
        if (bytes > kMaxMessageBytes) errors.too_long(resource.child("message"), kMaxMessageBytes);
      }
      const std::string_view id = resources[j].text_at("resourceID");
      if (!seen.add(id)) errors.duplicate(resource.child("resourceID"), id);
    }
  }
}

void validate_container_statuses(const Value& pod, FieldErrors& errors) {
  struct Lists {
    std::string_view statuses, containers;
  };
  constexpr Lists kLists[] = {{"containerStatuses", "containers"},
                              {"initContainerStatuses", "initContainers"},
                              {"ephemeralContainerStatuses", {}}};
  const Path at("status");
  const std::string_view os = is_set(sub(pod, "spec"), "os") ? pod.text_at("spec", "os", "name") : "linux";
  const auto each = [&](auto validate) {
    for (const auto& [statuses, containers] : kLists) {
      const std::span<const Value> items = pod.items_at("status", statuses);
      for (size_t i = 0; i < items.size(); ++i) validate(items[i], containers, at.item(statuses, i));
    }
  };
  each([&](const Value& status, std::string_view, const Path& here) { validate_user(status, os, here, errors); });
  each([&](const Value& status, std::string_view containers, const Path& here) {
    if (!containers.empty()) {
      validate_health(status, pod.items_at("spec", containers), here, errors);
    } else if (!is_empty(status, "allocatedResourcesStatus")) {
      errors.forbidden(here.child("allocatedResourcesStatus"), "must not be specified in container status");
    }
  });
}

}  // namespace

void validate_pod_status(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  const Path at("status");
  const Value &status = sub(next, "status"), &before = sub(old, "status");
  validate_pod_annotation_updates(next, old, errors);
  validate_conditions(status, errors);
  const std::string_view nominated = status.text_at("nominatedNodeName");
  if (!nominated.empty() && nominated != before.text_at("nominatedNodeName")) {
    errors.invalid_each(at.child("nominatedNodeName"), nominated, dns_subdomain_errors(nominated));
    if (!old.text_at("spec", "nodeName").empty()) {
      errors.forbidden(at.child("nominatedNodeName"), "may not be set on pods that are already bound to a node");
    }
  }
  if (const int64_t generation = status.int_at_or(0, "observedGeneration"); generation < 0) {
    errors.invalid(at.child("observedGeneration"), generation, "must be a non-negative integer");
  }
  if (status.text_at("qosClass") != before.text_at("qosClass")) {
    errors.invalid(at.child("qosClass"), status.text_at("qosClass"), kImmutable);
  }
  validate_transitions(next, old, "containerStatuses", "containers", errors);
  validate_transitions(next, old, "initContainerStatuses", "initContainers", errors);
  validate_transitions(next, old, "ephemeralContainerStatuses", {}, errors);
  validate_claim_statuses(next, errors);
  validate_extended_claim(next, errors);
  validate_addresses(status, before, "podIPs", errors);
  if (const std::span<const Value> hosts = status.items_at("hostIPs"); !hosts.empty()) {
    const std::string_view first = hosts[0].text_at("ip");
    const Path host = at.item("hostIPs", 0);
    if (first != status.text_at("hostIP")) errors.invalid(host.child("ip"), first, "must be equal to `hostIP`");
    validate_addresses(status, before, "hostIPs", errors);
  }
  validate_container_statuses(next, errors);
}

}  // namespace holdfast::kinds
