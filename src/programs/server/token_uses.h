// Records when tokens in Secrets were last used, in the label kubernetes.io/legacy-token-last-used (a date), so that
// kube-controller-manager can find unused tokens.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "api/api.h"
#include "base/task.h"
#include "base/task_group.h"
#include "net/net.h"
#include "own_calls/own_calls.h"

namespace holdfast::server {

inline constexpr std::string_view kLastUsed = "kubernetes.io/legacy-token-last-used";

// A Secret whose token was used on a day not yet recorded in its label.
struct TokenUse {
  std::string ns, secret, uid;
  std::string day;  // 2026-11-16
};

class TokenUses {
 public:
  TokenUses(api::Api& api, net::EventLoop& loop);

  // Writes the label asynchronously. No-op while the label of that Secret is being written, and for a minute after a
  // failure. Any thread.
  void note(TokenUse use);
  Task<void> close(Executor& executor);

 private:
  Task<void> write(TokenUse use);

  const own_calls::OwnCalls calls_;
  TaskGroup tasks_;
  std::mutex mutex_;
  std::set<std::string, std::less<>> under_way_;  // "namespace/name"; guarded by mutex_.
};

}  // namespace holdfast::server
