// Apply sets: which objects were applied together, so that those that are no longer applied can be deleted. The marks
// are those of KEP-3659, which kubectl's --applyset uses too:
//
//   parent (a Secret or ConfigMap)                       members
//     label       id: applyset-HASH-v1          <------    label part-of: applyset-HASH-v1
//     annotation  tooling: holdfast/VERSION
//     annotation  contains-group-kinds: ConfigMap,Deployment.apps     where to look for members:
//     annotation  additional-namespaces: a,b                          the parent's own, and these
//
//   open --> plan: members, what would be pruned --> begin: parent covers old and new --> applies --> prune --> finish
//
// The parent is widened before anything is applied and narrowed after everything was pruned: whatever fails in between,
// no member is forgotten.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/manifests.h"
#include "cli/session.h"

namespace holdfast::cli {

// The label that members of the set of this parent have.
std::string apply_set_id(std::string_view name, std::string_view space, std::string_view kind, std::string_view group);

class ApplySet {
 public:
  enum class Adoption : uint8_t {
    Refused,
    Allowed,  // Of objects that are in no set, and of a set that another tool manages.
  };

  // `reference`: [KIND[.GROUP]/]NAME, a Secret without a kind. Errors: a parent that is managed by another tool, or
  // that has to be made by hand. `session` must outlive the set.
  static Result<ApplySet> open(const Session& session, const std::string& reference, Adoption adoption);

  // The manifests as members. Refused: those that say themselves which set they belong to.
  Result<std::vector<Manifest>> as_members(const std::vector<Manifest>& manifests) const;

  struct Pruned {
    Target target;
    std::string space, uid;
  };
  // Finds out what is no longer applied. Refused, naming all of them: objects that exist without being members, unless
  // adoption is allowed; objects of another set.
  Result<Unit> plan(const std::vector<Manifest>& manifests);
  const std::vector<Pruned>& to_prune() const { return to_prune_; }
  // Kinds of the set that the server does not serve: none of their objects is pruned, and the set keeps them.
  const std::set<std::string>& unknown_kinds() const { return unknown_kinds_; }

  // The parent as it has to be while objects are applied, and when all is done.
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
