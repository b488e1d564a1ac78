// The addresses of a host, for callers that check where they connect to before they do.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/net.h"

namespace holdfast::net {

// As text, without ports; that of an address is itself. Errors are those of a call: "dial tcp: lookup x: no such host".
// Called on the loop, and resumes there. `cancellation` may be null.
Task<CallResult<std::vector<std::string>>> addresses_of(EventLoop& loop, std::string host, Millis timeout,
                                                        std::shared_ptr<Cancellation> cancellation);

}  // namespace holdfast::net
