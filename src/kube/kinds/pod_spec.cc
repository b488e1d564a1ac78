// Validation of a PodSpec, in the order of kube-apiserver's ValidatePodSpec.

#include <algorithm>

#include "kinds/internal.h"
#include "kinds/ip.h"
#include "kinds/names.h"
#include "kinds/pod.h"
#include "kinds/quantity.h"

namespace holdfast::kinds {
namespace {

void validate_resource_claims(const Value& spec, const PodOptions& options, const Path& at, FieldErrors& errors) {
  const bool is_mirror = options.metadata != nullptr && options.metadata->get("annotations", kMirrorPod) != nullptr;
  Names names;
  const types::Type& type = type_named("core/v1.PodResourceClaim");
  const std::span<const Value> claims = spec.items_at("resourceClaims");
  for (size_t i = 0; i < claims.size(); ++i) {
    const Value& claim = claims[i];
    const Path here = at.item("resourceClaims", i);
    if (is_mirror) {
      errors.forbidden(Path("[]"), "static pods do not support resource claims");
      continue;
    }
    const std::string_view name = claim.text_at("name");
    if (name.empty()) {
      errors.required(here.child("name"));
    } else if (contains(names, name)) {
      errors.duplicate(here.child("name"), name);
    } else {
      errors.invalid_each(here.child("name"), name, dns_label_errors(name));
      names.push_back(name);
    }
    const bool by_name = is_set(claim, "resourceClaimName"), by_template = is_set(claim, "resourceClaimTemplateName");
    if (by_name && by_template) {
      errors.invalid(here, shown_internal(type, &claim),
                     "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified");
    }
    if (!by_name && !by_template) {
      errors.invalid(here, shown_internal(type, &claim),
                     "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`");
    }
    for (const std::string_view key : {"resourceClaimName", "resourceClaimTemplateName"}) {
      if (is_set(claim, key)) {
        errors.invalid_each(here.child(key), claim.text_at(key), dns_subdomain_errors(claim.text_at(key)));
      }
    }
  }
}

void validate_host_network(const Value& spec, bool is_pod, const Path& at, FieldErrors& errors) {
  if (!is_true(spec, "hostNetwork")) return;
  const std::span<const Value> containers = spec.items_at("containers");
  for (size_t i = 0; i < containers.size(); ++i) {
    const Path container = at.item("containers", i);
    const std::span<const Value> ports = containers[i].items_at("ports");
    for (size_t j = 0; j < ports.size(); ++j) {
      const int64_t host = ports[j].int_at_or(0, "hostPort"), port = ports[j].int_at_or(0, "containerPort");
      if ((!is_pod && host == 0) || host == port) continue;
      const Path here = container.item("ports", j);
      errors.invalid(here.child("hostPort"), host, "must match `containerPort` when `hostNetwork` is true");
    }
  }
}

bool is_subdomain_with_underscore(std::string_view text) {
  std::string plain(text);
  size_t start = 0;
  for (size_t i = 0; i <= plain.size(); ++i) {
    if (i < plain.size() && plain[i] != '.') {
      // An underscore may be used like a letter, and in front of a label.
      if (plain[i] == '_') plain[i] = i == start && i + 1 < plain.size() && plain[i + 1] != '.' ? 'a' : '-';
      continue;
    }
    start = i + 1;
  }
  return is_dns_subdomain(plain);
}

void validate_dns(const Value& spec, const Path& at, FieldErrors& errors) {
  const Path here = at.child("dnsConfig");
  const bool none = spec.text_at("dnsPolicy") == "None";
  if (!is_set(spec, "dnsConfig")) {
    if (none) errors.required(here, "must provide `dnsConfig` when `dnsPolicy` is None");
    return;
  }
  const Value& config = sub(spec, "dnsConfig");
  const std::span<const Value> servers = config.items_at("nameservers"), searches = config.items_at("searches");
  if (none && servers.empty()) {
    return errors.required(here.child("nameservers"),
                           "must provide at least one DNS nameserver when `dnsPolicy` is None");
  }
  if (servers.size() > 3) {
    errors.invalid(here.child("nameservers"), sub(config, "nameservers"), "must not have more than 3 nameservers");
  }
  for (size_t i = 0; i < servers.size(); ++i) validate_ip(servers[i].as_string(), here.item("nameservers", i), errors);
  if (searches.size() > 32) {
    errors.invalid(here.child("searches"), sub(config, "searches"), "must not have more than 32 search paths");
  }
  size_t characters = searches.empty() ? 0 : searches.size() - 1;
  for (const Value& search : searches) characters += search.count();
  if (characters > 2048) {
    errors.invalid(here.child("searches"), sub(config, "searches"),
                   "must not have more than 2048 characters (including spaces) in the search list");
  }
  for (size_t i = 0; i < searches.size(); ++i) {
    std::string_view search = searches[i].as_string();
    if (search == ".") continue;
    if (search.ends_with('.')) search.remove_suffix(1);
    const Path search_at = here.item("searches", i);
    if (search.size() > 253) errors.invalid(search_at, search, max_length_message(253));
    if (!is_subdomain_with_underscore(search)) {
      errors.invalid(
          search_at, search,
          pattern_message("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
                          "characters, '_', '-' or '.', and must start and end with an alphanumeric character",
                          R"(_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*)", {"example.com"}));
    }
  }
  const std::span<const Value> options = config.items_at("options");
  for (size_t i = 0; i < options.size(); ++i) {
    if (options[i].text_at("name").empty()) errors.required(here.item("options", i), "must not be empty");
  }
}

void validate_gates(const Value& spec, const Path& at, FieldErrors& errors) {
  const std::span<const Value> readiness = spec.items_at("readinessGates"), gates = spec.items_at("schedulingGates");
  for (size_t i = 0; i < readiness.size(); ++i) {
    const Path here = at.item("readinessGates", i);
    const std::string_view type = readiness[i].text_at("conditionType");
    errors.invalid_each(here.child("conditionType"), type, qualified_name_errors(type));
  }
  Names seen;
  for (size_t i = 0; i < gates.size(); ++i) {
    const Path here = at.item("schedulingGates", i);
    const std::string_view name = gates[i].text_at("name");
    errors.invalid_each(here, name, qualified_name_errors(name));
    if (contains(seen, name)) errors.duplicate(here, name);
    seen.push_back(name);
  }
}

void validate_names(const Value& spec, const Path& at, FieldErrors& errors) {
  const auto subdomain = [&](std::string_view key) {
    const std::string_view text = spec.text_at(key);
    if (!text.empty()) errors.invalid_each(at.child(key), text, dns_subdomain_errors(text));
  };
  const auto label = [&](std::string_view key) {
    const std::string_view text = spec.text_at(key);
    if (!text.empty()) errors.invalid_each(at.child(key), text, dns_label_errors(text));
  };
  if (is_set(spec, "hostUsers") && !is_true(spec, "hostUsers")) {
    if (is_true(spec, "hostNetwork")) errors.forbidden(at.child("hostNetwork"), "when `hostUsers` is false");
    if (is_true(spec, "hostPID")) errors.forbidden(at.child("HostPID"), "when `hostUsers` is false");
    if (is_true(spec, "hostIPC")) errors.forbidden(at.child("HostIPC"), "when `hostUsers` is false");
    for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
      const std::span<const Value> containers = spec.items_at(list);
      for (size_t i = 0; i < containers.size(); ++i) {
        if (containers[i].items_at("volumeDevices").empty()) continue;
        const Path here = at.item(list, i);
        errors.forbidden(here.child("volumeDevices"), "when `hostUsers` is false");
      }
    }
  }
  if (is_set(spec, "hostnameOverride")) {
    const Path here = at.child("hostnameOverride");
    if (is_true(spec, "setHostnameAsFQDN")) {
      errors.forbidden(here, "may not be specified when setHostnameAsFQDN is true");
    }
    if (is_true(spec, "hostNetwork")) errors.forbidden(here, "may not be specified when hostNetwork is true");
    const std::string_view text = spec.text_at("hostnameOverride");
    if (text.size() > 64) errors.too_long(here, 64);
    errors.invalid_each(here, text, dns_subdomain_errors(text));
  }
  subdomain("serviceAccountName");
  subdomain("nodeName");
  if (is_set(spec, "activeDeadlineSeconds")) {
    const int64_t seconds = spec.int_at_or(0, "activeDeadlineSeconds");
    if (seconds < 1 || seconds > INT32_MAX) {
      errors.invalid(at.child("activeDeadlineSeconds"), seconds, range_message(1, INT32_MAX));
    }
  }
  label("hostname");
  label("subdomain");
  validate_tolerations(spec.items_at("tolerations"), at.child("tolerations"), errors);
  const std::span<const Value> aliases = spec.items_at("hostAliases");
  for (size_t i = 0; i < aliases.size(); ++i) {
    const Path here = at.item("hostAliases", i);
    validate_ip(aliases[i].text_at("ip"), here.child("ip"), errors);
    const std::span<const Value> names = aliases[i].items_at("hostnames");
    for (size_t j = 0; j < names.size(); ++j) {
      errors.invalid_each(here.item("hostnames", j), names[j], dns_subdomain_errors(names[j].as_string()));
    }
  }
  subdomain("priorityClassName");
  if (is_set(spec, "runtimeClassName")) {
    const std::string_view text = spec.text_at("runtimeClassName");
    errors.invalid_each(at.child("runtimeClassName"), text, dns_subdomain_errors(text));
  }
  if (is_set(spec, "preemptionPolicy") && spec.text_at("preemptionPolicy").empty()) {
    errors.required(at.child("preemptionPolicy"));
  } else if (is_set(spec, "preemptionPolicy")) {
    validate_enum(spec, "preemptionPolicy", {"PreemptLowerPriority", "Never"}, at, errors);
  }
  if (is_set(spec, "overhead")) {
    Arena arena;
    MapBuilder limits(arena);
    limits.add("limits", sub(spec, "overhead"));
    validate_resource_requirements(limits.build(), false, {}, at.child("overhead"), errors);
  }
}

void validate_pod_resources(const Value& spec, const Path& at, FieldErrors& errors) {
  if (!is_set(spec, "resources")) return;
  const Value& resources = sub(spec, "resources");
  const Path here = at.child("resources");
  if (spec.text_at("os", "name") == "windows") return errors.forbidden(here, "may not be set for a windows pod");
  if (is_set(resources, "claims")) {
    errors.forbidden(here.child("claims"), "claims may not be set for Resources at pod-level");
  }
  validate_resource_requirements(resources, true, spec.items_at("resourceClaims"), here, errors);
  const Path requests = here.child("requests"), limits = here.child("limits");
  for (const Member& request : resources.members_at("requests")) {
    const std::optional<Quantity> sum = aggregate_resource(spec, "requests", request.key);
    if (!sum || *sum <= quantity_of(&request.value)) continue;
    errors.invalid(requests.key(request.key), request.value,
                   "must be greater than or equal to aggregate container requests of " + sum->text());
  }
  for (const Member& limit : resources.members_at("limits")) {
    if (!limit.key.starts_with("hugepages-")) continue;
    const std::optional<Quantity> sum = aggregate_resource(spec, "limits", limit.key);
    if (!sum || *sum <= quantity_of(&limit.value)) continue;
    errors.invalid(limits.key(limit.key), limit.value,
                   "must be greater than or equal to aggregate container limits of " + sum->text());
  }
  const std::span<const Value> containers = spec.items_at("containers");
  for (size_t i = 0; i < containers.size(); ++i) {
    for (const Member& limit : containers[i].members_at("resources", "limits")) {
      const Value* pod_limit = resources.get("limits", limit.key);
      if (pod_limit == nullptr || quantity_of(&limit.value) <= quantity_of(pod_limit)) continue;
      const Path container = here.item("containers", i), where = container.key(limit.key);
      errors.invalid(where.child("limits"), limit.value,
                     "must be less than or equal to pod limits of " + std::string(pod_limit->as_string()));
    }
  }
}

// fileKeyRef must refer to an emptyDir volume of the pod.
void validate_file_volumes(const Value& spec, const Path& at, FieldErrors& errors) {
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    const std::span<const Value> containers = spec.items_at(list);
    for (size_t i = 0; i < containers.size(); ++i) {
      const Path container = at.item(list, i);
      const std::span<const Value> variables = containers[i].items_at("env");
      for (size_t j = 0; j < variables.size(); ++j) {
        if (!is_set(sub(variables[j], "valueFrom"), "fileKeyRef")) continue;
        const Path variable = container.item("env", j), where = variable.child("valueFrom.fileKeyRef.volumeName");
        const std::string_view name = variables[j].text_at("valueFrom", "fileKeyRef", "volumeName");
        const Value* found = nullptr;  // The last one with that name.
        for (const Value& volume : spec.items_at("volumes")) {
          if (volume.text_at("name") == name) found = &volume;
        }
        if (found == nullptr) {
          errors.not_found(where, name);
        } else if (!is_set(*found, "emptyDir")) {
          errors.invalid(where, name, "referenced volume must be of type emptyDir");
        }
      }
    }
  }
}

