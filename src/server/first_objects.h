// Writes the objects of an empty server (bootstrap) through the API, as its own user.
#pragma once

#include "api/api.h"
#include "base/task.h"
#include "bootstrap/bootstrap.h"
#include "net/net.h"
#include "store/store.h"

namespace holdfast::server {

// Creates missing objects, on all loops; existing ones are unchanged. The caches must be ready. Resumes on the first
// loop. What cannot be made is logged: a server without it is of more use than none.
Task<void> make_first_objects(api::Api& api, store::Store& store, net::Loops& loops, bootstrap::Options options,
                              UnixTime now);

}  // namespace holdfast::server
