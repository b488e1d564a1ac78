// The merge engine: what an update or an apply does to an object and to its field owners, without the rules for manager
// names, timestamps and metadata (field_manager.cc). Private to the module.
//
// Follows the Kubernetes engine (structured-merge-diff v6.3.3, merge/update.go) step by step; the steps are numbered in
// engine.cc as in the project's description of it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ownership/managed.h"
#include "ownership/merge_type.h"
#include "ownership/reset_filter.h"
#include "ownership/typed.h"

namespace holdfast::ownership {

// A version in which the object exists: its type, and the fields that writes through this endpoint never own in it.
struct VersionView {
  std::string_view api_version;
  const MergeType* type = nullptr;
  const ResetFilter* reset = nullptr;  // Null if there are none.
};

// Finds versions and converts between them.
class Versions {
 public:
  virtual ~Versions() = default;
  // Null if the version is no longer served.
  virtual const VersionView* find(std::string_view api_version) const = 0;
  // Converts the object from version `from` to `to`. An error fails the write; an empty result means that the version
  // is no longer served.
  virtual Result<std::optional<Value>> convert(Arena& arena, const Value& object, const VersionView& from,
                                               const VersionView& to) const = 0;
};

struct Conflict {
  ManagerEntry owner;
  FieldSet paths;
};

class Engine {
 public:
  Engine(Arena& arena, const Versions& versions, const VersionView& version)
      : arena_(arena), versions_(versions), version_(version) {}

  // The owners after `live` has become `next`. The fields that the caller gains are returned separately; its entries in
  // `managed` are treated like those of any other manager.
  struct Updated {
    Managed managed;
    FieldSet gained;
  };
  Result<Updated> update(const Value& live, const Value& next, const Managed& managed);

  struct Applied {
    Value object;  // In the request's version; `live` itself when nothing changed.
    bool changed = false;
    Managed managed;                  // With the applier's new entry, if it owns anything.
    std::vector<Conflict> conflicts;  // If not empty, the apply failed and the other members are meaningless.
  };
  using Defaults = std::function<Value(Arena&, const Value&)>;
  struct ApplyOptions {
    bool force = false;
    FieldSet unset;  // Paths that the configuration unsets, see take_markers().
    // Applies the type's declared defaults to an object. Called only when something is or was unset.
    const Defaults* defaults = nullptr;
    bool unset_markers = false;  // Feature gate ServerSideApplyUnsettingFields.
  };
  // `applier` identifies the manager that applies; its fields are ignored.
  Result<Applied> apply(const Value& live, const Value& config, const Managed& managed, const ManagerEntry& applier,
                        const ApplyOptions& options);

 private:
  struct InVersion {
    const VersionView* view;
    std::optional<Value> live;  // Empty if the version is no longer served.
    std::optional<Comparison> comparison;
    std::optional<FieldSet> touched;  // What the comparison found modified or added.
    std::optional<FieldSet> removed_by_unset;
  };
  Result<InVersion*> in_version(const Value& live, std::string_view api_version);
  Result<const Comparison*> compared(InVersion& version, const Value& live, const Value& next);
  Result<std::optional<Value>> convert(const Value& object, const VersionView& from, const VersionView& to);
  Result<Managed> reconcile_all(const Value& live, const Managed& managed);
  Result<Value> prune(const Value& live, const Value& merged, const Managed& managed, const ManagerEntry& last,
                      FieldSet own, const ApplyOptions& options);
  FieldSet present(const InVersion& version, FieldSet set);
  Result<FieldSet> given_up(const InVersion& version, const Value& merged, const Value& base, FieldSet last,
                            const ApplyOptions& options);
  Result<Value> with_defaults_in(const VersionView& view, const Value& object, const Defaults& defaults);
  FieldSet below_defaulted(const InVersion& version, FieldSet owned, FieldSet touched, FieldSet conflict,
                           const Defaults& defaults);
  Result<FieldSet> removed_by_unset(const InVersion& version, const Value& live, FieldSet unset, FieldSet removed);
  Comparison compare_filtered(const VersionView& view, const Value& left, const Value& right);

  Arena& arena_;
  const Versions& versions_;
  const VersionView& version_;
  std::vector<InVersion> seen_;
};

}  // namespace holdfast::ownership
