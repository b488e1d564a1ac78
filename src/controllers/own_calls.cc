#include "controllers/own_calls.h"

namespace holdfast::controllers {

Task<Result<net::ClientResponse>> OwnCalls::call(std::string method, std::string target, std::string body,
                                                 std::string content_type) const {
  static const auto user = std::make_shared<const auth::UserInfo>(
      auth::UserInfo{.name = "system:apiserver", .uid = {}, .groups = {std::string(auth::kMastersGroup)}, .extra = {}});
  const net::Handler handler = [this](net::Request& request, net::Response& response) {
    return api_.handle_own(request, response, user);
  };
  net::ClientRequest request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.headers = {{"accept", "application/json"}};
  if (!body.empty()) request.headers.emplace_back("content-type", std::move(content_type));
  request.body = std::move(body);
  co_return co_await net::call_handler(loop_, handler, std::move(request));
}

}  // namespace holdfast::controllers
