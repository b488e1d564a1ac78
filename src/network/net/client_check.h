// Whether a client can be made with these options, before anything is connected.
#pragma once

#include "net/net.h"

namespace holdfast::net {

// The error names what cannot be used: the certificate, its key or the CA bundle.
Result<Unit> check_client(const ClientOptions& options);

}  // namespace holdfast::net
