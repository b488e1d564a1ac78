// Sequential work on names, in the order requested. A name requested while it is queued is processed once; one
// requested while it is being processed, once more. Failed names go to the end of the queue, so that they do not block
// the others forever.
//
// Belongs to one loop.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/hash.h"
#include "base/task.h"
#include "base/task_group.h"
#include "controllers/pause.h"

namespace holdfast::controllers {

class QueuedWork {
 public:
  // `work` reconciles the object of that name and returns whether it succeeded. Nothing is processed while `pause` is
  // on; it may be null.
  QueuedWork(TaskGroup& tasks, Pause* pause, std::function<Task<bool>(std::string name)> work)
      : tasks_(tasks), pause_(pause), work_(std::move(work)) {}

  void request(std::string_view name) {
    if (!waiting_.emplace(name).second) return;
    queue_.emplace_back(name);
    if (std::exchange(working_, true)) return;
    tasks_.run(run());
  }

 private:
  // Exponential backoff between failed attempts.
  static constexpr std::chrono::milliseconds kFirstRetry{200}, kLastRetry{5000};

  Task<void> run() {
    std::chrono::milliseconds retry = kFirstRetry;
    while (!queue_.empty() && !tasks_.closing()) {
      if (pause_ != nullptr && pause_->on()) {
        co_await tasks_.sleep(Pause::kLook);
        continue;
      }
      const std::string name = std::move(queue_.front());
      queue_.pop_front();
      waiting_.erase(name);
      bool succeeded = false;
      try {
        succeeded = co_await work_(name);
      } catch (...) {
        report_failed_task("queued work", std::current_exception());
      }
      if (succeeded) {
        retry = kFirstRetry;
        continue;
      }
      co_await tasks_.sleep(retry);
      retry = std::min(2 * retry, kLastRetry);
      if (waiting_.insert(name).second) queue_.push_back(name);
    }
    working_ = false;
  }

  TaskGroup& tasks_;
  Pause* const pause_;
  const std::function<Task<bool>(std::string name)> work_;
  std::deque<std::string> queue_;
  std::unordered_set<std::string, KeyHash, std::equal_to<>> waiting_;
  bool working_ = false;
};

}  // namespace holdfast::controllers
