// The server as a client of its own API: requests that it makes as system:apiserver, without a connection.
//
// What controllers, bootstrapping and the API itself change goes the way of every other request, so it is validated,
// admitted and seen by watchers alike.
//
// An OwnCalls is a cheap value, bound to one event loop: calls run there and resume there. It is valid as long as the
// API behind its handler.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "auth/auth.h"
#include "base/error.h"
#include "base/task.h"
#include "net/net.h"

namespace holdfast::own_calls {

inline constexpr std::string_view kServerUser = "system:apiserver";
// That name, in group system:masters.
const auth::UserRef& server_user();

// Serves a request of a user who may do everything.
using Handler = std::function<Task<void>(net::Request&, net::Response&, auth::UserRef)>;

class OwnCalls {
 public:
  OwnCalls(Handler handler, net::EventLoop& loop) : handler_(std::move(handler)), loop_(&loop) {}

  // An error says that the target is malformed; every other answer has a status.
  Task<Result<net::ClientResponse>> call(std::string method, std::string target, std::string body = {},
                                         std::string content_type = "application/json") const;
  // The same with headers of the caller's own. Answers are JSON unless it asks for something else.
  Task<Result<net::ClientResponse>> send(net::ClientRequest request) const;

 private:
  Handler handler_;
  net::EventLoop* loop_;
};

}  // namespace holdfast::own_calls
