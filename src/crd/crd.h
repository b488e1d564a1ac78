// CustomResourceDefinitions: the rules of a definition, what it makes the server serve, and the rules of its objects.
//
// Everything here is a plain function on Values, or an immutable Definition; who stores definitions and keeps the
// registry current is the server.
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
#include "kinds/kinds.h"
#include "schema/schema.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::cel {
class SchemaRules;
}

namespace holdfast::crd {

// --- The definition itself (apiextensions.k8s.io/v1 CustomResourceDefinition in canonical form) ------------------

// 422 with every cause, metadata's included. `old` is null for a create.
Result<Unit> validate_definition(const Value& definition, const Value* old);
Result<Unit> validate_definition_status(const Value& next, const Value& old);
// Warning headers: formats that are not checked; on update only new ones.
std::vector<std::string> definition_warnings(const Value& definition, const Value* old);

// As kube-apiserver stores it (v1beta1), and back from whichever version was stored.
Value stored_definition(Arena& arena, const Value& definition);
Value served_definition(Arena& arena, const Value& stored);

// --- Lifecycle ----------------------------------------------------------------------------------------------------

// Names that other established definitions of the same group hold.
struct TakenNames {
  std::vector<std::string> resources;  // Plurals, singulars, short names.
  std::vector<std::string> kinds;      // Kinds and list kinds.
};
TakenNames taken_names(std::span<const Value> others_of_group);

// What the naming controller makes of a definition: acceptedNames, NamesAccepted, and Established=False where it was
// never true. The same Value when there is nothing to change.
Value accept_names(Arena& arena, const Value& definition, const TakenNames& taken, UnixTime now);
// Established=True once the names are accepted.
Value establish(Arena& arena, const Value& definition, UnixTime now);
// Sets a condition (type, status, reason, message); lastTransitionTime moves only with the status.
Value with_condition(Arena& arena, const Value& definition, std::string_view type, std::string_view status,
                     std::string_view reason, std::string_view message, UnixTime now);
bool has_condition(const Value& definition, std::string_view type, std::string_view status);

inline constexpr std::string_view kCleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io";

// --- What a definition serves -------------------------------------------------------------------------------------

struct ScalePaths {
  std::vector<std::string> spec_replicas, status_replicas, label_selector;    // Keys; an empty selector path: none.
  std::string spec_replicas_text, status_replicas_text, label_selector_text;  // As written, for errors.
};

// The CEL rules of a schema, compiled when the first object is validated by them.
class LazyRules {
 public:
  explicit LazyRules(std::shared_ptr<const schema::Schema> schema) : schema_(std::move(schema)) {}
  const cel::SchemaRules* get() const;  // Null: there are none.

 private:
  const std::shared_ptr<const schema::Schema> schema_;
  mutable std::once_flag compiled_;
  mutable std::shared_ptr<const cel::SchemaRules> rules_;
};

struct Version {
  const types::Resource* resource = nullptr;  // Lives as long as the Definition.
  std::shared_ptr<const schema::Schema> schema;
  std::shared_ptr<const schema::Schema> published;  // In OpenAPI: the same, or none if it is not structural.
  std::shared_ptr<const LazyRules> rules;
  bool served = false, storage = false;
  std::string deprecation_warning;  // Empty: not deprecated.
  bool has_status = false;
  std::optional<ScalePaths> scale;
  std::vector<std::string> selectable_fields;  // "spec.color"
};

// An immutable view of one definition, rebuilt whenever it changes.
class Definition {
 public:
  // The definition must be valid.
  static std::shared_ptr<const Definition> make(const Value& definition);

  std::string_view name() const { return name_; }  // metadata.name
  std::string_view uid() const { return uid_; }
  int64_t generation() const { return generation_; }
  bool serves() const { return serves_; }            // NamesAccepted or Established.
  bool established() const { return established_; }  // In discovery.
  bool terminating() const { return terminating_; }  // Creating is rejected.
  std::span<const Version> versions() const { return versions_; }
  const Version* find(std::string_view version) const;
  const Version& storage_version() const;
  // spec.conversion; null for the strategy None.
  const Value* conversion_webhook() const { return webhook_.is_null() ? nullptr : &webhook_; }
  size_t bytes() const;

 private:
  Definition() = default;
  Arena arena_{1024};
  std::string name_, uid_;
  int64_t generation_ = 0;
  bool serves_ = false, established_ = false, terminating_ = false;
  std::vector<Version> versions_;
  Value webhook_;
};

// --- Its objects --------------------------------------------------------------------------------------------------

// The checks of an object against its version, in Kubernetes' order: metadata, schema, scale paths, embedded metadata,
// list uniqueness, CEL rules. `old` is null for a create; errors at nodes that did not change are forgiven
// (ratcheting).
Result<Unit> validate_object(const Version& version, const Value& object, const Value* old);
// The same for a write through /status: only status is examined.
Result<Unit> validate_object_status(const Version& version, const Value& object, const Value& old);
// CEL rules that fail on parts of a valid object that did not change: what a client is warned of. Runs the rules again,
// which costs little beside an update's write.
std::vector<std::string> rule_warnings(const Version& version, const Value& object, const Value& old);

// The autoscaling/v1 Scale of a custom resource. Error (no reason, 500) when spec.replicas is absent.
Result<Value> scale_of(Arena& arena, const ScalePaths& paths, const Value& object);
// Puts spec.replicas of a Scale into the object.
Result<Value> with_scale(Arena& arena, const ScalePaths& paths, const Value& object, const Value& scale);

// A selectable field's value as selectors compare it; "" when it is absent.
std::string selectable_value(const Value& object, std::string_view field);

}  // namespace holdfast::crd
