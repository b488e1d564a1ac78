#include "store/memory_store.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "store/rules.h"

namespace holdfast::store {
namespace {

constexpr Limits kLimits{.max_transaction_bytes = 1536 * 1024, .max_operations = 128};

struct Version {
  Revision modified;
  Revision created;
  Blob value;  // Null if deleted.
};

// Callbacks collected under the lock and called after it is released.
using Deferred = std::vector<std::function<void()>>;

void run(Deferred& work) {
  for (auto& call : work) call();
}

}  // namespace

struct MemoryStore::State : std::enable_shared_from_this<MemoryStore::State> {
  struct Watching {
    WatchRequest request;
    Revision position;  // Everything up to here has been delivered.
    bool progress_wanted = false;
    std::optional<StoreError> ended;
    Callback<WatchBatch> waiting;
  };

  const Clock& clock;

  std::mutex mutex;  // Guards the members below.
  Revision current{1};
  Revision compacted{0};
  std::map<std::string, std::vector<Version>, std::less<>> keys;  // Oldest version first.
  std::deque<std::vector<EventRef>> log;                          // Transactions, oldest first.
  std::map<std::string, std::pair<Revision, UnixTime>> expiries;  // Key, the revision with the TTL, its end.
  std::vector<Watching*> watchers;
  std::optional<StoreError> failure;
  bool reports_progress = true;
  bool closed = false;

  explicit State(const Clock& c) : clock(c) {}

  const Version* version_at(const std::vector<Version>& versions, Revision at) const {
    for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
      if (it->modified <= at) return it->value ? &*it : nullptr;
    }
    return nullptr;
  }

  const Version* find(const std::string& key, Revision at) const {
    auto it = keys.find(key);
    return it == keys.end() ? nullptr : version_at(it->second, at);
  }

  StoreResult<WriteResult> apply(const Transaction& transaction) {
    if (failure) return *failure;
    if (auto wrong = check_transaction(transaction, kLimits)) return *wrong;
    for (size_t i = 0; i < transaction.size(); ++i) {
      const Version* now = find(transaction[i].key, current);
      if (fits(transaction[i], now ? now->modified : Revision{})) continue;
      Conflict conflict{i, std::nullopt, current};
      if (now) conflict.current = KeyValue{transaction[i].key, now->value, now->created, now->modified};
      return WriteResult(std::move(conflict));
    }
    if (std::ranges::none_of(transaction, changes)) return WriteResult(Committed{current});
    Revision revision{current.value + 1};
    std::vector<EventRef> events;
    for (const Operation& operation : transaction) {
      if (!changes(operation)) continue;
      const Version* now = find(operation.key, current);
      auto event = std::make_shared<Event>();
      event->type = operation.kind == Operation::Kind::Delete ? Event::Type::Deleted
                    : now                                     ? Event::Type::Updated
                                                              : Event::Type::Created;
      event->key = operation.key;
      event->revision = revision;
      event->created = now ? now->created : revision;
      event->value = operation.value;
      if (now) {
        event->previous = now->value;
        event->previous_revision = now->modified;
      }
      keys[operation.key].push_back({revision, event->created, operation.value});
      expiries.erase(operation.key);
      if (operation.ttl.count() > 0) {
        UnixTime end = clock.now();
        end.seconds += operation.ttl.count();
        expiries[operation.key] = {revision, end};
      }
      events.push_back(std::move(event));
    }
    current = revision;
    log.push_back(std::move(events));
    return WriteResult(Committed{revision});
  }

