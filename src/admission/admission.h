// The admission plugins of Kubernetes that look at one object at a time, in Kubernetes' order. They complete or refuse
// what is written, and look up other objects to do so.
//
//   Chain chain;
//   if (Result<Unit> ok = chain.admit(attributes, draft.root()); !ok) ...      // before the kind's own preparation
//   if (Result<Unit> ok = chain.validate(attributes, object); !ok) ...         // after the kind's own validation
//
// Refusals are the API's own: 403 `pods "p" is forbidden: ...`, 404 for a namespace that does not exist, 422 for labels
// of a namespace that say nothing.
//
// Threading: a Chain is constant after construction; Lookup is called on the thread that asks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "admission/configuration.h"  // IWYU pragma: export
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/metrics.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::admission {

enum class Operation : uint8_t { Create, Update, Delete, Connect };

// Other objects, as the server holds them, and what the caller may do. Namespace "" for cluster-scoped resources.
class Lookup {
 public:
  virtual ~Lookup() = default;
  // In the v1 of its group; nothing if it does not exist. The value is in `arena`.
  virtual std::optional<Value> get(Arena& arena, std::string_view group, std::string_view plural, std::string_view ns,
                                   std::string_view name) const = 0;
  virtual std::vector<Value> list(Arena& arena, std::string_view group, std::string_view plural,
                                  std::string_view ns) const = 0;
  // Whether the user who makes the request is authorized to do this.
  virtual bool authorized(std::string_view verb, std::string_view group, std::string_view resource,
                          std::string_view name) const = 0;
};

class PodSecurityCounts;  // Private to the module.

// One request. Views live as long as it does.
struct Attributes {
  Operation operation = Operation::Create;
  const types::Resource& resource;
  std::string_view subresource = {};
  std::string_view ns = {};
  std::string_view name = {};  // Empty for a create under generateName, until the name is made.
  std::string_view user = {};  // Who makes it.
  const Value* old = nullptr;  // Null for a create.
  bool dry_run = false;
  Arena& arena;
  const Lookup& lookup;
  std::vector<std::string>& warnings;  // Texts of Warning headers; added to.
  // Of the audit event; added to.
  std::vector<std::pair<std::string, std::string>> annotations = {};
  // Set by the Chain.
  const PodSecurityConfiguration* pod_security = nullptr;
  PodSecurityCounts* counts = nullptr;  // Null: nothing is counted.
};

struct Plugin;  // One plugin's functions; private to the module.

// What --enable-admission-plugins and --disable-admission-plugins name, and what --admission-control-config-file says.
struct PluginChoice {
  std::vector<std::string> enabled, disabled;
  Configuration configuration = {};
};

// Refuses, in Kubernetes' words, names that are not admission plugins and names in both lists; and plugins that this
// server cannot enable or disable as asked, because it does not implement them or always applies them.
Result<Unit> check_plugin_choice(const PluginChoice& choice);

class Chain {
 public:
  // The plugins of this module that are on by default and not disabled, and those that are enabled. `metrics` counts
  // what PodSecurity decides; null: nothing is counted.
  explicit Chain(const PluginChoice& choice = {}, MetricRegistry* metrics = nullptr);

  bool has(std::string_view name) const;
  // Whether any plugin handles such a request; if not, it need not be prepared.
  bool handles(const types::Resource& resource, std::string_view subresource, Operation operation) const;
  // The mutating parts, in order. For a delete there is no object: pass a node of null.
  Result<Unit> admit(Attributes& attributes, Draft::Node object) const;
  // The validating parts, in order. `object` is null for a delete.
  Result<Unit> validate(Attributes& attributes, const Value& object) const;

 private:
  std::vector<const Plugin*> plugins_;
  PodSecurityConfiguration pod_security_;
  std::shared_ptr<PodSecurityCounts> counts_;  // Null: PodSecurity is off, or nothing is counted.
};

}  // namespace holdfast::admission

#include "admission/quota.h"  // IWYU pragma: export
