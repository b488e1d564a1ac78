// `holdfast migrate`: moves the ownership of fields without changing their values.
//
//   kubectl-client-side-apply (Update) .spec.replicas .spec.paused          kubectl (Apply) .spec.replicas .spec.paused
//   kubectl (Apply)                    .spec.replicas                 -->   .spec.template
//                                      .spec.template
//
// Afterwards, an apply by the new owner that omits a field removes it. Before, the old owner's entry kept the field
// forever: such fields are called stuck.
#pragma once

#include <string>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "ownership/ownership.h"
#include "value/value.h"

namespace holdfast::cli {

struct MigrationRequest {
  std::vector<std::string> from;   // Managers whose Apply and Update entries are merged, except those of subresources.
  std::string to;                  // Owns their fields afterwards, in an Apply entry.
  bool drop_last_applied = false;  // Also removes the annotation of client-side apply.
};

struct Migration {
  ownership::Managed managers;       // Afterwards.
  std::vector<std::string> moved;    // Fields that `to` did not already own by Apply.
  std::vector<std::string> stuck;    // The moved fields without an Apply owner: no apply could have removed them.
  std::vector<std::string> sources;  // The merged entries: "kubectl-client-side-apply (Update)".
  bool drops_annotation = false;

  bool empty() const { return sources.empty() && !drops_annotation; }
};
// BadRequest if managedFields cannot be read, or if entries of different versions would be merged. Results are
// allocated in `arena`.
Result<Migration> plan_migration(Arena& arena, const Value& object, const MigrationRequest& request);

inline constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

// The JSON patch that performs the migration. The server rejects it if the object has changed since it was read.
std::string migration_patch(Arena& arena, const Value& object, const Migration& migration);

}  // namespace holdfast::cli
