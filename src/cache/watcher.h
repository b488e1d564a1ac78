// What one watcher has not been given yet: the rest of its initial state, then a queue of changes.
#pragma once

#include <atomic>
#include <coroutine>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cache/event.h"

namespace holdfast::cache {

// Watchers and their readers are scattered in memory that is no longer in the CPU cache: what is needed soon is
// asked for early.
inline constexpr size_t kFetchedAhead = 3;
inline void fetch_ahead(const void* start) {
  constexpr size_t kLine = 64, kHotBytes = 192;
  for (size_t at = 0; at < kHotBytes; at += kLine) __builtin_prefetch(static_cast<const char*>(start) + at, 1);
}

// Whom to wake once no lock is held. Coroutines of one executor go there together: an event for a thousand watchers
// costs it one post, not a thousand.
class Wakes {
 public:
  // What goes to one executor.
  struct Resumption {
    Executor* where;
    std::vector<std::coroutine_handle<>> handles = {};
    const Event* last = nullptr;
    std::shared_ptr<const Event> shared = nullptr;

    // The event, counted for this executor alone: threads that count the same thing at the same time wait for each
    // other.
    const std::shared_ptr<const Event>& share(const std::shared_ptr<const Event>& event);
  };

  void push_back(std::function<void(bool)> callback) { callbacks_.push_back(std::move(callback)); }
  Resumption& at(Executor& where);
  void run();

 private:
  std::vector<std::function<void(bool)>> callbacks_;
  std::vector<Resumption> resumptions_;  // Executors are few.
};

struct WatcherState {
  WatcherState(WatchRequest r, size_t queue_events, std::shared_ptr<SharedCounts> c)
      : limit_(queue_events),
        base_limit_(queue_events),
        takes_all_(r.selector.empty()),
        request(std::move(r)),
        counts(std::move(c)) {}

  // --- By the cache, under its lock ---
  // `batch`: changes that came at once. A watcher that had kept up takes all of them, however many (the store's
  // watch may have been lost for a while); one that was behind already is closed. `routed`: the event was looked up by
  // this watcher's route.
  void offer(const std::shared_ptr<const Event>& event, bool routed, uint64_t batch, Bodies& bodies, const Codec& codec,
             Wakes& wakes);
  // Dropped when the queue is full: the next one says as much.
  void bookmark(Revision revision, Wakes& wakes);
  void finish(Watcher::End why, Wakes& wakes);

  // --- Called by the follower ---
  // The available events. False: none, but the watch continues.
  bool take(size_t max, std::vector<Delivery>& out);
  Watcher::End end() const;
  bool pending() const;
  // Takes what there is (false), or resumes `follower` once there is something, of which the first is in `out` then.
  bool wait(Executor& executor, std::coroutine_handle<> follower, size_t max, std::vector<Delivery>& out);
  // The follower continues.
  void resumed(size_t max, std::vector<Delivery>& out);

  // Nothing up to here is delivered. It is next to what else an offer touches: there may be thousands for an event.
  Revision after;

 private:
  mutable std::mutex mutex_;
  // The reader that waits because nothing is queued.
  std::coroutine_handle<> waiting_;
  Executor* waiting_on_ = nullptr;
  std::vector<Delivery>* waiting_out_ = nullptr;
  // Written under the lock, or by the follower.
  std::atomic<bool> handed_{false};  // One was put into waiting_out_ and its owner has not gone on yet.
  std::atomic<Watcher::End> end_{Watcher::End::Open};
  size_t limit_;
  const size_t base_limit_;  // Of the queue, when there is no initial state or replay.
  const bool takes_all_;     // Of its scope.
  std::vector<Delivery> queue_;
  size_t taken_ = 0;          // From its front, by a follower who takes a few at a time.
  uint64_t batch_ = 0;        // The last one offered ...
  size_t queued_before_ = 0;  // ... and how much was queued when it came.
  uint64_t burst_ = 0;        // The one that raised the limit.

 public:
  // Constant after construction.
  const WatchRequest request;
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
  void push(Delivery delivery, const std::shared_ptr<const Event>& event, uint64_t batch, Wakes& wakes);
  // Queues it, or hands it to the waiting follower. `event` may be null.
  void put(Delivery delivery, const std::shared_ptr<const Event>& event, Wakes& wakes);
  void take_initial(size_t max, std::vector<Delivery>& out);
  bool take_queued(size_t max, std::vector<Delivery>& out);
  void wake(Wakes& wakes);
  bool has_ended() const { return end_.load(std::memory_order_relaxed) != Watcher::End::Open; }
  size_t waits_in_queue() const { return queue_.size() - taken_; }
  size_t queued() const { return waits_in_queue() + (handed_.load(std::memory_order_relaxed) ? 1 : 0); }
};

}  // namespace holdfast::cache
