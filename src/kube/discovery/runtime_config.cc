// Follows MergeAPIResourceConfigs of k8s.io/apiserver/pkg/server/resourceconfig.

#include <algorithm>
#include <map>
#include <optional>

#include "base/api_version.h"
#include "base/strings.h"
#include "discovery/discovery.h"

namespace holdfast::discovery {
namespace {

// By key.
using Entries = std::map<std::string, std::string, std::less<>>;

// An entry without a value enables.
std::optional<bool> parse_value(std::string_view value) { return value.empty() ? true : parse_bool(value); }

// An entry for many versions at once: api/all, api/ga, api/beta or api/alpha.
bool applies_to_all_groups(std::string_view key) { return key.starts_with("api/"); }

bool is_of_level(std::string_view version, std::string_view level) {
  return !is_stable(version) && version.find(level) != std::string_view::npos;
}

// Authentication, authorization, admission, custom resources, allocation of addresses and the embedded controllers are
// built on these.
bool is_called_by_the_server(std::string_view group) {
  static constexpr std::string_view kGroups[] = {
      "",
      "admissionregistration.k8s.io",
      "apiextensions.k8s.io",
      "apiregistration.k8s.io",
      "authentication.k8s.io",
      "authorization.k8s.io",
      "coordination.k8s.io",
      "discovery.k8s.io",
      "flowcontrol.apiserver.k8s.io",
      "networking.k8s.io",
      "rbac.authorization.k8s.io",
  };
  return std::find(std::begin(kGroups), std::end(kGroups), group) != std::end(kGroups);
}

Error refused(std::string_view key, std::string_view value, std::string_view why) {
  std::string entry(key);
  if (!value.empty()) entry += "=" + std::string(value);
  return bad_request("--runtime-config " + entry + " is not supported by Holdfast: " + std::string(why));
}

Result<Unit> check_entry_for_all_groups(std::string_view key, std::string_view value) {
  const bool known = key == "api/all" || key == "api/ga" || key == "api/beta" || key == "api/alpha";
  if (!known) return refused(key, value, "there is no such group");
  if (value != "true" && value != "false") {
    return bad_request("--runtime-config: invalid value " + std::string(key) + "=" + std::string(value));
  }
  return Unit{};
}

Result<Unit> check_of_version(std::string_view key, std::string_view value) {
  std::vector<std::string_view> parts = split(key, '/');
  if (parts.size() == 1) parts.insert(parts.begin(), "");  // The core group.
  const std::optional<bool> enable = parse_value(value);
  if (!enable) {
    return bad_request("--runtime-config: invalid value of " + std::string(key) + ": " + std::string(value));
  }
  if (parts.size() > 3) return refused(key, value, "there is no such resource");
  bool has_group = false, has_version = false, has_resource = false;
  for (const types::Resource& resource : types::builtin_resources()) {
    if (resource.group != parts[0]) continue;
    has_group = true;
    if (resource.version != parts[1]) continue;
    has_version = true;
    has_resource = has_resource || parts.size() < 3 || resource.plural == parts[2];
  }
  if (!has_group) return refused(key, value, "there is no such group");
  if (!has_version && *enable) return refused(key, value, "there is no such version");
  if (has_version && !has_resource && *enable) return refused(key, value, "there is no such resource");
  return Unit{};
}

bool is_enabled(const types::Resource& resource, const Entries& entries) {
  bool enabled = is_stable(resource.version);
  const auto apply = [&](const std::string& key) {
    if (const auto found = entries.find(key); found != entries.end()) enabled = *parse_value(found->second);
  };
  apply("api/all");
  if (is_stable(resource.version)) apply("api/ga");
  for (const std::string level : {"beta", "alpha"}) {
    if (is_of_level(resource.version, level)) apply("api/" + level);
  }
  const std::string version = api_version_of(resource.group, resource.version);
  apply(version);
  apply(version + "/" + std::string(resource.plural));
  return enabled;
}

}  // namespace

bool is_stable(std::string_view version) {
  return version.size() > 1 && version[0] == 'v' &&
         version.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

Result<RuntimeConfig> RuntimeConfig::parse(std::span<const std::string> entries) {
  Entries by_key;
  for (const std::string_view entry : entries) {
    if (entry.empty()) continue;
    const size_t equals = entry.find('=');
    const std::string_view value = equals == std::string_view::npos ? "" : entry.substr(equals + 1);
    by_key.insert_or_assign(std::string(entry.substr(0, equals)), std::string(value));
  }
  for (const auto& [key, value] : by_key) {
    Result<Unit> checked =
        applies_to_all_groups(key) ? check_entry_for_all_groups(key, value) : check_of_version(key, value);
    if (!checked) return checked.take_error();
  }
  RuntimeConfig config;
  for (const types::Resource& resource : types::builtin_resources()) {
    const bool stable = is_stable(resource.version);
    if (is_enabled(resource, by_key) == stable) continue;
    if (stable && is_called_by_the_server(resource.group)) {
      return bad_request("--runtime-config disables " + api_version_of(resource.group, resource.version) + "/" +
                         std::string(resource.plural) + ", which this server needs itself");
    }
    config.changed_.push_back(&resource);
  }
  return config;
}

bool RuntimeConfig::serves(const types::Resource& resource) const {
  const bool changed = std::find(changed_.begin(), changed_.end(), &resource) != changed_.end();
  return is_stable(resource.version) != changed;
}

bool RuntimeConfig::serves(std::string_view group, std::string_view version) const {
  const auto all = types::builtin_resources();
  return std::any_of(all.begin(), all.end(), [&](const types::Resource& resource) {
    return resource.group == group && resource.version == version && serves(resource);
  });
}

}  // namespace holdfast::discovery
