// The internals of a Cache: the feed that follows the store, and the state it publishes to readers and watchers.
//
// The feed is one coroutine on executors.feed: list, publish, watch, apply, and again. Only the feed changes the index;
// `mutex` guards what it publishes and those who wait for it.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "cache/index.h"
#include "cache/watcher.h"

namespace holdfast::cache {

using TimePoint = std::chrono::steady_clock::time_point;

// Separate from the cache, which is released before its closers are called.
struct BackgroundWork {
  std::mutex mutex;
  uint32_t running = 0;
  std::vector<std::function<void(bool)>> closers;
};

struct CacheState : std::enable_shared_from_this<CacheState> {
  CacheState(store::Store& store, std::shared_ptr<const Codec> codec, ownership::Pool& pool, Executors executors,
             Options options, const Clock& clock);
  ~CacheState();

  static inline std::atomic<int64_t> live_count{0};  // In this process; see cache_count().
  static const std::shared_ptr<const Index>& objects_of(const Snapshot& snapshot) { return snapshot.index_; }

  // Constant after construction.
  store::Store& store;
  const std::shared_ptr<const Codec> codec;
  const Executors executors;
  const Options options;
  const Clock& clock;
  Bodies& bodies;  // Holds one reference.
  const Tree::Bytes index_bytes = std::make_shared<std::atomic<uint64_t>>(0);
  const std::shared_ptr<SharedCounts> counts = std::make_shared<SharedCounts>();
  const std::shared_ptr<BackgroundWork> background = std::make_shared<BackgroundWork>();

  std::atomic<uint64_t> decoded{0}, relists{0}, events_seen{0}, store_fallbacks{0};

  mutable std::mutex mutex;
  // --- Guarded by mutex ---
  bool ready = false;
  bool started = false, closing = false;
  bool watches_ended = false;  // Permanently.
  std::optional<Error> last_error;
  TimePoint not_ready_since;
  std::shared_ptr<const Index> index;  // As of `revision`.
  Revision revision;
  Revision oldest;  // The window contains all events after this revision.
  std::deque<std::shared_ptr<const Event>> window;
  // Sum of the former_bytes of its events, and its limits, whatever their number and age: large objects that change
  // quickly have a shorter history. Of what is older than Options::history_age, much less is kept.
  uint64_t window_former_bytes = 0;
  static constexpr uint64_t kHistoryBytes = uint64_t{256} << 20, kOldHistoryBytes = uint64_t{16} << 20;
  uint64_t renderings_kept_from = 0;  // Events before this position of the window have lost their renderings.

  struct Kept {
    Revision revision;
    std::shared_ptr<const Index> index;
  };
  std::deque<Kept> checkpoints;  // Ascending; starting points for undoing events.
  uint32_t events_since_checkpoint = 0;
  std::deque<Kept> exact;  // Requested by revision, most recently used first.

  // Each watcher is in the narrowest list that covers every change it may match: "" (all), a
  // namespace ("ns/"), a key ("ns/name"), or the value of an indexed field ("\1" position "=" value).
  std::unordered_map<std::string, std::vector<std::shared_ptr<WatcherState>>, KeyHash, std::equal_to<>> routes;
  uint64_t watcher_count = 0;
  uint64_t batch = 0;  // Number of publications.

