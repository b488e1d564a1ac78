// Reads, watches and time-driven work.
#include <algorithm>

#include "base/api_error.h"
#include "cache/changes.h"
#include "cache/state.h"

namespace holdfast::cache {

// --- Snapshots ------------------------------------------------------------------------------------------------------

// Called with the mutex held.
Error CacheState::not_ready_error() const {
  Error error{Reason::TooManyRequests, "storage is (re)initializing"};
  const auto down = std::chrono::duration_cast<std::chrono::seconds>(clock.monotonic() - not_ready_since).count();
  error.retry_after_seconds = static_cast<int32_t>(std::clamp<int64_t>(down, 1, 30));
  return error;
}

// Called with the mutex held.
Snapshot CacheState::snapshot_locked() const {
  Snapshot snapshot;
  snapshot.index_ = index;
  snapshot.revision_ = revision;
  return snapshot;
}

Result<Snapshot> CacheState::snapshot() const {
  std::lock_guard lock(mutex);
  if (!ready) return not_ready_error();
  return snapshot_locked();
}

bool CacheState::can_wait() const {
  std::lock_guard lock(mutex);
  return ready && progress_is_exact;
}

std::vector<Change> changes_between(const Snapshot& earlier, const Snapshot& now) {
  std::vector<Change> changes;
  if (now.same_objects(earlier)) return changes;
  const Tree none(Order{}, std::make_shared<std::atomic<uint64_t>>(0));
  const auto tree_of = [&none](const Snapshot& snapshot) -> const Tree& {
    const std::shared_ptr<const Index>& index = CacheState::objects_of(snapshot);
    return index == nullptr ? none : index->by_key;
  };
  const auto share = [](const Entry* entry) { return entry == nullptr ? EntryRef{} : EntryRef::share(*entry); };
  Tree::compare(tree_of(earlier), tree_of(now),
                [&](const Entry* before, const Entry* after) { changes.push_back({share(before), share(after)}); });
  return changes;
}

Task<bool> CacheState::wait_for(std::shared_ptr<CacheState> self, Revision wanted, Executor* executor) {
  co_return co_await from_callback<bool>(*executor, [self, wanted](std::function<void(bool)> done) {
    bool reached = false;
    {
      std::lock_guard lock(self->mutex);
      reached = self->revision >= wanted;
      if (!reached && !self->closing && self->ready) {
        self->waiters.push_back({wanted, self->clock.monotonic() + self->options.wait_timeout, std::move(done)});
        done = nullptr;
      }
    }
    if (done == nullptr) {
      self->ask_progress();
    } else {
      done(reached);
    }
  });
}

Task<Result<Snapshot>> CacheState::at_least(std::shared_ptr<CacheState> self, Revision wanted, Executor* executor) {
  {
    std::lock_guard lock(self->mutex);
    if (!self->ready) co_return self->not_ready_error();
    if (self->revision >= wanted) co_return self->snapshot_locked();
  }
  if (self->can_wait() && co_await wait_for(self, wanted, executor)) co_return self->snapshot();
  if (!self->can_wait()) {
    // The cache gets no progress when nothing of the resource changes; the store knows.
    Result<Snapshot> read = co_await read_store(self, Revision{}, executor);
    if (!read || read->revision() >= wanted) co_return read;
  }
  std::lock_guard lock(self->mutex);
  if (!self->ready) co_return self->not_ready_error();
  co_return too_large_resource_version(wanted.value, self->revision.value, 1);
}

Task<Result<Revision>> CacheState::store_revision(std::shared_ptr<CacheState> self, Executor* executor) {
  auto current = co_await from_callback<store::StoreResult<Revision>>(
      *executor, [self](store::Callback<Revision> done) { self->store.current_revision(std::move(done)); });
  if (!current) co_return store::to_api_error(current.take_error());
  co_return *current;
}

Task<Result<Snapshot>> CacheState::consistent(std::shared_ptr<CacheState> self, Executor* executor) {
  Result<Revision> current = co_await store_revision(self, executor);
  if (!current) co_return current.take_error();
  {
    std::lock_guard lock(self->mutex);
    if (self->ready && self->revision >= *current) co_return self->snapshot_locked();
  }
  if (self->can_wait() && co_await wait_for(self, *current, executor)) {
    std::lock_guard lock(self->mutex);
    if (self->ready) co_return self->snapshot_locked();
  }
  co_return co_await read_store(self, Revision{}, executor);
}

// The state at `wanted`, reconstructed from the next retained one by undoing later events. Called with the mutex held.
std::optional<Snapshot> CacheState::retained_snapshot(Revision wanted) {
  if (!ready || wanted > revision || wanted < oldest || wanted < rebuildable_from || wanted < compacted)
    return std::nullopt;
  Snapshot snapshot;
  snapshot.revision_ = wanted;
  for (auto kept = exact.begin(); kept != exact.end(); ++kept) {
    if (kept->revision != wanted) continue;
    snapshot.index_ = kept->index;
    std::rotate(exact.begin(), kept, kept + 1);
    return snapshot;
  }
  Kept from{revision, index};
  const auto checkpoint = std::lower_bound(checkpoints.begin(), checkpoints.end(), wanted,
                                           [](const Kept& kept, Revision r) { return kept.revision < r; });
  if (checkpoint != checkpoints.end()) from = *checkpoint;

  const auto behind = [](Revision r, const std::shared_ptr<const Event>& event) { return r < event->revision; };
  const auto first = std::upper_bound(window.begin(), window.end(), wanted, behind);
  const auto last = std::upper_bound(window.begin(), window.end(), from.revision, behind);
  if (first != last) {
    auto undone = std::make_shared<Index>(*from.index);
    IndexEdit edit(*undone);
    for (auto event = last; event != first;) {
      --event;
      edit.change((*event)->object, (*event)->previous);
    }
    from.index = std::move(undone);
  }
  exact.push_front({wanted, from.index});
  if (exact.size() > options.kept_exact_snapshots) exact.pop_back();
  snapshot.index_ = from.index;
  return snapshot;
}

Task<Result<Snapshot>> CacheState::exactly(std::shared_ptr<CacheState> self, Revision wanted, Executor* executor) {
  bool future = false;
  {
    std::lock_guard lock(self->mutex);
    future = self->ready && wanted > self->revision;
  }
  if (future && self->can_wait() && !co_await wait_for(self, wanted, executor) && self->can_wait()) {
    std::lock_guard lock(self->mutex);
    if (self->ready) co_return too_large_resource_version(wanted.value, self->revision.value, 1);
  }
  {
    std::lock_guard lock(self->mutex);
    if (std::optional<Snapshot> kept = self->retained_snapshot(wanted)) co_return std::move(*kept);
  }
  co_return co_await read_store(self, wanted, executor);
}

Task<Result<Cache::Latest>> CacheState::latest(std::shared_ptr<CacheState> self, std::string key, Executor* executor) {
  const std::string store_key = self->options.prefix + key;
  auto got = co_await from_callback<store::StoreResult<store::Got>>(
      *executor, [self, store_key](store::Callback<store::Got> done) { self->store.get(store_key, std::move(done)); });
  if (!got) co_return store::to_api_error(got.take_error());
  Cache::Latest latest{.entry = {}, .revision = got->revision};
  if (!got->item) co_return latest;
  Snapshot now;
  {
    std::lock_guard lock(self->mutex);
    now = self->snapshot_locked();
  }
  latest.entry = now.find(key);
  if (latest.entry && latest.entry->revision() == got->item->modified) co_return latest;
  Result<EntryRef> made = self->make_entry(store_key, *got->item->value, got->item->modified, Bodies::Begin::Hot);
  if (!made) co_return made.take_error();
  latest.entry = std::move(*made);
  co_return latest;
}

// --- Watches --------------------------------------------------------------------------------------------------------

std::string CacheState::route_of(const WatchRequest& request) const {
  for (const FieldRequirement& requirement : request.selector.fields) {
    if (requirement.field == FieldRequirement::kName && requirement.equal &&
        (!options.namespaced || !request.scope.empty())) {
      return request.scope + requirement.value;
    }
  }
  for (const FieldRequirement& requirement : request.selector.fields) {
    const std::span<const uint16_t> indexed = codec->indexed_fields();
    if (requirement.field < 0 || !requirement.equal) continue;
    if (std::find(indexed.begin(), indexed.end(), requirement.field) == indexed.end()) continue;
    return "\1" + std::to_string(requirement.field) + "=" + requirement.value;
  }
  return request.scope;
}

Task<Result<Watcher>> CacheState::watch(std::shared_ptr<CacheState> self, WatchRequest request, Executor* executor) {
  Snapshot initial;
  if (request.start == WatchRequest::Start::Initial && request.revision.value != 0) {
    Result<Snapshot> reached = co_await at_least(self, request.revision, executor);
    if (!reached) co_return reached.take_error();
    initial = std::move(*reached);
  }
  co_return self->open(std::move(request), std::move(initial));
}

Result<Watcher> CacheState::open(WatchRequest request, Snapshot initial) {
  std::lock_guard lock(mutex);
  if (!ready || closing) return not_ready_error();
  auto watcher = std::make_shared<WatcherState>(std::move(request), options.watcher_queue_events, counts);
  const WatchRequest& asked = watcher->request;
  watcher->cache = weak_from_this();
  watcher->route = route_of(asked);
  watcher->last_bookmark = clock.monotonic();
  switch (asked.start) {
    case WatchRequest::Start::Now:
      watcher->after = revision;
      break;
    case WatchRequest::Start::Initial:
      // A snapshot read from the store may be ahead of the cache, and then includes the cache's events up to there.
      watcher->initial = initial.revision() > revision ? std::move(initial) : snapshot_locked();
      watcher->after = watcher->initial.revision();
      watcher->initial_left = true;
      watcher->limit_ = options.max_history_events;
      break;
    case WatchRequest::Start::After: {
      if (asked.revision < oldest) {
        return expired("too old resource version: " + std::to_string(asked.revision.value) + " (" +
                       std::to_string(oldest.value) + ")");
      }
      watcher->after = asked.revision;
      watcher->limit_ = options.max_history_events + options.watcher_queue_events;
      WakeList none;
      const auto first =
          std::upper_bound(window.begin(), window.end(), asked.revision,
                           [](Revision r, const std::shared_ptr<const Event>& event) { return r < event->revision; });
      for (auto event = first; event != window.end(); ++event)
        watcher->offer(*event, false, batch, bodies, *codec, none);
      watcher->limit_ = watcher->queue_.size() + options.watcher_queue_events;
      break;
    }
  }
  if (watches_ended) {
    WakeList nobody;
    watcher->finish(Watcher::End::Closed, nobody);
    return Watcher(std::move(watcher));
  }
  routes[watcher->route].push_back(watcher);
  ++watcher_count;
  return Watcher(std::move(watcher));
}

void CacheState::forget(WatcherState& watcher) {
  std::lock_guard lock(mutex);
  const auto found = routes.find(watcher.route);
  if (found == routes.end()) return;
  auto& list = found->second;
  const auto place = std::find_if(list.begin(), list.end(), [&](const auto& one) { return one.get() == &watcher; });
  if (place == list.end()) return;
  *place = std::move(list.back());
  list.pop_back();
  if (list.empty()) routes.erase(found);
  --watcher_count;
}

// --- Time -----------------------------------------------------------------------------------------------------------

void CacheState::ask_progress() {
  std::shared_ptr<store::Watcher> watch;
  {
    std::lock_guard lock(mutex);
    last_progress_request = clock.monotonic();
    watch = store_watch;
  }
  if (watch != nullptr) watch->request_progress();
}

void CacheState::poll_status() {
  std::shared_ptr<CacheState> self;
  {
    std::lock_guard lock(mutex);
    if (closing) return;
    last_status_poll = clock.monotonic();
    self = working_locked();
  }
  store.status([self = std::move(self)](store::StoreResult<store::Status> status) {
    std::vector<Waiter> hopeless;
    if (status) {
      std::lock_guard lock(self->mutex);
      self->compacted = status->compacted;
      self->progress_is_exact = status->progress_is_exact;
      if (!self->progress_is_exact) hopeless.swap(self->waiters);
      std::erase_if(self->exact, [&](const Kept& kept) { return kept.revision < self->compacted; });
    }
    for (Waiter& waiter : hopeless) waiter.done(false);
  });
}

void CacheState::tick() {
  const TimePoint now = clock.monotonic();
  WakeList reached;
  std::vector<std::function<void(bool)>> missed;
  bool progress = false, poll = false, forget = false;
  {
    std::lock_guard lock(mutex);
    if (closing) return;
    take_due(waiters, [now](const Waiter& waiter) { return waiter.deadline <= now; }, missed);
    progress = !waiters.empty() && now - last_progress_request >= options.progress_interval;
    take_due(sleepers, [now](const Sleeper& sleeper) { return sleeper.until <= now; }, reached);
    if (ready) {
      constexpr std::chrono::seconds kBeforeDeadline{2};
      for (auto& [route, list] : routes) {
        for (auto& watcher : list) {
          if (!watcher->request.bookmarks || revision <= watcher->after) continue;
          const TimePoint deadline = watcher->request.deadline;
          const bool last_call =
              !watcher->final_bookmark_sent && deadline != TimePoint::max() && deadline - now <= kBeforeDeadline;
          if (!last_call && now - watcher->last_bookmark < options.bookmark_interval) continue;
          watcher->last_bookmark = now;
          if (last_call) watcher->final_bookmark_sent = true;
          watcher->bookmark(revision, reached);
        }
      }
      trim_window(now);
      // Scanning all hot entries takes a while, so not on every expired event.
      if (history_shrank && now - last_forgotten >= std::chrono::seconds(1)) {
        history_shrank = false;
        last_forgotten = now;
        forget = true;
      }
    }
    poll = now - last_status_poll >= options.compaction_poll_interval;
  }
  reached.run();
  for (auto& wake : missed) wake(false);
  if (forget) bodies.release_unreferenced();
  if (progress) ask_progress();
  if (poll) poll_status();
  consider_learning();
}

// Trains a dictionary in the background: the first one when bodies no longer fit their limit; later ones when so many
// bodies were packed that their content may have changed in character.
void CacheState::consider_learning() {
  if (!options.compress_bodies) return;
  const bool first = !bodies.has_dictionary() && bodies.over_budget();
  std::shared_ptr<CacheState> self;
  {
    std::lock_guard lock(mutex);
    if (closing || learning || !ready) return;
    const uint64_t entries = index->by_key.count();
    const bool again = bodies.has_dictionary() &&
                       bodies.packs_since_learning() > std::max<uint64_t>(entries / 2, options.dictionary_samples);
    if (!first && !again) return;
    learning = true;
    self = working_locked();
  }
  executors.background->post([self = std::move(self)] {
    self->learn();
    std::lock_guard lock(self->mutex);
    self->learning = false;
  });
}

void CacheState::learn() {
  Snapshot now;
  {
    std::lock_guard lock(mutex);
    now = snapshot_locked();
  }
  const std::vector<EntryRef> entries = now.list({}).entries;
  if (entries.empty()) return;
  // Spread over all keys: neighbours are too similar.
  std::vector<Blob> samples;
  const size_t count = std::min<size_t>(entries.size(), options.dictionary_samples);
  samples.reserve(count);
  for (size_t i = 0; i < count; ++i) samples.push_back(entries[i * entries.size() / count]->body());
  if (bodies.learn(samples)) {
    samples.clear();
    for (const EntryRef& entry : entries) {
      if (is_closing()) return;
      bodies.repack(*entry);
    }
  }
  bodies.pack_cold();
}

std::shared_ptr<CacheState> CacheState::working() {
  std::lock_guard lock(mutex);
  return working_locked();
}

std::shared_ptr<CacheState> CacheState::working_locked() {
  if (std::shared_ptr<CacheState> now = work.lock()) return now;
  {
    std::lock_guard counting(background->mutex);
    ++background->running;
  }
  std::shared_ptr<CacheState> begun(this, [owner = shared_from_this()](CacheState*) mutable {
    const std::shared_ptr<BackgroundWork> ended = owner->background;
    owner.reset();
    std::vector<std::function<void(bool)>> done;
    {
      std::lock_guard lock(ended->mutex);
      if (--ended->running == 0) done.swap(ended->closers);
    }
    for (auto& one : done) one(true);
  });
  work = begun;
  return begun;
}

void CacheState::start_close() {
  WakeList wakes;
  std::shared_ptr<store::Watcher> watch;
  {
    std::lock_guard lock(mutex);
    closing = true;
    ready = false;
    watch = std::move(store_watch);
    store_watch = nullptr;
    end_watchers(Watcher::End::Closed, wakes);
    for (Waiter& waiter : waiters) wakes.push_back([done = std::move(waiter.done)](bool) { done(false); });
    waiters.clear();
    for (Sleeper& sleeper : sleepers) wakes.push_back(std::move(sleeper.done));
    sleepers.clear();
  }
  // Destroying it completes the feed's pending next().
  watch.reset();
  wakes.run();
}

}  // namespace holdfast::cache
