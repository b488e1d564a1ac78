// The coroutines of one controller: they all run on one loop, are waited for at the end, and sleep no longer than that.
#pragma once

#include <coroutine>
#include <functional>
#include <map>
#include <utility>

#include "base/task.h"
#include "net/net.h"

namespace holdfast::controllers {

class Tasks {
 public:
  explicit Tasks(net::EventLoop& loop) : loop_(loop) {}

  net::EventLoop& loop() const { return loop_; }
  bool closing() const { return closing_; }

  void run(Task<void> task) {
    ++running_;
    spawn(std::move(task), [this](std::exception_ptr) { --running_; });
  }

  // co_await tasks.nap(50ms): that long, or until close().
  auto nap(net::Millis delay) {
    struct Awaiter {
      Tasks& tasks;
      net::Millis delay;
      bool await_ready() const { return tasks.closing_; }
      void await_suspend(std::coroutine_handle<> h) {
        const uint64_t number = tasks.next_nap_++;
        const net::EventLoop::TimerId timer = tasks.loop_.run_after(delay, [this, number, h] {
          tasks.naps_.erase(number);
          h.resume();
        });
        tasks.naps_.emplace(number, std::pair(timer, h));
      }
      void await_resume() const {}
    };
    return Awaiter{*this, delay};
  }

  // Wakes who naps and waits for all. `before` ends what only the controller knows: its watchers. Resumes on
  // `executor`.
  Task<void> close(Executor& executor, std::function<void()> before) {
    co_await resume_on(loop_);
    closing_ = true;
    before();
    for (auto& [number, nap] : std::exchange(naps_, {})) {
      loop_.cancel(nap.first);
      nap.second.resume();
    }
    while (running_ > 0) co_await loop_.sleep_for(net::Millis(1));
    co_await resume_on(executor);
  }

 private:
  net::EventLoop& loop_;
  bool closing_ = false;
  int running_ = 0;  // Coroutines that have not ended.
  uint64_t next_nap_ = 0;
  std::map<uint64_t, std::pair<net::EventLoop::TimerId, std::coroutine_handle<>>> naps_;
};

}  // namespace holdfast::controllers
