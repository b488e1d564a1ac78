#include "store/feed.h"

#include <algorithm>
#include <utility>

#include "store/calls.h"
#include "store/rules.h"

namespace holdfast::store {
namespace {

// One batch from memory: large enough to be efficient, small enough to be built immediately.
constexpr size_t kBatchEvents = 1024;

uint64_t cost_bytes(const Event& event) {
  return sizeof(Event) + 2 * event.key.size() + (event.value ? event.value->size() : 0) +
         (event.previous ? event.previous->size() : 0);
}

}  // namespace

struct Feed::Watching {
  explicit Watching(std::string range) : prefix(std::move(range)) {}

  const std::string prefix;

  // The key in parked_.
  std::string_view route() const { return prefix.ends_with('/') ? std::string_view(prefix) : std::string_view(); }

  // Guarded by the feed's mutex.
  Revision position;     // Everything of the range up to here has been delivered.
  bool resting = false;  // In parked_: its position is implicitly the current revision of the feed.
  bool progress_wanted = false;
  bool reading = false;  // A read of history is in progress.
  std::optional<StoreError> ended;
  Callback<WatchBatch> waiting;

  CallbackCounter calls;
};

// Results collected under the feed's lock, delivered after it is released.
struct Feed::Answers {
  struct Answer {
    std::shared_ptr<Watching> watching;
    Callback<WatchBatch> done;
    StoreResult<WatchBatch> result;
  };
  std::vector<Answer> answers;

  void add(const std::shared_ptr<Watching>& watching, StoreResult<WatchBatch> result) {
    watching->calls.begin();
    answers.push_back({watching, std::exchange(watching->waiting, nullptr), std::move(result)});
  }

  void give() {
    for (Answer& answer : answers) {
      answer.watching->calls.run([&] {
        answer.done(std::move(answer.result));
        answer.done = nullptr;
      });
    }
  }
};

class Feed::Handle final : public Watcher {
 public:
  Handle(std::shared_ptr<Feed> feed, std::shared_ptr<Watching> watching)
      : feed_(std::move(feed)), watching_(std::move(watching)) {}

  ~Handle() override {
    Answers answers;
    {
      std::lock_guard lock(feed_->mutex_);
      feed_->unpark(watching_);
      feed_->watchers_.erase(watching_);
      watching_->ended = closed_error();
      if (watching_->waiting) answers.add(watching_, closed_error());
    }
    answers.give();
    watching_->calls.wait_for_others();
  }

  void next(Callback<WatchBatch> done) override {
    Answers answers;
    {
      std::lock_guard lock(feed_->mutex_);
      assert(!watching_->waiting && "one next() at a time");
      watching_->waiting = std::move(done);
      feed_->advance(watching_, answers);
    }
    answers.give();
  }

  void request_progress() override {
    Answers answers;
    {
      std::lock_guard lock(feed_->mutex_);
      feed_->unpark(watching_);
      watching_->progress_wanted = true;
      feed_->advance(watching_, answers);
    }
    answers.give();
  }

 private:
  std::shared_ptr<Feed> feed_;
  std::shared_ptr<Watching> watching_;
};

Feed::Feed(Revision current, Revision compacted, uint64_t recent_bytes, Reader reader)
    : recent_limit_bytes_(recent_bytes),
      reader_(std::move(reader)),
      current_(current),
      compacted_(compacted),
      floor_(current) {}

Revision Feed::current() const {
  std::lock_guard lock(mutex_);
  return current_;
}

Revision Feed::compacted() const {
  std::lock_guard lock(mutex_);
  return compacted_;
}

EventRef Feed::recent(std::string_view key) const {
  std::lock_guard lock(mutex_);
  auto it = newest_.find(key);
  return it == newest_.end() ? nullptr : it->second;
}

void Feed::publish(std::vector<std::vector<EventRef>> transactions) {
  Answers answers;
  {
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Watching>> concerned;
    const auto concern = [this, &concerned](std::string_view route) {
      for (;;) {
        const auto found = parked_.find(route);
        if (found == parked_.end()) return;
        concerned.push_back(found->second);
        unpark(concerned.back());  // At the revision before these changes.
      }
    };
    concern("");
    for (const auto& transaction : transactions) {
      for (const EventRef& event : transaction) {
        const std::string_view key = event->key;
        for (size_t slash = key.find('/'); slash != std::string_view::npos; slash = key.find('/', slash + 1)) {
          concern(key.substr(0, slash + 1));
        }
      }
    }
    for (auto& transaction : transactions) {
      assert(transaction.front()->revision.value == current_.value + 1 && "revisions have no gaps");
      current_ = transaction.front()->revision;
      for (const EventRef& event : transaction) {
        recent_bytes_ += cost_bytes(*event);
        // The map's key points into the event: replace both together.
        newest_.erase(event->key);
        newest_.emplace(event->key, event);
      }
      recent_.push_back(std::move(transaction));
    }
    for (const auto& watching : concerned) advance(watching, answers);
    evict();
  }
  answers.give();
}

void Feed::restart(Revision current) {
  Answers answers;
  {
    std::lock_guard lock(mutex_);
    assert(current >= current_ && "acknowledged revisions do not go away");
    for (const auto& watching : watchers_) unpark(watching);
    current_ = floor_ = current;
    newest_.clear();
    recent_.clear();
    recent_bytes_ = 0;
    for (const auto& watching : watchers_) {
      if (watching->waiting) advance(watching, answers);
    }
  }
  answers.give();
}

void Feed::set_compacted(Revision compacted) {
  std::lock_guard lock(mutex_);
  compacted_ = std::max(compacted_, compacted);
}

void Feed::close() {
  Answers answers;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    for (const auto& watching : watchers_) {
      unpark(watching);
      if (!watching->ended) watching->ended = closed_error();
      if (watching->waiting) answers.add(watching, *watching->ended);
    }
  }
  answers.give();
}

