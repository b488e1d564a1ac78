#include "base/task_group.h"

#include "base/log.h"

namespace holdfast {
namespace {

std::atomic<uint64_t> failures{0};

}  // namespace

uint64_t failed_tasks() { return failures.load(std::memory_order_relaxed); }

void report_failed_task(std::string_view owner, const std::exception_ptr& failure) {
  failures.fetch_add(1, std::memory_order_relaxed);
  std::string what;
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& problem) {
    what = problem.what();
  } catch (...) {
    what = "unknown";
  }
  log::error("a background task ended with an exception", {{"task", owner}, {"what", what}});
}

TaskGroup::~TaskGroup() { assert(running_ == 0); }

void TaskGroup::run(Task<void> task) {
  if (closing()) return;
  {
    const std::lock_guard lock(mutex_);
    ++running_;
  }
  start(std::move(task));
}

void TaskGroup::post(std::function<Task<void>()> make) {
  {
    // Under the lock, so that either close() sees this task or this task sees closing_.
    const std::lock_guard lock(mutex_);
    if (closing()) return;
    ++running_;
  }
  loop_.post([this, make = std::move(make)] {
    if (closing()) return ended();
    start(make());
  });
}

void TaskGroup::start(Task<void> task) {
  spawn(std::move(task), [this](std::exception_ptr failure) {
    if (failure) report_failed_task(name_, failure);
    ended();
  });
}

void TaskGroup::ended() {
  const std::lock_guard lock(mutex_);
  --running_;
  if (running_ > 0 || !waiting_) return;
  // Posted, because the frame of the ended task still exists, with its parameters, and resuming may destroy the group.
  loop_.post([waiting = std::exchange(waiting_, {})] { waiting.resume(); });
}

void TaskGroup::add_sleeper(std::chrono::milliseconds delay, std::coroutine_handle<> sleeper) {
  const uint64_t number = next_sleeper_++;
  const TimedExecutor::TimerId timer = loop_.run_after(delay, [this, number, sleeper] {
    sleepers_.erase(number);
    sleeper.resume();
  });
  sleepers_.emplace(number, std::pair(timer, sleeper));
}

Task<void> TaskGroup::close(Executor& executor, std::function<void()> interrupt) {
  if (!loop_.in_thread()) co_await resume_on(loop_);
  {
    const std::lock_guard lock(mutex_);
    closing_.store(true, std::memory_order_release);
  }
  if (interrupt) interrupt();
  for (auto& [number, sleeper] : std::exchange(sleepers_, {})) {
    loop_.cancel(sleeper.first);
    sleeper.second.resume();
  }
  struct AllEnded {
    TaskGroup& group;
    bool await_ready() const { return false; }
    bool await_suspend(std::coroutine_handle<> closer) {
      const std::lock_guard lock(group.mutex_);
      if (group.running_ == 0) return false;
      group.waiting_ = closer;
      return true;
    }
    void await_resume() const {}
  };
  co_await AllEnded{*this};
  co_await resume_on(executor);
}

Task<void> when_all(Executor& executor, std::vector<Task<void>> tasks) {
  if (tasks.empty()) co_return;
  struct Shared {
    std::mutex mutex;
    size_t left;
    std::exception_ptr failure;
  } shared{.mutex = {}, .left = tasks.size(), .failure = {}};
  co_await from_callback<bool>(executor, [&](auto done) {
    for (Task<void>& task : tasks) {
      spawn(std::move(task), [&shared, done](std::exception_ptr failure) mutable {
        bool last = false;
        {
          const std::lock_guard lock(shared.mutex);
          if (failure && !shared.failure) shared.failure = failure;
          last = --shared.left == 0;
        }
        if (last) done(true);
      });
    }
  });
  if (shared.failure) std::rethrow_exception(shared.failure);
}

}  // namespace holdfast
