// Garbage collection by ownerReferences, controller "garbage-collector": deletes objects without remaining owners,
// holds owners in foreground deletion until their dependents are gone, and releases the dependents of owners deleted
// with `orphan`.
//
// Watches the caches of all deletable resources, including custom ones. Only objects with owners are remembered
// (OwnerGraph). The store is always read before anything is deleted, no matter what the caches say.
#pragma once

#include <memory>

#include "api/api.h"
#include "base/clock.h"
#include "base/task.h"
#include "controllers/standby.h"
#include "net/net.h"
#include "own_calls/own_calls.h"

namespace holdfast::controllers {

class GarbageCollector {
 public:
  GarbageCollector(api::Api& api, net::EventLoop& loop, const Clock& clock, const own_calls::OwnCalls& calls,
                   Standby& standby);
  ~GarbageCollector();

  void start();
  Task<void> close(Executor& executor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::controllers
