// Security contexts of pods and containers.

#include <algorithm>

#include "base/ascii.h"
#include "base/strings.h"
#include "base/text.h"
#include "kinds/internal.h"
#include "kinds/names.h"
#include "kinds/pod.h"
#include "kinds/references.h"

namespace holdfast::kinds {
namespace {

void validate_id(const Value& context, std::string_view key, const Path& at, FieldErrors& errors) {
  if (!is_set(context, key)) return;
  const int64_t id = context.int_at_or(0, key);
  errors.invalid_each(at.child(key), id, id_range_errors(id));
}

void validate_seccomp(const Value& context, const Path& at, FieldErrors& errors) {
  if (!is_set(context, "seccompProfile")) return;
  const Value& profile = sub(context, "seccompProfile");
  const Path here = at.child("seccompProfile");
  const std::string_view type = profile.text_at("type");
  if (type.empty()) {
    errors.required(here.child("type"), "type is required when seccompProfile is set");
  } else {
    validate_enum(profile, "type", {"Localhost", "RuntimeDefault", "Unconfined"}, here, errors);
  }
  const bool given = is_set(profile, "localhostProfile");
  if (type == "Localhost") {
    if (!given) {
      errors.required(here.child("localhostProfile"), "must be set when seccomp type is Localhost");
    } else {
      validate_descending_path(profile.text_at("localhostProfile"), here.child("localhostProfile"), errors);
    }
  } else if (given) {
    errors.invalid(here.child("localhostProfile"),
                   Shown::verbatim("{\"Type\":" + Shown(type).text() +
                                   ",\"LocalhostProfile\":" + Shown(profile.text_at("localhostProfile")).text() + "}"),
                   "can only be set when seccomp type is Localhost");
  }
}

void validate_app_armor(const Value& context, const Path& at, FieldErrors& errors) {
  if (!is_set(context, "appArmorProfile")) return;
  const Value& profile = sub(context, "appArmorProfile");
  const Path here = at.child("appArmorProfile");
  const Path local = here.child("localhostProfile");
  const std::string_view type = profile.text_at("type"), text = profile.text_at("localhostProfile");
  if (type == "Localhost") {
    if (!is_set(profile, "localhostProfile") || text.empty()) {
      errors.required(local, "must be set when AppArmor type is Localhost");
    } else if (is_padded(text)) {
      errors.invalid(local, text, "must not be padded with whitespace");
    }
    if (text.size() > kMaxAppArmorBytes) errors.too_long(local, kMaxAppArmorBytes);
  } else if (type == "RuntimeDefault" || type == "Unconfined") {
    if (is_set(profile, "localhostProfile")) {
      errors.invalid(local, text, "can only be set when AppArmor type is Localhost");
    }
  } else if (type.empty()) {
    errors.required(here.child("type"), "type is required when appArmorProfile is set");
  } else {
    errors.not_supported(here.child("type"), type, {"Localhost", "RuntimeDefault", "Unconfined"});
  }
}

// Segments of letters, digits, '-' and '_', separated by '.' or '/'.
bool is_sysctl(std::string_view name) {
  if (name.size() > 253) return false;
  bool start = true;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '.' || c == '/') {
      if (start || !is_lower_alnum(name[i - 1])) return false;
      start = true;
      continue;
    }
    if (!is_lower_alnum(c) && (start || (c != '-' && c != '_'))) return false;
    start = false;
  }
  return !start && is_lower_alnum(name.back());
}

// The kernel namespace that a sysctl belongs to.
enum class KernelNamespace : uint8_t { None, Ipc, Net };
KernelNamespace namespace_of(std::string_view sysctl) {
  constexpr std::string_view kIpc[] = {
      "kernel.sem",    "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm", "kernel.shm_rmid_forced",
      "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.msg"};
  // The first separator determines the meaning of the others: a/b.c is a.b/c.
  std::string name(sysctl);
  if (const size_t first = name.find_first_of("./"); first != std::string::npos && name[first] == '/') {
    for (char& c : name) c = c == '/' ? '.' : c == '.' ? '/' : c;
  }
  name.resize(std::min(name.size(), name.find('*')));
  if (contains(kIpc, name) || name.starts_with("fs.mqueue.")) return KernelNamespace::Ipc;
  return name.starts_with("net.") ? KernelNamespace::Net : KernelNamespace::None;
}

