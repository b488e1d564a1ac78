#include "cache/follower.h"

#include <algorithm>
#include <vector>

namespace holdfast::cache {
namespace {

// Before a cache is ready. Short at first, because the start of a server waits for it.
constexpr std::chrono::milliseconds kFirstDelay{1}, kLongestDelay{100};
// After a failure of the owner, which the same objects may cause again.
constexpr std::chrono::milliseconds kAfterFailure{1000};

bool see_all(const Follower::Following& following, std::span<const Delivery> events) {
  try {
    following.see(events);
    return true;
  } catch (...) {
    report_failed_task("follower of a cache", std::current_exception());
    return false;
  }
}

}  // namespace

void Follower::cancel() {
  if (watcher_) watcher_->cancel();
}

Task<void> Follower::run(Cache& cache, Following following) {
  const auto wanted = [&] { return !tasks_.closing() && (!following.wanted || following.wanted()); };
  std::chrono::milliseconds delay = kFirstDelay;
  while (wanted()) {
    WatchRequest request;
    request.start = following.start;
    request.bookmarks = request.initial_events_bookmark = following.marks_initial_end;
    Result<Watcher> opened = co_await cache.watch(std::move(request), tasks_.loop());
    if (!opened) {
      co_await tasks_.sleep(delay);
      delay = std::min(2 * delay, kLongestDelay);
      continue;
    }
    if (!wanted()) break;
    delay = kFirstDelay;
    watcher_.emplace(std::move(*opened));
    co_await follow(following);
    watcher_.reset();
  }
}

Task<void> Follower::follow(const Following& following) {
  if (following.begin) following.begin();
  std::vector<Delivery> events;
  while (!tasks_.closing()) {
    co_await watcher_->next(tasks_.loop(), events, following.batch);
    if (events.empty()) co_return;
    if (!see_all(following, events)) {
      co_await tasks_.sleep(kAfterFailure);
      co_return;
    }
    if (watcher_->pending()) co_await tasks_.sleep(std::chrono::milliseconds(0));
  }
}

}  // namespace holdfast::cache
