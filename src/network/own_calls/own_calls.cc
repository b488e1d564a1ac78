#include "own_calls/own_calls.h"

#include <algorithm>

#include "base/api_version.h"
#include "base/call_limits.h"
#include "net/local.h"

namespace holdfast::own_calls {
namespace {

constexpr net::Millis kTimeout{limits::kRequestSeconds * 1000};

}  // namespace

const auth::UserRef& server_user() {
  static const auth::UserRef user = std::make_shared<const auth::UserInfo>(auth::UserInfo{
      .name = std::string(kServerUser), .uid = {}, .groups = {std::string(auth::kMastersGroup)}, .extra = {}});
  return user;
}

std::string collection_path(const types::Resource& resource, std::string_view ns) {
  std::string path = api_path(resource.group, resource.version);
  if (resource.namespaced && !ns.empty()) path.append("/namespaces/").append(ns);
  return path.append("/").append(resource.plural);
}

Task<Result<net::ClientResponse>> OwnCalls::call(std::string method, std::string target, std::string body,
                                                 std::string content_type) const {
  net::ClientRequest request;
  request.method = std::move(method);
  request.target = std::move(target);
  if (!body.empty()) request.headers.emplace_back("content-type", std::move(content_type));
  request.body = std::move(body);
  return send(std::move(request));
}

Task<Result<net::ClientResponse>> OwnCalls::send(net::ClientRequest request) const {
  const auto is_accept = [](const auto& header) { return header.first == "accept"; };
  if (std::none_of(request.headers.begin(), request.headers.end(), is_accept)) {
    request.headers.emplace_back("accept", "application/json");
  }
  if (request.timeout.count() == 0) request.timeout = kTimeout;
  return net::call_handler_within(
      *loop_,
      [handler = handler_](net::Request& asked, net::Response& answer) {
        return handler(asked, answer, server_user());
      },
      std::move(request), limits::kOwnAnswerBytes);
}

}  // namespace holdfast::own_calls
