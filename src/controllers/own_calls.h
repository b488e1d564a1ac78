// The server's own calls to its API, as system:apiserver, without a connection.
#pragma once

#include <string>

#include "api/api.h"
#include "base/task.h"
#include "net/net.h"

namespace holdfast::controllers {

class OwnCalls {
 public:
  OwnCalls(api::Api& api, net::EventLoop& loop) : api_(api), loop_(loop) {}

  Task<Result<net::ClientResponse>> call(std::string method, std::string target, std::string body = {},
                                         std::string content_type = "application/json") const;

 private:
  api::Api& api_;
  net::EventLoop& loop_;
};

}  // namespace holdfast::controllers
