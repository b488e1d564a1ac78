// Follows MergeAPIResourceConfigs of k8s.io/apiserver/pkg/server/resourceconfig.

#include <algorithm>
#include <map>
#include <optional>

#include "base/strings.h"
#include "discovery/discovery.h"

namespace holdfast::discovery {
namespace {

// By key. An entry without a value enables.
using Entries = std::map<std::string, std::string, std::less<>>;

// What Go's strconv.ParseBool accepts.
std::optional<bool> truth_of(std::string_view text) {
  for (const std::string_view yes : {"", "1", "t", "T", "true", "TRUE", "True"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"0", "f", "F", "false", "FALSE", "False"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

// An entry for many versions at once: api/all, api/ga, api/beta or api/alpha.
bool is_of_all_groups(std::string_view key) { return key.starts_with("api/"); }

bool is_of_level(std::string_view version, std::string_view level) {
  return !is_stable(version) && version.find(level) != std::string_view::npos;
}

Error refused(std::string_view key, std::string_view value, std::string_view why) {
  std::string entry(key);
  if (!value.empty()) entry += "=" + std::string(value);
  return bad_request("--runtime-config " + entry + " is not supported by Holdfast: " + std::string(why));
}

Result<Unit> check_of_all_groups(std::string_view key, std::string_view value) {
  const bool known = key == "api/all" || key == "api/ga" || key == "api/beta" || key == "api/alpha";
  if (!known) return refused(key, value, "there is no such group");
  if (value != "true" && value != "false") {
    return bad_request("--runtime-config: invalid value " + std::string(key) + "=" + std::string(value));
  }
  if (value == "false" && (key == "api/all" || key == "api/ga")) {
    return refused(key, value, "versions cannot be turned off");
  }
  return Unit{};
}

Result<Unit> check_of_version(std::string_view key, std::string_view value) {
  std::vector<std::string_view> parts = split(key, '/');
  if (parts.size() == 1) parts.insert(parts.begin(), "");  // The core group.
  const std::optional<bool> enable = truth_of(value);
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
  if (has_version && !*enable && is_stable(parts[1])) return refused(key, value, "versions cannot be turned off");
  return Unit{};
}

bool is_enabled(const types::Resource& resource, const Entries& entries) {
  bool enabled = false;
  const auto apply = [&](const std::string& key) {
    if (const auto found = entries.find(key); found != entries.end()) enabled = *truth_of(found->second);
  };
  apply("api/all");
  for (const std::string level : {"beta", "alpha"}) {
    if (is_of_level(resource.version, level)) apply("api/" + level);
  }
  const std::string version = std::string(resource.group) + "/" + std::string(resource.version);
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
    Result<Unit> checked = is_of_all_groups(key) ? check_of_all_groups(key, value) : check_of_version(key, value);
    if (!checked) return checked.take_error();
  }
  RuntimeConfig config;
  for (const types::Resource& resource : types::builtin_resources()) {
    if (!is_stable(resource.version) && is_enabled(resource, by_key)) config.enabled_.push_back(&resource);
  }
  return config;
}

bool RuntimeConfig::serves(const types::Resource& resource) const {
  return is_stable(resource.version) || std::find(enabled_.begin(), enabled_.end(), &resource) != enabled_.end();
}

bool RuntimeConfig::serves(std::string_view group, std::string_view version) const {
  const auto all = types::builtin_resources();
  return std::any_of(all.begin(), all.end(), [&](const types::Resource& resource) {
    return resource.group == group && resource.version == version && serves(resource);
  });
}

}  // namespace holdfast::discovery
