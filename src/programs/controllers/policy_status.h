// Type checking of ValidatingAdmissionPolicies, controller "validatingadmissionpolicy-status-controller": records in a
// policy's status the type errors of its expressions for the types it matches, and the observed generation.
#pragma once

#include <memory>

#include "api/api.h"
#include "base/task.h"
#include "controllers/standby.h"
#include "net/net.h"
#include "own_calls/own_calls.h"

namespace holdfast::controllers {

// Runs on one loop; watches the policies.
class PolicyStatus {
 public:
  PolicyStatus(api::Api& api, net::EventLoop& loop, const own_calls::OwnCalls& calls, Standby& standby);
  ~PolicyStatus();

  void start();
  Task<void> close(Executor& executor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::controllers
