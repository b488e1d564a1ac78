// Time for simulations in place of the system's: it stands still while the loop has work, and jumps to the loop's next
// timer when it has none. An hour then takes only as long as its work does, and always passes in the same order.
//
//   SimulatedTime time;
//   Loops loops(1);
//   loops.at(0).post([&] { simulate_time(loops.at(0), time); });
//
// For one loop, whose work comes from its own thread only: time does not wait for other threads or for sockets.
#pragma once

#include <atomic>

#include "base/clock.h"
#include "net/net.h"

namespace holdfast::net {

class SimulatedTime final : public Clock {
 public:
  UnixTime now() const override;  // Starts at 2027-01-15T08:00:00Z.
  std::chrono::steady_clock::time_point monotonic() const override { return kStart + passed(); }
  std::chrono::nanoseconds passed() const { return std::chrono::nanoseconds(passed_.load()); }

 private:
  friend struct detail::LoopState;
  static constexpr std::chrono::steady_clock::time_point kStart{std::chrono::hours(1)};
  void jump_to(std::chrono::steady_clock::time_point when);

  std::atomic<int64_t> passed_{0};  // Changed only by the loop.
};

// From now on, the timers of this loop follow `time`, which outlives the loop's thread. Call on the loop, which must
// not have any timers yet.
void simulate_time(EventLoop& loop, SimulatedTime& time);

}  // namespace holdfast::net
