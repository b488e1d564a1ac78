#include "base/thread_pool.h"

#include "base/task_group.h"

namespace holdfast {

ThreadPool::ThreadPool(size_t threads) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::post(std::function<void()> work) {
  // Notify with the lock held: the work may allow the owner to destroy the pool.
  std::lock_guard lock(mutex_);
  queue_.push_back(std::move(work));
  wake_.notify_one();
}

void ThreadPool::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    run_guarded("background thread", work);
    work = nullptr;
    lock.lock();
  }
}

}  // namespace holdfast
