// Deleting one object, with everything that may keep it: preconditions, finalizers, grace periods, namespaces' own
// rules.
#pragma once

#include <optional>
#include <string_view>

#include "api/writes.h"
#include "request/query.h"

namespace holdfast::api {

struct Deleted {
  bool removed = false;         // False: it stays until somebody finishes the deletion.
  bool answers_object = false;  // Else a Status with the uid.
  Written object;               // The last state, or the marked one.
};
Task<Result<Deleted>> delete_object(Call& call, std::string name, request::DeleteOptions options);

// The options in a request's body; those of the query when it has none. 400, 422.
Result<request::DeleteOptions> read_delete_options(Call& call, std::string_view bytes);

}  // namespace holdfast::api
