// Repairs Service allocations in etcd, like kube-apiserver: at startup and every three minutes.
#pragma once

#include "api/api.h"
#include "base/task.h"
#include "base/task_group.h"
#include "net/net.h"

namespace holdfast::server {

class ServiceRepair {
 public:
  ServiceRepair(api::Api& api, net::EventLoop& loop) : api_(api), loop_(loop), tasks_(loop, "service repair") {}

  // Repairs once; on the loop. Failures are only logged: the next run may succeed, and a server without repairs is
  // better than none.
  Task<void> run();
  // Then runs periodically.
  void start();
  Task<void> close(Executor& executor) { return tasks_.close(executor); }

 private:
  Task<void> keep_running();

  api::Api& api_;
  net::EventLoop& loop_;
  TaskGroup tasks_;
};

}  // namespace holdfast::server
