// Type checking of ValidatingAdmissionPolicies, controller "validatingadmissionpolicy-status-controller": a policy's
// status says what the types of the objects it matches have to say about its expressions, and of which generation.
#pragma once

#include <memory>

#include "api/api.h"
#include "base/task.h"
#include "controllers/pause.h"
#include "net/net.h"
#include "own_calls/own_calls.h"

namespace holdfast::controllers {

// Runs on one loop, follows the policies by watch.
class PolicyStatus {
 public:
  PolicyStatus(api::Api& api, net::EventLoop& loop, const own_calls::OwnCalls& calls, Pause& pause);
  ~PolicyStatus();

  void start();
  Task<void> close(Executor& executor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::controllers
