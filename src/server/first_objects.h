// Writes the objects of an empty server (bootstrap) through the API, as its own user.
#pragma once

#include "api/api.h"
#include "base/task.h"
#include "bootstrap/bootstrap.h"
#include "net/net.h"

namespace holdfast::server {

// Makes what is not there; what is there stays as it is. Runs and resumes on `loop`. What cannot be
// made is logged: a server without it is of more use than none.
Task<void> make_first_objects(api::Api& api, net::EventLoop& loop, bootstrap::Options options, UnixTime now);

}  // namespace holdfast::server
