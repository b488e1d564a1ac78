// What an update or an apply does to an object and to who owns it: the merge engine, without the rules of names,
// times and metadata above it (field_manager.cc). Private to the module.
//
// Follows Kubernetes' engine (structured-merge-diff v6.3.3, merge/update.go) step by step; the steps are numbered in
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

// One version in which the object exists: its type and what writes through this endpoint never own in it.
struct VersionView {
  std::string_view api_version;
  const MergeType* type = nullptr;
  const ResetFilter* reset = nullptr;  // Null: nothing.
};

// Finds versions and converts between them.
class Versions {
 public:
  virtual ~Versions() = default;
  // Nothing when the version is not served any more.
  virtual const VersionView* find(std::string_view api_version) const = 0;
  // The object, which is of version `from`, in `to`. An error fails the write; nothing: the version is gone.
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

  // The owners after `live` has become `next`. The caller's gain is returned separately; its entries in `managed` count
  // as anybody's.
  struct Updated {
    Managed managed;
    FieldSet gained;
  };
  Result<Updated> update(const Value& live, const Value& next, const Managed& managed);

  struct Applied {
    Value object;  // In the request's version; `live` itself when nothing changed.
    bool changed = false;
    Managed managed;                  // With the applier's new entry, if it owns anything.
    std::vector<Conflict> conflicts;  // Not empty: the apply failed and nothing else here counts.
  };
  struct ApplyOptions {
    bool force = false;
    FieldSet unset;    // Paths that the configuration unsets,
    FieldSet vacated;  // and the containers that are empty in it because of that: take_markers().
    // What the type's declared defaults make of an object; only asked when something is unset.
    const std::function<Value(Arena&, const Value&)>* defaults = nullptr;
  };
  // `applier` says who applies; its fields are not examined.
  Result<Applied> apply(const Value& live, const Value& config, const Managed& managed, const ManagerEntry& applier,
                        const ApplyOptions& options);

 private:
  struct InVersion {
    const VersionView* view;
    std::optional<Value> live;  // Nothing: the version is gone.
    std::optional<Comparison> comparison;
  };
  Result<InVersion*> in_version(const Value& live, std::string_view api_version);
  Result<const Comparison*> compared(InVersion& version, const Value& live, const Value& next);
  Result<std::optional<Value>> convert(const Value& object, const VersionView& from, const VersionView& to);
  Result<Managed> reconcile_all(const Value& live, const Managed& managed);
  Result<Value> prune(const Value& merged, const Managed& managed, const ManagerEntry& last, FieldSet own);
  Result<FieldSet> removed_by_unset(const InVersion& version, const Value& live, FieldSet unset, FieldSet removed);
  Comparison compare_filtered(const VersionView& view, const Value& left, const Value& right);

  Arena& arena_;
  const Versions& versions_;
  const VersionView& version_;
  std::vector<InVersion> seen_;
};

}  // namespace holdfast::ownership
