// At most one coroutine per key. A key requested while its coroutine runs is run again afterwards, so an event that
// arrives in the meantime is never lost: the work may already have read older state. Work that fails is repeated, with
// increasing delays.
//
// Belongs to one loop.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/task.h"
#include "base/task_group.h"
#include "controllers/pause.h"

namespace holdfast::controllers {

class KeyedWork {
 public:
  // `work` reconciles the object of that key, whose current state it reads itself, and returns whether it succeeded.
  // Nothing is done while `pause` is on; it may be null.
  KeyedWork(TaskGroup& tasks, Pause* pause, std::function<Task<bool>(std::string key)> work)
      : tasks_(tasks), pause_(pause), work_(std::move(work)) {}

  void request(std::string_view key) {
    if (const auto found = requested_again_.find(key); found != requested_again_.end()) {
      found->second = true;
      return;
    }
    tasks_.run(run(requested_again_.emplace(key, false).first));
  }

 private:
  using Keys = std::map<std::string, bool, std::less<>>;  // The running keys.

  // Exponential backoff between failed attempts.
  static constexpr std::chrono::milliseconds kFirstRetry{50}, kLastRetry{5000};

  Task<void> run(Keys::iterator key) {
    const struct Done {
      Keys& keys;
      Keys::iterator key;
      ~Done() { keys.erase(key); }
    } done{requested_again_, key};
    do {
      key->second = false;
      co_await settle(key->first);
    } while (key->second && !tasks_.closing());
  }

  Task<void> settle(std::string key) {
    std::chrono::milliseconds retry = kFirstRetry;
    while (!tasks_.closing()) {
      if (pause_ != nullptr && pause_->on()) {
        co_await tasks_.sleep(Pause::kLook);
        continue;
      }
      if (co_await work_(key)) co_return;
      co_await tasks_.sleep(retry);
      retry = std::min(2 * retry, kLastRetry);
    }
  }

  TaskGroup& tasks_;
  Pause* const pause_;
  const std::function<Task<bool>(std::string key)> work_;
  Keys requested_again_;
};

}  // namespace holdfast::controllers
