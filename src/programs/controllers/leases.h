// Controller "lease-cleanup": deletes expired identity Leases of stopped API servers in kube-system. kube-apiserver
// does this itself, so it keeps running while a kube-controller-manager is active.
#pragma once

#include <memory>

#include "api/api.h"
#include "base/clock.h"
#include "base/task.h"
#include "net/net.h"
#include "own_calls/own_calls.h"

namespace holdfast::controllers {

class LeaseCleaner {
 public:
  LeaseCleaner(api::Api& api, net::EventLoop& loop, const Clock& clock, const own_calls::OwnCalls& calls);
  ~LeaseCleaner();

  void start();
  Task<void> close(Executor& executor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::controllers
