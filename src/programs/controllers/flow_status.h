// The Dangling condition of FlowSchemas: whether the referenced priority level exists. As in kube-apiserver, this
// always runs, regardless of the enabled controllers (k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go).
#pragma once

#include <memory>

#include "api/api.h"
#include "base/clock.h"
#include "base/task.h"
#include "net/net.h"
#include "own_calls/own_calls.h"

namespace holdfast::controllers {

// Runs on one loop; watches schemas and levels.
class FlowStatus {
 public:
  FlowStatus(api::Api& api, net::EventLoop& loop, const Clock& clock, const own_calls::OwnCalls& calls);
  ~FlowStatus();

  void start();
  Task<void> close(Executor& executor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::controllers
