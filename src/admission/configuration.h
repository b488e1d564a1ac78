// What --admission-control-config-file says about the plugins: an AdmissionConfiguration of apiserver.config.k8s.io/v1
// (or apiserver.k8s.io/v1alpha1), with the configurations of plugins in it or in files that it names.
//
// Everything is decoded strictly, and whatever would have no effect is refused: plugins that do not exist, that this
// server does not have or that take no configuration, kinds and fields that are not known.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace holdfast::admission {

// --- PodSecurity ---

enum class Level : uint8_t { Privileged, Baseline, Restricted };

struct LevelVersion {
  Level level = Level::Privileged;
  int32_t minor = -1;  // Of v1.x; -1: latest.
  bool operator==(const LevelVersion&) const = default;
  std::string text() const;  // baseline:latest
};

// What pods must keep, what is recorded in the audit log, and what their authors are warned about.
struct PodSecurityPolicy {
  LevelVersion enforce, audit, warn;
};

struct PodSecurityConfiguration {
  PodSecurityPolicy defaults;  // Of namespaces whose labels say nothing else.
  std::vector<std::string> exempt_users, exempt_namespaces, exempt_runtime_classes;
};

// --- ResourceQuota ---

namespace quota {

struct Scope {
  std::string name, op;
  std::vector<std::string> values = {};
};

// What is limited by default: a write that uses it needs a quota that covers it.
struct LimitedResource {
  std::string group, resource;
  std::vector<std::string> contains;  // Parts of the names of what an object uses, such as "requests.storage".
  std::vector<Scope> scopes;          // Kubernetes compares these with objects of every resource.
};

}  // namespace quota

// --- All of it ---

struct Configuration {
  std::vector<std::string> plugins;  // Those that have a configuration.
  PodSecurityConfiguration pod_security;
  std::vector<quota::LimitedResource> limited_resources;
  // Paths of kubeconfigs with credentials for webhooks; empty: webhooks are called anonymously.
  std::string mutating_webhook_kubeconfig, validating_webhook_kubeconfig;
};

using FileReader = std::function<Result<std::string>(const std::string& path)>;

// The error is one line that names the file and the field.
Result<Configuration> load_configuration(const std::string& path, const FileReader& read);

}  // namespace holdfast::admission
