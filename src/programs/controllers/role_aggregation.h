// ClusterRole aggregation, controller "clusterrole-aggregation-controller": a role with an aggregationRule gets the
// rules of all roles that match its selectors. Without it, admin, edit and view are empty.
#pragma once

#include <memory>

#include "api/api.h"
#include "base/task.h"
#include "controllers/standby.h"
#include "net/net.h"
#include "own_calls/own_calls.h"

namespace holdfast::controllers {

// Runs on one loop; watches ClusterRoles.
class RoleAggregation {
 public:
  RoleAggregation(api::Api& api, net::EventLoop& loop, const own_calls::OwnCalls& calls, Standby& standby);
  ~RoleAggregation();

  void start();
  Task<void> close(Executor& executor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::controllers
