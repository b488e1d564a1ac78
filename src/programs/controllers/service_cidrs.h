// Protection of ServiceCIDRs, controller "service-cidr-controller": sets their Ready condition, and holds the deletion
// of one, with a finalizer, until no address that is in use would be left without a range.
#pragma once

#include <memory>

#include "api/api.h"
#include "base/clock.h"
#include "base/task.h"
#include "controllers/standby.h"
#include "net/net.h"
#include "own_calls/own_calls.h"

namespace holdfast::controllers {

// Runs on one loop; watches ServiceCIDRs and IPAddresses.
class ServiceCidrs {
 public:
  ServiceCidrs(api::Api& api, net::EventLoop& loop, const Clock& clock, const own_calls::OwnCalls& calls,
               Standby& standby);
  ~ServiceCidrs();

  void start();
  Task<void> close(Executor& executor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::controllers
