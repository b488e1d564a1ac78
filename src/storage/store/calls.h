// Counts callbacks in progress, so that their owner can wait for them before it is destroyed. Private to store.
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

namespace holdfast::store {

class CallbackCounter {
 public:
  // A callback was taken out to be called; end() or run() must follow.
  void begin() {
    std::lock_guard lock(mutex_);
    ++count_;
  }

  template <class F>
  void run(F&& call) {
    Running here{this, running_};
    running_ = &here;
    std::forward<F>(call)();
    running_ = here.outer;
    end();
  }

  void end() {
    std::lock_guard lock(mutex_);
    --count_;
    done_.notify_all();
  }

  // Waits until no callback is in progress except on this thread: a callback may destroy its own owner, and cannot wait
  // for itself.
  void wait_for_others() {
    int own = 0;
    for (const Running* r = running_; r; r = r->outer) own += r->calls == this;
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return count_ <= own; });
  }

 private:
  // Callbacks nest when one triggers another.
  struct Running {
    const CallbackCounter* calls;
    const Running* outer;
  };
  static inline thread_local const Running* running_ = nullptr;

  std::mutex mutex_;
  std::condition_variable done_;
  int count_ = 0;
};

}  // namespace holdfast::store
