// `holdfast migrate`: fields change hands without changing their values.
//
//   kubectl-client-side-apply (Update) .spec.replicas .spec.paused          kubectl (Apply) .spec.replicas .spec.paused
//   kubectl (Apply)                    .spec.replicas                 -->   .spec.template
//                                      .spec.template
//
// Afterwards an apply of the new owner that leaves a field out removes it; before, the old owner's entry kept it for
// ever: such fields are called stuck.
#pragma once

#include <string>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "ownership/ownership.h"
#include "value/value.h"

namespace holdfast::cli {

struct MigrationRequest {
  std::vector<std::string> from;   // Managers whose entries are folded: Apply and Update, not those of subresources.
  std::string to;                  // Owns their fields afterwards, by Apply.
  bool drop_last_applied = false;  // The annotation of client-side apply is removed, too.
};

struct Migration {
  ownership::Managed managers;       // Afterwards.
  std::vector<std::string> moved;    // Fields that `to` did not own by Apply before.
  std::vector<std::string> stuck;    // Of those: they had no Apply owner, so no apply could have removed them.
  std::vector<std::string> sources;  // "kubectl-client-side-apply (Update)": the entries that are folded.
  bool drops_annotation = false;

  bool empty() const { return sources.empty() && !drops_annotation; }
};
// BadRequest where managedFields cannot be read or entries of several versions meet. Results are in `arena`.
Result<Migration> plan_migration(Arena& arena, const Value& object, const MigrationRequest& request);

inline constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

// The JSON patch that does it, refused by the server if the object has changed since it was read.
std::string migration_patch(Arena& arena, const Value& object, const Migration& migration);

}  // namespace holdfast::cli
