// Deleting one object, with everything that may keep it: preconditions, finalizers, grace periods, namespaces' own
// rules.
#pragma once

#include <optional>
#include <string_view>

#include "request/query.h"
#include "write/write.h"

namespace holdfast::verbs {

struct Deleted {
  bool removed = false;         // False: it stays until somebody finishes the deletion.
  bool answers_object = false;  // Else a Status with the uid.
  write::Written object;        // The last state, or the marked one.
};
// Whether the object is the one that the options mean: uid and resourceVersion. 409.
Result<Unit> check_preconditions(const call::Call& call, const write::LiveObject& live, std::string_view name,
                                 const request::DeleteOptions& options);
Task<Result<Deleted>> delete_object(call::Call& call, write::Writer& writer, std::string name,
                                    request::DeleteOptions options);

// The options in a request's body; those of the query when it has none. 400, 422.
Result<request::DeleteOptions> read_delete_options(call::Call& call, std::string_view bytes);

}  // namespace holdfast::verbs
