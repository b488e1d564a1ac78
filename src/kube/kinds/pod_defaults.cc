// Defaults of PodSpecs (apis/core/v1/defaults.go and the markers of core/v1), and the fields that mirror each other.

#include <algorithm>

#include "kinds/names.h"
#include "kinds/pod.h"
#include "kinds/quantity.h"
#include "kinds/references.h"

namespace holdfast::kinds {
namespace {

void default_http_get(Draft::Node handler) {
  if (Draft::Node http = handler.existing("httpGet")) {
    http.set_if_zero("path", Value::string("/"));
    http.set_if_zero("scheme", Value::string("HTTP"));
  }
}

void default_probe(Draft::Node container, std::string_view key) {
  Draft::Node probe = container.existing(key);
  if (!probe) return;
  probe.set_if_zero("timeoutSeconds", Value::integer(1));
  probe.set_if_zero("periodSeconds", Value::integer(10));
  probe.set_if_zero("successThreshold", Value::integer(1));
  probe.set_if_zero("failureThreshold", Value::integer(3));
  default_http_get(probe);
  // grpc.service is a pointer; absent means "".
  if (Draft::Node grpc = probe.existing("grpc")) grpc.set_default("service", Value::string(""));
}

void default_field_ref(Draft::Node holder) {
  if (Draft::Node field = holder.existing("fieldRef")) field.set_if_zero("apiVersion", Value::string("v1"));
}

void default_container(Arena& arena, Draft::Node container) {
  if (container.value().text_at("imagePullPolicy").empty()) {
    container.set("imagePullPolicy",
                  Value::string(image_is_latest(container.value().text_at("image")) ? "Always" : "IfNotPresent"));
  }
  container.set_if_zero("terminationMessagePath", Value::string("/dev/termination-log"));
  container.set_if_zero("terminationMessagePolicy", Value::string("File"));
  if (!is_empty(container.value(), "ports")) {
    for (Draft::Node port : container.list("ports")) port.set_if_zero("protocol", Value::string("TCP"));
  }
  if (!is_empty(container.value(), "env")) {
    const bool any = std::ranges::any_of(container.value().items_at("env"), [](const Value& env) {
      return env.get("valueFrom", "fieldRef") != nullptr || env.get("valueFrom", "fileKeyRef") != nullptr;
    });
    if (any) {
      for (Draft::Node env : container.list("env")) {
        Draft::Node from = env.existing("valueFrom");
        if (!from) continue;
        default_field_ref(from);
        if (Draft::Node file = from.existing("fileKeyRef")) file.set_default("optional", Value::boolean(false));
      }
    }
  }
  default_resources(arena, container);
  for (const std::string_view key : {"livenessProbe", "readinessProbe", "startupProbe"}) default_probe(container, key);
  if (Draft::Node lifecycle = container.existing("lifecycle")) {
    for (const std::string_view key : {"postStart", "preStop"}) {
      if (Draft::Node handler = lifecycle.existing(key)) default_http_get(handler);
    }
  }
}

void default_downward_items(Draft::Node source) {
  for (Draft::Node item : source.list("items")) default_field_ref(item);
}

void default_volume(Arena& arena, Draft::Node volume) {
  bool any = false;
  for (const Member& member : volume.value().members()) any = any || (member.key != "name" && !member.value.is_null());
  if (!any) volume.set("emptyDir", Value::empty_map());
  const Value mode = Value::integer(0644);
  for (const std::string_view key : {"secret", "configMap", "downwardAPI", "projected"}) {
    Draft::Node source = volume.existing(key);
    if (!source) continue;
    source.set_default("defaultMode", mode);
    if (key == "downwardAPI") default_downward_items(source);
    if (key != "projected") continue;
    for (Draft::Node projection : source.list("sources")) {
      if (Draft::Node downward = projection.existing("downwardAPI")) default_downward_items(downward);
      if (Draft::Node token = projection.existing("serviceAccountToken")) {
        token.set_default("expirationSeconds", Value::integer(3600));
      }
    }
  }
  if (Draft::Node source = volume.existing("image")) {
    source.set_if_zero("pullPolicy",
                       Value::string(image_is_latest(source.value().text_at("reference")) ? "Always" : "IfNotPresent"));
  }
  if (Draft::Node source = volume.existing("ephemeral")) {
    if (Draft::Node claim = source.existing("volumeClaimTemplate")) {
      Draft::Node spec = claim.child("spec");
      spec.set_default("volumeMode", Value::string("Filesystem"));
      default_resources(arena, spec);
    }
  }
  default_volume_sources(volume);
}

bool is_dropped_annotation(std::string_view key) {
  for (const std::string_view prefix : {"pod.beta.kubernetes.io/", "pod.alpha.kubernetes.io/"}) {
    if (!key.starts_with(prefix)) continue;
    const std::string_view rest = key.substr(prefix.size());
    if (rest == "init-containers" || rest == "init-container-statuses") return true;
  }
  return false;
}

// In the metadata of a pod or a template: long obsolete annotations are always dropped.
void drop_init_annotations(Draft::Node holder) {
  if (holder.value().members_at("metadata", "annotations").empty()) return;
  std::vector<std::string_view> keys;
  for (const Member& annotation : holder.value().members_at("metadata", "annotations")) {
    if (is_dropped_annotation(annotation.key)) keys.push_back(annotation.key);
  }
  if (keys.empty()) return;
  Draft::Node annotations = holder.child("metadata").child("annotations");
  for (const std::string_view key : keys) annotations.remove(key);
  if (annotations.value().count() == 0) holder.child("metadata").remove("annotations");
}

// Requests default to the limits.
void default_requests_from_limits(Draft::Node container) {
  if (container.value().members_at("resources", "limits").empty()) return;
  Draft::Node resources = container.child("resources");
  std::vector<Member> missing;
  for (const Member& limit : resources.value().members_at("limits")) {
    if (resources.value().get("requests", limit.key) == nullptr) missing.push_back(limit);
  }
  if (missing.empty()) return;
  Draft::Node requests = resources.child("requests");
  for (const Member& limit : missing) requests.set(limit.key, limit.value);
}

bool is_huge_pages(std::string_view name) { return name.starts_with("hugepages-"); }

// Pod-level resources default to the aggregate of the containers.
void default_pod_resources(Arena& arena, Draft::Node spec) {
  const Value& given = sub(spec.value(), "resources");
  if (is_empty(given, "limits") && is_empty(given, "requests")) return;
  Draft::Node resources = spec.child("resources");
  Names names;
  const auto note = [&](const Value& container) {
    for (const std::string_view list : {"limits", "requests"}) {
      for (const Member& amount : container.members_at("resources", list)) {
        if (!contains(names, amount.key)) names.push_back(amount.key);
      }
    }
  };
  for (const Value& container : spec.value().items_at("containers")) note(container);
  for (const Value& container : spec.value().items_at("initContainers")) note(container);
  for (const std::string_view name : names) {
    if (!is_huge_pages(name) || resources.value().get("limits", name) || resources.value().get("requests", name)) {
      continue;
    }
    const std::optional<Quantity> sum = aggregate_resource(spec.value(), "limits", name);
    if (sum) resources.child("limits").set(name, Value::string(arena, sum->text()));
  }
  if (is_empty(resources.value(), "limits")) return;
  for (const std::string_view name : names) {
    const bool supported = name == "cpu" || name == "memory" || is_huge_pages(name);
    if (!supported || resources.value().get("requests", name) != nullptr) continue;
    const std::optional<Quantity> sum = aggregate_resource(spec.value(), "requests", name);
    if (sum && (name == "cpu" || name == "memory")) {
      resources.child("requests").set(name, Value::string(arena, sum->text()));
    }
  }
  std::vector<Member> limits(resources.value().members_at("limits").begin(),
                             resources.value().members_at("limits").end());
  for (const Member& limit : limits) {
    const bool supported = limit.key == "cpu" || limit.key == "memory" || is_huge_pages(limit.key);
    if (supported && resources.value().get("requests", limit.key) == nullptr) {
      resources.child("requests").set(limit.key, limit.value);
    }
  }
}

// podIP without podIPs, or different from the first of them, replaces the list.
void mirror_first(Draft::Node object, std::string_view one, std::string_view list, std::string_view item_key) {
  const std::string_view single = object.value().text_at(one);
  const std::span<const Value> items = object.value().items_at(list);
  const auto first = [&]() -> std::string_view {
    if (items.empty()) return {};
    return item_key.empty() ? (items[0].is_string() ? items[0].as_string() : std::string_view())
                            : items[0].text_at(item_key);
  };
  if (!single.empty() && single != first()) {
    object.remove(list);
    if (item_key.empty()) {
      object.append(list, *object.find(one));
    } else {
      const Value text = *object.find(one);
      object.append(list, Value::empty_map());
      object.list(list)[0].set(item_key, text);
    }
  } else if (single.empty() && !items.empty()) {
    object.set(one, item_key.empty() ? items[0] : sub(items[0], item_key));
  }
}

}  // namespace

// The sum over containers (including sidecars) or the largest of the other init containers, as computed by the
// scheduler.
std::optional<Quantity> aggregate_resource(const Value& spec, std::string_view list, std::string_view resource) {
  bool any = false;
  Quantity sum, sidecars, largest_init;
  for (const Value& container : spec.items_at("containers")) {
    const Value* amount = container.get("resources", list, resource);
    if (amount == nullptr) continue;
    any = true;
    sum = sum + quantity_of(amount);
  }
  for (const Value& container : spec.items_at("initContainers")) {
    const Value* amount = container.get("resources", list, resource);
    if (amount == nullptr) continue;
    any = true;
    if (container.text_at("restartPolicy") == "Always") {
      sum = sum + quantity_of(amount);
      sidecars = sidecars + quantity_of(amount);
      if (sidecars > largest_init) largest_init = sidecars;
    } else {
      Quantity here = sidecars;
      here = here + quantity_of(amount);
      if (here > largest_init) largest_init = here;
    }
  }
  if (!any) return std::nullopt;
  return largest_init > sum ? largest_init : sum;
}

void default_resource_list(Arena& arena, Draft::Node parent, std::string_view key) {
  for (const Member& member : parent.value().members_at(key)) {
    if (!member.value.is_string() || member.value.as_string().find_first_of("nu.eE") == std::string_view::npos)
      continue;
    const Quantity quantity = quantity_of(&member.value);
    if (quantity.is_multiple_of(Quantity::kMilli)) continue;
    const std::string_view name = member.key;
    parent.child(key).set(name, Value::string(arena, quantity.rounded_up(Quantity::kMilli).text()));
    return default_resource_list(arena, parent, key);  // The map was copied: continue with the copy.
  }
}

void default_resources(Arena& arena, Draft::Node parent) {
  const Value* given = parent.find("resources");
  if (given == nullptr || !given->is_map() || given->count() == 0) return;
  Draft::Node resources = parent.child("resources");
  default_resource_list(arena, resources, "limits");
  default_resource_list(arena, resources, "requests");
}

void default_pod_spec(Arena& arena, Draft::Node spec) {
  spec.set_if_zero("dnsPolicy", Value::string("ClusterFirst"));
  spec.set_if_zero("restartPolicy", Value::string("Always"));
  spec.set_default("securityContext", Value::empty_map());
  spec.set_default("terminationGracePeriodSeconds", Value::integer(30));
  spec.set_if_zero("schedulerName", Value::string("default-scheduler"));
  // Two names of the same field.
  const std::string_view account = spec.value().text_at("serviceAccountName"),
                         alias = spec.value().text_at("serviceAccount");
  if (account.empty() && !alias.empty()) {
    spec.set("serviceAccountName", *spec.find("serviceAccount"));
  } else if (!account.empty() && alias != account) {
    spec.set("serviceAccount", *spec.find("serviceAccountName"));
  }
  if (!is_empty(spec.value(), "volumes")) {
    for (Draft::Node volume : spec.list("volumes")) default_volume(arena, volume);
  }
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    if (is_empty(spec.value(), list)) continue;
    for (Draft::Node container : spec.list(list)) default_container(arena, container);
  }
  default_resource_list(arena, spec, "overhead");
  default_resources(arena, spec);
}

