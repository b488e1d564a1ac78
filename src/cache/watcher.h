// What one watcher has not been given yet: the rest of its initial state, then a queue of changes.
#pragma once

#include <coroutine>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cache/event.h"

namespace holdfast::cache {

// Whom to wake once no lock is held. Coroutines of one executor go there together: an event for a thousand watchers
// costs it one post, not a thousand.
class Wakes {
 public:
  void push_back(std::function<void(bool)> callback) { callbacks_.push_back(std::move(callback)); }
  void resume(Executor& where, std::coroutine_handle<> what);
  void run();

 private:
  struct Resumption {
    Executor* where;
    std::vector<std::coroutine_handle<>> handles;
  };
  std::vector<std::function<void(bool)>> callbacks_;
  std::vector<Resumption> resumptions_;  // Executors are few.
};

struct WatcherState {
  WatcherState(WatchRequest r, size_t queue_events, std::shared_ptr<SharedCounts> c)
      : limit_(queue_events), request(std::move(r)), base_limit(queue_events), counts(std::move(c)) {}

  // --- By the cache, under its lock ---
  // `batch`: changes that came at once. Whoever kept up before takes all of them, however many (the store's watch may
  // have been lost for a while); whoever was behind already is closed.
  void offer(const std::shared_ptr<const Event>& event, uint64_t batch, Bodies& bodies, const Codec& codec,
             Wakes& wakes);
  // Dropped when the queue is full: the next one says as much.
  void bookmark(Revision revision, Wakes& wakes);
  void finish(Watcher::End why, Wakes& wakes);

  // --- By whoever follows ---
  // What there is. False: nothing, but the watch goes on.
  bool take(size_t max, std::vector<Delivery>& out);
  Watcher::End end() const;
  bool pending() const;
  // Resumes `follower` once there is something to take. False: there is already.
  bool wait(Executor& executor, std::coroutine_handle<> follower);

  // Nothing up to here is delivered. It stands beside what else an offer touches: there may be thousands for an event.
  Revision after;

 private:
  mutable std::mutex mutex_;
  std::vector<Delivery> queue_;
  size_t taken_ = 0;  // From its front, by a follower who takes a few at a time.
  size_t limit_;
  uint64_t batch_ = 0;        // The last one offered ...
  size_t queued_before_ = 0;  // ... and how much was queued when it came.
  uint64_t burst_ = 0;        // The one that raised the limit.
  Watcher::End end_ = Watcher::End::Open;
  std::coroutine_handle<> waiting_;
  Executor* waiting_on_ = nullptr;

 public:
  // Constant after construction.
  const WatchRequest request;
  const size_t base_limit;  // Of the queue, when there is no initial state or replay.
  const std::shared_ptr<SharedCounts> counts;
  std::weak_ptr<struct CacheState> cache;
  std::string route;  // Which changes can matter: see CacheState.

  // Of the cache, under its lock.
  std::chrono::steady_clock::time_point last_bookmark;
  bool last_call_made = false;  // The bookmark before the deadline.

  // Of the follower.
  bool initial_left = false;
  Snapshot initial;
  std::string initial_from;

 private:
  friend struct CacheState;
  void push(Delivery delivery, uint64_t batch, Wakes& wakes);
  void take_initial(size_t max, std::vector<Delivery>& out);
  void wake(Wakes& wakes);
  size_t queued() const { return queue_.size() - taken_; }
};

}  // namespace holdfast::cache
