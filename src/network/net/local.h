// Calls of a handler without a connection that end by themselves.
#pragma once

#include "net/net.h"

namespace holdfast::net {

// Like call_handler(). At the request's timeout (Timeout), when it is cancelled (ServiceUnavailable) and when the body
// of the response grows beyond the limit (RequestEntityTooLarge), the handler is cancelled as if its peer had
// disconnected, and the call fails once it has ended.
Task<Result<ClientResponse>> call_handler_within(EventLoop& loop, Handler handler, ClientRequest request,
                                                 size_t body_limit_bytes);

}  // namespace holdfast::net
