// Token Secrets, controller "serviceaccount-token": stores the account's token in Secrets of type
// kubernetes.io/service-account-token, and deletes them when the account is deleted.
#pragma once

#include <memory>
#include <string>

#include "api/api.h"
#include "base/task.h"
#include "controllers/standby.h"
#include "net/net.h"
#include "own_calls/own_calls.h"
#include "tokens/tokens.h"

namespace holdfast::controllers {

// Runs on one loop; watches Secrets and ServiceAccounts. `signer` must outlive it.
class AccountTokens {
 public:
  AccountTokens(api::Api& api, net::EventLoop& loop, const own_calls::OwnCalls& calls, Standby& standby,
                const tokens::Signer& signer, std::string root_ca_pem);
  ~AccountTokens();

  void start();
  Task<void> close(Executor& executor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::controllers