std::unique_ptr<Watcher> Feed::watch(WatchRequest request) {
  auto watching = std::make_shared<Watching>(std::move(request.prefix));
  std::lock_guard lock(mutex_);
  watching->position = request.after;
  if (request.after == Revision{}) {
    watching->position = current_;
    watching->progress_wanted = true;
  }
  if (closed_) watching->ended = closed_error();
  watchers_.insert(watching);
  return std::make_unique<Handle>(shared_from_this(), std::move(watching));
}

// Called with the lock held, like all functions below.
void Feed::rest(const std::shared_ptr<Watching>& watching) {
  if (std::exchange(watching->resting, true)) return;
  parked_.emplace(watching->route(), watching);
}

void Feed::unpark(const std::shared_ptr<Watching>& watching) {
  if (!std::exchange(watching->resting, false)) return;
  watching->position = std::max(watching->position, current_);
  const auto [first, last] = parked_.equal_range(watching->route());
  parked_.erase(std::find_if(first, last, [&](const auto& entry) { return entry.second == watching; }));
}

// Advances a waiting watcher from memory, or starts a read of history if it is behind.
void Feed::advance(const std::shared_ptr<Watching>& watching, Answers& answers) {
  if (!watching->waiting || watching->reading) return;
  if (!watching->ended && watching->position < compacted_) {
    watching->ended = compacted_error(watching->position, compacted_);
  }
  if (watching->ended) return answers.add(watching, *watching->ended);
  if (watching->position < floor_) {
    return read_history(watching);
  }
  WatchBatch batch;
  // Revisions have no gaps, so the position of the next transaction follows from the revision.
  uint64_t skip = std::min<uint64_t>(watching->position.value - floor_.value, recent_.size());
  Revision reached = std::max(watching->position, current_);
  for (auto it = recent_.begin() + static_cast<ptrdiff_t>(skip); it != recent_.end(); ++it) {
    if (batch.events.size() >= kBatchEvents) {
      reached = {it->front()->revision.value - 1};
      break;
    }
    for (const EventRef& event : *it) {
      if (has_prefix(event->key, watching->prefix)) batch.events.push_back(event);
    }
  }
  watching->position = reached;
  if (batch.events.empty() && !watching->progress_wanted) {
    return rest(watching);
  }
  watching->progress_wanted = false;
  batch.revision = reached;
  answers.add(watching, std::move(batch));
}

// After close() the reader is no longer called.
void Feed::read_history(const std::shared_ptr<Watching>& watching) {
  watching->reading = true;
  reader_(watching->prefix, watching->position, [self = weak_from_this(), watching](StoreResult<History> history) {
    std::shared_ptr<Feed> feed = self.lock();
    if (!feed) return;  // No feed, no watchers: their callbacks were completed when they ended.
    Answers answers;
    {
      std::lock_guard lock(feed->mutex_);
      watching->reading = false;
      if (!history) {
        if (!watching->ended) watching->ended = history.take_error();
      } else if (watching->waiting && !watching->ended) {
        watching->position = history->reached;
        if (!history->events.empty()) {
          answers.add(watching, WatchBatch{std::move(history->events), history->reached});
        }
      }
      feed->advance(watching, answers);
    }
    answers.give();
  });
}

// Drops the oldest changes above the memory limit; always whole transactions.
void Feed::evict() {
  while (recent_bytes_ > recent_limit_bytes_ && !recent_.empty()) {
    for (const EventRef& event : recent_.front()) {
      recent_bytes_ -= cost_bytes(*event);
      auto it = newest_.find(event->key);
      if (it != newest_.end() && it->second == event) newest_.erase(it);
    }
    floor_ = recent_.front().front()->revision;
    recent_.pop_front();
  }
}

}  // namespace holdfast::store
