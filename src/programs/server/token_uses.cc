#include "server/token_uses.h"

#include "base/log.h"
#include "own_calls/requests.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::server {
namespace {

constexpr std::string_view kServerManager = "kube-apiserver";
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
  Arena arena;
  MapBuilder labels(arena), metadata(arena), patch(arena);
  labels.add(kLastUsed, Value::string(use.day));
  metadata.add("uid", Value::string(use.uid));
  metadata.add("labels", labels.build());
  patch.add("metadata", metadata.build());
  static const types::Resource& secrets = *types::find_resource("", "v1", "secrets");
  const Result<own_calls::Answer> answer = co_await own_calls::send(
      calls_,
      own_calls::Request::merge_patch(own_calls::object(secrets, use.ns, use.secret), patch.build(), kServerManager));
  if (!answer || !answer->succeeded()) {
    log::warning("cannot label a Secret with the day its token was used",
                 {{"secret", use.ns + "/" + use.secret}, {"answer", text_of(answer)}});
    co_await tasks_.sleep(kPauseAfterFailure);
  }
  const std::lock_guard lock(mutex_);
  under_way_.erase(use.ns + "/" + use.secret);
}

}  // namespace holdfast::server
