#include "net/lookup.h"

#include <netdb.h>

#include "base/url.h"
#include "net/resolver.h"
#include "net/wire.h"

namespace holdfast::net {

Task<CallResult<std::vector<std::string>>> addresses_of(EventLoop& loop, std::string host, Millis timeout,
                                                        std::shared_ptr<Cancellation> cancellation) {
  CallResult<std::vector<detail::Endpoint>> found = detail::lookup(host, 0, AI_NUMERICHOST);
  if (!found) {
    found = co_await detail::Resolver::shared().find(loop, std::move(host), 0, timeout, std::move(cancellation));
  }
  if (!found) co_return found.take_error();
  std::vector<std::string> addresses;
  for (const detail::Endpoint& endpoint : *found) {
    const std::string text = detail::address_text(endpoint.storage);
    addresses.emplace_back(without_brackets(std::string_view(text).substr(0, text.rfind(':'))));
  }
  co_return addresses;
}

}  // namespace holdfast::net
