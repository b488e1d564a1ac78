// Follows the store: list, publish, watch, apply, and again.
#include <algorithm>
#include <stdexcept>

#include "base/api_error.h"
#include "base/log.h"
#include "base/task_group.h"
#include "cache/state.h"

namespace holdfast::cache {

Error undecodable(Revision revision, std::string_view why) {
  return {Reason::StoreReadError,
          "object not decodable revision=" + std::to_string(revision.value) + ": " + std::string(why)};
}

CacheState::CacheState(store::Store& s, std::shared_ptr<const Codec> c, ownership::Pool& pool, Executors e, Options o,
                       const Clock& k)
    : store(s),
      codec(std::move(c)),
      executors(e),
      options(std::move(o)),
      clock(k),
      bodies(*new Bodies(pool, pool.kind(options.resource, codec->member_order()), options.namespaced,
                         {.plain_bytes = options.plain_body_bytes,
                          .compress = options.compress_bodies,
                          .dictionary_bytes = options.dictionary_bytes,
                          .dictionary_samples = options.dictionary_samples})) {
  assert(options.prefix.ends_with('/'));
  // A full watcher queue must still be within the history.
  assert(options.watcher_queue_events < options.max_history_events);
  live_count.fetch_add(1, std::memory_order_relaxed);
}

CacheState::~CacheState() {
  bodies.release();
  live_count.fetch_sub(1, std::memory_order_relaxed);
}

bool CacheState::is_closing() const {
  std::lock_guard lock(mutex);
  return closing;
}

Result<EntryRef> CacheState::make_entry(std::string_view store_key, std::string_view stored, Revision at,
                                        Bodies::Begin begin) {
  decoded.fetch_add(1, std::memory_order_relaxed);
  if (stored.starts_with("k8s:enc:")) {
    return Error{Reason::StoreReadError,
                 "data from the storage is not transformable revision=0: the value is encrypted (k8s:enc:), and this "
                 "server has no keys for encryption at rest"};
  }
  Result<Decoded> taken_apart = codec->decode(store_key, stored, at);
  if (!taken_apart) return undecodable(at, taken_apart.error().message);
  try {
    return bodies.make(store_key.substr(options.prefix.size()), at, std::move(*taken_apart), begin);
  } catch (const std::length_error& full) {
    // The pool of ownership: this object is one too many.
    return undecodable(at, full.what());
  }
}

// --- Listing --------------------------------------------------------------------------------------------------------

namespace {

// Work done elsewhere that one coroutine waits for.
class Awaited {
 public:
  void finish() {
    std::function<void(bool)> wake;
    {
      std::lock_guard lock(mutex_);
      finished_ = true;
      wake = std::move(waiting_);
    }
    if (wake) wake(true);
  }
  void wait(std::function<void(bool)> done) {
    {
      std::lock_guard lock(mutex_);
      if (!finished_) {
        waiting_ = std::move(done);
        return;
      }
    }
    done(true);
  }

 private:
  std::mutex mutex_;
  bool finished_ = false;
  std::function<void(bool)> waiting_;
};

// A page being read.
struct Fetch : Awaited {
  std::optional<store::StoreResult<store::Page>> page;

  static std::shared_ptr<Fetch> start(store::Store& store, store::RangeRequest request) {
    auto fetch = std::make_shared<Fetch>();
    store.range(std::move(request), [fetch](store::StoreResult<store::Page> result) {
      fetch->page.emplace(std::move(result));
      fetch->finish();
    });
    return fetch;
  }
};

// A page whose values are being decoded, in pieces on the background executor.
struct PageWork : Awaited {
  std::shared_ptr<CacheState> state;
  store::Page page;
  Snapshot before;  // Unchanged entries are taken from here.
  Bodies::Begin begin;
  std::vector<EntryRef> entries;  // Null if unreadable.
  std::mutex mutex;
  std::vector<Unreadable> unreadable;  // Guarded by mutex.
  std::atomic<uint32_t> left{0};

  static void start(const std::shared_ptr<PageWork>& work) {
    const size_t count = work->page.items.size();
    work->entries.resize(count);
    // A few objects are decoded immediately, on this thread.
    constexpr size_t kWorthSplitting = 64;
    if (count < kWorthSplitting) {
      work->run(0, count);
      return work->finish();
    }
    const size_t pieces = std::max<size_t>(1, work->state->options.load_parallelism);
    work->left.store(static_cast<uint32_t>(pieces));
    for (size_t piece = 0; piece < pieces; ++piece) {
      work->state->executors.background->post([work, count, pieces, piece] {
        work->run(count * piece / pieces, count * (piece + 1) / pieces);
        if (work->left.fetch_sub(1, std::memory_order_acq_rel) == 1) work->finish();
      });
    }
  }

