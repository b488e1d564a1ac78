#include "controllers/follow.h"

#include <vector>

namespace holdfast::controllers {

Task<void> follow(TaskGroup& tasks, cache::Cache& cache, Followed& followed, std::function<void()> begin,
                  std::function<void(const cache::Delivery&)> see) {
  constexpr std::chrono::milliseconds kRetry(20);
  while (!tasks.closing()) {
    cache::WatchRequest request;
    request.start = cache::WatchRequest::Start::Initial;
    Result<cache::Watcher> opened = co_await cache.watch(request, tasks.loop());
    if (!opened) {
      co_await tasks.sleep(kRetry);
      continue;
    }
    followed.watcher = std::make_shared<cache::Watcher>(std::move(*opened));
    const std::shared_ptr<cache::Watcher> mine = followed.watcher;
    std::vector<cache::Delivery> events;
    begin();
    while (!tasks.closing()) {
      co_await mine->next(tasks.loop(), events);
      if (events.empty()) break;
      for (const cache::Delivery& event : events) see(event);
    }
  }
}

}  // namespace holdfast::controllers
