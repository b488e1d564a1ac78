// Field ownership, and what an apply or an update does to an object and its owners: Kubernetes' Server-Side Apply
// (v1.36), extended with unset markers.
//
// A FieldManager serves one endpoint: a kind in a version, and a subresource or the main resource. Create one when the
// endpoint appears, and call it for every write.
//
//   Update (create, PUT, JSON, merge and strategic patch)          Apply
//     live ---+                                                      live -----+
//     new  ---+-> update() -> owners of new                          config ---+-> apply() -> object, owners
//     owners -+                                                      owners ---+    or the conflicts
//
// Objects are passed in and out in the endpoint's version, without metadata.managedFields. Ownership is passed
// separately as Managed; decode_managed and encode_managed convert it from and to the list in an object.
//
// Lifetime: results point into the arguments and the arena; encode or copy() whatever must outlive them.
// Threading: a FieldManager is immutable and may be called from any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "ownership/entry_message.h"
#include "ownership/field_set.h"
#include "ownership/fields_v2.h"
#include "ownership/managed.h"
#include "ownership/merge_type.h"
#include "ownership/pool.h"
#include "ownership/reset_filter.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::ownership {

// A version in which the kind is served. Entries of other versions are dropped on the next write.
struct ServedVersion {
  std::string api_version;          // "apps/v1", "v1".
  const MergeType* type = nullptr;  // builtin_merge_types().of(*resource.type), or from a CRD's own MergeTypes.
  ResetFilter reset = {};           // Fields that writes through this endpoint never own, in this version.
};

// Converts an object between served versions, including apiVersion.
using Convert = std::function<Result<Value>(Arena&, const Value& object, std::string_view from, std::string_view to)>;

struct FieldManagerOptions {
  std::string api_version, kind;  // Of the endpoint's objects; api_version is one of `versions`.
  std::string subresource;        // Empty for the main resource.
  std::vector<ServedVersion> versions;

  // Called only when entries of several versions are involved. As in Kubernetes, an error fails an apply, and makes an
  // update lose its managedFields.
  Convert convert;

  // What Go prints for an empty object of the kind (kinds::zero_value): the creator owns everything that differs from
  // it. If not set, as for custom resources: apiVersion and kind only.
  std::function<Value(Arena&)> zero_object;

  // The object with all defaults declared by its schema (schema::apply_defaults for custom resources). Called only when
  // an apply unsets something. If not set, unset fields get just the scalar defaults of their types, which a few
  // built-in kinds declare; defaults set by code or admission come later and are not visible here.
  std::function<Value(Arena&, const Value&)> declared_defaults;

  bool fields_v2 = false;            // Feature gate FieldsV2: updates may carry managedFields in the binary form.
  bool unset_markers = false;        // Feature gate ServerSideApplyUnsettingFields.
  bool retain_all_managers = false;  // Feature gate RetainAllManagers: old update managers are never merged.
  size_t max_update_managers = 10;   // If exceeded, the oldest are merged into "ancient-changes".
};

struct UpdateRequest {
  const Value* live = nullptr;            // Null if the object is being created.
  const Managed* live_managed = nullptr;  // Null if there are none.
  const Value& object;                    // To be stored: patched and defaulted, before mutating admission. May
                                          // have metadata.managedFields as sent by the client.
  std::string_view manager;               // See manager_name().
  UnixTime now;
  Convert convert = {};  // Overrides FieldManagerOptions::convert.
};
struct UpdateResult {
  Value object;         // The request's object, without managedFields.
  Managed managed;      // Sorted.
  std::string problem;  // Set if ownership could not be computed; `managed` is empty then. Log it and continue.
};