  void run(size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) {
      const store::KeyValue& item = page.items[i];
      EntryRef known = before.find(std::string_view(item.key).substr(state->options.prefix.size()));
      if (known && known->revision() == item.modified) {
        entries[i] = std::move(known);
        continue;
      }
      Result<EntryRef> made = state->make_entry(item.key, *item.value, item.modified, begin);
      if (!made) {
        std::lock_guard lock(mutex);
        unreadable.push_back({item.key.substr(state->options.prefix.size()), made.take_error().message});
        continue;
      }
      entries[i] = std::move(*made);
      // The stored bytes are no longer needed, and a page of them is large.
      page.items[i].value = nullptr;
    }
  }
};

// All entries of the resource at one revision (0 for the latest).
struct Listing {
  std::vector<EntryRef> entries;
  UnreadableByKey unreadable;
  Revision revision;
};

std::shared_ptr<Index> index_of(const CacheState& state, Listing listing) {
  auto index = std::make_shared<Index>(state.codec->indexed_fields(), state.index_bytes);
  index->assign(std::move(listing.entries));
  if (!listing.unreadable.empty()) {
    index->unreadable = std::make_shared<const UnreadableByKey>(std::move(listing.unreadable));
  }
  return index;
}

Task<void> wait_for(std::shared_ptr<Awaited> awaited, Executor* executor) {
  co_await from_callback<bool>(*executor,
                               [awaited](std::function<void(bool)> done) { awaited->wait(std::move(done)); });
}

// Trains a dictionary from the first page of a long list, so that later pages can be packed immediately.
Task<void> learn_from(std::shared_ptr<PageWork> work, Executor* executor) {
  co_await from_callback<bool>(*executor, [work](std::function<void(bool)> done) {
    work->state->executors.background->post([work, done] {
      std::vector<Blob> samples;
      for (const EntryRef& entry : work->entries) {
        if (entry) samples.push_back(entry->body());
      }
      work->state->bodies.learn(samples);
      done(true);
    });
  });
}

void collect(PageWork& work, Listing& listing) {
  if (!work.unreadable.empty()) {
    std::erase_if(work.entries, [](const EntryRef& entry) { return !entry; });
    for (Unreadable& each : work.unreadable) {
      std::string key = each.key;
      listing.unreadable.insert_or_assign(std::move(key), std::move(each));
    }
  }
  std::move(work.entries.begin(), work.entries.end(), std::back_inserter(listing.entries));
}

// Reads one page while earlier ones are decoded. Everything it started has ended when it returns.
Task<Result<Listing, store::StoreError>> list_all(std::shared_ptr<CacheState> state, Revision at, Executor* executor,
                                                  Snapshot before, bool learn) {
  // More than one, so that no CPU waits for the slowest piece of a page.
  constexpr size_t kPagesDecodedAtOnce = 3;
  Listing listing;
  std::optional<store::StoreError> failure;
  store::RangeRequest request{.prefix = state->options.prefix, .limit = state->options.list_page, .at = at};
  std::shared_ptr<Fetch> fetch = Fetch::start(state->store, request);
  std::deque<std::shared_ptr<PageWork>> decoding;
  bool first = true;
  while (fetch != nullptr || !decoding.empty()) {
    if (fetch == nullptr || decoding.size() == kPagesDecodedAtOnce) {
      const std::shared_ptr<PageWork> work = std::move(decoding.front());
      decoding.pop_front();
      co_await wait_for(work, executor);
      collect(*work, listing);
      state->bodies.pack_cold();
      continue;
    }
    co_await wait_for(fetch, executor);
    store::StoreResult<store::Page> page = std::move(*fetch->page);
    fetch = nullptr;
    if (state->is_closing()) failure = store::StoreError{store::ErrorKind::Closed, "the cache was closed"};
    if (!page) failure = page.take_error();
    if (failure) continue;
    listing.revision = page->revision;
    const bool more = page->more && !page->items.empty();
    if (more) {
      request.from = page->items.back().key + '\0';
      request.at = page->revision;
      fetch = Fetch::start(state->store, request);
    }
    auto work = std::make_shared<PageWork>();
    work->state = state;
    work->page = std::move(*page);
    work->before = before;
    // A list that fits one page stays plain, within the limit.
    work->begin = first ? Bodies::Begin::Hot : Bodies::Begin::Cold;
    PageWork::start(work);
    decoding.push_back(work);
    if (first && more && learn && !state->bodies.has_dictionary()) {
      co_await wait_for(work, executor);
      co_await learn_from(work, executor);
    }
    first = false;
  }
  if (failure) co_return std::move(*failure);
  co_return listing;
}

}  // namespace

