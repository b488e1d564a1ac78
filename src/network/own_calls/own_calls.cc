#include "own_calls/own_calls.h"

#include <algorithm>
#include <list>
#include <mutex>

#include "base/api_version.h"
#include "base/call_limits.h"
#include "net/local.h"
#include "own_calls/requests.h"

namespace holdfast::own_calls {
namespace {

constexpr net::Millis kTimeout{limits::kRequestSeconds * 1000};

// The calls under way, for cancel_calls().
class UnderWay {
 public:
  UnderWay(const net::EventLoop& loop, std::shared_ptr<net::Cancellation> cancellation) {
    const std::lock_guard lock(mutex());
    mine_ = all().insert(all().end(), {&loop, std::move(cancellation)});
  }
  ~UnderWay() {
    const std::lock_guard lock(mutex());
    all().erase(mine_);
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

  static void cancel(net::EventLoop& loop) {
    const std::lock_guard lock(mutex());
    for (const One& one : all()) {
      if (one.loop == &loop) loop.post([cancellation = one.cancellation] { cancellation->cancel(); });
    }
  }

 private:
  struct One {
    const net::EventLoop* loop;
    std::shared_ptr<net::Cancellation> cancellation;
  };
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::list<One>& all() {
    static std::list<One> calls;
    return calls;
  }

  std::list<One>::iterator mine_;
};

Task<Result<net::ClientResponse>> perform(Handler handler, net::EventLoop& loop, net::ClientRequest request) {
  if (request.timeout.count() == 0) request.timeout = kTimeout;
  request.cancellation = std::make_shared<net::Cancellation>();
  const UnderWay under_way(loop, request.cancellation);
  co_return co_await net::call_handler_within(
      loop, [&handler](net::Request& asked, net::Response& answer) { return handler(asked, answer, server_user()); },
      std::move(request), limits::kOwnAnswerBytes);
}

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
  return perform(handler_, *loop_, std::move(request));
}

void cancel_calls(net::Loops& loops) {
  for (size_t i = 0; i < loops.count(); ++i) UnderWay::cancel(loops.at(i));
}

}  // namespace holdfast::own_calls
