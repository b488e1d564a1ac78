// Watches a cache for as long as its owner runs: every object first, then each change.
//
//   Follower pods{tasks};
//   tasks.run(pods.run(cache, {.see = [](std::span<const Delivery> events) { ... }}));
//   ...
//   co_await tasks.close(executor, [&] { pods.cancel(); });
//
// A watch that ends (the cache listed its objects again, or the follower was too slow) is started again, and everything
// is delivered once more; `begin` announces it. An exception of `see` is logged and counted, and starts the watch again
// a little later. Between two batches the loop runs other work.
//
// Belongs to the loop of its tasks, and must outlive run().
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "base/task.h"
#include "base/task_group.h"
#include "cache/cache.h"

namespace holdfast::cache {

class Follower {
 public:
  struct Following {
    // Initial or Now. Now delivers changes only: what happened before `begin` is the owner's business.
    WatchRequest::Start start = WatchRequest::Start::Initial;
    // Also a bookmark with initial_events_end after the initial state.
    bool marks_initial_end = false;
    size_t batch = 256;  // Most deliveries per call of `see`.

    std::function<bool()> wanted = {};  // Asked before each watch; false ends run().
    std::function<void()> begin = {};   // A watch has started; its deliveries follow.
    std::function<void(std::span<const Delivery> events)> see;
  };

  explicit Follower(TaskGroup& tasks) : tasks_(tasks) {}
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // Runs until the tasks close or the cache is no longer wanted. One call at a time.
  Task<void> run(Cache& cache, Following following);

  // Ends the current watch, if any. run() starts another unless it is to end.
  void cancel();
  bool watching() const { return watcher_.has_value(); }
  // Whether the current watch has deliveries that `see` has not got yet.
  bool pending() const { return watcher_ && watcher_->pending(); }

 private:
  Task<void> follow(const Following& following);

  TaskGroup& tasks_;
  std::optional<Watcher> watcher_;
};

// For Following::see: calls see(const Delivery&) for each.
template <class See>
auto one_by_one(See see) {
  return [see = std::move(see)](std::span<const Delivery> events) {
    for (const Delivery& event : events) see(event);
  };
}

}  // namespace holdfast::cache
