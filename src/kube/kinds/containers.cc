// The three container lists of a pod.

#include <algorithm>
#include <unordered_set>

#include "base/ascii.h"
#include "base/hash.h"
#include "kinds/names.h"
#include "kinds/pod.h"
#include "kinds/references.h"

namespace holdfast::kinds {
namespace {

void validate_ports(std::span<const Value> ports, const Path& at, FieldErrors& errors) {
  Names names;
  for (size_t i = 0; i < ports.size(); ++i) {
    const Value& port = ports[i];
    const Path here = at.item("ports", i);
    const std::string_view name = port.text_at("name");
    if (!name.empty()) {
      const Messages messages = port_name_errors(name);
      if (!messages.empty()) {
        errors.invalid_each(here.child("name"), name, messages);
      } else if (contains(names, name)) {
        errors.duplicate(here.child("name"), name);
      } else {
        names.push_back(name);
      }
    }
    const int64_t number = port.int_at_or(0, "containerPort"), host = port.int_at_or(0, "hostPort");
    if (number == 0) {
      errors.required(here.child("containerPort"));
    } else {
      errors.invalid_each(here.child("containerPort"), number, port_number_errors(number));
    }
    if (host != 0) errors.invalid_each(here.child("hostPort"), host, port_number_errors(host));
    if (port.text_at("protocol").empty()) {
      errors.required(here.child("protocol"));
    } else {
      validate_enum(port, "protocol", {"SCTP", "TCP", "UDP"}, here, errors);
    }
  }
}

void validate_key_selector(const Value& selector, const Path& at, FieldErrors& errors) {
  const std::string_view name = selector.text_at("name"), key = selector.text_at("key");
  errors.invalid_each(at.child("name"), name, dns_subdomain_errors(name));
  errors.require_valid(at.child("key"), key, config_key_errors);
}

void validate_file_key(const Value& selector, const Path& at, FieldErrors& errors) {
  const std::string_view key = selector.text_at("key"), volume = selector.text_at("volumeName");
  const std::string_view path = selector.text_at("path");
  errors.require_valid(at.child("key"), key, env_name_errors);
  errors.require_valid(at.child("volumeName"), volume, dns_label_errors);
  if (path.empty()) {
    errors.required(at.child("path"));
  } else if (has_parent_segment(path)) {
    errors.invalid(at.child("path"), path, "must not contain '..'");
  }
}

void validate_environment(const Value& container, const Path& at, FieldErrors& errors) {
  const std::span<const Value> variables = container.items_at("env");
  for (size_t i = 0; i < variables.size(); ++i) {
    const Value& variable = variables[i];
    const Path here = at.item("env", i), from_at = here.child("valueFrom");
    const std::string_view name = variable.text_at("name");
    errors.require_valid(here.child("name"), name, env_name_errors);
    if (!is_set(variable, "valueFrom")) continue;
    const Value& from = sub(variable, "valueFrom");
    size_t sources = 0;
    if (is_set(from, "fieldRef")) {
      ++sources;
      validate_field_ref(sub(from, "fieldRef"), FieldRefUse::Environment, from_at.child("fieldRef"), errors);
    }
    if (is_set(from, "resourceFieldRef")) {
      ++sources;
      validate_resource_ref(sub(from, "resourceFieldRef"), FieldRefUse::Environment, from_at.child("resourceFieldRef"),
                            errors);
    }
    for (const std::string_view key : {"configMapKeyRef", "secretKeyRef"}) {
      if (!is_set(from, key)) continue;
      ++sources;
      validate_key_selector(sub(from, key), from_at.child(key), errors);
    }
    if (is_set(from, "fileKeyRef")) {
      ++sources;
      validate_file_key(sub(from, "fileKeyRef"), from_at.child("fileKeyRef"), errors);
    }
    if (sources == 0) {
      errors.invalid(from_at, "",
                     "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
                     "`fileKeyRef`");
    } else if (!variable.text_at("value").empty()) {
      errors.invalid(from_at, "", "may not be specified when `value` is not empty");
    } else if (sources > 1) {
      errors.invalid(from_at, "", "may not have more than one field specified at a time");
    }
  }
  const std::span<const Value> from = container.items_at("envFrom");
  const Path list_at = at.child("envFrom");
  for (size_t i = 0; i < from.size(); ++i) {
    const Path here = list_at.index(i);
    const std::string_view prefix = from[i].text_at("prefix");
    if (!prefix.empty()) errors.invalid_each(here.child("prefix"), prefix, env_name_errors(prefix));
    size_t sources = 0;
    for (const std::string_view key : {"configMapRef", "secretRef"}) {
      if (!is_set(from[i], key)) continue;
      ++sources;
      const Path ref_at = here.child(key);
      const std::string_view name = from[i].text_at(key, "name");
      if (name.empty()) {
        errors.required(ref_at.child("name"));
      } else {
        errors.invalid_each(ref_at.child("name"), name, name_is_dns_subdomain(name, true));
      }
    }
    if (sources == 0) {
      errors.invalid(list_at, "", "must specify one of: `configMapRef` or `secretRef`");
    } else if (sources > 1) {
      errors.invalid(list_at, "", "may not have more than one field specified at a time");
    }
  }
}

// The path of the last item of each name: the contents of the map that kube-apiserver builds from the list.
Names last_paths(std::span<const Value> items, std::string_view key) {
  Names names, paths;
  for (size_t i = items.size(); i-- > 0;) {
    if (names.add(items[i].text_at("name"))) paths.push_back(items[i].text_at(key));
  }
  return paths;
}

void validate_mounts(const Value& container, const VolumeNames& volumes, const Path& at, FieldErrors& errors) {
  const std::span<const Value> mounts = container.items_at("volumeMounts"),
                               devices = container.items_at("volumeDevices");
  const Path list_at = at.child("volumeMounts");
  Names names, paths;
  const Names devices_by_path = last_paths(devices, "devicePath"), mounts_by_path = last_paths(mounts, "mountPath");
  Names devices_by_name;
  for (const Value& device : devices) devices_by_name.push_back(device.text_at("name"));
  for (size_t i = 0; i < mounts.size(); ++i) {
    const Value& mount = mounts[i];
    const Path here = list_at.index(i);
    const std::string_view name = mount.text_at("name"), path = mount.text_at("mountPath");
    if (name.empty()) errors.required(here.child("name"));
    if (!contains(volumes.all, name)) errors.not_found(here.child("name"), name);
    if (path.empty()) errors.required(here.child("mountPath"));
    if (contains(paths, path)) errors.invalid(here.child("mountPath"), path, "must be unique");
    names.push_back(name);
    paths.push_back(path);
    if (devices_by_name.contains(name)) {
      errors.invalid(here.child("name"), name, "must not already exist in volumeDevices");
    }
    if (devices_by_path.contains(path)) {
      errors.invalid(here.child("mountPath"), path, "must not already exist as a path in volumeDevices");
    }
    const std::string_view sub_path = mount.text_at("subPath"), expression = mount.text_at("subPathExpr");
    if (!sub_path.empty()) validate_descending_path(sub_path, list_at.child("subPath"), errors);
    if (!expression.empty()) {
      if (!sub_path.empty()) {
        errors.invalid(here.child("subPathExpr"), expression, "subPathExpr and subPath are mutually exclusive");
      }
      validate_descending_path(expression, list_at.child("subPathExpr"), errors);
    }
    if (is_set(mount, "mountPropagation")) {
      const Path propagation = list_at.child("mountPropagation");
      validate_enum(mount, "mountPropagation", {"Bidirectional", "HostToContainer", "None"}, list_at, errors);
      if (mount.text_at("mountPropagation") == "Bidirectional" &&
          !is_true(sub(container, "securityContext"), "privileged")) {
        errors.forbidden(propagation, "Bidirectional mount propagation is available only to privileged containers");
      }
    }
    if (!is_set(mount, "recursiveReadOnly")) continue;
    const std::string_view recursive = mount.text_at("recursiveReadOnly");
    const Path recursive_at = list_at.child("recursiveReadOnly");
    if (recursive == "Enabled" || recursive == "IfPossible") {
      if (!is_true(mount, "readOnly")) errors.forbidden(recursive_at, "may only be specified when readOnly is true");
      const std::string_view propagation = mount.text_at("mountPropagation");
      if (!propagation.empty() && propagation != "None") {
        errors.forbidden(recursive_at, "may only be specified when mountPropagation is None or not specified");
      }
    } else if (recursive != "Disabled") {
      errors.not_supported(recursive_at, recursive, {"Disabled", "Enabled", "IfPossible"});
    }
  }
  Names device_names, device_paths;
  for (size_t i = 0; i < devices.size(); ++i) {
    const Path here = at.item("volumeDevices", i);
    const std::string_view name = devices[i].text_at("name"), path = devices[i].text_at("devicePath");
    if (name.empty()) errors.required(here.child("name"));
    if (contains(device_names, name)) errors.invalid(here.child("name"), name, "must be unique");
    if (!contains(volumes.all, name)) {
      errors.not_found(here.child("name"), name);
    } else if (!contains(volumes.claims, name)) {
      errors.invalid(here.child("name"), name,
                     "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode");
    }
    if (path.empty()) errors.required(here.child("devicePath"));
    if (contains(device_paths, path)) errors.invalid(here.child("devicePath"), path, "must be unique");
    if (!path.empty() && has_parent_segment(path)) {
      errors.invalid(here.child("devicePath"), path, "can not contain backsteps ('..')");
    } else {
      device_paths.push_back(path);
    }
    if (names.contains(name)) errors.invalid(here.child("name"), name, "must not already exist in volumeMounts");
    if (mounts_by_path.contains(path)) {
      errors.invalid(here.child("devicePath"), path, "must not already exist as a path in volumeMounts");
    }
    if (!name.empty()) device_names.push_back(name);
  }
}

void validate_handler(const Value& handler, bool lifecycle, int64_t grace, const Path& at, FieldErrors& errors) {
  size_t count = 0;
  const auto take = [&](std::string_view key) {
    if (!is_set(handler, key)) return false;
    if (count > 0) {
      errors.forbidden(at.child(key), "may not specify more than 1 handler type");
      return false;
    }
    ++count;
    return true;
  };
  if (take("exec") && is_empty(sub(handler, "exec"), "command")) errors.required(at.child("exec.command"));
  if (take("httpGet")) {
    const Value& http = sub(handler, "httpGet");
    const Path here = at.child("httpGet");
    if (http.text_at("path").empty()) errors.required(here.child("path"));
    validate_port(sub(http, "port"), here.child("port"), errors);
    validate_enum(http, "scheme", {"HTTP", "HTTPS"}, here, errors);
    for (const Value& header : http.items_at("httpHeaders")) {
      errors.invalid_each(here.child("httpHeaders"), header.text_at("name"),
                          header_name_errors(header.text_at("name")));
    }
  }
  if (take("tcpSocket")) validate_port(sub(handler, "tcpSocket", "port"), at.child("tcpSocket.port"), errors);
  if (!lifecycle && take("grpc")) validate_port(sub(handler, "grpc", "port"), at.child("grpc.port"), errors);
  if (lifecycle && take("sleep")) {
    const int64_t seconds = handler.int_at_or(0, "sleep", "seconds");
    if (seconds < 0 || seconds > grace) {
      errors.invalid(
          at.child("sleep"), seconds,
          "must be non-negative and less than terminationGracePeriodSeconds (" + std::to_string(grace) + ")");
    }
  }
  if (count == 0) errors.required(at, "must specify a handler type");
}

void validate_probe(const Value& container, std::string_view key, int64_t grace, const Path& at, FieldErrors& errors) {
  if (!is_set(container, key)) return;
  const Value& probe = sub(container, key);
  const Path here = at.child(key);
  validate_handler(probe, false, grace, here, errors);
  for (const std::string_view number :
       {"initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"}) {
    validate_non_negative(probe, number, here, errors);
  }
  if (is_set(probe, "terminationGracePeriodSeconds")) {
    const int64_t seconds = probe.int_at_or(0, "terminationGracePeriodSeconds");
    const Path grace_at = here.child("terminationGracePeriodSeconds");
    if (seconds <= 0) errors.invalid(grace_at, seconds, "must be greater than 0");
    if (key == "readinessProbe") errors.invalid(grace_at, seconds, "must not be set for readinessProbes");
  }
  if (key != "readinessProbe" && probe.int_at_or(0, "successThreshold") != 1) {
    errors.invalid(here.child("successThreshold"), probe.int_at_or(0, "successThreshold"), "must be 1");
  }
}

void validate_lifecycle_and_probes(const Value& container, int64_t grace, const Path& at, FieldErrors& errors) {
  if (is_set(container, "lifecycle")) {
    const Path lifecycle = at.child("lifecycle");
    for (const std::string_view key : {"postStart", "preStop"}) {
      const Value& handler = sub(container, "lifecycle", key);
      if (!handler.is_null()) validate_handler(handler, true, grace, lifecycle.child(key), errors);
    }
  }
  for (const std::string_view key : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    validate_probe(container, key, grace, at, errors);
  }
}

void validate_resize_policy(const Value& container, std::string_view pod_restart, const Path& at, FieldErrors& errors) {
  const Path list_at = at.child("resizePolicy");
  Names seen;
  const std::span<const Value> policies = container.items_at("resizePolicy");
  for (size_t i = 0; i < policies.size(); ++i) {
    const std::string_view resource = policies[i].text_at("resourceName"),
                           restart = policies[i].text_at("restartPolicy");
    if (contains(seen, resource)) errors.duplicate(list_at.index(i), resource);
    seen.push_back(resource);
    if (resource.empty()) {
      errors.required(list_at);
    } else if (resource != "cpu" && resource != "memory") {
      errors.not_supported(list_at, resource, {"cpu", "memory"});
    }
    if (restart.empty()) {
      errors.required(list_at);
    } else if (restart != "NotRequired" && restart != "RestartContainer") {
      errors.not_supported(list_at, restart, {"NotRequired", "RestartContainer"});
    }
    if (pod_restart == "Never" && restart != "NotRequired") {
      errors.invalid(list_at, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'");
    }
  }
}

void validate_restart_policy(const Value& container, const Path& at, FieldErrors& errors) {
  const std::span<const Value> rules = container.items_at("restartPolicyRules");
  if (!is_set(container, "restartPolicy")) {
    if (rules.empty()) return;
    errors.required(at.child("restartPolicy"), "must specify restartPolicy when restart rules are used");
  } else {
    validate_enum(container, "restartPolicy", {"Always", "Never", "OnFailure"}, at, errors);
  }
  if (rules.size() > 20) errors.too_many(at.child("restartPolicyRules"), static_cast<int64_t>(rules.size()), 20);
  for (size_t i = 0; i < rules.size(); ++i) {
    const Path here = at.item("restartPolicyRules", i);
    validate_enum(rules[i], "action", {"Restart", "RestartAllContainers"}, here, errors);
    if (!is_set(rules[i], "exitCodes")) {
      errors.required(here.child("exitCodes"), "must be specified");
      continue;
    }
    const Path codes = here.child("exitCodes");
    validate_enum(sub(rules[i], "exitCodes"), "operator", {"In", "NotIn"}, codes, errors);
    const size_t count = rules[i].items_at("exitCodes", "values").size();
    if (count > 255) errors.too_many(codes.child("values"), static_cast<int64_t>(count), 255);
  }
}

void validate_common(const Value& container, const Value& spec, const PodOptions& options, const VolumeNames& volumes,
                     const Path& at, FieldErrors& errors) {
  const std::string_view name = container.text_at("name");
  errors.require_valid(at.child("name"), name, dns_label_errors);
  if (container.text_at("image").empty()) errors.required(at.child("image"));
  if (container.text_at("terminationMessagePolicy").empty()) {
    errors.required(at.child("terminationMessagePolicy"));
  } else {
    validate_enum(container, "terminationMessagePolicy", {"File", "FallbackToLogsOnError"}, at, errors);
  }
  validate_ports(container.items_at("ports"), at, errors);
  validate_environment(container, at, errors);
  validate_mounts(container, volumes, at, errors);
  if (container.text_at("imagePullPolicy").empty()) {
    errors.required(at.child("imagePullPolicy"));
  } else {
    validate_enum(container, "imagePullPolicy", {"Always", "IfNotPresent", "Never"}, at, errors);
  }
  validate_resource_requirements(sub(container, "resources"), false, spec.items_at("resourceClaims"),
                                 at.child("resources"), errors);
  validate_resize_policy(container, spec.text_at("restartPolicy"), at, errors);
  if (is_set(container, "securityContext")) {
    const bool host_users = !is_set(spec, "hostUsers") || is_true(spec, "hostUsers");
    validate_security_context(sub(container, "securityContext"), options.allow_privileged, host_users,
                              at.child("securityContext"), errors);
  }
}

void validate_host_ports(std::span<const Value> containers, size_t first_index, const Path& at, FieldErrors& errors) {
  std::unordered_set<std::string, KeyHash> seen;
  for (size_t i = 0; i < containers.size(); ++i) {
    const Path container_at = at.index(first_index + i);
    const std::span<const Value> ports = containers[i].items_at("ports");
    for (size_t j = 0; j < ports.size(); ++j) {
      const int64_t port = ports[j].int_at_or(0, "hostPort");
      if (port == 0) continue;
      const std::string key = std::string(ports[j].text_at("protocol")) + "/" +
                              std::string(ports[j].text_at("hostIP")) + "/" + std::to_string(port);
      if (!seen.insert(key).second) {
        const Path port_at = container_at.item("ports", j);
        errors.duplicate(port_at.child("hostPort"), key);
      }
    }
  }
}

void validate_init_container(const Value& container, int64_t grace, const Path& at, FieldErrors& errors) {
  if (container.text_at("restartPolicy") == "Always") {
    validate_lifecycle_and_probes(container, grace, at, errors);
    return;
  }
  for (const std::string_view key : {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}) {
    if (is_set(container, key)) {
      errors.forbidden(at.child(key), "may not be set for init containers without restartPolicy=Always");
    }
  }
  const std::span<const Value> policies = container.items_at("resizePolicy");
  for (size_t i = 0; i < policies.size(); ++i) {
    if (policies[i].text_at("restartPolicy") != "RestartContainer") continue;
    const Path here = at.item("resizePolicy", i);
    errors.invalid(here.child("restartPolicy"), "RestartContainer",
                   "must not be set to 'RestartContainer' for non-sidecar initContainers");
  }
}

constexpr std::string_view kEphemeralFields[] = {"name",
                                                 "image",
                                                 "command",
                                                 "args",
                                                 "workingDir",
                                                 "envFrom",
                                                 "env",
                                                 "volumeMounts",
                                                 "volumeDevices",
                                                 "terminationMessagePath",
                                                 "terminationMessagePolicy",
                                                 "imagePullPolicy",
                                                 "securityContext",
                                                 "stdin",
                                                 "stdinOnce",
                                                 "tty",
                                                 "targetContainerName"};

void validate_ephemeral_container(const Value& container, const Names& others, const Path& at, FieldErrors& errors) {
  const std::string_view target = container.text_at("targetContainerName");
  if (!target.empty() && !contains(others, target)) errors.not_found(at.child("targetContainerName"), target);
  for (const Member& member : container.members()) {
    // A pointer to a zero value is still set.
    const types::Field* field = types::find_member(type_named("core/v1.EphemeralContainer"), member.key);
    const bool points = field != nullptr && field->pointer && member.value.is_map();
    if (contains(kEphemeralFields, member.key) || (is_empty(&member.value) && !points)) continue;
    errors.forbidden(at.child(member.key), "cannot be set for an Ephemeral Container");
  }
  const std::span<const Value> mounts = container.items_at("volumeMounts");
  for (size_t i = 0; i < mounts.size(); ++i) {
    const Path here = at.item("volumeMounts", i);
    for (const std::string_view key : {"subPath", "subPathExpr"}) {
      if (!mounts[i].text_at(key).empty())
        errors.forbidden(here.child(key), "cannot be set for an Ephemeral Container");
    }
  }
}

}  // namespace

bool is_padded(std::string_view text) { return !text.empty() && (is_space(text.front()) || is_space(text.back())); }

void validate_image_text(const Value& container, const Path& at, FieldErrors& errors) {
  const std::string_view image = container.text_at("image");
  if (is_padded(image)) errors.invalid(at.child("image"), image, "must not have leading or trailing whitespace");
}

void validate_port(const Value& port, const Path& at, FieldErrors& errors) {
  if (port.is_string()) {
    errors.invalid_each(at, port, port_name_errors(port.as_string()));
  } else {
    const int64_t number = port.is_int() ? port.as_int() : 0;
    errors.invalid_each(at, number, port_number_errors(number));
  }
}

void validate_containers(const Value& spec, const PodOptions& options, const VolumeNames& volumes, const Path& at,
                         FieldErrors& errors) {
  const int64_t grace = spec.int_at_or(30, "terminationGracePeriodSeconds");
  const std::span<const Value> containers = spec.items_at("containers");
  Names names;
  const Path containers_at = at.child("containers"), init_at = at.child("initContainers");
  if (containers.empty()) errors.required(containers_at);
  for (size_t i = 0; i < containers.size(); ++i) {
    const Path here = containers_at.index(i);
    validate_common(containers[i], spec, options, volumes, here, errors);
    const std::string_view name = containers[i].text_at("name");
    if (contains(names, name)) {
      errors.duplicate(here.child("name"), name);
    } else {
      names.push_back(name);
    }
    validate_lifecycle_and_probes(containers[i], grace, here, errors);
    validate_restart_policy(containers[i], here, errors);
  }
  validate_host_ports(containers, 0, containers_at, errors);
  const std::span<const Value> init = spec.items_at("initContainers");
  for (size_t i = 0; i < init.size(); ++i) {
    const Path here = init_at.index(i);
    validate_common(init[i], spec, options, volumes, here, errors);
    if (is_set(init[i], "restartPolicy")) {
      validate_restart_policy(init[i], here, errors);
    } else if (!is_empty(init[i], "restartPolicyRules")) {
      errors.required(here.child("restartPolicy"), "must specify restartPolicy when restart rules are used");
    }
    const std::string_view name = init[i].text_at("name");
    if (contains(names, name)) {
      errors.duplicate(here.child("name"), name);
    } else if (!name.empty()) {
      names.push_back(name);
    }
    validate_host_ports(init.subspan(i, 1), 0, init_at, errors);
    validate_init_container(init[i], grace, here, errors);
  }
  Names others;
  for (const std::span<const Value> list : {containers, init}) {
    for (const Value& container : list) others.push_back(container.text_at("name"));
  }
  names = others;
  const std::span<const Value> ephemeral = spec.items_at("ephemeralContainers");
  for (size_t i = 0; i < ephemeral.size(); ++i) {
    const Path here = at.item("ephemeralContainers", i);
    validate_common(ephemeral[i], spec, options, volumes, here, errors);
    validate_image_text(ephemeral[i], here, errors);
    const std::string_view name = ephemeral[i].text_at("name");
    if (contains(names, name)) {
      errors.duplicate(here.child("name"), name);
    } else {
      names.push_back(name);
    }
    validate_ephemeral_container(ephemeral[i], others, here, errors);
  }
}

}  // namespace holdfast::kinds
