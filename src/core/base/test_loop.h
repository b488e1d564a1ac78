// An event loop for tests: runs on the thread of the test, which also advances its time.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "base/task_group.h"

namespace holdfast {

class ManualLoop final : public TimedExecutor {
 public:
  void post(std::function<void()> work) override { posted_.push_back(std::move(work)); }
  bool in_thread() const override { return true; }
  TimerId run_after(std::chrono::milliseconds delay, std::function<void()> work) override {
    timers_.emplace(++last_, std::pair(now_ + delay, std::move(work)));
    return last_;
  }
  void cancel(TimerId id) override { timers_.erase(id); }

  void advance(std::chrono::milliseconds by) {
    now_ += by;
    run();
    for (auto timer = timers_.begin(); timer != timers_.end();) {
      if (timer->second.first > now_) {
        ++timer;
        continue;
      }
      const std::function<void()> work = std::move(timer->second.second);
      timers_.erase(timer);
      work();
      run();
      timer = timers_.begin();
    }
  }
  void run() {
    while (!posted_.empty()) {
      const std::function<void()> work = std::move(posted_.front());
      posted_.pop_front();
      work();
    }
  }
  size_t timers() const { return timers_.size(); }

 private:
  std::deque<std::function<void()>> posted_;
  std::map<TimerId, std::pair<std::chrono::milliseconds, std::function<void()>>> timers_;
  TimerId last_ = 0;
  std::chrono::milliseconds now_{0};
};

}  // namespace holdfast
