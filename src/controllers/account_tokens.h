// Tokens in Secrets, controller "serviceaccount-token": a Secret of the type kubernetes.io/service-account-token gets
// the token of the account that it names, and is deleted when that account is gone.
#pragma once

#include <memory>
#include <string>

#include "api/api.h"
#include "base/task.h"
#include "controllers/pause.h"
#include "net/net.h"
#include "own_calls/own_calls.h"
#include "tokens/tokens.h"

namespace holdfast::controllers {

// Runs on one loop, follows Secrets and ServiceAccounts by watch. `signer` outlives it.
class AccountTokens {
 public:
  AccountTokens(api::Api& api, net::EventLoop& loop, const own_calls::OwnCalls& calls, Pause& pause,
                const tokens::Signer& signer, std::string root_ca_pem);
  ~AccountTokens();

  void start();
  Task<void> close(Executor& executor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::controllers