void validate_sysctls(const Value& spec, const Value& context, const Path& at, FieldErrors& errors) {
  Names seen;
  const std::span<const Value> sysctls = context.items_at("sysctls");
  for (size_t i = 0; i < sysctls.size(); ++i) {
    const Path here = at.item("sysctls", i);
    const std::string_view name = sysctls[i].text_at("name");
    if (name.empty()) {
      errors.required(here.child("name"));
    } else if (!is_sysctl(name)) {
      errors.invalid(
          here.child("name"), name,
          R"(must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$)");
    } else if (contains(seen, name)) {
      errors.duplicate(here.child("name"), name);
    }
    const KernelNamespace owner = namespace_of(name);
    if (is_true(spec, "hostNetwork") && owner == KernelNamespace::Net) {
      errors.invalid(here.child("name"), name, "may not be specified when 'hostNetwork' is true");
    } else if (is_true(spec, "hostIPC") && owner == KernelNamespace::Ipc) {
      errors.invalid(here.child("name"), name, "may not be specified when 'hostIPC' is true");
    }
    seen.push_back(name);
  }
}

// Labels of letters, digits and dashes, separated by dots.
bool is_dns_domain(std::string_view text) {
  for (const std::string_view label : split(text, '.')) {
    if (label.empty() || label.size() > 63 || !is_alnum(label.front()) || !is_alnum(label.back())) return false;
    if (!std::ranges::all_of(label, [](char c) { return is_alnum(c) || c == '-'; })) return false;
  }
  return true;
}

// At most 15 characters, none of them special, not starting with a dot.
bool is_netbios_domain(std::string_view text) {
  const size_t characters = count_characters(text);
  return characters >= 1 && characters <= 15 && text.front() != '.' &&
         text.find_first_of("\\/:*?\"<>|") == std::string_view::npos;
}

// DOMAIN\USER, the domain optional.
void validate_windows_user(std::string_view name, const Path& at, FieldErrors& errors) {
  const auto refuse = [&](std::string_view why) { errors.invalid(at, name, "runAsUserName" + std::string(why)); };
  if (name.empty()) return refuse(" cannot be an empty string");
  if (std::ranges::any_of(name, [](char c) { return static_cast<uint8_t>(c) < 0x20 || c == 0x7F; })) {
    return refuse(" cannot contain control characters");
  }
  const std::vector<std::string_view> parts = split(name, '\\');
  if (parts.size() > 2) return refuse(" cannot contain more than one backslash");
  const std::string_view domain = parts.size() == 2 ? parts[0] : std::string_view(), user = parts.back();
  if (domain.size() >= 256) refuse("'s Domain length must be under 256 characters");
  if (parts.size() == 2 && !is_netbios_domain(domain) && !is_dns_domain(domain)) {
    refuse("'s Domain doesn't match the NetBios nor the DNS format");
  }
  if (user.empty()) refuse("'s User cannot be empty");
  if (user.size() > 104) refuse("'s User length must not be longer than 104 characters");
  if (!user.empty() && user.find_first_not_of(". ") == std::string_view::npos) {
    refuse("'s User cannot contain only periods or spaces");
  }
  if (user.find_first_of("\"/\\:;|=,+*?<>@[]") != std::string_view::npos) {
    refuse(R"('s User cannot contain the following characters: "/\:;|=,+*?<>@[])");
  }
}

void validate_windows_options(const Value& context, const Path& at, FieldErrors& errors) {
  if (!is_set(context, "windowsOptions")) return;
  const Value& options = sub(context, "windowsOptions");
  const Path here = at.child("windowsOptions");
  if (is_set(options, "gmsaCredentialSpecName")) {
    const std::string_view name = options.text_at("gmsaCredentialSpecName");
    errors.invalid_each(here.child("gmsaCredentialSpecName"), name, dns_subdomain_errors(name));
  }
  if (is_set(options, "gmsaCredentialSpec")) {
    const std::string_view spec = options.text_at("gmsaCredentialSpec");
    const Path where = here.child("gmsaCredentialSpec");
    if (spec.empty()) errors.invalid(where, spec, "gmsaCredentialSpec cannot be an empty string");
    if (spec.size() > size_t{64} * 1024) errors.invalid(where, spec, "gmsaCredentialSpec size must be under 64 KiB");
  }
  if (is_set(options, "runAsUserName")) {
    validate_windows_user(options.text_at("runAsUserName"), here.child("runAsUserName"), errors);
  }
}

constexpr std::string_view kNotOnWindows = "cannot be set for a windows pod";

template <class Visit>
void each_security_context(const Value& spec, const Path& at, Visit visit) {
  each_container(spec, at, [&](const Value& container, const Path& here) {
    if (!is_set(container, "securityContext")) return;
    visit(sub(container, "securityContext"), here.child("securityContext"));
  });
}

