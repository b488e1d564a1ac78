// Watches a cache: delivers every existing object, then each change.
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

// Runs until the tasks close. A watch that ends is restarted: `begin` is called, and all objects are delivered again.
Task<void> follow(TaskGroup& tasks, cache::Cache& cache, Followed& followed, std::function<void()> begin,
                  std::function<void(const cache::Delivery&)> see);

}  // namespace holdfast::controllers
