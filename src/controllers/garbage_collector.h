// Garbage collection by ownerReferences, controller "garbage-collector": what has no owner left is deleted, an owner
// that is deleted in the foreground waits for what it owns, one that is deleted with `orphan` releases it first.
//
// Follows the caches of everything that can be deleted, custom resources included. Only objects that name owners are
// remembered (OwnerGraph). Whatever the caches suggest, the store is read before anything is deleted.
#pragma once

#include <memory>

#include "api/api.h"
#include "base/clock.h"
#include "base/task.h"
#include "controllers/pause.h"
#include "net/net.h"
#include "own_calls/own_calls.h"

namespace holdfast::controllers {

class GarbageCollector {
 public:
  GarbageCollector(api::Api& api, net::EventLoop& loop, const Clock& clock, const own_calls::OwnCalls& calls,
                   Pause& pause);
  ~GarbageCollector();

  void start();
  Task<void> close(Executor& executor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::controllers