Task<Result<Unit>> CacheState::load(std::shared_ptr<CacheState> self) {
  Snapshot before;
  {
    std::lock_guard lock(self->mutex);
    before = self->snapshot_locked();
  }
  auto listing = co_await list_all(self, Revision{}, self->executors.feed, before, self->options.compress_bodies);
  if (!listing) co_return store::to_api_error(listing.take_error());
  for (const auto& [key, unreadable] : listing->unreadable) self->report_unreadable(unreadable);
  const Revision at = listing->revision;
  std::shared_ptr<Index> index = index_of(*self, std::move(*listing));
  WakeList wakes;
  {
    std::lock_guard lock(self->mutex);
    self->forget_history(at);
    self->ready = true;
    self->last_error.reset();
    self->publish(std::move(index), at, {}, wakes);
  }
  wakes.run();
  self->consider_learning();
  co_return Unit{};
}

Task<Result<Snapshot>> CacheState::read_store(std::shared_ptr<CacheState> self, Revision at, Executor* executor) {
  self->store_fallbacks.fetch_add(1, std::memory_order_relaxed);
  Snapshot before;
  {
    std::lock_guard lock(self->mutex);
    before = self->snapshot_locked();
  }
  auto listing = co_await list_all(self, at, executor, before, false);
  if (!listing) {
    store::StoreError error = listing.take_error();
    if (error.kind == store::ErrorKind::Compacted) {
      co_return expired("The resourceVersion for the provided list is too old.");
    }
    co_return store::to_api_error(std::move(error));
  }
  Snapshot snapshot;
  snapshot.revision_ = listing->revision;
  snapshot.index_ = index_of(*self, std::move(*listing));
  co_return snapshot;
}

// --- The loop -------------------------------------------------------------------------------------------------------

Task<void> CacheState::sleep(std::shared_ptr<CacheState> self, std::chrono::milliseconds delay) {
  co_await from_callback<bool>(*self->executors.feed, [self, delay](std::function<void(bool)> done) {
    {
      std::lock_guard lock(self->mutex);
      if (!self->closing) {
        self->sleepers.push_back({self->clock.monotonic() + delay, std::move(done)});
        return;
      }
    }
    done(false);
  });
}

void CacheState::set_not_ready(Error why) {
  log::error("objects cannot be served", {{"resource", options.resource}, {"error", why.message}});
  WakeList wakes;
  {
    std::lock_guard lock(mutex);
    if (ready) not_ready_since = clock.monotonic();
    ready = false;
    last_error = std::move(why);
    // There may be changes that the watchers have missed.
    end_watchers(Watcher::End::Relisted, wakes);
    for (Waiter& waiter : waiters) {
      wakes.push_back([done = std::move(waiter.done)](bool) { done(false); });
    }
    waiters.clear();
  }
  wakes.run();
}

// Makes their clients list again. Called with the mutex held.
void CacheState::end_watchers(Watcher::End why, WakeList& wakes) {
  for (auto& [route, watchers] : routes) {
    for (auto& watcher : watchers) watcher->finish(why, wakes);
  }
  routes.clear();
  watcher_count = 0;
}

void CacheState::end_watches() {
  WakeList wakes;
  {
    std::lock_guard lock(mutex);
    watches_ended = true;
    end_watchers(Watcher::End::Closed, wakes);
  }
  wakes.run();
}

// From now on nothing before `from` can be watched or listed from memory. Called with the mutex held.
void CacheState::forget_history(Revision from) {
  window.clear();
  window_former_bytes = 0;
  renderings_kept_from = 0;
  checkpoints.clear();
  exact.clear();
  events_since_checkpoint = 0;
  oldest = from;
}

void CacheState::report_unreadable(const Unreadable& unreadable) const {
  log::error("stored object cannot be read", {{"key", options.prefix + unreadable.key}, {"error", unreadable.why}});
}

Task<void> CacheState::feed(std::shared_ptr<CacheState> self) {
  while (!self->is_closing()) {
    co_await resume_on(*self->executors.feed);
    std::exception_ptr failure;
    try {
      co_await list_and_follow(self);
    } catch (...) {
      failure = std::current_exception();
    }
    if (!failure) continue;
    // The exception may have left an inconsistent state: read everything again.
    report_failed_task("cache of " + self->options.resource, failure);
    self->set_not_ready(internal_error("following the store failed with an exception"));
    co_await sleep(self, self->options.max_retry_delay);
  }
}

