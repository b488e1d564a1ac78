// When tokens in Secrets were last used: the label kubernetes.io/legacy-token-last-used, a day, by which
// kube-controller-manager finds the tokens that nobody needs any more.
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

// A Secret whose token was used on a day that its label does not say.
struct TokenUse {
  std::string ns, secret, uid;
  std::string day;  // 2026-11-16
};

class TokenUses {
 public:
  TokenUses(api::Api& api, net::EventLoop& loop);

  // Writes the label, and returns before that is done. Does nothing while that Secret's label is being written, and for
  // a minute after that failed. Any thread.
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
