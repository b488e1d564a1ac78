// Maintains the status of ResourceQuotas (hard and used), controller "resourcequota". Admission charges writes
// (write/quota.h); this recalculates usage when a quota is created or changed, when a counted object is deleted or
// changed, and shortly after every charge, in case its write failed.
//
// Watches quotas, and only those kinds that some quota counts.
#pragma once

#include <memory>

#include "api/api.h"
#include "base/clock.h"
#include "base/task.h"
#include "controllers/standby.h"
#include "net/net.h"
#include "own_calls/own_calls.h"

namespace holdfast::controllers {

class QuotaController {
 public:
  QuotaController(api::Api& api, net::EventLoop& loop, const Clock& clock, const own_calls::OwnCalls& calls,
                  Standby& standby);
  ~QuotaController();

  void start();
  Task<void> close(Executor& executor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::controllers