  // Completes the watcher's pending next() if there is something to deliver.
  void feed(Watching& watching, Deferred& deferred) {
    if (!watching.waiting) return;
    auto answer = [&](StoreResult<WatchBatch> result) {
      deferred.push_back(
          [done = std::exchange(watching.waiting, nullptr), result = std::move(result)] { done(result); });
    };
    if (closed && !watching.ended) watching.ended = closed_error();
    if (!watching.ended && watching.position < compacted) {
      watching.ended = compacted_error(watching.position, compacted);
    }
    if (watching.ended) return answer(*watching.ended);
    WatchBatch batch;
    auto after =
        std::ranges::upper_bound(log, watching.position, {}, [](const auto& t) { return t.front()->revision; });
    for (; after != log.end(); ++after) {
      for (const EventRef& event : *after) {
        if (has_prefix(event->key, watching.request.prefix)) batch.events.push_back(event);
      }
    }
    // A watcher that starts in the future does not get changes before its start.
    watching.position = std::max(watching.position, current);
    if (batch.events.empty() && !watching.progress_wanted) return;
    watching.progress_wanted = false;
    batch.revision = watching.position;
    answer(std::move(batch));
  }

  void feed_all(Deferred& deferred) {
    for (Watching* watching : watchers) feed(*watching, deferred);
  }
};

class MemoryStore::Following final : public Watcher {
 public:
  Following(std::shared_ptr<State> state, WatchRequest request) : state_(std::move(state)) {
    std::lock_guard lock(state_->mutex);
    watching_.position = request.after;
    if (request.after == Revision{}) {
      watching_.position = state_->current;
      watching_.progress_wanted = true;
    }
    watching_.request = std::move(request);
    state_->watchers.push_back(&watching_);
  }

  ~Following() override {
    Callback<WatchBatch> waiting;
    {
      std::lock_guard lock(state_->mutex);
      std::erase(state_->watchers, &watching_);
      waiting = std::exchange(watching_.waiting, nullptr);
    }
    if (waiting) waiting(closed_error());
  }

  void next(Callback<WatchBatch> done) override {
    Deferred deferred;
    {
      std::lock_guard lock(state_->mutex);
      assert(!watching_.waiting);
      watching_.waiting = std::move(done);
      state_->feed(watching_, deferred);
    }
    run(deferred);
  }

  void request_progress() override {
    Deferred deferred;
    {
      std::lock_guard lock(state_->mutex);
      if (!state_->reports_progress) return;
      watching_.progress_wanted = true;
      state_->feed(watching_, deferred);
    }
    run(deferred);
  }

 private:
  std::shared_ptr<State> state_;
  State::Watching watching_;
};

MemoryStore::MemoryStore(const Clock& clock) : state_(std::make_shared<State>(clock)) {}

MemoryStore::~MemoryStore() {
  Deferred deferred;
  {
    std::lock_guard lock(state_->mutex);
    state_->closed = true;
    state_->feed_all(deferred);
  }
  run(deferred);
}

void MemoryStore::get(std::string key, Callback<Got> done) {
  StoreResult<Got> result = [&]() -> StoreResult<Got> {
    std::lock_guard lock(state_->mutex);
    if (state_->failure) return *state_->failure;
    Got got{std::nullopt, state_->current};
    if (const Version* version = state_->find(key, state_->current)) {
      got.item = KeyValue{key, version->value, version->created, version->modified};
    }
    return got;
  }();
  done(std::move(result));
}

void MemoryStore::range(RangeRequest request, Callback<Page> done) {
  StoreResult<Page> result = [&]() -> StoreResult<Page> {
    std::lock_guard lock(state_->mutex);
    if (state_->failure) return *state_->failure;
    Revision at = request.at == Revision{} ? state_->current : request.at;
    if (at > state_->current) return future_error(at, state_->current);
    if (at < state_->compacted) return compacted_error(at, state_->compacted);
    Page page;
    page.revision = at;
    uint64_t count = 0;
    for (auto it = state_->keys.lower_bound(std::max(request.prefix, request.from)); it != state_->keys.end(); ++it) {
      if (!has_prefix(it->first, request.prefix)) break;
      const Version* version = state_->version_at(it->second, at);
      if (!version) continue;
      ++count;
      if (request.limit == 0 || page.items.size() < request.limit) {
        page.items.push_back(
            {it->first, request.keys_only ? nullptr : version->value, version->created, version->modified,
             state_->expiries.contains(it->first) && state_->expiries[it->first].first == version->modified});
      }
    }
    page.more = count > page.items.size();
    if (request.count) page.count = count;
    return page;
  }();
  done(std::move(result));
}