  struct Waiter {
    Revision revision;
    TimePoint deadline;
    std::function<void(bool)> done;  // True if the revision was reached.
  };
  std::vector<Waiter> waiters;
  struct Sleeper {
    TimePoint until;
    std::function<void(bool)> done;
  };
  std::vector<Sleeper> sleepers;  // The feed, between two attempts.
  // Moves the callbacks of those that are due into `done`.
  template <class Waiting, class Due, class Callbacks>
  static void take_due(std::vector<Waiting>& waiting, Due due, Callbacks& done) {
    for (size_t i = 0; i < waiting.size();) {
      if (due(waiting[i])) {
        done.push_back(std::move(waiting[i].done));
        waiting[i] = std::move(waiting.back());
        waiting.pop_back();
      } else {
        ++i;
      }
    }
  }
  std::weak_ptr<CacheState> work;  // See working().
  std::shared_ptr<store::Watcher> store_watch;
  TimePoint last_progress_request, last_status_poll;
  TimePoint last_forgotten;     // When entries referenced only by the queue of bodies were last released.
  bool history_shrank = false;  // Since then.
  // Earlier states had an unreadable value, which undoing events does not bring back: they are read from the store.
  Revision rebuildable_from;
  Revision compacted;
  bool progress_is_exact = true;
  bool learning = false;

  // --- The feed ---
  static Task<void> feed(std::shared_ptr<CacheState> self);
  static Task<void> list_and_follow(std::shared_ptr<CacheState> self);
  static Task<Result<Unit>> load(std::shared_ptr<CacheState> self);
  static Task<Result<Unit>> follow(std::shared_ptr<CacheState> self, bool& relist);
  static Task<void> sleep(std::shared_ptr<CacheState> self, std::chrono::milliseconds delay);
  void apply(const store::WatchBatch& batch);
  void end_watchers(Watcher::End why, WakeList& wakes);
  void end_watches();
  void forget_history(Revision from);
  void report_unreadable(const Unreadable& unreadable) const;
  void publish(std::shared_ptr<const Index> next, Revision next_revision,
               std::vector<std::shared_ptr<const Event>> events, WakeList& wakes);
  void dispatch(const std::shared_ptr<const Event>& event, WakeList& wakes);
  void trim_window(TimePoint now);
  void forget_old_renderings();
  void set_not_ready(Error why);
  bool is_closing() const;

  // --- Reads ---
  static Task<Result<Snapshot>> at_least(std::shared_ptr<CacheState> self, Revision wanted, Executor* executor);
  static Task<Result<Snapshot>> consistent(std::shared_ptr<CacheState> self, Executor* executor);
  static Task<Result<Snapshot>> exactly(std::shared_ptr<CacheState> self, Revision wanted, Executor* executor);
  static Task<Result<Snapshot>> read_store(std::shared_ptr<CacheState> self, Revision at, Executor* executor);
  static Task<Result<Revision>> store_revision(std::shared_ptr<CacheState> self, Executor* executor);
  static Task<Result<Cache::Latest>> latest(std::shared_ptr<CacheState> self, std::string key, Executor* executor);
  static Task<Result<Watcher>> watch(std::shared_ptr<CacheState> self, WatchRequest request, Executor* executor);
  // Whether waiting for a revision can succeed: not if the store cannot report that nothing happened.
  bool can_wait() const;
  // Whether `wanted` was reached in time.
  static Task<bool> wait_for(std::shared_ptr<CacheState> self, Revision wanted, Executor* executor);
  Result<Snapshot> snapshot() const;
  Snapshot snapshot_locked() const;
  std::optional<Snapshot> retained_snapshot(Revision wanted);
  Error not_ready_error() const;
  Result<EntryRef> make_entry(std::string_view store_key, std::string_view stored, Revision at, Bodies::Begin begin);

  // --- Watches ---
  // `initial` is used for Start::Initial if it is newer than the cache.
  Result<Watcher> open(WatchRequest request, Snapshot initial = {});
  std::string route_of(const WatchRequest& request) const;
  void forget(WatcherState& watcher);

  // --- Time ---
  void tick();
  void ask_progress();
  void poll_status();
  void consider_learning();
  void learn();
  void start_close();
  // Reference for the feed, background work and their store calls. When the last one is released, the closers are
  // called, so that the cache is never destroyed on a thread of the store.
  std::shared_ptr<CacheState> working();
  // Call with `mutex` held.
  std::shared_ptr<CacheState> working_locked();
};

}  // namespace holdfast::cache
