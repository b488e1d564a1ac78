// Apply sets record which objects were applied together, so that objects that are no longer applied can be deleted.
// Labels and annotations are those of KEP-3659, as used by kubectl's --applyset:
//
//   parent (a Secret or ConfigMap)                       members
//     label       id: applyset-HASH-v1          <------    label part-of: applyset-HASH-v1
//     annotation  tooling: holdfast/VERSION
//     annotation  contains-group-kinds: ConfigMap,Deployment.apps     where members are found:
//     annotation  additional-namespaces: a,b                          the parent's namespace, and these
//
//   open --> plan: members, objects to prune --> begin: parent covers old and new --> apply --> prune --> finish
//
// The parent is widened before anything is applied and narrowed after everything was pruned, so that a failure in
// between never loses track of a member.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/manifests.h"
#include "cli/session.h"

namespace holdfast::cli {

// Value of the part-of label of the members of this parent's set.
std::string apply_set_id(std::string_view name, std::string_view space, std::string_view kind, std::string_view group);

class ApplySet {
 public:
  enum class Adoption : uint8_t {
    Refused,
    Allowed,  // Objects that are not in a set, and sets managed by another tool.
  };

  // `reference`: [KIND[.GROUP]/]NAME, a Secret if the kind is omitted. Fails if the parent is managed by another tool
  // and adoption is refused, or if it does not exist and is of a kind that is not created automatically. `session` must
  // outlive the set.
  static Result<ApplySet> open(const Session& session, const std::string& reference, Adoption adoption);

  // The manifests labelled as members. Fails if a manifest already has the label.
  Result<std::vector<Manifest>> as_members(const std::vector<Manifest>& manifests) const;

  struct Pruned {
    Target target;
    std::string space, uid;
  };
  // Determines which members are no longer applied. Fails for objects of another set and, unless adoption is allowed,
  // for objects that exist without being members; the error names all of them.
  Result<Unit> plan(const std::vector<Manifest>& manifests);
  const std::vector<Pruned>& to_prune() const { return to_prune_; }
  // Kinds of the set that the server does not serve. Their objects are not pruned, and the set keeps the kinds.
  const std::set<std::string>& unknown_kinds() const { return unknown_kinds_; }

  // Update the parent: begin() before objects are applied, finish() after pruning.
  Result<Unit> begin(bool dry_run) const { return update_parent(Extent::OldAndNew, dry_run); }
  Result<Unit> finish(bool dry_run) const { return update_parent(Extent::New, dry_run); }

 private:
  enum class Extent : uint8_t { OldAndNew, New };

  ApplySet(const Session& session, client::Resource resource, std::string name, Adoption adoption);
  Result<Unit> read_parent();
  Result<Unit> check_custom_parent() const;
  Result<Unit> find_members();
  Result<Unit> update_parent(Extent extent, bool dry_run) const;
  bool belongs(const Value& object) const;

  const Session* session_;
  client::Resource resource_;
  std::string name_, space_, id_;
  Adoption adoption_;
  std::set<std::string> old_kinds_, new_kinds_, unknown_kinds_;  // "Deployment.apps"
  std::set<std::string> old_spaces_, new_spaces_;
  std::vector<Pruned> to_prune_;
};

}  // namespace holdfast::cli