struct ApplyRequest {
  const Value* live = nullptr;            // Null if the object is being created.
  const Managed* live_managed = nullptr;  // The caller rejects undecodable ones: "failed to decode managed fields".
  const Value& config;                    // As decoded, without defaults.
  std::string_view manager;               // Required by the API; if empty, "unknown" is used.
  bool force = false;
  UnixTime now;
  // Overrides FieldManagerOptions::declared_defaults where defaults depend on more than the object: the default of a
  // Scale's replicas is that of the scaled object.
  std::function<Value(Arena&, const Value&)> declared_defaults = {};
  Convert convert = {};  // Overrides FieldManagerOptions::convert.
};
struct ApplyResult {
  Value object;          // Not defaulted (unless something was unset: then with declared defaults). May contain nulls.
  bool changed = false;  // If false, `object` is the live object and times are unchanged.
  Managed managed;       // Sorted.
  FieldSet unset;        // The paths of the configuration's unset markers, and of their aliases.
};

// Whether extract() includes markers for fields that a manager owns as unset.
enum class Markers : uint8_t { Included, LeftOut };

class FieldManager {
 public:
  explicit FieldManager(FieldManagerOptions options);
  ~FieldManager();
  FieldManager(FieldManager&&) noexcept;
  FieldManager& operator=(FieldManager&&) noexcept;

  UpdateResult update(Arena& arena, const UpdateRequest& request) const;

  // Conflict with one cause per manager and path; BadRequest for another kind or version, managedFields in the
  // configuration, or a misplaced marker; Unknown (500 without a reason) if the configuration or the live object does
  // not match the type.
  Result<ApplyResult> apply(Arena& arena, const ApplyRequest& request) const;

  // The same without ownership, for the ApplyConfiguration of a MutatingAdmissionPolicy. Markers are always recognized
  // here. BadRequest, with the text that follows "error applying patch: " in Kubernetes, if the configuration or the
  // object does not match the type, or if the configuration sets something atomic.
  Result<Value> apply_unowned(Arena& arena, const Value& object, const Value& config) const;

  // The configuration that `manager` last applied through `subresource` (empty for the main resource), reconstructed
  // from an object: its leaves and keys, apiVersion and kind, and a marker for each field that it owns but that does
  // not exist, so that extracting, changing and applying releases nothing. Null if that manager has no such entry.
  Result<Value> extract(Arena& arena, const Value& object, const Managed& managed, std::string_view manager,
                        std::string_view subresource = {}, Markers markers = Markers::Included) const;

  // The members of `unset` that are in the object: what defaults, aliases or admission put back.
  FieldSet restored(Arena& arena, const Value& object, FieldSet unset) const;

  const FieldManagerOptions& options() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// --- Unset markers ----------------------------------------------------------------------------------------------

// {k8s_io__value: unset} in a configuration replaces a value (docs/unsetting-fields.md).
inline constexpr std::string_view kUnsetKey = "k8s_io__value";
inline constexpr std::string_view kUnsetValue = "unset";
// Next to a marker in a set: the element that it unsets.
inline constexpr std::string_view kUnsetElement = "value";
// Whether a map anywhere in the value has the marker's key. Does not allocate: this is the only cost for an apply
// without markers.
bool has_marker(const Value& value);

// --- The scale subresource --------------------------------------------------------------------------------------

// The field that scale changes, by version: "spec.replicas", ".spec.replicas".
struct ReplicasPath {
  std::string_view api_version;
  std::string_view path;  // Empty if this version has no scale subresource.
};
// The parent's entries translated to its Scale (autoscaling/v1): the owners of spec.replicas.
Managed scale_entries(Arena& arena, const Managed& parent, std::span<const ReplicasPath> paths);
// The parent's entries after a write to its Scale resulted in the entries `scale`. `api_version` is that of the
// endpoint.
Managed parent_entries(Arena& arena, const Managed& parent, const Managed& scale, std::string_view api_version,
                       std::span<const ReplicasPath> paths);

// --- No-op writes -----------------------------------------------------------------------------------------------

// Whether two lists of entries differ only in times, and in at least one of them. If the objects are equal too, the old
// times are kept and nothing is written.
bool differ_only_in_times(const Managed& a, const Managed& b);
// The same entries with the same times: if the objects are equal too, there is nothing to write.
bool equal(const Managed& a, const Managed& b);

}  // namespace holdfast::ownership
