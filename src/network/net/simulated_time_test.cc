#include "net/simulated_time.h"

#include <gtest/gtest.h>

#include "base/task_group.h"

namespace holdfast::net {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// Notes when it was resumed.
Task<void> sleep(EventLoop& loop, SimulatedTime& time, milliseconds delay, std::vector<std::chrono::nanoseconds>& log) {
  co_await loop.sleep_for(delay);
  log.push_back(time.passed());
}

Task<std::vector<std::chrono::nanoseconds>> sleep_for_hours(EventLoop& loop, SimulatedTime& time) {
  simulate_time(loop, time);
  std::vector<std::chrono::nanoseconds> log;
  std::vector<Task<void>> sleepers;
  sleepers.push_back(sleep(loop, time, hours(3), log));
  sleepers.push_back(sleep(loop, time, hours(1), log));
  sleepers.push_back(sleep(loop, time, milliseconds(1), log));
  co_await when_all(loop, std::move(sleepers));
  co_return log;
}

TEST(SimulatedTime, JumpsToTheNextTimerWhenThereIsNothingToDo) {
  SimulatedTime time;
  Loops loops(1);
  const UnixTime start = time.now();
  const std::vector<std::chrono::nanoseconds> log = block_on(loops.at(0), sleep_for_hours(loops.at(0), time));
  EXPECT_EQ(log, (std::vector<std::chrono::nanoseconds>{milliseconds(1), hours(1), hours(3)}));
  EXPECT_EQ(time.now().seconds - start.seconds, 3 * 3600);
}

}  // namespace
}  // namespace holdfast::net