// Windows: either all containers of a pod are host processes or none, and they share the host's network.
void validate_host_processes(const Value& spec, const PodOptions& options, const Path& at, FieldErrors& errors) {
  const Value* pod = spec.get("securityContext", "windowsOptions", "hostProcess");
  if (pod != nullptr && !pod->is_bool()) pod = nullptr;
  size_t containers = 0, processes = 0;
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    const std::span<const Value> items = spec.items_at(list);
    for (size_t i = 0; i < items.size(); ++i) {
      ++containers;
      const Value* own = items[i].get("securityContext", "windowsOptions", "hostProcess");
      if (own != nullptr && !own->is_bool()) own = nullptr;
      if (own != nullptr && pod != nullptr && own->as_bool() != pod->as_bool()) {
        const Path here = at.item(list, i);
        errors.invalid(here.child("securityContext.windowsOptions.hostProcess"), own->as_bool(),
                       std::string("pod hostProcess value must be identical if both are specified, was ") +
                           (pod->as_bool() ? "true" : "false"));
      }
      const Value* decides = own != nullptr ? own : pod;
      processes += decides != nullptr && decides->as_bool();
    }
  }
  if (processes == 0) return;
  if (processes != containers) {
    errors.invalid(at, "",
                   "If pod contains any hostProcess containers then all containers must be HostProcess containers");
  }
  if (!is_true(spec, "hostNetwork")) {
    errors.invalid(at.child("hostNetwork"), false,
                   "hostNetwork must be true if pod contains any hostProcess containers");
  }
  if (!options.allow_privileged) errors.forbidden(at, "hostProcess containers are disallowed by cluster policy");
}

}  // namespace

