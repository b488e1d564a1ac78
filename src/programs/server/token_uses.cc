#include "server/token_uses.h"

#include "base/log.h"
#include "codec/codec.h"

namespace holdfast::server {
namespace {

// A label that is rejected (for example by a policy) is not retried with every request.
constexpr std::chrono::minutes kPauseAfterFailure{1};

}  // namespace

TokenUses::TokenUses(api::Api& api, net::EventLoop& loop) : calls_(api.own_calls(loop)), tasks_(loop, "token uses") {}

void TokenUses::note(TokenUse use) {
  {
    const std::lock_guard lock(mutex_);
    // Requests that arrive before the label is written need not write it again.
    if (!under_way_.insert(use.ns + "/" + use.secret).second) return;
  }
  tasks_.post([this, use = std::move(use)] { return write(use); });
}

Task<void> TokenUses::close(Executor& executor) { return tasks_.close(executor); }

Task<void> TokenUses::write(TokenUse use) {
  // With the UID, since another Secret of that name may have been created in the meantime.
  const std::string patch = R"({"metadata":{"uid":)" + codec::encode_json_string(use.uid) + R"(,"labels":{")" +
                            std::string(kLastUsed) + R"(":)" + codec::encode_json_string(use.day) + "}}}";
  const Result<net::ClientResponse> answer = co_await calls_.call(
      "PATCH", "/api/v1/namespaces/" + use.ns + "/secrets/" + use.secret + "?fieldManager=kube-apiserver", patch,
      "application/merge-patch+json");
  if (!answer || answer->status != 200) {
    log::warning("cannot label a Secret with the day its token was used",
                 {{"secret", use.ns + "/" + use.secret}, {"answer", answer ? answer->body : answer.error().message}});
    co_await tasks_.sleep(kPauseAfterFailure);
  }
  const std::lock_guard lock(mutex_);
  under_way_.erase(use.ns + "/" + use.secret);
}

}  // namespace holdfast::server
