#include <algorithm>
#include <set>

#include "admission/plugin.h"
#include "admission/pod_security.h"
#include "base/strings.h"
#include "base/text.h"

namespace holdfast::admission {
namespace {

using Names = std::vector<std::string>;
using Texts = std::set<std::string>;

template <class Visit>
void each_container(const Value& spec, Visit visit) {
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const Value& container : spec.items_at(list)) visit(container);
  }
}

Names list_of(const Texts& texts) { return Names(texts.begin(), texts.end()); }

std::string containers(const Names& names) {
  return (names.size() == 1 ? "container " : "containers ") + quoted(names);
}

// Names the culprits, such as `pod` or `containers "a", "b"`.
Names setters(bool pod, const Names& names) {
  Names all;
  if (pod) all.push_back("pod");
  if (!names.empty()) all.push_back(containers(names));
  return all;
}

struct Pod {
  const Value* metadata;
  const Value& spec;
  int32_t minor;

  bool since(int32_t version) const { return minor < 0 || minor >= version; }
  bool windows() const { return since(25) && spec.text_at("os", "name") == "windows"; }
  // Root in a user namespace is unprivileged on the host.
  bool in_user_namespace() const {
    const Value* host_users = spec.find("hostUsers");
    return since(35) && host_users != nullptr && host_users->is_bool() && !host_users->as_bool();
  }
};

using Found = std::vector<Violation>;

// --- Baseline, sorted by name ---

void app_armor(const Pod& pod, Found& found) {
  const auto allowed = [](std::string_view type) { return type == "RuntimeDefault" || type == "Localhost"; };
  Texts values;
  bool own = false;
  Names names;
  if (const Value* profile = pod.spec.get("securityContext", "appArmorProfile"); profile != nullptr) {
    if (!allowed(profile->text_at("type"))) {
      own = true;
      values.insert(std::string(profile->text_at("type")));
    }
  }
  each_container(pod.spec, [&](const Value& container) {
    const Value* profile = container.get("securityContext", "appArmorProfile");
    if (profile == nullptr || allowed(profile->text_at("type"))) return;
    names.emplace_back(container.text_at("name"));
    values.insert(std::string(profile->text_at("type")));
  });
  Names bad = setters(own, names), shown = list_of(values), notes;
  constexpr std::string_view kPrefix = "container.apparmor.security.beta.kubernetes.io/";
  if (pod.metadata != nullptr) {
    for (const Member& note : pod.metadata->members_at("annotations")) {
      if (!note.key.starts_with(kPrefix) || !note.value.is_string()) continue;
      const std::string_view text = note.value.as_string();
      if (text.empty() || text == "runtime/default" || text.starts_with("localhost/")) continue;
      notes.push_back(std::string(note.key) + "=" + go_quote(text));
    }
  }
  if (!notes.empty()) {
    std::sort(notes.begin(), notes.end());
    shown.insert(shown.end(), notes.begin(), notes.end());
    bad.push_back(notes.size() == 1 ? "annotation" : "annotations");
  }
  if (bad.empty()) return;
  found.push_back({shown.size() == 1 ? "forbidden AppArmor profile" : "forbidden AppArmor profiles",
                   join(bad, " and ") + " must not set AppArmor profile type to " + quoted(shown)});
}

void capabilities(const Pod& pod, Found& found) {
  constexpr std::string_view kAllowed[] = {"AUDIT_WRITE", "CHOWN",  "DAC_OVERRIDE",     "FOWNER",  "FSETID",
                                           "KILL",        "MKNOD",  "NET_BIND_SERVICE", "SETFCAP", "SETGID",
                                           "SETPCAP",     "SETUID", "SYS_CHROOT"};
  Names names;
  Texts added;
  each_container(pod.spec, [&](const Value& container) {
    bool bad = false;
    for (const Value& capability : container.items_at("securityContext", "capabilities", "add")) {
      const std::string_view text = capability.as_string();
      if (std::find(std::begin(kAllowed), std::end(kAllowed), text) != std::end(kAllowed)) continue;
      bad = true;
      added.insert(std::string(text));
    }
    if (bad) names.emplace_back(container.text_at("name"));
  });
  if (names.empty()) return;
  found.push_back({"non-default capabilities", containers(names) + " must not include " + quoted(list_of(added)) +
                                                   " in securityContext.capabilities.add"});
}