void validate_pod_spec(const Value& spec, const PodOptions& options, const Path& at, FieldErrors& errors) {
  VolumeNames volumes;
  validate_volumes(spec.items_at("volumes"), options, at.child("volumes"), errors, volumes);
  validate_resource_claims(spec, options, at, errors);
  validate_containers(spec, options, volumes, at, errors);
  validate_pod_resources(spec, at, errors);
  validate_host_network(spec, options.is_pod, at, errors);
  if (spec.text_at("restartPolicy").empty()) {
    errors.required(at.child("restartPolicy"));
  } else {
    validate_enum(spec, "restartPolicy", {"Always", "OnFailure", "Never"}, at, errors);
  }
  validate_enum(spec, "dnsPolicy", {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"}, at, errors);
  validate_labels(spec.find("nodeSelector"), at.child("nodeSelector"), errors);
  validate_pod_security(spec, at, errors);
  validate_affinity(spec.find("affinity"), at.child("affinity"), errors);
  validate_dns(spec, at, errors);
  validate_gates(spec, at, errors);
  validate_spread_constraints(spec.items_at("topologySpreadConstraints"), at.child("topologySpreadConstraints"),
                              errors);
  validate_host_processes(spec, options, at, errors);
  validate_names(spec, at, errors);
  validate_os(spec, at, errors);
  validate_file_volumes(spec, at, errors);
}

void validate_pod_template(const Value& pod_template, const PodOptions& options, const Path& at, FieldErrors& errors) {
  const Value& metadata = sub(pod_template, "metadata");
  validate_labels(metadata.find("labels"), at.child("labels"), errors);
  validate_annotations(metadata.find("annotations"), at.child("annotations"), errors);
  const Value& spec = sub(pod_template, "spec");
  const Path spec_at = at.child("spec");
  validate_pod_annotations(metadata, spec, nullptr, at.child("annotations"), errors);
  validate_pod_spec(spec, options, spec_at, errors);
  validate_profile_annotations(metadata, spec, spec_at, errors);
  if (!is_empty(spec, "ephemeralContainers")) {
    errors.forbidden(spec_at.child("ephemeralContainers"), "ephemeral containers not allowed in pod template");
  }
}

}  // namespace holdfast::kinds
