// What one watcher has not received yet: the rest of its initial state, then a queue of changes.
#pragma once

#include <atomic>
#include <coroutine>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cache/event.h"
#include "cache/selector_index.h"

namespace holdfast::cache {

// Watchers and their readers are scattered in memory and usually not in the CPU cache: prefetch what is needed soon.
inline constexpr size_t kPrefetchDistance = 3;
inline void prefetch_ahead(const void* start) {
  constexpr size_t kLine = 64, kHotBytes = 192;
  for (size_t at = 0; at < kHotBytes; at += kLine) __builtin_prefetch(static_cast<const char*>(start) + at, 1);
}

// What to wake once no lock is held. Coroutines of one executor are resumed together: an event for a thousand watchers
// costs one post, not a thousand.
class WakeList {
 public:
  // The coroutines of one executor.
  struct Resumption {
    Executor* where;
    std::vector<std::coroutine_handle<>> handles = {};
    const Event* last = nullptr;
    std::shared_ptr<const Event> shared = nullptr;

    // The event with a reference count of its own for this executor: threads that update the same count concurrently
    // slow each other down.
    const std::shared_ptr<const Event>& share(const std::shared_ptr<const Event>& event);
  };

  void push_back(std::function<void(bool)> callback) { callbacks_.push_back(std::move(callback)); }
  Resumption& at(Executor& where);
  void run();

 private:
  std::vector<std::function<void(bool)>> callbacks_;
  std::vector<Resumption> resumptions_;  // There are few executors.
};

struct WatcherState {
  WatcherState(WatchRequest r, size_t queue_events, std::shared_ptr<SharedCounts> c)
      : limit_(queue_events),
        base_limit_(queue_events),
        takes_all_(r.selector.empty()),
        request(std::move(r)),
        selector_index(SelectorIndex::of(request.selector)),
        counts(std::move(c)) {}

  // --- Called by the cache, under its lock ---
  // `batch` identifies changes that arrived together. A watcher that had kept up takes all of them, however many (the
  // store's watch may have been lost for a while); one that was already behind is closed. `routed` means that the event
  // was looked up by this watcher's route.
  void offer(const std::shared_ptr<const Event>& event, bool routed, uint64_t batch, Bodies& bodies, const Codec& codec,
             WakeList& wakes);
  // Dropped if the queue is full: the next bookmark supersedes it.
  void bookmark(Revision revision, WakeList& wakes);
  void finish(Watcher::End why, WakeList& wakes);

  // --- Called by the follower ---
  // Takes the available events. False if there are none but the watch continues.
  bool take(size_t max, std::vector<Delivery>& out);
  Watcher::End end() const;
  bool pending() const;
  // Takes the available events and returns false, or resumes `follower` once there is one, which is then in `out`.
  bool wait(Executor& executor, std::coroutine_handle<> follower, size_t max, std::vector<Delivery>& out);
  // Called when the follower resumes.
  void resumed(size_t max, std::vector<Delivery>& out);

  // Nothing up to here is delivered. Next to the other members touched by offer(), which may run thousands of times per
  // event.
  Revision after;

 private:
  mutable std::mutex mutex_;
  // The reader, while it waits because nothing is queued.
  std::coroutine_handle<> waiting_;
  Executor* waiting_on_ = nullptr;
  std::vector<Delivery>* waiting_out_ = nullptr;
  // Written under the lock, or by the follower.
  std::atomic<bool> handed_{false};  // An event was put into waiting_out_ and the follower has not resumed yet.
  std::atomic<Watcher::End> end_{Watcher::End::Open};
  size_t limit_;
  const size_t base_limit_;  // Limit of the queue without initial state or replay.
  const bool takes_all_;     // Everything in its scope.
  std::vector<Delivery> queue_;
  size_t taken_ = 0;          // Number taken from the front, by a follower that takes a few at a time.
  uint64_t batch_ = 0;        // The last batch offered ...
  size_t queued_before_ = 0;  // ... and the queue length before it.
  uint64_t burst_ = 0;        // The batch that raised the limit.

 public:
  // Constant after construction.
  const WatchRequest request;
  const std::unique_ptr<const SelectorIndex> selector_index;  // Null if the selector is short.
  const std::shared_ptr<SharedCounts> counts;
  std::weak_ptr<struct CacheState> cache;
  std::string route;  // Which changes are relevant: see CacheState.

  // Used by the cache, under its lock.
  std::chrono::steady_clock::time_point last_bookmark;
  bool final_bookmark_sent = false;  // The bookmark before the deadline was sent.

  // Used by the follower.
  bool initial_left = false;
  Snapshot initial;
  std::string initial_from;

 private:
  friend struct CacheState;
  bool selected(const Entry& entry) const {
    if (selector_index == nullptr) return request.selector.matches(entry);
    return selector_index->fields_hold(entry) && selector_index->labels_hold(entry.labels());
  }
  void push(Delivery delivery, const std::shared_ptr<const Event>& event, uint64_t batch, WakeList& wakes);
  // Queues the delivery, or hands it to the waiting follower. `event` may be null.
  void put(Delivery delivery, const std::shared_ptr<const Event>& event, WakeList& wakes);
  void take_initial(size_t max, std::vector<Delivery>& out);
  bool take_queued(size_t max, std::vector<Delivery>& out);
  void wake(WakeList& wakes);
  bool has_ended() const { return end_.load(std::memory_order_relaxed) != Watcher::End::Open; }
  size_t queue_length() const { return queue_.size() - taken_; }
  size_t queued() const { return queue_length() + (handed_.load(std::memory_order_relaxed) ? 1 : 0); }
};

}  // namespace holdfast::cache
