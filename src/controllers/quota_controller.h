// Keeps the status of ResourceQuotas, controller "resourcequota": what is hard, and what is used. Admission charges
// what is written (write/quota.h); this counts again when a quota is created or changed, when something that it counts
// is deleted or changed, and a moment after every charge, in case its write failed.
//
// Follows quotas, and of everything else only the kinds that some quota counts.
#pragma once

#include <memory>

#include "api/api.h"
#include "base/clock.h"
#include "base/task.h"
#include "controllers/pause.h"
#include "net/net.h"
#include "own_calls/own_calls.h"

namespace holdfast::controllers {

class QuotaController {
 public:
  QuotaController(api::Api& api, net::EventLoop& loop, const Clock& clock, const own_calls::OwnCalls& calls,
                  Pause& pause);
  ~QuotaController();

  void start();
  Task<void> close(Executor& executor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::controllers