Task<void> CacheState::list_and_follow(std::shared_ptr<CacheState> self) {
  std::chrono::milliseconds delay = self->options.min_retry_delay;
  bool first = true;
  while (!self->is_closing()) {
    if (!first) self->relists.fetch_add(1, std::memory_order_relaxed);
    Result<Unit> loaded = co_await load(self);
    if (!loaded) {
      if (self->is_closing()) break;
      self->set_not_ready(loaded.take_error());
      co_await sleep(self, delay);
      delay = std::min(delay * 2, self->options.max_retry_delay);
      continue;
    }
    first = false;
    delay = self->options.min_retry_delay;
    bool relist = false;
    while (!relist && !self->is_closing()) {
      Result<Unit> followed = co_await follow(self, relist);
      if (followed || self->is_closing()) continue;
      if (relist) {
        self->set_not_ready(followed.take_error());
        break;
      }
      // The watch broke, but may resume at its position: the cached state is still valid as of its revision.
      {
        std::lock_guard lock(self->mutex);
        self->last_error = followed.take_error();
      }
      co_await sleep(self, delay);
      delay = std::min(delay * 2, self->options.max_retry_delay);
    }
  }
}

// Applies batches until the watch ends. Sets `relist` if it cannot be resumed.
Task<Result<Unit>> CacheState::follow(std::shared_ptr<CacheState> self, bool& relist) {
  std::shared_ptr<store::Watcher> watch;
  bool waited_for = false;
  {
    std::lock_guard lock(self->mutex);
    if (self->closing) co_return Unit{};
    watch = self->store.watch({.prefix = self->options.prefix, .after = self->revision});
    self->store_watch = watch;
    waited_for = !self->waiters.empty();
  }
  // A reader may be waiting for a revision at which nothing of this resource changes.
  if (waited_for) watch->request_progress();
  while (true) {
    // No reference to the watch is held while waiting: close() ends the wait by releasing the last one.
    auto batch = co_await from_callback<store::StoreResult<store::WatchBatch>>(
        *self->executors.feed, [watch = std::move(watch)](store::Callback<store::WatchBatch> done) mutable {
          const std::shared_ptr<store::Watcher> held = std::move(watch);
          held->next(std::move(done));
        });
    {
      std::lock_guard lock(self->mutex);
      watch = self->store_watch;
      if (self->closing || watch == nullptr) co_return Unit{};
    }
    if (!batch) {
      relist = batch.error().kind == store::ErrorKind::Compacted;
      {
        std::lock_guard lock(self->mutex);
        self->store_watch = nullptr;
      }
      co_return store::to_api_error(batch.take_error());
    }
    self->apply(*batch);
  }
}

void CacheState::apply(const store::WatchBatch& batch) {
  std::vector<std::shared_ptr<const Event>> events;
  std::shared_ptr<const Index> current;
  Revision seen;
  {
    std::lock_guard lock(mutex);
    current = index;
    seen = revision;
  }
  std::shared_ptr<const Index> next = current;
  bool cannot_show = false;  // A value became unreadable, or an unreadable one was deleted.
  bool repaired = false;     // An unreadable value was replaced or deleted.
  if (!batch.events.empty()) {
    const TimePoint now = clock.monotonic();
    auto changed = std::make_shared<Index>(*current);
    IndexEdit edit(*changed);
    std::optional<UnreadableByKey> unreadable;  // Set if it differs from that of `current`.
    const auto edit_unreadable = [&]() -> UnreadableByKey& {
      if (!unreadable) unreadable = current->unreadable == nullptr ? UnreadableByKey{} : *current->unreadable;
      return *unreadable;
    };
    for (const store::EventRef& stored : batch.events) {
      if (stored->revision <= seen) continue;
      const std::string_view key = std::string_view(stored->key).substr(options.prefix.size());
      const Entry* found = changed->by_key.find({{}, key});
      EntryRef before = found == nullptr ? EntryRef{} : EntryRef::share(*found);
      EntryRef object;
      if (unreadable || current->unreadable != nullptr) {
        const bool was_unreadable = edit_unreadable().erase(std::string(key)) != 0;
        cannot_show |= was_unreadable && stored->type == store::Event::Type::Deleted;
        repaired |= was_unreadable;
      }
      if (stored->type == store::Event::Type::Deleted) {
        if (!before) continue;
      } else {
        Result<EntryRef> made = make_entry(stored->key, *stored->value, stored->revision, Bodies::Begin::Hot);
        if (!made) {
          const auto [place, fresh] = edit_unreadable().insert_or_assign(
              std::string(key), Unreadable{std::string(key), made.take_error().message});
          report_unreadable(place->second);
          cannot_show = true;
          if (before) edit.change(before, {});
          continue;
        }
        object = std::move(*made);
      }
      edit.change(before, object);
      const EventType type = !object ? EventType::Deleted : before ? EventType::Modified : EventType::Added;
      events.push_back(std::make_shared<const Event>(type, stored->revision, object, before, now, counts));
    }
    if (unreadable) {
      changed->unreadable =
          unreadable->empty() ? nullptr : std::make_shared<const UnreadableByKey>(std::move(*unreadable));
    }
    next = std::move(changed);
  }
  WakeList wakes;
  {
    std::lock_guard lock(mutex);
    last_error.reset();
    if (cannot_show) {
      end_watchers(Watcher::End::Relisted, wakes);
      events.clear();
    }
    publish(std::move(next), std::max(batch.revision, seen), std::move(events), wakes);
    if (cannot_show) forget_history(revision);
    if (repaired) rebuildable_from = revision;
    trim_window(clock.monotonic());
    forget_old_renderings();
  }
  wakes.run();
  bodies.pack_cold();
  consider_learning();
}