void MemoryStore::current_revision(Callback<Revision> done) {
  StoreResult<Revision> result = [&]() -> StoreResult<Revision> {
    std::lock_guard lock(state_->mutex);
    if (state_->failure) return *state_->failure;
    return state_->current;
  }();
  done(std::move(result));
}

void MemoryStore::write(Transaction transaction, Callback<WriteResult> done) {
  std::vector<Transaction> one;
  one.push_back(std::move(transaction));
  write_all(std::move(one), [done = std::move(done)](auto results) { done(std::move(results.front())); });
}

void MemoryStore::write_all(std::vector<Transaction> transactions,
                            std::function<void(std::vector<StoreResult<WriteResult>>)> done) {
  std::vector<StoreResult<WriteResult>> results;
  Deferred deferred;
  {
    std::lock_guard lock(state_->mutex);
    for (const Transaction& transaction : transactions) results.push_back(state_->apply(transaction));
    state_->feed_all(deferred);
  }
  run(deferred);
  done(std::move(results));
}

std::unique_ptr<Watcher> MemoryStore::watch(WatchRequest request) {
  return std::make_unique<Following>(state_, std::move(request));
}

void MemoryStore::compact(Revision revision, Callback<Unit> done) {
  Deferred deferred;
  StoreResult<Unit> result = [&]() -> StoreResult<Unit> {
    std::lock_guard lock(state_->mutex);
    if (state_->failure) return *state_->failure;
    if (revision <= state_->compacted) return compacted_error(revision, state_->compacted);
    if (revision > state_->current) return future_error(revision, state_->current);
    state_->compacted = revision;
    for (auto it = state_->keys.begin(); it != state_->keys.end();) {
      auto& versions = it->second;
      // The newest version at or before the compacted revision is kept, unless it is a delete.
      auto keep = std::ranges::upper_bound(versions, revision, {}, &Version::modified);
      if (keep != versions.begin()) --keep;
      if (keep->modified <= revision && !keep->value) ++keep;
      versions.erase(versions.begin(), keep);
      it = versions.empty() ? state_->keys.erase(it) : std::next(it);
    }
    while (!state_->log.empty() && state_->log.front().front()->revision <= revision) state_->log.pop_front();
    state_->feed_all(deferred);
    return Unit{};
  }();
  run(deferred);
  done(std::move(result));
}

void MemoryStore::status(Callback<Status> done) {
  StoreResult<Status> result = [&]() -> StoreResult<Status> {
    std::lock_guard lock(state_->mutex);
    if (state_->failure) return *state_->failure;
    Status status{"memory", "1", state_->current, state_->compacted, 0, state_->reports_progress};
    for (const auto& [key, versions] : state_->keys) {
      for (const Version& version : versions)
        status.db_bytes += key.size() + (version.value ? version.value->size() : 0);
    }
    return status;
  }();
  done(std::move(result));
}

void MemoryStore::expire() {
  std::vector<Transaction> due;
  {
    std::lock_guard lock(state_->mutex);
    UnixTime now = state_->clock.now();
    for (const auto& [key, expiry] : state_->expiries) {
      if (expiry.second <= now) due.push_back({remove(key, expiry.first)});
    }
  }
  write_all(std::move(due), [](auto) {});
}

void MemoryStore::set_failure(std::optional<StoreError> failure) {
  std::lock_guard lock(state_->mutex);
  state_->failure = std::move(failure);
}

void MemoryStore::disable_progress() {
  std::lock_guard lock(state_->mutex);
  state_->reports_progress = false;
}

void MemoryStore::break_watchers(StoreError error) {
  Deferred deferred;
  {
    std::lock_guard lock(state_->mutex);
    for (State::Watching* watching : state_->watchers) watching->ended = error;
    state_->feed_all(deferred);
  }
  run(deferred);
}

}  // namespace holdfast::store
