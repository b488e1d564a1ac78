#include "cache/cache.h"

#include "base/task_group.h"
#include "cache/state.h"

namespace holdfast::cache {

Cache::Cache(store::Store& store, std::shared_ptr<const Codec> codec, ownership::Pool& pool, Executors executors,
             Options options, const Clock& clock)
    : state_(std::make_shared<CacheState>(store, std::move(codec), pool, executors, std::move(options), clock)) {}

Cache::~Cache() { state_->start_close(); }

void Cache::start() {
  {
    std::lock_guard lock(state_->mutex);
    assert(!state_->started);
    state_->started = true;
    state_->not_ready_since = state_->clock.monotonic();
  }
  state_->poll_status();
  spawn(CacheState::feed(state_->working()),
        [name = "cache of " + state_->options.resource](std::exception_ptr failure) {
          if (failure) report_failed_task(name, failure);
        });
}

namespace {
Task<void> close_and_wait(std::shared_ptr<CacheState> state, Executor* executor) {
  state->start_close();
  co_await from_callback<bool>(*executor, [work = state->background](std::function<void(bool)> done) {
    {
      std::lock_guard lock(work->mutex);
      if (work->running > 0) {
        work->closers.push_back(std::move(done));
        return;
      }
    }
    done(true);
  });
}
}  // namespace

Task<void> Cache::close(Executor& executor) { return close_and_wait(state_, &executor); }
void Cache::end_watches() { state_->end_watches(); }
void Cache::tick() { state_->tick(); }

bool Cache::ready() const {
  std::lock_guard lock(state_->mutex);
  return state_->ready;
}
Revision Cache::revision() const {
  std::lock_guard lock(state_->mutex);
  return state_->revision;
}
std::optional<Error> Cache::last_error() const {
  std::lock_guard lock(state_->mutex);
  return state_->last_error;
}
const Codec& Cache::codec() const { return *state_->codec; }
const Options& Cache::options() const { return state_->options; }

Result<Snapshot> Cache::snapshot() const { return state_->snapshot(); }
Task<Result<Snapshot>> Cache::at_least(Revision revision, Executor& executor) {
  return CacheState::at_least(state_, revision, &executor);
}
Task<Result<Snapshot>> Cache::consistent(Executor& executor) { return CacheState::consistent(state_, &executor); }
Task<Result<Snapshot>> Cache::exactly(Revision revision, Executor& executor) {
  return CacheState::exactly(state_, revision, &executor);
}
Task<Result<Cache::Latest>> Cache::latest(std::string key, Executor& executor) {
  return CacheState::latest(state_, std::move(key), &executor);
}
Result<EntryRef> Cache::make_entry(std::string_view key, std::string_view stored, Revision revision) const {
  return state_->make_entry(state_->options.prefix + std::string(key), stored, revision, Bodies::Begin::Hot);
}
Task<Result<Watcher>> Cache::watch(WatchRequest request, Executor& executor) {
  return CacheState::watch(state_, std::move(request), &executor);
}
Task<Result<Revision>> Cache::store_revision(Executor& executor) {
  return CacheState::store_revision(state_, &executor);
}

Usage Cache::usage() const {
  Usage usage;
  state_->bodies.usage(usage);
  usage.index_bytes = state_->index_bytes->load(std::memory_order_relaxed);
  usage.rendered_bytes = state_->counts->bytes.load(std::memory_order_relaxed);
  std::lock_guard lock(state_->mutex);
  if (state_->index != nullptr) {
    usage.entries = state_->index->by_key.count();
    usage.unreadable = state_->index->unreadable == nullptr ? 0 : state_->index->unreadable->size();
  }
  usage.events = state_->window.size();
  usage.event_bytes = state_->window.size() * (sizeof(Event) + sizeof(std::shared_ptr<const Event>));
  usage.snapshots = state_->checkpoints.size() + state_->exact.size();
  usage.watchers = state_->watcher_count;
  return usage;
}

Counters Cache::counters() const {
  Counters counters;
  counters.events = state_->events_seen.load(std::memory_order_relaxed);
  counters.renders = state_->counts->renders.load(std::memory_order_relaxed);
  counters.render_hits = state_->counts->hits.load(std::memory_order_relaxed);
  counters.slow_watchers = state_->counts->slow_watchers.load(std::memory_order_relaxed);
  counters.decoded = state_->decoded.load(std::memory_order_relaxed);
  counters.relists = state_->relists.load(std::memory_order_relaxed);
  counters.store_fallbacks = state_->store_fallbacks.load(std::memory_order_relaxed);
  counters.unpacked = state_->bodies.unpacked();
  counters.dictionaries = state_->bodies.dictionaries_trained();
  return counters;
}

int64_t cache_count() { return CacheState::live_count.load(std::memory_order_relaxed); }

}  // namespace holdfast::cache
