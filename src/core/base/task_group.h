// Ownership of background work.
//
//   TaskGroup   a set of tasks on one event loop; close() ends their sleeps and waits for all of them
//   Timer       a callback after a delay, cancelled when the Timer is destroyed
//   when_all    runs several tasks concurrently and waits for the last one
//   block_on    runs a task on an executor and blocks this thread until it has ended
//
// Nothing is detached: every task belongs to a group, which its owner closes before destroying anything the task uses.
// A task that throws is logged and counted (failed_tasks()); the group and the process continue. when_all and block_on
// have a caller, so they rethrow there.
#pragma once

#include <atomic>
#include <cassert>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/task.h"

namespace holdfast {

// A single-threaded executor with timers: an event loop. Everything but post() is called on its thread.
class TimedExecutor : public Executor {
 public:
  using TimerId = uint64_t;  // Never 0.

  virtual bool in_thread() const = 0;  // Any thread.
  // Runs `work` once, not before `delay` has passed.
  virtual TimerId run_after(std::chrono::milliseconds delay, std::function<void()> work) = 0;
  // Does nothing if the timer has fired, was cancelled, or is 0.
  virtual void cancel(TimerId id) = 0;
};

// Used only on the thread of its executor.
class Timer {
 public:
  explicit Timer(TimedExecutor& executor) : executor_(executor) {}
  Timer(TimedExecutor& executor, std::chrono::milliseconds delay, std::function<void()> work) : executor_(executor) {
    start(delay, std::move(work));
  }
  ~Timer() { cancel(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Replaces the previous start. `work` may start the timer again, or destroy it.
  void start(std::chrono::milliseconds delay, std::function<void()> work) {
    cancel();
    id_ = executor_.run_after(delay, [this, work = std::move(work)] {
      id_ = 0;
      work();
    });
  }
  void cancel() {
    if (id_ != 0) executor_.cancel(std::exchange(id_, 0));
  }

 private:
  TimedExecutor& executor_;
  TimedExecutor::TimerId id_ = 0;
};

// Number of background tasks of this process that ended with an exception.
uint64_t failed_tasks();
// Logs the exception with the owner's name, and counts it. For all owners of background work.
void report_failed_task(std::string_view owner, const std::exception_ptr& failure);

// Runs work that nobody awaits; an exception ends only that work.
template <class Work>
void run_guarded(std::string_view owner, Work& work) {
  try {
    work();
  } catch (...) {
    report_failed_task(owner, std::current_exception());
  }
}

class TaskGroup {
 public:
  // `name` identifies the owner of a failed task in the log: "garbage collector".
  TaskGroup(TimedExecutor& loop, std::string_view name) : loop_(loop), name_(name) {}
  ~TaskGroup();  // All tasks must have ended: close() was awaited, or nothing was started.
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  TimedExecutor& loop() const { return loop_; }
  bool closing() const { return closing_.load(std::memory_order_acquire); }  // Any thread.

  // Starts a task immediately; call on the loop. Once close() has begun, the task is dropped without being started.
  void run(Task<void> task);
  // Any thread: the loop calls `make` and starts the task it returns, unless close() has begun in the meantime.
  void post(std::function<Task<void>()> make);

  // co_await group.sleep(50ms) resumes after the delay or when close() begins; call on the loop.
  auto sleep(std::chrono::milliseconds delay) {
    struct Awaiter {
      TaskGroup& group;
      std::chrono::milliseconds delay;
      bool await_ready() const { return group.closing(); }
      void await_suspend(std::coroutine_handle<> sleeper) { group.add_sleeper(delay, sleeper); }
      void await_resume() const {}
    };
    return Awaiter{*this, delay};
  }

  // Wakes the sleepers and waits for every task. `interrupt` runs first, on the loop: it ends what only the owner knows
  // about, such as watchers. Resumes on `executor`. Call once.
  Task<void> close(Executor& executor, std::function<void()> interrupt = {});

 private:
  void add_sleeper(std::chrono::milliseconds delay, std::coroutine_handle<> sleeper);
  void start(Task<void> task);  // The task has been counted.
  void ended();

  TimedExecutor& loop_;
  const std::string name_;
  std::atomic<bool> closing_{false};

  std::mutex mutex_;
  size_t running_ = 0;               // Guarded by mutex_; tasks may end on any thread.
  std::coroutine_handle<> waiting_;  // close(); guarded by mutex_.

  // Used only on the loop.
  uint64_t next_sleeper_ = 0;
  std::map<uint64_t, std::pair<TimedExecutor::TimerId, std::coroutine_handle<>>> sleepers_;
};

// Starts all tasks on this thread, one after the other, and resumes on `executor` when the last has ended. Then
// rethrows the first exception, if any.
Task<void> when_all(Executor& executor, std::vector<Task<void>> tasks);

// Must not be called on a thread of `executor`.
template <class T>
T block_on(Executor& executor, Task<T> task) {
  std::promise<T> result;
  constexpr auto forward = [](Task<T> inner, std::promise<T>& into) -> Task<void> {  // NOLINT: named as a function.
    if constexpr (std::is_void_v<T>) {
      co_await inner;
      into.set_value();
    } else {
      into.set_value(co_await inner);
    }
  };
  executor.post([&] {
    spawn(forward(std::move(task), result), [&result](std::exception_ptr failure) {
      if (failure) result.set_exception(failure);
    });
  });
  return result.get_future().get();
}

}  // namespace holdfast
