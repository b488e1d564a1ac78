// Background work on keys: reconcile the object that a key names, whose current state the work reads itself.
//
//   KeyedQueue<std::string> queue{tasks, [this](std::string name) { return settle(std::move(name)); }, {}};
//   queue.add("web");
//
// Keys are worked off in the order in which they were added, several at a time, but each key by one worker only:
//   * a key added while it is queued is worked on once;
//   * one added while it is being worked on, once more afterwards, since the work may have read older state;
//   * one whose work fails (false, or an exception, which is logged and counted), again after a delay that doubles with
//     every failure, or at once when it is added again. Others do not wait for it.
//
// Belongs to the loop of its tasks, except for post(). Nothing begins once the tasks close.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <utility>

#include "base/task.h"
#include "base/task_group.h"

namespace holdfast {

struct KeyedQueueOptions {
  size_t workers = 16;  // Keys that are worked on at the same time.
  std::chrono::milliseconds first_retry{50}, longest_retry{5000};
  // Nothing begins while this is true; asked before every key, and every `look_after` during a pause.
  std::function<bool()> paused = {};
  std::chrono::milliseconds look_after{500};
};

template <class Key, class Less = std::less<>>
class KeyedQueue {
 public:
  // `work` returns whether it succeeded.
  KeyedQueue(TaskGroup& tasks, std::function<Task<bool>(Key key)> work, KeyedQueueOptions options)
      : tasks_(tasks), work_(std::move(work)), options_(std::move(options)) {}
  KeyedQueue(const KeyedQueue&) = delete;
  KeyedQueue& operator=(const KeyedQueue&) = delete;

  void add(Key key) {
    const auto [at, is_new] = entries_.try_emplace(std::move(key));
    if (is_new || at->second.state == State::Failed) {
      enqueue(at);
    } else if (at->second.state == State::Running) {
      at->second.again = true;
    }
  }
  // Any thread: adds the key on the loop.
  void post(Key key) {
    tasks_.post([this, key = std::move(key)] { return add_task(key); });
  }

 private:
  enum class State : uint8_t { Queued, Running, Failed };
  struct Entry {
    State state = State::Queued;
    bool again = false;     // Added while running.
    bool sleeping = false;  // retry_later() is waiting.
    int failures = 0;       // In a row.
  };
  using Place = typename std::map<Key, Entry, Less>::iterator;

  Task<void> add_task(Key key) {
    add(std::move(key));
    co_return;
  }

  void enqueue(Place at) {
    at->second.state = State::Queued;
    queue_.push_back(at);
    if (workers_ == options_.workers || tasks_.closing()) return;
    ++workers_;
    tasks_.run(work_off());
  }

  // One worker: runs until the queue is empty.
  Task<void> work_off() {
    while (!queue_.empty() && !tasks_.closing()) {
      if (options_.paused && options_.paused()) {
        co_await tasks_.sleep(options_.look_after);
        continue;
      }
      const Place at = queue_.front();
      queue_.pop_front();
      at->second.state = State::Running;
      bool succeeded = false;
      try {
        succeeded = co_await work_(at->first);
      } catch (...) {
        report_failed_task("queued work", std::current_exception());
      }
      finish(at, succeeded);
    }
    --workers_;
  }

  void finish(Place at, bool succeeded) {
    Entry& entry = at->second;
    const int failures = std::exchange(entry.failures, succeeded ? 0 : entry.failures + 1);
    if (std::exchange(entry.again, false)) return enqueue(at);
    if (succeeded) {
      entries_.erase(at);
      return;
    }
    entry.state = State::Failed;
    if (std::exchange(entry.sleeping, true)) return;
    constexpr int kMostDoublings = 20;
    const auto delay = options_.first_retry * (int64_t{1} << std::min(failures, kMostDoublings));
    tasks_.run(retry_later(at->first, std::min(delay, options_.longest_retry)));
  }

  Task<void> retry_later(Key key, std::chrono::milliseconds delay) {
    co_await tasks_.sleep(delay);
    const Place at = entries_.find(key);
    if (at == entries_.end()) co_return;  // Succeeded in the meantime.
    at->second.sleeping = false;
    if (at->second.state == State::Failed) enqueue(at);
  }

  TaskGroup& tasks_;
  const std::function<Task<bool>(Key key)> work_;
  const KeyedQueueOptions options_;
  std::map<Key, Entry, Less> entries_;
  std::deque<Place> queue_;
  size_t workers_ = 0;
};

}  // namespace holdfast