void host_namespaces(const Pod& pod, Found& found) {
  Names set;
  for (const std::string_view key : {"hostNetwork", "hostPID", "hostIPC"}) {
    if (is_true(pod.spec, key)) set.push_back(std::string(key) + "=true");
  }
  if (!set.empty()) found.push_back({"host namespaces", join(set, ", ")});
}

void host_paths(const Pod& pod, Found& found) {
  Names names;
  for (const Value& volume : pod.spec.items_at("volumes")) {
    if (volume.find("hostPath") != nullptr) names.emplace_back(volume.text_at("name"));
  }
  if (names.empty()) return;
  found.push_back({"hostPath volumes", (names.size() == 1 ? "volume " : "volumes ") + quoted(names)});
}

void host_ports(const Pod& pod, Found& found) {
  Names names;
  Texts ports;
  each_container(pod.spec, [&](const Value& container) {
    bool bad = false;
    for (const Value& port : container.items_at("ports")) {
      const int64_t number = port.int_at_or(0, "hostPort");
      if (number == 0) continue;
      bad = true;
      ports.insert(std::to_string(number));
    }
    if (bad) names.emplace_back(container.text_at("name"));
  });
  if (names.empty()) return;
  found.push_back({"hostPort", containers(names) + (names.size() == 1 ? " uses " : " use ") +
                                   (ports.size() == 1 ? "hostPort " : "hostPorts ") + join(list_of(ports), ", ")});
}

void probe_hosts(const Pod& pod, Found& found) {
  if (!pod.since(34)) return;
  Texts names, hosts;
  each_container(pod.spec, [&](const Value& container) {
    const auto look = [&](const Value* handler) {
      if (handler == nullptr) return;
      for (const std::string_view kind : {"httpGet", "tcpSocket"}) {
        const std::string_view host = handler->text_at(kind, "host");
        if (host.empty()) continue;
        hosts.insert(std::string(host));
        names.insert(std::string(container.text_at("name")));
      }
    };
    for (const std::string_view key : {"livenessProbe", "readinessProbe", "startupProbe"}) look(container.find(key));
    for (const std::string_view key : {"postStart", "preStop"}) look(container.get("lifecycle", key));
  });
  if (names.empty()) return;
  found.push_back(
      {"probe or lifecycle host", containers(list_of(names)) + (names.size() == 1 ? " uses " : " use ") +
                                      (hosts.size() == 1 ? "probe or lifecycle host " : "probe or lifecycle hosts ") +
                                      quoted(list_of(hosts))});
}

void privileged(const Pod& pod, Found& found) {
  Names names;
  each_container(pod.spec, [&](const Value& container) {
    const Value* context = container.find("securityContext");
    if (context != nullptr && is_true(*context, "privileged")) names.emplace_back(container.text_at("name"));
  });
  if (!names.empty()) {
    found.push_back({"privileged", containers(names) + " must not set securityContext.privileged=true"});
  }
}

void proc_mount(const Pod& pod, Found& found) {
  Names names;
  Texts types;
  each_container(pod.spec, [&](const Value& container) {
    const std::string_view type = container.text_at("securityContext", "procMount");
    if (type.empty() || type == "Default") return;
    names.emplace_back(container.text_at("name"));
    types.insert(std::string(type));
  });
  if (names.empty()) return;
  found.push_back(
      {"procMount", containers(names) + " must not set securityContext.procMount to " + quoted(list_of(types))});
}

void proc_mount_baseline(const Pod& pod, Found& found) {
  if (!pod.in_user_namespace()) proc_mount(pod, found);
}

