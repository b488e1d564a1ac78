#include "cache/watcher.h"

#include <algorithm>

#include "cache/state.h"

namespace holdfast::cache {

namespace {
constexpr size_t kPageOfLongSelector = 5000;
}  // namespace

const std::shared_ptr<const Event>& WakeList::Resumption::share(const std::shared_ptr<const Event>& event) {
  if (last != event.get()) {
    last = event.get();
    shared = {std::make_shared<std::shared_ptr<const Event>>(event), last};
  }
  return shared;
}

WakeList::Resumption& WakeList::at(Executor& where) {
  for (Resumption& known : resumptions_) {
    if (known.where == &where) return known;
  }
  return resumptions_.emplace_back(Resumption{&where});
}

void WakeList::run() {
  // Watchers first: a read that waits for a revision may continue synchronously.
  for (Resumption& resumption : resumptions_) {
    resumption.where->post([handles = std::move(resumption.handles)] {
      const SharedRenderings here;
      for (size_t i = 0; i < handles.size(); ++i) {
        if (i + kPrefetchDistance < handles.size()) prefetch_ahead(handles[i + kPrefetchDistance].address());
        handles[i].resume();
      }
    });
  }
  for (auto& callback : callbacks_) callback(true);
}

void WatcherState::wake(WakeList& wakes) {
  if (waiting_) wakes.at(*waiting_on_).handles.push_back(std::exchange(waiting_, nullptr));
}

void WatcherState::offer(const std::shared_ptr<const Event>& event, bool routed, uint64_t batch, Bodies& bodies,
                         const Codec& codec, WakeList& wakes) {
  if (event->revision <= after) return;
  const bool all = routed && takes_all_;
  const auto mine = [&](const EntryRef& entry) {
    return entry && (all || (entry->key().starts_with(request.scope) && selected(*entry)));
  };
  const bool was = mine(event->previous), is = mine(event->object);
  if (!was && !is) return;
  Delivery delivery;
  delivery.revision = event->revision;
  if (is) {
    delivery.type = was ? EventType::Modified : EventType::Added;
  } else {
    delivery.type = EventType::Deleted;
    delivery.object_ = event->gone(bodies, codec);
  }
  push(std::move(delivery), event, batch, wakes);
}

void WatcherState::push(Delivery delivery, const std::shared_ptr<const Event>& event, uint64_t batch, WakeList& wakes) {
  std::lock_guard lock(mutex_);
  if (has_ended()) return;
  if (batch != batch_) {
    batch_ = batch;
    queued_before_ = queued();
  }
  if (queued_before_ >= limit_ && queued() >= limit_) {
    // Queued events are still delivered, in order and without a gap; then the watch ends.
    end_ = Watcher::End::TooSlow;
    counts->slow_watchers.fetch_add(1, std::memory_order_relaxed);
    return wake(wakes);
  }
  put(std::move(delivery), event, wakes);
  // A burst grants the usual capacity once more, until the watcher has caught up.
  if (queued() > limit_ && (limit_ == base_limit_ || burst_ == batch)) {
    limit_ = queued() + base_limit_;
    burst_ = batch;
  }
}

void WatcherState::put(Delivery delivery, const std::shared_ptr<const Event>& event, WakeList& wakes) {
  if (!waiting_) {
    delivery.event_ = event;
    queue_.push_back(std::move(delivery));
    return;
  }
  WakeList::Resumption& resumption = wakes.at(*waiting_on_);
  if (event) delivery.event_ = resumption.share(event);
  waiting_out_->push_back(std::move(delivery));
  handed_.store(true, std::memory_order_relaxed);
  resumption.handles.push_back(std::exchange(waiting_, nullptr));
}

void WatcherState::bookmark(Revision revision, WakeList& wakes) {
  Delivery delivery;
  delivery.revision = revision;
  std::lock_guard lock(mutex_);
  if (has_ended() || queued() >= limit_) return;
  put(std::move(delivery), nullptr, wakes);
}

void WatcherState::finish(Watcher::End why, WakeList& wakes) {
  std::lock_guard lock(mutex_);
  if (!has_ended() || why == Watcher::End::Cancelled) end_ = why;
  wake(wakes);
}

void WatcherState::take_initial(size_t max, std::vector<Delivery>& out) {
  // Each page copies the selector and prepares it again.
  if (selector_index != nullptr) max = std::max(max, kPageOfLongSelector);
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

bool WatcherState::take_queued(size_t max, std::vector<Delivery>& out) {
  if (end_ == Watcher::End::Cancelled) return true;
  if (taken_ == 0 && out.empty() && queue_.size() <= max) {
    out.swap(queue_);
  } else {
    for (; queue_length() > 0 && out.size() < max; ++taken_) out.push_back(std::move(queue_[taken_]));
    if (queue_length() == 0) {
      queue_.clear();
      taken_ = 0;
    }
  }
  // Initial state and replay are done: from now on the watcher must keep up.
  if (queued() < base_limit_) limit_ = base_limit_;
  return !out.empty() || has_ended();
}

bool WatcherState::take(size_t max, std::vector<Delivery>& out) {
  if (initial_left) {
    if (end() == Watcher::End::Cancelled) return true;
    take_initial(max, out);
    if (!out.empty()) return true;
  }
  std::lock_guard lock(mutex_);
  return take_queued(max, out);
}

Watcher::End WatcherState::end() const { return end_; }

bool WatcherState::pending() const {
  std::lock_guard lock(mutex_);
  return initial_left || queued() > 0 || has_ended();
}

bool WatcherState::wait(Executor& executor, std::coroutine_handle<> follower, size_t max, std::vector<Delivery>& out) {
  std::lock_guard lock(mutex_);
  if (take_queued(max, out)) return false;
  assert(!waiting_);
  waiting_ = follower;
  waiting_on_ = &executor;
  waiting_out_ = &out;
  return true;
}

void WatcherState::resumed(size_t max, std::vector<Delivery>& out) {
  if (handed_.load(std::memory_order_relaxed)) {
    handed_.store(false, std::memory_order_relaxed);
    if (end_ == Watcher::End::Cancelled) out.clear();
  } else if (out.empty()) {
    take(max, out);
  }
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
  // Do not keep the memory of a burst for every watcher that saw it.
  constexpr size_t kKept = 64;
  if (out.capacity() > kKept) {
    out = {};
  } else {
    out.clear();
  }
  // Queued events are checked in await_suspend, where it can also start to wait, under one lock.
  return state.initial_left && state.take(max, out);
}
bool Watcher::Next::await_suspend(std::coroutine_handle<> follower) { return state.wait(executor, follower, max, out); }
void Watcher::Next::await_resume() { state.resumed(max, out); }

bool Watcher::pending() const { return state_->pending(); }

void Watcher::cancel() {
  WakeList wakes;
  if (const std::shared_ptr<CacheState> cache = state_->cache.lock()) cache->forget(*state_);
  state_->finish(End::Cancelled, wakes);
  wakes.run();
}

Watcher::End Watcher::end() const { return state_->end(); }

}  // namespace holdfast::cache
