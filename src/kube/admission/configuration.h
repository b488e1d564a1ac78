// Plugin configuration from --admission-control-config-file: an AdmissionConfiguration of apiserver.config.k8s.io/v1
// (or apiserver.k8s.io/v1alpha1), with the configuration of each plugin inline or in a file it refers to.
//
// Decoding is strict, and anything that would have no effect is rejected: plugins that do not exist, are not supported
// by this server or take no configuration, and unknown kinds and fields.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace holdfast::admission {

// --- PodSecurity ---

enum class Level : uint8_t { Privileged, Baseline, Restricted };

struct LevelVersion {
  Level level = Level::Privileged;
  int32_t minor = -1;  // The x of v1.x; -1 for latest.
  bool operator==(const LevelVersion&) const = default;
  std::string text() const;  // baseline:latest
};

// The levels to enforce, to record in the audit log, and to warn about.
struct PodSecurityPolicy {
  LevelVersion enforce, audit, warn;
};

struct PodSecurityConfiguration {
  PodSecurityPolicy defaults;  // For namespaces without such labels.
  std::vector<std::string> exempt_users, exempt_namespaces, exempt_runtime_classes;
};

// --- ResourceQuota ---

namespace quota {

struct Scope {
  std::string name, op;
  std::vector<std::string> values = {};
};

// A resource limited by default: a write that uses it requires a quota that covers it.
struct LimitedResource {
  std::string group, resource;
  std::vector<std::string> contains;  // Substrings of resource names, such as "requests.storage".
  std::vector<Scope> scopes;          // Like in Kubernetes, compared with objects of any resource.
};

}  // namespace quota

// --- PodTolerationRestriction ---

// Like v1.Toleration.
struct Toleration {
  std::string key, op, value, effect;
  std::optional<int64_t> seconds;
  bool operator==(const Toleration&) const = default;
};

struct PodTolerationConfiguration {
  std::vector<Toleration> defaults, allowed;  // For namespaces without such annotations.
};

// --- EventRateLimit ---

struct EventLimit {
  enum class Per : uint8_t { Server, Namespace, User, SourceAndObject } per = Per::Server;
  int64_t per_second = 0, burst = 0;
  int64_t cache_size = 4096;  // Namespaces, users or sources whose events are counted; the others start afresh.
};

// --- The whole configuration ---

struct Configuration {
  std::vector<std::string> plugins;  // Plugins that are configured.
  PodSecurityConfiguration pod_security;
  std::vector<quota::LimitedResource> limited_resources;
  // PodNodeSelector: node selectors by namespace, and the default one.
  std::map<std::string, std::string, std::less<>> node_selectors;
  PodTolerationConfiguration pod_tolerations;
  std::vector<EventLimit> event_limits;
  // Paths of kubeconfigs with credentials for webhooks; empty to call webhooks anonymously.
  std::string mutating_webhook_kubeconfig, validating_webhook_kubeconfig;
};

using FileReader = std::function<Result<std::string>(const std::string& path)>;

// Errors are a single line naming the file and the field.
Result<Configuration> load_configuration(const std::string& path, const FileReader& read);

}  // namespace holdfast::admission