void default_pod_template(Arena& arena, Draft::Node parent, std::string_view key) {
  Draft::Node pod_template = parent.existing(key);
  if (!pod_template) return;
  drop_init_annotations(pod_template);
  default_pod_spec(arena, pod_template.child("spec"));
}

void default_pod(Arena& arena, const types::Resource&, Draft::Node pod) {
  drop_init_annotations(pod);
  Draft::Node spec = pod.child("spec");
  default_pod_spec(arena, spec);
  if (spec.value().int_at_or(0, "terminationGracePeriodSeconds") < 0) {
    spec.set("terminationGracePeriodSeconds", Value::integer(1));
  }
  for (const std::string_view list : {"containers", "initContainers"}) {
    if (is_empty(spec.value(), list)) continue;
    const bool host_network = is_true(spec.value(), "hostNetwork");
    for (Draft::Node container : spec.list(list)) {
      default_requests_from_limits(container);
      if (!host_network) continue;
      for (Draft::Node port : container.list("ports")) {
        if (port.value().int_at_or(0, "hostPort") == 0 && port.has("containerPort")) {
          port.set("hostPort", *port.find("containerPort"));
        }
      }
    }
  }
  default_pod_resources(arena, spec);
  spec.set_default("enableServiceLinks", Value::boolean(true));
  Draft::Node status = pod.child("status");
  mirror_first(status, "podIP", "podIPs", "ip");
  for (const std::string_view list : {"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"}) {
    const bool any = std::ranges::any_of(status.value().items_at(list), [](const Value& container) {
      return is_set(container, "allocatedResources") || is_set(container, "resources");
    });
    if (!any) continue;
    for (Draft::Node container : status.list(list)) {
      default_resource_list(arena, container, "allocatedResources");
      default_resources(arena, container);
    }
  }
  default_resource_list(arena, status, "allocatedResources");
  default_resources(arena, status);
}

void mirror_pod_cidrs(Draft::Node node_spec) { mirror_first(node_spec, "podCIDR", "podCIDRs", {}); }

}  // namespace holdfast::kinds
