// Sees to it that a shutdown ends.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"
#include "server/service_stack.h"

namespace holdfast::server {

// Watches over a shutdown on a thread of its own.
class ShutdownWatch {
 public:
  // From the end of the grace period on, calls `cancel` again and again until closed(); calls `stuck` if ended() was
  // not called kLimit later.
  ShutdownWatch(std::chrono::steady_clock::time_point end, const ServiceStack& services, std::function<void()> cancel,
                std::function<void()> stuck)
      : services_(services), cancel_(std::move(cancel)), stuck_(std::move(stuck)), thread_([this, end] { run(end); }) {}
  ~ShutdownWatch() {
    reach(Phase::Ended);
    thread_.join();
  }
  ShutdownWatch(const ShutdownWatch&) = delete;
  ShutdownWatch& operator=(const ShutdownWatch&) = delete;

  // `cancel` is not running, and not called any more.
  void closed() { reach(Phase::Closed); }

 private:
  enum class Phase : uint8_t { Closing, Closed, Ended };
  // Everything that still runs after the grace period was cancelled, or has a shorter deadline.
  static constexpr std::chrono::seconds kLimit{15};
  static constexpr std::chrono::milliseconds kAgain{100};

  void reach(Phase phase) {
    const std::lock_guard lock(mutex_);
    phase_ = phase;
    changed_.notify_one();
  }

  void run(std::chrono::steady_clock::time_point end) {
    std::unique_lock lock(mutex_);
    const auto has_ended = [this] { return phase_ == Phase::Ended; };
    if (changed_.wait_until(lock, end, has_ended)) return;
    while (std::chrono::steady_clock::now() < end + kLimit) {
      if (phase_ == Phase::Closing) cancel_();
      if (changed_.wait_for(lock, kAgain, has_ended)) return;
    }
    log::error("shutting down takes too long: something that was cancelled does not end",
               {{"stopping", services_.current()}});
    if (stuck_) stuck_();
  }

  const ServiceStack& services_;
  const std::function<void()> cancel_, stuck_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Phase phase_ = Phase::Closing;  // Guarded by mutex_.
  std::thread thread_;            // Last: uses the others.
};

}  // namespace holdfast::server
