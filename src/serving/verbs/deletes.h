// Deletes one object, respecting preconditions, finalizers, grace periods and the rules for namespaces.
#pragma once

#include <optional>
#include <string_view>

#include "request/query.h"
#include "write/write.h"

namespace holdfast::verbs {

struct Deleted {
  bool removed = false;         // False if the object remains until its finalizers or grace period are done.
  bool returns_object = false;  // Respond with the object; otherwise with a Status.
  write::Written object;        // The last state, or the one marked for deletion.
};
// Checks the uid and resourceVersion preconditions. 409.
Result<Unit> check_preconditions(const call::Call& call, const write::LiveObject& live, std::string_view name,
                                 const request::DeleteOptions& options);
Task<Result<Deleted>> delete_object(call::Call& call, write::Writer& writer, std::string name,
                                    request::DeleteOptions options);

// The options in the request body, or else those in the query. 400, 422.
Result<request::DeleteOptions> read_delete_options(call::Call& call, std::string_view bytes);

}  // namespace holdfast::verbs
