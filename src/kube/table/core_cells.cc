// Pods, services, nodes, volumes, events and the other kinds of the core group; endpoint slices and events.k8s.io.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "base/url.h"
#include "kinds/kinds.h"
#include "table/cells.h"

namespace holdfast::table {
namespace {

const Value* condition(const Value& object, std::string_view type) {
  for (const Value& item : object.items_at("status", "conditions")) {
    if (item.text_at("type") == type) return &item;
  }
  return nullptr;
}

bool condition_is_true(const Value& object, std::string_view type) {
  const Value* found = condition(object, type);
  return found != nullptr && found->text_at("status") == "True";
}

// Number of restarts of a pod's containers, and when the last one ended.
struct Restarts {
  int64_t count = 0;
  std::optional<UnixTime> last_finish;

  void add(const Value& status) {
    count += status.int_at_or(0, "restartCount");
    if (const auto finished = parse_rfc3339(status.text_at("lastState", "terminated", "finishedAt"))) {
      if (!last_finish || *last_finish < *finished) last_finish = finished;
    }
  }
};

std::string exit_text(const Value& terminated) {
  if (const int64_t signal = terminated.int_at_or(0, "signal"); signal != 0) return "Signal:" + std::to_string(signal);
  return "ExitCode:" + std::to_string(terminated.int_at_or(0, "exitCode"));
}

bool is_true(const Value* value) { return value != nullptr && value->is_bool() && value->as_bool(); }

void pod(Row& row) {
  const Value& o = row.object();
  const auto init_containers = o.items_at("spec", "initContainers");
  auto restartable = [&](std::string_view name) {
    for (const Value& container : init_containers) {
      if (container.text_at("name") == name) return container.text_at("restartPolicy") == "Always";
    }
    return false;
  };
  size_t total = o.items_at("spec", "containers").size();
  for (const Value& container : init_containers) total += container.text_at("restartPolicy") == "Always";

  const std::string_view pod_reason = o.text_at("status", "reason"), phase = o.text_at("status", "phase");
  std::string reason(pod_reason.empty() ? phase : pod_reason);
  if (const Value* scheduled = condition(o, "PodScheduled");
      scheduled != nullptr && scheduled->text_at("reason") == "SchedulingGated") {
    reason = "SchedulingGated";
  }

  size_t ready = 0;
  Restarts restarts, restartable_restarts;
  bool initializing = false;
  const auto init_statuses = o.items_at("status", "initContainerStatuses");
  for (size_t i = 0; i < init_statuses.size(); ++i) {
    const Value& status = init_statuses[i];
    restarts.add(status);
    const bool stays = restartable(status.text_at("name"));
    if (stays) restartable_restarts.add(status);
    const Value* terminated = status.get("state", "terminated");
    if (terminated != nullptr && terminated->int_at_or(0, "exitCode") == 0) continue;
    if (stays && is_true(status.find("started"))) {
      ready += is_true(status.find("ready"));
      continue;
    }
    if (terminated != nullptr) {
      const std::string_view why = terminated->text_at("reason");
      reason = "Init:" + (why.empty() ? exit_text(*terminated) : std::string(why));
    } else if (const std::string_view why = status.text_at("state", "waiting", "reason");
               !why.empty() && why != "PodInitializing") {
      reason = "Init:" + std::string(why);
    } else {
      reason = "Init:" + std::to_string(i) + "/" + std::to_string(init_containers.size());
    }
    initializing = true;
    break;
  }
  if (!initializing || condition_is_true(o, "Initialized")) {
    restarts = restartable_restarts;
    bool has_running = false;
    std::string error;
    const auto statuses = o.items_at("status", "containerStatuses");
    for (size_t i = statuses.size(); i-- > 0;) {
      const Value& status = statuses[i];
      restarts.add(status);
      const Value* terminated = status.get("state", "terminated");
      if (const std::string_view why = status.text_at("state", "waiting", "reason"); !why.empty()) {
        reason = why;
      } else if (terminated != nullptr) {
        const std::string_view why = terminated->text_at("reason");
        reason = why.empty() ? exit_text(*terminated) : std::string(why);
        if (terminated->int_at_or(0, "exitCode") != 0) error = reason;
      } else if (is_true(status.find("ready")) && status.get("state", "running") != nullptr) {
        has_running = true;
        ++ready;
      }
    }
    if (reason == "Completed") {
      if (has_running && condition_is_true(o, "Ready"))
        reason = "Running";
      else if (!error.empty())
        reason = error;
      else if (has_running)
        reason = "NotReady";
    }
  }
  if (!o.text_at("metadata", "deletionTimestamp").empty()) {
    if (pod_reason == "NodeLost")
      reason = "Unknown";
    else if (phase != "Succeeded" && phase != "Failed")
      reason = "Terminating";
  }

  row.name();
  row.text(std::to_string(ready) + "/" + std::to_string(total));
  row.text(reason);
  std::string restart_text = std::to_string(restarts.count);
  if (restarts.count > 0 && restarts.last_finish) {
    restart_text += " (" + age_of(format_rfc3339(*restarts.last_finish), row.now()) + " ago)";
  }
  row.text(restart_text);
  row.age();
  const auto ips = o.items_at("status", "podIPs");
  row.text(or_none(ips.empty() ? std::string_view{} : ips[0].text_at("ip")));
  row.text(or_none(o.text_at("spec", "nodeName")));
  row.text(or_none(o.text_at("status", "nominatedNodeName")));
  const auto gates = o.items_at("spec", "readinessGates");
  if (gates.empty()) {
    row.text("<none>");
  } else {
    size_t open = 0;
    for (const Value& gate : gates) open += condition_is_true(o, gate.text_at("conditionType"));
    row.text(std::to_string(open) + "/" + std::to_string(gates.size()));
  }
}

void pod_template(Row& row) {
  const Value& o = row.object();
  row.name();
  containers(row, o.get("template", "spec"));
  row.text(or_none(map_text(o.members_at("template", "metadata", "labels"))));
}

std::string service_external(const Value& o) {
  const std::string_view type = o.text_at("spec", "type");
  const std::string external_ips = join_strings(o.items_at("spec", "externalIPs"), ",");
  if (type == "ExternalName") return std::string(o.text_at("spec", "externalName"));
  if (type == "LoadBalancer") {
    std::set<std::string> addresses;
    for (const Value& ingress : o.items_at("status", "loadBalancer", "ingress")) {
      const std::string_view ip = ingress.text_at("ip");
      const std::string_view address = ip.empty() ? ingress.text_at("hostname") : ip;
      if (!address.empty()) addresses.emplace(address);
    }
    std::string text = join(addresses, ",");
    if (!external_ips.empty()) text += (text.empty() ? "" : ",") + external_ips;
    return text.empty() ? "<pending>" : text;
  }
  return external_ips.empty() ? "<none>" : external_ips;
}

void service(Row& row) {
  const Value& o = row.object();
  row.name();
  row.text(o.text_at("spec", "type"));
  const auto ips = o.items_at("spec", "clusterIPs");
  row.text(or_none(ips.empty() || !ips[0].is_string() ? std::string_view{} : ips[0].as_string()));
  row.text(service_external(o));
  std::vector<std::string> ports;
  for (const Value& port : o.items_at("spec", "ports")) {
    std::string text = std::to_string(port.int_at_or(0, "port"));
    if (const int64_t node_port = port.int_at_or(0, "nodePort"); node_port > 0) text += ":" + std::to_string(node_port);
    ports.push_back(text + "/" + std::string(port.text_at("protocol")));
  }
  row.text(or_none(join(ports, ",")));
  row.age();
  row.text(or_none(map_text(o.members_at("spec", "selector"))));
}

void node(Row& row) {
  const Value& o = row.object();
  row.name();
  const Value* ready = condition(o, "Ready");
  std::string status = ready == nullptr ? "Unknown" : ready->text_at("status") == "True" ? "Ready" : "NotReady";
  if (bool_at(o, "spec", "unschedulable")) status += ",SchedulingDisabled";
  row.text(status);
  constexpr std::string_view kRolePrefix = "node-role.kubernetes.io/";
  std::set<std::string> roles;
  for (const Member& label : o.members_at("metadata", "labels")) {
    if (label.key.starts_with(kRolePrefix)) {
      if (label.key.size() > kRolePrefix.size()) roles.emplace(label.key.substr(kRolePrefix.size()));
    } else if (label.key == "kubernetes.io/role" && label.value.is_string() && label.value.count() > 0) {
      roles.emplace(label.value.as_string());
    }
  }
  row.text(or_none(join(roles, ",")));
  row.age();
  row.text(o.text_at("status", "nodeInfo", "kubeletVersion"));
  for (std::string_view type : {"InternalIP", "ExternalIP"}) {
    std::string_view address;
    for (const Value& item : o.items_at("status", "addresses")) {
      if (item.text_at("type") == type) {
        address = item.text_at("address");
        break;
      }
    }
    row.text(or_none(address));
  }
  const std::string_view os = o.text_at("status", "nodeInfo", "osImage"),
                         kernel = o.text_at("status", "nodeInfo", "kernelVersion"),
                         arch = o.text_at("status", "nodeInfo", "architecture"),
                         runtime = o.text_at("status", "nodeInfo", "containerRuntimeVersion");
  row.text_or(os, "<unknown>");
  std::string kernel_text(kernel.empty() ? "<unknown>" : kernel);
  if (!arch.empty()) kernel_text += " (" + std::string(arch) + ")";
  row.text(kernel_text);
  row.text_or(runtime, "<unknown>");
}

void name_phase_age(Row& row) {
  row.name();
  row.text(row.object().text_at("status", "phase"));
  row.age();
}

std::string access_modes(std::span<const Value> modes) {
  constexpr std::pair<std::string_view, std::string_view> kModes[] = {
      {"ReadWriteOnce", "RWO"}, {"ReadOnlyMany", "ROX"}, {"ReadWriteMany", "RWX"}, {"ReadWriteOncePod", "RWOP"}};
  std::vector<std::string> shown;
  for (const auto& [mode, text] : kModes) {
    for (const Value& item : modes) {
      if (item.is_string() && item.as_string() == mode) {
        shown.emplace_back(text);
        break;
      }
    }
  }
  return join(shown, ",");
}

std::string_view phase_or_terminating(const Value& o) {
  return o.text_at("metadata", "deletionTimestamp").empty() ? o.text_at("status", "phase") : "Terminating";
}

void persistent_volume(Row& row) {
  const Value& o = row.object();
  row.name();
  row.text(o.text_at("spec", "capacity", "storage"));
  row.text(access_modes(o.items_at("spec", "accessModes")));
  row.text(o.text_at("spec", "persistentVolumeReclaimPolicy"));
  row.text(phase_or_terminating(o));
  const Value* claim = o.get("spec", "claimRef");
  row.text(claim == nullptr ? ""
                            : std::string(claim->text_at("namespace")) + "/" + std::string(claim->text_at("name")));
  row.text(kinds::storage_class_of(o));
  row.text_or(o.text_at("spec", "volumeAttributesClassName"), "<unset>");
  row.text(o.text_at("status", "reason"));
  row.age();
  row.text_or(o.text_at("spec", "volumeMode"), "<unset>");
}

void persistent_volume_claim(Row& row) {
  const Value& o = row.object();
  const std::string_view volume = o.text_at("spec", "volumeName");
  row.name();
  row.text(phase_or_terminating(o));
  row.text(volume);
  const std::string_view capacity = o.text_at("status", "capacity", "storage");
  row.text(volume.empty() ? std::string_view{} : capacity.empty() ? "0" : capacity);
  row.text(volume.empty() ? "" : access_modes(o.items_at("status", "accessModes")));
  row.text(kinds::storage_class_of(o));
  row.text_or(o.text_at("spec", "volumeAttributesClassName"), "<unset>");
  row.age();
  row.text_or(o.text_at("spec", "volumeMode"), "<unset>");
}

void config_map(Row& row) {
  const Value& o = row.object();
  row.name();
  row.integer(static_cast<int64_t>(o.members_at("data").size() + o.members_at("binaryData").size()));
  row.age();
}

void secret(Row& row) {
  row.name();
  row.text(row.object().text_at("type"));
  row.integer(static_cast<int64_t>(row.object().members_at("data").size()));
  row.age();
}

void name_age(Row& row) {
  row.name();
  row.age();
}

// The names that the two event groups use for the same fields.
struct EventNames {
  std::string_view target, source, first, last, count, message;
};

void event_row(Row& row, const EventNames& names) {
  const Value& o = row.object();
  auto nonzero = [](std::string_view time) { return time.empty() ? std::string_view{} : time; };
  std::string_view first = nonzero(o.text_at(names.first));
  if (first.empty()) first = o.text_at("eventTime");
  std::string_view last = o.text_at("series", "lastObservedTime");
  if (last.empty()) last = o.text_at(names.last);
  if (last.empty()) last = first;
  row.text(age_of(last, row.now()));
  row.text(o.text_at("type"));
  row.text(o.text_at("reason"));
  std::string target = to_lower(o.text_at(names.target, "kind"));
  if (const std::string_view name = o.text_at(names.target, "name"); !name.empty()) target += "/" + std::string(name);
  row.text(target);
  row.text(o.text_at(names.target, "fieldPath"));
  std::string component(o.text_at(names.source, "component")), host(o.text_at(names.source, "host"));
  if (component.empty())
    component = o.text_at(names.target == "involvedObject" ? "reportingComponent" : "reportingController");
  if (host.empty()) host = o.text_at("reportingInstance");
  row.text(host.empty() ? component : component + ", " + host);
  row.text(trim(o.text_at(names.message)));
  row.text(age_of(first, row.now()));
  const int64_t series = o.int_at_or(0, "series", "count");
  row.integer(std::max<int64_t>(1, series > 0 ? series : o.int_at_or(0, names.count)));
  row.name();
}

void core_event(Row& row) {
  event_row(row, {"involvedObject", "source", "firstTimestamp", "lastTimestamp", "count", "message"});
}
void new_event(Row& row) {
  event_row(row, {"regarding", "deprecatedSource", "deprecatedFirstTimestamp", "deprecatedLastTimestamp",
                  "deprecatedCount", "note"});
}

constexpr size_t kShownAddresses = 3;

std::string with_more(const std::vector<std::string>& parts, size_t total) {
  std::string text = join(std::span(parts).first(std::min(parts.size(), kShownAddresses)), ",");
  if (total > kShownAddresses) text += " + " + std::to_string(total - kShownAddresses) + " more...";
  return text;
}

void endpoints(Row& row) {
  const Value& o = row.object();
  row.name();
  std::vector<std::string> addresses;
  const auto subsets = o.items_at("subsets");
  for (const Value& subset : subsets) {
    const auto ports = subset.items_at("ports");
    if (ports.empty()) {
      for (const Value& address : subset.items_at("addresses")) addresses.emplace_back(address.text_at("ip"));
    }
    for (const Value& port : ports) {
      for (const Value& address : subset.items_at("addresses"))
        addresses.push_back(host_port(address.text_at("ip"), port.int_at_or(0, "port")));
    }
  }
  row.text(subsets.empty() ? "<none>" : with_more(addresses, addresses.size()));
  row.age();
}

void endpoint_slice(Row& row) {
  const Value& o = row.object();
  row.name();
  row.text(o.text_at("addressType"));
  std::vector<std::string> ports, addresses;
  for (const Value& port : o.items_at("ports")) {
    const Value* number = port.find("port");
    if (number != nullptr && number->is_int())
      ports.push_back(std::to_string(number->as_int()));
    else if (port.has("name"))
      ports.emplace_back(port.text_at("name"));
    else
      ports.emplace_back("*");
  }
  for (const Value& endpoint : o.items_at("endpoints")) {
    for (const Value& address : endpoint.items_at("addresses"))
      addresses.emplace_back(address.is_string() ? address.as_string() : "");
  }
  row.text_or(with_more(ports, ports.size()), "<unset>");
  row.text_or(with_more(addresses, addresses.size()), "<unset>");
  row.age();
}

void resource_quota(Row& row) {
  const Value& o = row.object();
  std::vector<std::string> names;
  for (const Member& hard : o.members_at("status", "hard")) names.emplace_back(hard.key);
  std::sort(names.begin(), names.end());
  std::vector<std::string> requests, limits;
  for (const std::string& name : names) {
    std::string used(o.text_at("status", "used", name));
    std::string text = name + ": " + (used.empty() ? "0" : used) + "/" + std::string(o.text_at("status", "hard", name));
    (name.starts_with("limits") ? limits : requests).push_back(std::move(text));
  }
  row.name();
  row.text(join(requests, ", "));
  row.text(join(limits, ", "));
  row.age();
}

void component_status(Row& row) {
  const Value& o = row.object();
  std::string status = "Unknown";
  std::string_view message, error;
  for (const Value& item : o.items_at("conditions")) {
    if (item.text_at("type") != "Healthy") continue;
    status = item.text_at("status") == "True" ? "Healthy" : "Unhealthy";
    message = item.text_at("message");
    error = item.text_at("error");
    break;
  }
  row.name();
  row.text(status);
  row.text(message);
  row.text(error);
}

}  // namespace

Printer core_printer(std::string_view kind) {
  if (kind == "Pod") return pod;
  if (kind == "PodTemplate") return pod_template;
  if (kind == "Service") return service;
  if (kind == "Node") return node;
  if (kind == "Namespace") return name_phase_age;
  if (kind == "PersistentVolume") return persistent_volume;
  if (kind == "PersistentVolumeClaim") return persistent_volume_claim;
  if (kind == "ConfigMap") return config_map;
  if (kind == "Secret") return secret;
  if (kind == "ServiceAccount") return name_age;
  if (kind == "Event") return core_event;
  if (kind == "Event/events.k8s.io") return new_event;
  if (kind == "Endpoints") return endpoints;
  if (kind == "EndpointSlice") return endpoint_slice;
  if (kind == "ResourceQuota") return resource_quota;
  if (kind == "ComponentStatus") return component_status;
  return nullptr;
}

}  // namespace holdfast::table