void se_linux(const Pod& pod, Found& found) {
  Texts types;
  bool user = false, role = false;
  const auto bad = [&](const Value* options) {
    if (options == nullptr) return false;
    const std::string_view type = options->text_at("type");
    bool wrong = false;
    const bool known = type.empty() || type == "container_t" || type == "container_init_t" ||
                       type == "container_kvm_t" || (type == "container_engine_t" && pod.since(31));
    if (!known) {
      wrong = true;
      types.insert(std::string(type));
    }
    if (!options->text_at("user").empty()) wrong = user = true;
    if (!options->text_at("role").empty()) wrong = role = true;
    return wrong;
  };
  const bool own = bad(pod.spec.get("securityContext", "seLinuxOptions"));
  Names names;
  each_container(pod.spec, [&](const Value& container) {
    if (bad(container.get("securityContext", "seLinuxOptions"))) names.emplace_back(container.text_at("name"));
  });
  const Names all = setters(own, names);
  if (all.empty()) return;
  Names what;
  if (!types.empty()) what.push_back((types.size() == 1 ? "type " : "types ") + quoted(list_of(types)));
  if (user) what.push_back("user may not be set");
  if (role) what.push_back("role may not be set");
  found.push_back(
      {"seLinuxOptions", join(all, " and ") + " set forbidden securityContext.seLinuxOptions: " + join(what, "; ")});
}

bool good_seccomp(std::string_view type) { return type == "Localhost" || type == "RuntimeDefault"; }

