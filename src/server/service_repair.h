// Repairs what is allocated to Services on an etcd, as kube-apiserver does: at the start and every three minutes.
#pragma once

#include "api/api.h"
#include "base/task.h"
#include "base/task_group.h"
#include "net/net.h"

namespace holdfast::server {

class ServiceRepair {
 public:
  ServiceRepair(api::Api& api, net::EventLoop& loop) : api_(api), loop_(loop), tasks_(loop, "service repair") {}

  // Once now; on the loop. What fails is logged: the next one may succeed, and a server without it is of more use than
  // none.
  Task<void> run();
  // Then from time to time.
  void start();
  Task<void> close(Executor& executor) { return tasks_.close(executor); }

 private:
  Task<void> keep_running();

  api::Api& api_;
  net::EventLoop& loop_;
  TaskGroup tasks_;
};

}  // namespace holdfast::server
