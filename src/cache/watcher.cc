#include "cache/watcher.h"

#include "cache/state.h"

namespace holdfast::cache {

void WatcherState::offer(const std::shared_ptr<const Event>& event, uint64_t batch, Bodies& bodies, const Codec& codec,
                         Wakes& wakes) {
  if (event->revision <= after) return;
  const auto mine = [this](const EntryRef& entry) {
    return entry && entry->key().starts_with(request.scope) && request.selector.matches(*entry);
  };
  const bool was = mine(event->previous), is = mine(event->object);
  if (!was && !is) return;
  Delivery delivery;
  delivery.revision = event->revision;
  delivery.event_ = event;
  if (is) {
    delivery.type = was ? EventType::Modified : EventType::Added;
    delivery.object = event->object;
  } else {
    delivery.type = EventType::Deleted;
    delivery.object = event->gone(bodies, codec);
  }
  push(std::move(delivery), batch, wakes);
}

void WatcherState::push(Delivery delivery, uint64_t batch, Wakes& wakes) {
  std::lock_guard lock(mutex_);
  if (end_ != Watcher::End::Open) return;
  if (batch != batch_) {
    batch_ = batch;
    queued_before_ = queue_.size();
  }
  if (queued_before_ >= limit_ && queue_.size() >= limit_) {
    // What is queued still arrives, in order and without a gap; then the watch ends.
    end_ = Watcher::End::TooSlow;
    counts->slow_watchers.fetch_add(1, std::memory_order_relaxed);
  } else {
    queue_.push_back(std::move(delivery));
    // A burst that it could not help leaves it the usual room, once: until it has caught up.
    if (queue_.size() > limit_ && (limit_ == base_limit || burst_ == batch)) {
      limit_ = queue_.size() + base_limit;
      burst_ = batch;
    }
  }
  if (waiting_) wakes.push_back(std::exchange(waiting_, nullptr));
}

void WatcherState::bookmark(Revision revision, Wakes& wakes) {
  Delivery delivery;
  delivery.revision = revision;
  std::lock_guard lock(mutex_);
  if (end_ != Watcher::End::Open || queue_.size() >= limit_) return;
  queue_.push_back(std::move(delivery));
  if (waiting_) wakes.push_back(std::exchange(waiting_, nullptr));
}

void WatcherState::finish(Watcher::End why, Wakes& wakes) {
  std::lock_guard lock(mutex_);
  if (end_ == Watcher::End::Open || why == Watcher::End::Cancelled) end_ = why;
  if (waiting_) wakes.push_back(std::exchange(waiting_, nullptr));
}

std::vector<Delivery> WatcherState::take(size_t max) {
  std::vector<Delivery> out;
  {
    std::lock_guard lock(mutex_);
    if (end_ == Watcher::End::Cancelled) return out;
  }
  if (initial_left) {
    const ListPage page =
        initial.list({.scope = request.scope, .selector = request.selector, .from = initial_from, .limit = max});
    for (const EntryRef& entry : page.entries) {
      Delivery delivery;
      delivery.type = EventType::Added;
      delivery.revision = entry->revision();
      delivery.object = entry;
      out.push_back(std::move(delivery));
    }
    initial_from = page.next;
    if (page.more) return out;
    initial_left = false;
    if (request.bookmarks && request.initial_events_bookmark) {
      Delivery end;
      end.revision = initial.revision();
      end.initial_events_end = true;
      out.push_back(std::move(end));
    }
    initial = {};
    if (!out.empty()) return out;
  }
  std::lock_guard lock(mutex_);
  while (!queue_.empty() && out.size() < max) {
    out.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  // Initial state and replay are behind it: from now on it must keep up.
  if (queue_.size() < base_limit) limit_ = base_limit;
  return out;
}

bool WatcherState::ended() const {
  std::lock_guard lock(mutex_);
  return end_ != Watcher::End::Open && (end_ == Watcher::End::Cancelled || (queue_.empty() && !initial_left));
}

Watcher::End WatcherState::end() const {
  std::lock_guard lock(mutex_);
  return end_;
}

bool WatcherState::pending() const {
  std::lock_guard lock(mutex_);
  return initial_left || !queue_.empty() || end_ != Watcher::End::Open;
}

void WatcherState::wait(std::function<void(bool)> done) {
  {
    std::lock_guard lock(mutex_);
    if (queue_.empty() && end_ == Watcher::End::Open) {
      assert(!waiting_);
      waiting_ = std::move(done);
      return;
    }
  }
  done(true);
}

// --- Watcher --------------------------------------------------------------------------------------------------------

Watcher::Watcher(std::shared_ptr<WatcherState> state) : state_(std::move(state)) {}
Watcher::Watcher(Watcher&&) noexcept = default;
Watcher& Watcher::operator=(Watcher&& other) noexcept {
  if (this != &other) {
    if (state_ != nullptr) cancel();
    state_ = std::move(other.state_);
  }
  return *this;
}
Watcher::~Watcher() {
  if (state_ != nullptr) cancel();
}

namespace {
Task<std::vector<Delivery>> take_or_wait(std::shared_ptr<WatcherState> state, Executor* executor, size_t max) {
  while (true) {
    std::vector<Delivery> out = state->take(max);
    if (!out.empty() || state->ended()) co_return out;
    co_await from_callback<bool>(*executor, [state](std::function<void(bool)> done) { state->wait(std::move(done)); });
  }
}
}  // namespace

Task<std::vector<Delivery>> Watcher::next(Executor& executor, size_t max) {
  return take_or_wait(state_, &executor, max);
}

bool Watcher::pending() const { return state_->pending(); }

void Watcher::cancel() {
  Wakes wakes;
  if (const std::shared_ptr<CacheState> cache = state_->cache.lock()) cache->forget(*state_);
  state_->finish(End::Cancelled, wakes);
  for (auto& wake : wakes) wake(true);
}

Watcher::End Watcher::end() const { return state_->end(); }

}  // namespace holdfast::cache
