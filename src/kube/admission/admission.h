// Kubernetes' admission plugins that handle one object at a time, in Kubernetes' order. They complete or reject the
// object being written, and may look up other objects to do so.
//
//   Chain chain;
//   if (Result<Unit> ok = chain.admit(attributes, draft.root()); !ok) ...      // before the kind's own preparation
//   if (Result<Unit> ok = chain.validate(attributes, object); !ok) ...         // after the kind's own validation
//
// Errors are those of the API: 403 `pods "p" is forbidden: ...`, 404 for a missing namespace, 422 for invalid labels of
// a namespace.
//
// Threading: a Chain is immutable after construction; Lookup is called on the caller's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "admission/configuration.h"  // IWYU pragma: export
#include "admission/operation.h"      // IWYU pragma: export
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/metrics.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::admission {

// What a user may be authorized to do. An empty `ns` means all namespaces.
struct Permission {
  std::string_view verb, group, resource, subresource = {}, ns = {}, name = {};
};

struct KindResource {
  std::string plural;
  bool namespaced = false;
};

// Access to other objects and to the caller's permissions. `ns` is "" for cluster-scoped resources.
class Lookup {
 public:
  virtual ~Lookup() = default;
  // The object in v1 of its group; nullopt if it does not exist. The value is in `arena`.
  virtual std::optional<Value> get(Arena& arena, std::string_view group, std::string_view plural, std::string_view ns,
                                   std::string_view name) const = 0;
  virtual std::vector<Value> list(Arena& arena, std::string_view group, std::string_view plural,
                                  std::string_view ns) const = 0;
  // The reason why the user making the request is not authorized to do this; nullopt if the user is.
  virtual std::optional<std::string> denied(const Permission& permission) const = 0;
  // The resources of a kind; empty if it is not served.
  virtual std::vector<KindResource> resources_of(std::string_view group, std::string_view version,
                                                 std::string_view kind) const = 0;

  bool authorized(std::string_view verb, std::string_view group, std::string_view resource,
                  std::string_view name) const {
    return !denied({.verb = verb, .group = group, .resource = resource, .name = name});
  }
};

class PodSecurityCounts;  // Private to the module.
class EventLimits;        // Private to the module.

// One request. Views must stay valid while it is handled.
struct Attributes {
  Operation operation = Operation::Create;
  const types::Resource& resource;
  std::string_view subresource = {};
  std::string_view ns = {};
  std::string_view name = {};  // Empty for a create with generateName until the name is generated.
  std::string_view user = {};  // The user making the request.
  // If that is the kubelet of a node: the name of the node, empty if its user name has none.
  std::optional<std::string_view> node = std::nullopt;
  const Value* old = nullptr;  // Null for a create.
  bool dry_run = false;
  Arena& arena;
  const Lookup& lookup;
  std::vector<std::string>& warnings;  // Warning header texts; appended to.
  // Audit annotations; appended to.
  std::vector<std::pair<std::string, std::string>> annotations = {};
  // Set by the Chain.
  const Configuration* configuration = nullptr;
  PodSecurityCounts* counts = nullptr;  // Null to disable metrics.
  EventLimits* event_limits = nullptr;  // Null without EventRateLimit.
};

struct Plugin;  // Private to the module.

// The plugins named by --enable-admission-plugins and --disable-admission-plugins, and --admission-control-config-file.
struct PluginChoice {
  std::vector<std::string> enabled, disabled;
  Configuration configuration = {};
};

// Rejects, with Kubernetes' messages, unknown plugins and plugins in both lists; also plugins that this server cannot
// enable or disable because it does not implement them or always applies them.
Result<Unit> check_plugin_choice(const PluginChoice& choice);

class Chain {
 public:
  // Consists of the plugins of this module that are enabled, by default or explicitly, and not disabled. `metrics`
  // records PodSecurity decisions; may be null.
  explicit Chain(const PluginChoice& choice = {}, MetricRegistry* metrics = nullptr);

  bool has(std::string_view name) const;
  // Whether any plugin handles such a request; if not, the caller can skip preparing it.
  bool handles(const types::Resource& resource, std::string_view subresource, Operation operation) const;
  // Runs the mutating plugins, in order. For a delete, pass a null node.
  Result<Unit> admit(Attributes& attributes, Draft::Node object) const;
  // Runs the validating plugins, in order. `object` is null for a delete.
  Result<Unit> validate(Attributes& attributes, const Value& object) const;

 private:
  std::vector<const Plugin*> plugins_;
  const Configuration configuration_;
  std::shared_ptr<PodSecurityCounts> counts_;  // Null if PodSecurity or metrics are disabled.
  std::shared_ptr<EventLimits> event_limits_;  // Null if EventRateLimit is disabled.
};

}  // namespace holdfast::admission

#include "admission/quota.h"  // IWYU pragma: export
