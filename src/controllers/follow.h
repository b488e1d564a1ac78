// Follows a watch cache: every existing object, then each change.
#pragma once

#include <functional>
#include <memory>

#include "base/task.h"
#include "base/task_group.h"
#include "cache/cache.h"

namespace holdfast::controllers {

struct Followed {
  std::shared_ptr<cache::Watcher> watcher;  // Owned by the loop.

  void cancel() {
    if (watcher != nullptr) watcher->cancel();
  }
};

// Until the tasks close. A watch that ends begins again: `begin` is called, and everything comes again.
Task<void> follow(TaskGroup& tasks, cache::Cache& cache, Followed& followed, std::function<void()> begin,
                  std::function<void(const cache::Delivery&)> see);

}  // namespace holdfast::controllers
