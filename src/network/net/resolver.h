// Name lookups that do not block a loop, each with a deadline. Private to the module.
//
// getaddrinfo() has no deadline and cannot be interrupted. It runs on a thread of its own, at most one per name and
// limits::kNameLookups in all; the callers, who share the result of one lookup, wait no longer than they want to. A
// lookup that nobody waits for any more keeps its thread until it ends, so a slow name delays only those who ask for
// it. Nobody waits for the threads when the process ends.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/call_limits.h"
#include "net/net.h"
#include "net/wire.h"

namespace holdfast::net::detail {

class Resolver {
 public:
  using Lookup = std::function<CallResult<std::vector<Endpoint>>(const std::string& host)>;
  // `lookup` blocks; it is called on several threads, which may outlive the Resolver. The ports of its result are
  // ignored.
  explicit Resolver(Lookup lookup, size_t max_threads = limits::kNameLookups);
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // The addresses of a host. Fails with "i/o timeout", and when cancelled (`cancellation` may be null). Called on the
  // loop, and resumes there.
  Task<CallResult<std::vector<Endpoint>>> find(EventLoop& loop, std::string host, uint16_t port, Millis timeout,
                                               std::shared_ptr<Cancellation> cancellation);

  // Of the process; never destroyed.
  static Resolver& shared();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::net::detail