// Called with the mutex held.
void CacheState::publish(std::shared_ptr<const Index> next, Revision next_revision,
                         std::vector<std::shared_ptr<const Event>> events, WakeList& wakes) {
  index = std::move(next);
  revision = next_revision;
  ++batch;
  events_seen.fetch_add(events.size(), std::memory_order_relaxed);
  for (std::shared_ptr<const Event>& event : events) {
    dispatch(event, wakes);
    window_former_bytes += event->former_bytes;
    window.push_back(std::move(event));
    ++events_since_checkpoint;
  }
  if (events_since_checkpoint >= options.events_per_snapshot) {
    checkpoints.push_back({revision, index});
    events_since_checkpoint = 0;
  }
  take_due(waiters, [this](const Waiter& waiter) { return waiter.revision <= revision; }, wakes);
}

// Called with the mutex held.
void CacheState::dispatch(const std::shared_ptr<const Event>& event, WakeList& wakes) {
  if (watcher_count == 0) return;
  const auto offer = [&](std::string_view route) {
    const auto found = routes.find(route);
    if (found == routes.end()) return;
    const std::vector<std::shared_ptr<WatcherState>>& watchers = found->second;
    for (size_t i = 0; i < watchers.size(); ++i) {
      if (i + kPrefetchDistance < watchers.size()) prefetch_ahead(watchers[i + kPrefetchDistance].get());
      watchers[i]->offer(event, true, batch, bodies, *codec, wakes);
    }
  };
  const Entry& entry = event->object ? *event->object : *event->previous;
  offer("");
  if (options.namespaced) {
    const std::string_view key = entry.key();
    if (const size_t slash = key.find('/'); slash != std::string_view::npos) offer(key.substr(0, slash + 1));
  }
  offer(entry.key());
  for (uint16_t field : codec->indexed_fields()) {
    std::string route = "\1" + std::to_string(field) + "=";
    const size_t stem = route.size();
    if (event->object) offer(route.append(event->object->field(field)));
    if (event->previous && (!event->object || event->previous->field(field) != event->object->field(field))) {
      route.resize(stem);
      offer(route.append(event->previous->field(field)));
    }
  }
}

// Called with the mutex held.
void CacheState::trim_window(TimePoint now) {
  // An empty resource gets no more events: the last deletions would keep their objects in memory forever.
  const size_t kept_whatever_their_age = index != nullptr && index->by_key.count() != 0 ? options.history_events : 0;
  const auto is_surplus = [&](const Event& first) {
    if (window.size() > options.max_history_events || window_former_bytes > kHistoryBytes) return true;
    return now - first.arrived > options.history_age &&
           (window.size() > kept_whatever_their_age || window_former_bytes > kOldHistoryBytes);
  };
  while (!window.empty() && is_surplus(*window.front())) {
    window_former_bytes -= window.front()->former_bytes;
    history_shrank = true;
    oldest = window.front()->revision;
    window.pop_front();
    if (renderings_kept_from > 0) --renderings_kept_from;
  }
  // A checkpoint is needed only while the window contains events before it.
  while (!checkpoints.empty() && checkpoints.front().revision <= oldest) checkpoints.pop_front();
  std::erase_if(exact, [this](const Kept& kept) { return kept.revision < oldest; });
}

// Called with the mutex held.
void CacheState::forget_old_renderings() {
  while (counts->bytes.load(std::memory_order_relaxed) > options.rendered_bytes &&
         renderings_kept_from < window.size()) {
    window[renderings_kept_from++]->forget_renderings();
  }
}

}  // namespace holdfast::cache
