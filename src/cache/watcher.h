// What one watcher has not been given yet: the rest of its initial state, then a queue of changes.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cache/event.h"

namespace holdfast::cache {

// Callbacks to run once no lock is held.
using Wakes = std::vector<std::function<void(bool)>>;

struct WatcherState {
  WatcherState(WatchRequest r, size_t queue_events, std::shared_ptr<SharedCounts> c)
      : request(std::move(r)), base_limit(queue_events), counts(std::move(c)) {}

  // --- By the cache, under its lock ---
  // `batch`: changes that came at once. Whoever kept up before takes all of them, however many (the store's watch may
  // have been lost for a while); whoever was behind already is closed.
  void offer(const std::shared_ptr<const Event>& event, uint64_t batch, Bodies& bodies, const Codec& codec,
             Wakes& wakes);
  // Dropped when the queue is full: the next one says as much.
  void bookmark(Revision revision, Wakes& wakes);
  void finish(Watcher::End why, Wakes& wakes);

  // --- By whoever follows ---
  std::vector<Delivery> take(size_t max);
  bool ended() const;
  Watcher::End end() const;
  bool pending() const;
  void wait(std::function<void(bool)> done);

  // Constant after construction.
  const WatchRequest request;
  const size_t base_limit;  // Of the queue, when there is no initial state or replay.
  const std::shared_ptr<SharedCounts> counts;
  std::weak_ptr<struct CacheState> cache;
  std::string route;  // Which changes can matter: see CacheState.
  Revision after;     // Nothing up to here is delivered.

  // Of the cache, under its lock.
  std::chrono::steady_clock::time_point last_bookmark;
  bool last_call_made = false;  // The bookmark before the deadline.

  // Of the follower.
  Snapshot initial;
  bool initial_left = false;
  std::string initial_from;

 private:
  friend struct CacheState;
  void push(Delivery delivery, uint64_t batch, Wakes& wakes);

  mutable std::mutex mutex_;
  std::deque<Delivery> queue_;
  size_t limit_ = base_limit;
  uint64_t batch_ = 0;        // The last one offered ...
  size_t queued_before_ = 0;  // ... and how much was queued when it came.
  uint64_t burst_ = 0;        // The one that raised the limit.
  Watcher::End end_ = Watcher::End::Open;
  std::function<void(bool)> waiting_;
};

}  // namespace holdfast::cache
