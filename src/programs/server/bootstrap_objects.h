// The bootstrap objects that every server has, written through the API as its own user: all of them at startup; those
// that requests or nodes depend on are recreated when deleted, like by kube-apiserver's controllers.
#pragma once

#include <span>

#include "api/api.h"
#include "base/clock.h"
#include "base/task.h"
#include "base/task_group.h"
#include "bootstrap/bootstrap.h"
#include "net/net.h"
#include "store/store.h"

namespace holdfast::server {

class BootstrapObjects {
 public:
  // `alone` means that no other server uses the store. All other arguments must outlive this object.
  BootstrapObjects(api::Api& api, store::Store& store, net::Loops& loops, bootstrap::Options options, bool alone,
                   const Clock& clock = system_clock());

  // Creates missing objects, on all loops, and repairs roles and bindings. The caches must be ready. Resumes on the
  // first loop. Failures are only logged: a server without some of the objects is better than none.
  Task<void> make();
  // Then periodically restores the Service of the server and its related objects, the ConfigMap for authentication,
  // namespaces and flow control.
  void start();
  Task<void> close(Executor& executor) { return tasks_.close(executor); }

 private:
  enum class When : uint8_t { Starting, Often, EveryMinute };
  struct Plan;

  Task<void> keep_running();
  Task<void> bring_up_to_date(When when);
  Plan plan(When when) const;
  void plan_step(Arena& arena, When when, bootstrap::Step& step, Plan& plan) const;
  void plan_removals(Arena& arena, When when, std::span<const bootstrap::Step> steps, Plan& plan) const;
  bool is_due(When when, const types::Resource& resource) const;

  api::Api& api_;
  store::Store& store_;
  net::Loops& loops_;
  const bootstrap::Options options_;
  const bool alone_;
  const Clock& clock_;
  TaskGroup tasks_;
};

}  // namespace holdfast::server
