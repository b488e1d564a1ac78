// A session for programs that have an event loop already.
#pragma once

#include "cli/session.h"

namespace holdfast::cli {

// As open_session() with managedFields; the client runs on the loop, which must outlive the session, and prints no
// warnings of the server.
Result<Session> open_session_on(net::EventLoop& loop, const ConnectionFlags& flags);

}  // namespace holdfast::cli
