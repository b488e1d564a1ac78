// A FIFO thread pool: for long-running work that must not block an event loop, and for tests. The destructor runs
// everything that was posted.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/task.h"

namespace holdfast {

class ThreadPool : public Executor {
 public:
  explicit ThreadPool(size_t threads);
  ~ThreadPool() override;  // Runs everything that was posted, then joins the threads.
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  void post(std::function<void()> work) override;

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace holdfast
