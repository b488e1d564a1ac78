#include "net/client_check.h"

#include "net/tls.h"

namespace holdfast::net {

Result<Unit> check_client(const ClientOptions& options) {
  if (Result<detail::ContextPtr> context = detail::client_context(options); !context) return context.take_error();
  return Unit{};
}

}  // namespace holdfast::net