// Reports forbidden profiles, and with `must_be_set` also containers without a profile.
void seccomp(const Pod& pod, bool must_be_set, Found& found) {
  Texts values;
  Names names, unset;
  bool own = false, pod_set = false;
  if (const Value* profile = pod.spec.get("securityContext", "seccompProfile"); profile != nullptr) {
    if (good_seccomp(profile->text_at("type"))) {
      pod_set = true;
    } else {
      own = true;
      values.insert(std::string(profile->text_at("type")));
    }
  }
  each_container(pod.spec, [&](const Value& container) {
    const Value* profile = container.get("securityContext", "seccompProfile");
    if (profile == nullptr) {
      if (!pod_set) unset.emplace_back(container.text_at("name"));
    } else if (!good_seccomp(profile->text_at("type"))) {
      names.emplace_back(container.text_at("name"));
      values.insert(std::string(profile->text_at("type")));
    }
  });
  const Names all = setters(own, names);
  if (!all.empty()) {
    found.push_back({"seccompProfile", join(all, " and ") + " must not set securityContext.seccompProfile.type to " +
                                           quoted(list_of(values))});
  } else if (must_be_set && !unset.empty()) {
    found.push_back(
        {"seccompProfile", "pod or " + containers(unset) +
                               R"( must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")"});
  }
}

// Before v1.19, profiles were set by annotations.
void seccomp_annotations(const Pod& pod, Found& found) {
  if (pod.metadata == nullptr) return;
  Texts forbidden;
  const auto look_at = [&](const std::string& key) {
    const Value* value = pod.metadata->get("annotations", key);
    if (value == nullptr || !value->is_string()) return;
    const std::string_view text = value->as_string();
    if (text == "runtime/default" || text == "docker/default" || text.starts_with("localhost/")) return;
    forbidden.insert(key + "=" + go_quote(text));
  };
  look_at("seccomp.security.alpha.kubernetes.io/pod");
  each_container(pod.spec, [&](const Value& container) {
    look_at("container.seccomp.security.alpha.kubernetes.io/" + std::string(container.text_at("name")));
  });
  if (forbidden.empty()) return;
  found.push_back({"seccompProfile", (forbidden.size() == 1 ? "forbidden annotation " : "forbidden annotations ") +
                                         join(list_of(forbidden), ", ")});
}

void seccomp_baseline(const Pod& pod, Found& found) {
  if (pod.since(19)) {
    seccomp(pod, false, found);
  } else {
    seccomp_annotations(pod, found);
  }
}

void sysctls(const Pod& pod, Found& found) {
  struct Allowed {
    std::string_view name;
    int32_t since;
  };
  static constexpr Allowed kAllowed[] = {{"kernel.shm_rmid_forced", 0},
                                         {"net.ipv4.ip_local_port_range", 0},
                                         {"net.ipv4.tcp_syncookies", 0},
                                         {"net.ipv4.ping_group_range", 0},
                                         {"net.ipv4.ip_unprivileged_port_start", 0},
                                         {"net.ipv4.ip_local_reserved_ports", 27},
                                         {"net.ipv4.tcp_keepalive_time", 29},
                                         {"net.ipv4.tcp_fin_timeout", 29},
                                         {"net.ipv4.tcp_keepalive_intvl", 29},
                                         {"net.ipv4.tcp_keepalive_probes", 29},
                                         {"net.ipv4.tcp_rmem", 32},
                                         {"net.ipv4.tcp_wmem", 32}};
  Names bad;
  for (const Value& sysctl : pod.spec.items_at("securityContext", "sysctls")) {
    const std::string_view name = sysctl.text_at("name");
    const bool allowed = std::any_of(std::begin(kAllowed), std::end(kAllowed),
                                     [&](const Allowed& one) { return one.name == name && pod.since(one.since); });
    if (!allowed) bad.emplace_back(name);
  }
  if (!bad.empty()) found.push_back({"forbidden sysctls", join(bad, ", ")});
}

void host_process(const Pod& pod, Found& found) {
  const auto set = [](const Value* options) { return options != nullptr && is_true(*options, "hostProcess"); };
  Names names;
  each_container(pod.spec, [&](const Value& container) {
    if (set(container.get("securityContext", "windowsOptions"))) names.emplace_back(container.text_at("name"));
  });
  const Names all = setters(set(pod.spec.get("securityContext", "windowsOptions")), names);
  if (all.empty()) return;
  found.push_back(
      {"hostProcess", join(all, " and ") + " must not set securityContext.windowsOptions.hostProcess=true"});
}

// --- Restricted, sorted by name ---

void privilege_escalation(const Pod& pod, Found& found) {
  if (!pod.since(8) || pod.windows()) return;
  Names names;
  each_container(pod.spec, [&](const Value& container) {
    const Value* allow = container.get("securityContext", "allowPrivilegeEscalation");
    if (allow == nullptr || !allow->is_bool() || allow->as_bool()) names.emplace_back(container.text_at("name"));
  });
  if (names.empty()) return;
  found.push_back({"allowPrivilegeEscalation != false",
                   containers(names) + " must set securityContext.allowPrivilegeEscalation=false"});
}

void capabilities_restricted(const Pod& pod, Found& found) {
  if (pod.windows()) return;
  Names missing, adding;
  Texts added;
  each_container(pod.spec, [&](const Value& container) {
    const std::string name(container.text_at("name"));
    if (!has_text(container.items_at("securityContext", "capabilities", "drop"), "ALL")) missing.push_back(name);
    bool bad = false;
    for (const Value& capability : container.items_at("securityContext", "capabilities", "add")) {
      if (capability.as_string() == "NET_BIND_SERVICE") continue;
      bad = true;
      added.insert(std::string(capability.as_string()));
    }
    if (bad) adding.push_back(name);
  });
  Names details;
  if (!missing.empty())
    details.push_back(containers(missing) + R"( must set securityContext.capabilities.drop=["ALL"])");
  if (!adding.empty()) {
    details.push_back(containers(adding) + " must not include " + quoted(list_of(added)) +
                      " in securityContext.capabilities.add");
  }
  if (!details.empty()) found.push_back({"unrestricted capabilities", join(details, "; ")});
}

void restricted_volumes(const Pod& pod, Found& found) {
  constexpr std::string_view kAllowed[] = {"configMap", "csi",   "downwardAPI",           "emptyDir",
                                           "ephemeral", "image", "persistentVolumeClaim", "projected",
                                           "secret"};
  Names names;
  Texts types;
  for (const Value& volume : pod.spec.items_at("volumes")) {
    std::string type = "unknown";
    bool allowed = false;
    for (const Member& member : volume.members()) {
      if (member.key == "name" || member.value.is_null()) continue;
      type = member.key;
      allowed = allowed || std::find(std::begin(kAllowed), std::end(kAllowed), member.key) != std::end(kAllowed);
    }
    if (allowed) continue;
    names.emplace_back(volume.text_at("name"));
    types.insert(type);
  }
  if (names.empty()) return;
  found.push_back(
      {"restricted volume types",
       (names.size() == 1 ? "volume " : "volumes ") + quoted(names) + (names.size() == 1 ? " uses " : " use ") +
           (types.size() == 1 ? "restricted volume type " : "restricted volume types ") + quoted(list_of(types))});
}

void run_as_non_root(const Pod& pod, Found& found) {
  if (pod.in_user_namespace()) return;
  const Value* own = pod.spec.get("securityContext", "runAsNonRoot");
  const bool pod_says = own != nullptr && own->is_bool();
  const bool pod_set = pod_says && own->as_bool();
  Names wrong, unset;
  each_container(pod.spec, [&](const Value& container) {
    const Value* set = container.get("securityContext", "runAsNonRoot");
    if (set != nullptr && set->is_bool()) {
      if (!set->as_bool()) wrong.emplace_back(container.text_at("name"));
    } else if (!pod_set) {
      unset.emplace_back(container.text_at("name"));
    }
  });
  const Names all = setters(pod_says && !own->as_bool(), wrong);
  if (!all.empty()) {
    found.push_back({"runAsNonRoot != true", join(all, " and ") + " must not set securityContext.runAsNonRoot=false"});
  } else if (!unset.empty()) {
    found.push_back(
        {"runAsNonRoot != true", "pod or " + containers(unset) + " must set securityContext.runAsNonRoot=true"});
  }
}

void run_as_user(const Pod& pod, Found& found) {
  if (!pod.since(23) || pod.in_user_namespace()) return;
  Names names;
  each_container(pod.spec, [&](const Value& container) {
    if (container.int_at_or(-1, "securityContext", "runAsUser") == 0) names.emplace_back(container.text_at("name"));
  });
  const Names all = setters(pod.spec.int_at_or(-1, "securityContext", "runAsUser") == 0, names);
  if (!all.empty()) found.push_back({"runAsUser=0", join(all, " and ") + " must not set runAsUser=0"});
}

void seccomp_restricted(const Pod& pod, Found& found) {
  if (!pod.windows()) seccomp(pod, true, found);
}

}  // namespace

