// Waiting until a client has read a response.
#pragma once

#include "net/net.h"

namespace holdfast::net {

// co_await drained(response) -> Result<Unit>: waits until most of what was given to send() has been taken by the peer,
// or the deadline aborts the response. What a handler holds until then limits what clients that do not read can make
// the server keep.
inline auto drained(Response& response) { return detail::WriteAwaiter{*response.stream}; }

}  // namespace holdfast::net
