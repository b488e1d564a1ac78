// Who owns each field of an object, and what an apply or an update does to the object and to that ownership:
// Kubernetes' Server-Side Apply (v1.36), with unset markers on top.
//
// A FieldManager stands for one endpoint: a kind in a version, and a subresource or the main resource. Make one when
// the endpoint appears, call it for every write.
//
//   Update (create, PUT, JSON, merge and strategic patch)          Apply
//     live ---+                                                      live -----+
//     new  ---+-> update() -> owners of new                          config ---+-> apply() -> object, owners
//     owners -+                                                      owners ---+    or the conflicts
//
// Objects are passed in and out in the endpoint's version, without metadata.managedFields: ownership is beside them as
// Managed, which decode_managed and encode_managed turn from and into the list in an object.
//
// Lifetime: results point into the arguments and the arena; encode or copy() what must outlive them.
// Threading: a FieldManager is immutable; call it from anywhere.
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
  const MergeType* type = nullptr;  // builtin_merge_types().of(*resource.type), or of a CRD's own MergeTypes.
  ResetFilter reset = {};           // What writes through this endpoint never own, in this version.
};

// An object of one served version in another; apiVersion of the result included.
using Convert = std::function<Result<Value>(Arena&, const Value& object, std::string_view from, std::string_view to)>;

struct FieldManagerOptions {
  std::string api_version, kind;  // Of the endpoint's objects; api_version is one of `versions`.
  std::string subresource;        // Empty: the main resource.
  std::vector<ServedVersion> versions;

  // Called only when entries of several versions meet. An error fails an apply, and makes an update lose its
  // managedFields, as Kubernetes has it.
  Convert convert;

  // What Go prints for an empty object of the kind (kinds::zero_value): a creator owns what differs from it. Without
  // it, as for custom resources: apiVersion and kind alone.
  std::function<Value(Arena&)> zero_object;

  // The object with all defaults that its schema declares (schema::apply_defaults of custom resources). Asked only when
  // an apply unsets something. Without it, unset fields alone get the scalar defaults of their types, as built-in kinds
  // declare a few; defaults that code or admission sets come later and are not seen here.
  std::function<Value(Arena&, const Value&)> declared_defaults;

  bool fields_v2 = false;            // Gate FieldsV2: updates may carry managedFields in the binary form.
  bool unset_markers = false;        // Gate ServerSideApplyUnsettingFields.
  bool retain_all_managers = false;  // Gate RetainAllManagers: old update managers are never merged.
  size_t max_update_managers = 10;   // Above it the oldest merge into "ancient-changes".
};

struct UpdateRequest {
  const Value* live = nullptr;            // Null: the object is being created.
  const Managed* live_managed = nullptr;  // Null: none.
  const Value& object;                    // To be stored: patched and defaulted, before mutating admission. May
                                          // have metadata.managedFields as the client sent them.
  std::string_view manager;               // See manager_name().
  UnixTime now;
  Convert convert = {};  // Overrides FieldManagerOptions::convert.
};
struct UpdateResult {
  Value object;         // The request's, without managedFields.
  Managed managed;      // Sorted.
  std::string problem;  // Not empty: ownership could not be computed, `managed` is empty. The write continues; log it.
};

struct ApplyRequest {
  const Value* live = nullptr;            // Null: the object is being created.
  const Managed* live_managed = nullptr;  // Undecodable ones are the caller's error: "failed to decode managed fields".
  const Value& config;                    // As decoded, no defaults.
  std::string_view manager;               // Required by the API; empty is taken as "unknown".
  bool force = false;
  UnixTime now;
  // Overrides FieldManagerOptions::declared_defaults where they depend on more than the object: the default of
  // a Scale's replicas is that of the object which it scales.
  std::function<Value(Arena&, const Value&)> declared_defaults = {};
  Convert convert = {};  // Overrides FieldManagerOptions::convert.
};
struct ApplyResult {
  Value object;          // Not defaulted (if something was unset: with declared defaults). May contain nulls.
  bool changed = false;  // False: `object` is the live one, times are as they were.
  Managed managed;       // Sorted.
  bool unset = false;    // The configuration had unset markers.
};

// Whether fields that a manager owns unset are part of what is extracted.
enum class Markers : uint8_t { Included, LeftOut };

class FieldManager {
 public:
  explicit FieldManager(FieldManagerOptions options);
  ~FieldManager();
  FieldManager(FieldManager&&) noexcept;
  FieldManager& operator=(FieldManager&&) noexcept;

  UpdateResult update(Arena& arena, const UpdateRequest& request) const;

  // Conflict with one cause per manager and path; BadRequest for another kind or version, managedFields in the
  // configuration, or a misplaced marker; Unknown (500 without a reason) where the configuration or the live
  // object does not fit the type.
  Result<ApplyResult> apply(Arena& arena, const ApplyRequest& request) const;

  // The same, without ownership: what a MutatingAdmissionPolicy's ApplyConfiguration does to an object. Markers are
  // always recognized here. BadRequest, in the words that follow "error applying patch: " in Kubernetes, where the
  // configuration or the object does not fit, or where the configuration sets something atomic.
  Result<Value> apply_unowned(Arena& arena, const Value& object, const Value& config) const;

  // What `manager` last applied through `subresource` (empty: main), read back from an object: its leaves, keys
  // included, with apiVersion and kind, and a marker for each field that it owns but that does not exist, so that
  // extracting, changing and applying releases nothing. Null when that manager has no such entry.
  Result<Value> extract(Arena& arena, const Value& object, const Managed& managed, std::string_view manager,
                        std::string_view subresource = {}, Markers markers = Markers::Included) const;

  const FieldManagerOptions& options() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// --- Unset markers ----------------------------------------------------------------------------------------------

// {k8s_io__value: unset} in a configuration takes the place of a value (docs/unsetting-fields.md).
inline constexpr std::string_view kUnsetKey = "k8s_io__value";
inline constexpr std::string_view kUnsetValue = "unset";
// Whether a map anywhere in the value has the marker's key. Allocates nothing: the only cost for an apply without
// markers.
bool has_marker(const Value& value);

// --- The scale subresource --------------------------------------------------------------------------------------

// Where a kind keeps the number that scale changes, by version: "spec.replicas", ".spec.replicas".
struct ReplicasPath {
  std::string_view api_version;
  std::string_view path;  // Empty: this version has no scale.
};
// The parent's entries as those of its Scale (autoscaling/v1): who owns spec.replicas.
Managed scale_entries(Arena& arena, const Managed& parent, std::span<const ReplicasPath> paths);
// The parent's entries after a write to its Scale left `scale` as the Scale's. `api_version`: of the endpoint.
Managed parent_entries(Arena& arena, const Managed& parent, const Managed& scale, std::string_view api_version,
                       std::span<const ReplicasPath> paths);

// --- No-op writes -----------------------------------------------------------------------------------------------

// Whether two lists of entries differ in nothing but times, and in at least one of them. If the objects are equal too,
// the old times are kept and nothing is written.
bool differ_only_in_times(const Managed& a, const Managed& b);
// The same entries with the same times: together with equal objects, nothing to write.
bool equal(const Managed& a, const Managed& b);

}  // namespace holdfast::ownership