void validate_windows(const Value& spec, const Path& at, FieldErrors& errors) {
  const Value& context = sub(spec, "securityContext");
  const Path context_at = at.child("securityContext");
  const auto forbid = [&](const Value& holder, const Path& where, std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
      if (is_set(holder, key)) errors.forbidden(where.child(key), kNotOnWindows);
    }
  };
  forbid(context, context_at, {"appArmorProfile", "seLinuxOptions"});
  forbid(spec, at, {"hostUsers"});
  for (const std::string_view key : {"hostPID", "hostIPC"}) {
    if (is_true(spec, key)) errors.forbidden(at.child(key), kNotOnWindows);
  }
  forbid(context, context_at, {"seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls"});
  forbid(spec, at, {"shareProcessNamespace"});
  forbid(context, context_at,
         {"runAsUser", "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy"});
  each_security_context(spec, at, [&](const Value& own, const Path& where) {
    forbid(own, where,
           {"appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem",
            "privileged", "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup"});
  });
}

void validate_linux(const Value& spec, const Path& at, FieldErrors& errors) {
  constexpr std::string_view kText = "windows options cannot be set for a linux pod";
  if (is_set(sub(spec, "securityContext"), "windowsOptions")) {
    errors.forbidden(at.child("securityContext.windowsOptions"), kText);
  }
  each_security_context(spec, at, [&](const Value& own, const Path& where) {
    if (is_set(own, "windowsOptions")) errors.forbidden(where.child("windowsOptions"), kText);
  });
}

}  // namespace

void validate_security_context(const Value& context, bool allow_privileged, bool host_users, const Path& at,
                               FieldErrors& errors) {
  if (is_true(context, "privileged") && !allow_privileged) {
    errors.forbidden(at.child("privileged"), "disallowed by cluster policy");
  }
  validate_id(context, "runAsUser", at, errors);
  validate_id(context, "runAsGroup", at, errors);
  if (is_set(context, "procMount")) {
    validate_enum(context, "procMount", {"Default", "Unmasked"}, at, errors);
    if (host_users && context.text_at("procMount") == "Unmasked") {
      errors.invalid(at.child("procMount"), "Unmasked", "`hostUsers` must be false to use `Unmasked`");
    }
  }
  validate_seccomp(context, at, errors);
  if (is_set(context, "allowPrivilegeEscalation") && !is_true(context, "allowPrivilegeEscalation")) {
    if (is_true(context, "privileged")) {
      errors.invalid(at, shown_internal(type_named("core/v1.SecurityContext"), &context),
                     "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
    }
    for (const Value& capability : context.items_at("capabilities", "add")) {
      if (capability.as_string() != "CAP_SYS_ADMIN") continue;
      errors.invalid(at, shown_internal(type_named("core/v1.SecurityContext"), &context),
                     "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
    }
  }
  validate_windows_options(context, at, errors);
  validate_app_armor(context, at, errors);
}

void validate_pod_security(const Value& spec, const Path& at, FieldErrors& errors) {
  const Value& context = sub(spec, "securityContext");
  const Path here = at.child("securityContext");
  validate_id(context, "fsGroup", here, errors);
  validate_id(context, "runAsUser", here, errors);
  validate_id(context, "runAsGroup", here, errors);
  const std::span<const Value> groups = context.items_at("supplementalGroups");
  for (size_t i = 0; i < groups.size(); ++i) {
    errors.invalid_each(here.item("supplementalGroups", i), groups[i], id_range_errors(groups[i].as_int()));
  }
  if (is_true(spec, "hostPID") && is_true(spec, "shareProcessNamespace")) {
    errors.invalid(here.child("shareProcessNamespace"), true,
                   "ShareProcessNamespace and HostPID cannot both be enabled");
  }
  validate_sysctls(spec, context, here, errors);
  if (is_set(context, "fsGroupChangePolicy")) {
    validate_enum(context, "fsGroupChangePolicy", {"Always", "OnRootMismatch"}, here, errors);
  }
  validate_seccomp(context, here, errors);
  validate_windows_options(context, here, errors);
  validate_app_armor(context, here, errors);
  if (is_set(context, "supplementalGroupsPolicy")) {
    validate_enum(context, "supplementalGroupsPolicy", {"Merge", "Strict"}, here, errors);
  }
  if (is_set(context, "seLinuxChangePolicy")) {
    // The gate SELinuxMount is off.
    validate_enum(context, "seLinuxChangePolicy", {"Recursive"}, here, errors);
  }
}

void validate_os(const Value& spec, const Path& at, FieldErrors& errors) {
  if (!is_set(spec, "os")) return;
  const std::string_view name = spec.text_at("os", "name");
  if (name.empty()) {
    errors.required(at.child("os.name"));
  } else if (name == "linux") {
    validate_linux(spec, at, errors);
  } else if (name == "windows") {
    validate_windows(spec, at, errors);
  } else {
    errors.not_supported(at.child("os"), name, {"linux", "windows"});
  }
}

}  // namespace holdfast::kinds
