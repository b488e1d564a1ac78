// The server as a client of its own API: requests made as system:apiserver, without a connection.
//
// Changes made by controllers, bootstrapping and the API itself are processed like any other request, so they are
// validated, admitted and seen by watchers as well.
//
// An OwnCalls is a cheap value, bound to one event loop: calls run and resume there. It is valid as long as the API
// behind its handler.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "auth/auth.h"
#include "base/error.h"
#include "base/task.h"
#include "net/net.h"
#include "types/types.h"

namespace holdfast::own_calls {

inline constexpr std::string_view kServerUser = "system:apiserver";
// system:apiserver, in group system:masters.
const auth::UserRef& server_user();

// "/apis/apps/v1/namespaces/NS/deployments"; for a namespaced resource in one namespace, otherwise for the whole
// collection.
std::string collection_path(const types::Resource& resource, std::string_view ns);

// Serves a request on behalf of a user.
using Handler = std::function<Task<void>(net::Request&, net::Response&, auth::UserRef)>;

class OwnCalls {
 public:
  OwnCalls(Handler handler, net::EventLoop& loop) : handler_(std::move(handler)), loop_(&loop) {}

  // Fails only if the target is malformed; every other response has a status.
  Task<Result<net::ClientResponse>> call(std::string method, std::string target, std::string body = {},
                                         std::string content_type = "application/json") const;
  // The same with the caller's headers. Responses are JSON unless it asks for something else.
  Task<Result<net::ClientResponse>> send(net::ClientRequest request) const;

 private:
  Handler handler_;
  net::EventLoop* loop_;
};

}  // namespace holdfast::own_calls
