// At most one coroutine per key. A key that is requested while its coroutine runs gets another run afterwards, so an
// event that arrives during the work is never lost: the work may already have read what the event is about.
//
// Belongs to one loop.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/task.h"
#include "base/task_group.h"

namespace holdfast::controllers {

class KeyedWork {
 public:
  // `work` brings the object of that key to its desired state; it reads the current state itself.
  KeyedWork(TaskGroup& tasks, std::function<Task<void>(std::string_view key)> work)
      : tasks_(tasks), work_(std::move(work)) {}

  void request(std::string_view key) {
    if (const auto found = requested_again_.find(key); found != requested_again_.end()) {
      found->second = true;
      return;
    }
    tasks_.run(run(requested_again_.emplace(key, false).first));
  }

 private:
  using Keys = std::map<std::string, bool, std::less<>>;  // The keys at work.

  Task<void> run(Keys::iterator key) {
    const struct Done {
      Keys& keys;
      Keys::iterator key;
      ~Done() { keys.erase(key); }
    } done{requested_again_, key};
    do {
      key->second = false;
      co_await work_(key->first);
    } while (key->second && !tasks_.closing());
  }

  TaskGroup& tasks_;
  const std::function<Task<void>(std::string_view key)> work_;
  Keys requested_again_;
};

}  // namespace holdfast::controllers
