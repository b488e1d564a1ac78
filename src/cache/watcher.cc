#include "cache/watcher.h"

#include "cache/state.h"

namespace holdfast::cache {

void Wakes::resume(Executor& where, std::coroutine_handle<> what) {
  for (Resumption& known : resumptions_) {
    if (known.where == &where) return known.handles.push_back(what);
  }
  resumptions_.push_back({&where, {what}});
}

void Wakes::run() {
  // Watchers first: whoever waits for a revision may go on to read without a pause.
  for (Resumption& resumption : resumptions_) {
    resumption.where->post([handles = std::move(resumption.handles)] {
      for (const std::coroutine_handle<> handle : handles) handle.resume();
    });
  }
  for (auto& callback : callbacks_) callback(true);
}

void WatcherState::wake(Wakes& wakes) {
  if (waiting_) wakes.resume(*waiting_on_, std::exchange(waiting_, nullptr));
}

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
  } else {
    delivery.type = EventType::Deleted;
    delivery.object_ = event->gone(bodies, codec);
  }
  push(std::move(delivery), batch, wakes);
}

void WatcherState::push(Delivery delivery, uint64_t batch, Wakes& wakes) {
  std::lock_guard lock(mutex_);
  if (end_ != Watcher::End::Open) return;
  if (batch != batch_) {
    batch_ = batch;
    queued_before_ = queued();
  }
  if (queued_before_ >= limit_ && queued() >= limit_) {
    // What is queued still arrives, in order and without a gap; then the watch ends.
    end_ = Watcher::End::TooSlow;
    counts->slow_watchers.fetch_add(1, std::memory_order_relaxed);
  } else {
    queue_.push_back(std::move(delivery));
    // A burst that it could not help leaves it the usual room, once: until it has caught up.
    if (queued() > limit_ && (limit_ == base_limit || burst_ == batch)) {
      limit_ = queued() + base_limit;
      burst_ = batch;
    }
  }
  wake(wakes);
}

void WatcherState::bookmark(Revision revision, Wakes& wakes) {
  Delivery delivery;
  delivery.revision = revision;
  std::lock_guard lock(mutex_);
  if (end_ != Watcher::End::Open || queued() >= limit_) return;
  queue_.push_back(std::move(delivery));
  wake(wakes);
}

void WatcherState::finish(Watcher::End why, Wakes& wakes) {
  std::lock_guard lock(mutex_);
  if (end_ == Watcher::End::Open || why == Watcher::End::Cancelled) end_ = why;
  wake(wakes);
}

void WatcherState::take_initial(size_t max, std::vector<Delivery>& out) {
  const ListPage page =
      initial.list({.scope = request.scope, .selector = request.selector, .from = initial_from, .limit = max});
  for (const EntryRef& entry : page.entries) {
    Delivery delivery;
    delivery.type = EventType::Added;
    delivery.revision = entry->revision();
    delivery.object_ = entry;
    out.push_back(std::move(delivery));
  }
  initial_from = page.next;
  if (page.more) return;
  initial_left = false;
  if (request.bookmarks && request.initial_events_bookmark) {
    Delivery end;
    end.revision = initial.revision();
    end.initial_events_end = true;
    out.push_back(std::move(end));
  }
  initial = {};
}

bool WatcherState::take(size_t max, std::vector<Delivery>& out) {
  if (initial_left) {
    if (end() == Watcher::End::Cancelled) return true;
    take_initial(max, out);
    if (!out.empty()) return true;
  }
  std::lock_guard lock(mutex_);
  if (end_ == Watcher::End::Cancelled) return true;
  if (taken_ == 0 && out.empty() && queue_.size() <= max) {
    out.swap(queue_);
  } else {
    for (; queued() > 0 && out.size() < max; ++taken_) out.push_back(std::move(queue_[taken_]));
    if (queued() == 0) {
      queue_.clear();
      taken_ = 0;
    }
  }
  // Initial state and replay are behind it: from now on it must keep up.
  if (queued() < base_limit) limit_ = base_limit;
  return !out.empty() || end_ != Watcher::End::Open;
}

Watcher::End WatcherState::end() const {
  std::lock_guard lock(mutex_);
  return end_;
}

bool WatcherState::pending() const {
  std::lock_guard lock(mutex_);
  return initial_left || queued() > 0 || end_ != Watcher::End::Open;
}

bool WatcherState::wait(Executor& executor, std::coroutine_handle<> follower) {
  std::lock_guard lock(mutex_);
  if (queued() > 0 || end_ != Watcher::End::Open) return false;
  assert(!waiting_);
  waiting_ = follower;
  waiting_on_ = &executor;
  return true;
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

bool Watcher::Next::await_ready() {
  // What a burst needed is not kept by everybody who saw it.
  constexpr size_t kKept = 64;
  if (out.capacity() > kKept) {
    out = {};
  } else {
    out.clear();
  }
  return state.take(max, out);
}
bool Watcher::Next::await_suspend(std::coroutine_handle<> follower) { return state.wait(executor, follower); }
void Watcher::Next::await_resume() {
  if (out.empty()) state.take(max, out);
}

bool Watcher::pending() const { return state_->pending(); }

void Watcher::cancel() {
  Wakes wakes;
  if (const std::shared_ptr<CacheState> cache = state_->cache.lock()) cache->forget(*state_);
  state_->finish(End::Cancelled, wakes);
  wakes.run();
}

Watcher::End Watcher::end() const { return state_->end(); }

}  // namespace holdfast::cache