std::vector<Violation> violations(const LevelVersion& policy, const Value* metadata, const Value& spec) {
  Found found;
  if (policy.level == Level::Privileged) return found;
  const Pod pod{metadata, spec, policy.minor};
  const bool restricted = policy.level == Level::Restricted;
  // Some restricted checks replace baseline checks from the version that introduced them on.
  app_armor(pod, found);
  if (!restricted || !pod.since(22)) capabilities(pod, found);
  host_namespaces(pod, found);
  if (!restricted) host_paths(pod, found);
  host_ports(pod, found);
  probe_hosts(pod, found);
  privileged(pod, found);
  if (!restricted || !pod.since(35)) proc_mount_baseline(pod, found);
  se_linux(pod, found);
  if (!restricted || !pod.since(19)) seccomp_baseline(pod, found);
  sysctls(pod, found);
  host_process(pod, found);
  if (!restricted) return found;
  privilege_escalation(pod, found);
  if (pod.since(22)) capabilities_restricted(pod, found);
  if (pod.since(35)) proc_mount(pod, found);
  restricted_volumes(pod, found);
  run_as_non_root(pod, found);
  run_as_user(pod, found);
  if (pod.since(19)) seccomp_restricted(pod, found);
  return found;
}

}  // namespace holdfast::admission
