// CustomResourceDefinitions: their validation, the resources they define, and the validation of their objects.
//
// Everything here is a pure function on Values or an immutable Definition; storing definitions and keeping the registry
// current is up to the server.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/warnings.h"
#include "kinds/kinds.h"
#include "schema/schema.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::cel {
class SchemaRules;
}

namespace holdfast::crd {

// --- The definition itself (apiextensions.k8s.io/v1 CustomResourceDefinition in canonical form) ------------------

// 422 with all causes, including those of the metadata. `old` is null for a create.
Result<Unit> validate_definition(const Value& definition, const Value* old);
Result<Unit> validate_definition_status(const Value& next, const Value& old);
// Warns about unrecognized formats; on update only about new ones.
void add_definition_warnings(const Value& definition, const Value* old, Warnings& warnings);

// Converts to the version stored by kube-apiserver (v1beta1), and back from any stored version.
Value stored_definition(Arena& arena, const Value& definition);
Value served_definition(Arena& arena, const Value& stored);

// --- Lifecycle ----------------------------------------------------------------------------------------------------

// Names taken by other established definitions of the same group.
struct TakenNames {
  std::vector<std::string> resources;  // Plurals, singulars, short names.
  std::vector<std::string> kinds;      // Kinds and list kinds.
};
TakenNames taken_names(std::span<const Value> others_of_group);

// Does the work of the naming controller: sets acceptedNames, NamesAccepted, and Established=False if it was never
// true. Returns the same Value if nothing changes.
Value accept_names(Arena& arena, const Value& definition, const TakenNames& taken, UnixTime now);
// Sets Established=True once the names are accepted.
Value establish(Arena& arena, const Value& definition, UnixTime now);
// Sets a condition (type, status, reason, message); lastTransitionTime changes only with the status.
Value with_condition(Arena& arena, const Value& definition, std::string_view type, std::string_view status,
                     std::string_view reason, std::string_view message, UnixTime now);
bool has_condition(const Value& definition, std::string_view type, std::string_view status);

inline constexpr std::string_view kCleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io";

// --- Resources of a definition ------------------------------------------------------------------------------------

struct ScalePaths {
  std::vector<std::string> spec_replicas, status_replicas, label_selector;    // Keys; label_selector may be empty.
  std::string spec_replicas_text, status_replicas_text, label_selector_text;  // As written, for error messages.
};

// The CEL rules of a schema, compiled on first use.
class LazyRules {
 public:
  explicit LazyRules(std::shared_ptr<const schema::Schema> schema) : schema_(std::move(schema)) {}
  const cel::SchemaRules* get() const;  // Null if there are none.

 private:
  const std::shared_ptr<const schema::Schema> schema_;
  mutable std::once_flag compiled_;
  mutable std::shared_ptr<const cel::SchemaRules> rules_;
};

struct Version {
  const types::Resource* resource = nullptr;  // Valid as long as the Definition.
  std::shared_ptr<const schema::Schema> schema;
  std::shared_ptr<const schema::Schema> published;  // For OpenAPI: the same, or null if it is not structural.
  std::shared_ptr<const LazyRules> rules;
  bool served = false, storage = false;
  std::string deprecation_warning;  // Empty if not deprecated.
  bool has_status = false;
  std::optional<ScalePaths> scale;
  std::vector<std::string> selectable_fields;  // "spec.color"
};

// An immutable view of one definition, rebuilt on every change.
class Definition {
 public:
  // The definition must be valid.
  static std::shared_ptr<const Definition> make(const Value& definition);

  std::string_view name() const { return name_; }  // metadata.name
  std::string_view uid() const { return uid_; }
  // Definitions with equal specs have equal hashes, within one process.
  uint64_t spec_hash() const { return spec_hash_; }
  bool serves() const { return serves_; }            // NamesAccepted or Established.
  bool established() const { return established_; }  // Shown in discovery.
  bool terminating() const { return terminating_; }  // Creates are rejected.
  std::span<const Version> versions() const { return versions_; }
  const Version* find(std::string_view version) const;
  const Version& storage_version() const;
  // spec.conversion; null for strategy None.
  const Value* conversion_webhook() const { return webhook_.is_null() ? nullptr : &webhook_; }
  size_t bytes() const;

 private:
  Definition() = default;
  Arena arena_{1024};
  std::string name_, uid_;
  uint64_t spec_hash_ = 0;
  bool serves_ = false, established_ = false, terminating_ = false;
  std::vector<Version> versions_;
  Value webhook_;
};

// --- Objects ------------------------------------------------------------------------------------------------------

// Validates an object against its version, in Kubernetes' order: metadata, schema, scale paths, embedded metadata, list
// uniqueness, CEL rules. `old` is null for a create; errors at unchanged nodes are ignored (ratcheting).
Result<Unit> validate_object(const Version& version, const Value& object, const Value* old);
// Same for a write through /status: only status is validated.
Result<Unit> validate_object_status(const Version& version, const Value& object, const Value& old);
// Warns about CEL rules that fail on unchanged parts of a valid object. Evaluates the rules again, which is cheap
// compared with the write itself.
void add_rule_warnings(const Version& version, const Value& object, const Value& old, Warnings& warnings);

// The autoscaling/v1 Scale of a custom resource. Error (no reason, 500) if spec.replicas is absent.
Result<Value> scale_of(Arena& arena, const ScalePaths& paths, const Value& object);
// Copies spec.replicas of a Scale into the object.
Result<Value> with_scale(Arena& arena, const ScalePaths& paths, const Value& object, const Value& scale);

// The value of a selectable field for comparison with selectors; "" if absent.
std::string selectable_value(const Value& object, std::string_view field);

}  // namespace holdfast::crd
