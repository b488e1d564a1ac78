#include "controllers/queued_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <vector>

#include "base/test_loop.h"

namespace holdfast::controllers {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

struct Worker {
  ManualLoop loop;
  TaskGroup tasks{loop, "test"};
  std::vector<std::string> began;
  std::set<std::string> failing, throwing;
  std::string again;  // Requested once while it is being processed.
  QueuedWork work{tasks, nullptr, [this](std::string name) { return one(std::move(name)); }};

  ~Worker() {
    spawn(tasks.close(loop), [](std::exception_ptr) {});
    loop.run();
  }

  Task<bool> one(std::string name) {
    began.push_back(name);
    if (std::exchange(again, "") == name) work.request(name);
    co_await tasks.sleep(1ms);
    if (throwing.contains(name)) throw std::runtime_error("on purpose");
    co_return !failing.contains(name);
  }
  void advance_a_second() {
    for (int i = 0; i < 1000; ++i) loop.advance(1ms);
  }
};

TEST(QueuedWork, NamesAreProcessedInOrderWithoutDuplicates) {
  Worker worker;
  for (const char* name : {"b", "a", "b", "a", "c"}) worker.work.request(name);
  worker.advance_a_second();
  // The first "b" was already being processed when it was requested again.
  EXPECT_THAT(worker.began, ElementsAre("b", "a", "b", "c"));
  worker.work.request("a");
  worker.advance_a_second();
  EXPECT_EQ(worker.began.size(), 5u);
}

TEST(QueuedWork, RequestDuringRunTriggersAnotherRun) {
  Worker worker;
  worker.again = "a";
  worker.work.request("a");
  worker.advance_a_second();
  EXPECT_THAT(worker.began, ElementsAre("a", "a"));
}

TEST(QueuedWork, FailuresAreRetriedWithoutBlockingOthers) {
  Worker worker;
  worker.failing = {"a"};
  worker.throwing = {"b"};
  for (const char* name : {"a", "b", "c"}) worker.work.request(name);
  worker.advance_a_second();
  ASSERT_GE(worker.began.size(), 5u);
  EXPECT_THAT(std::vector(worker.began.begin(), worker.began.begin() + 5), ElementsAre("a", "b", "c", "a", "b"));
  worker.failing.clear();
  worker.throwing.clear();
  for (int i = 0; i < 12; ++i) worker.advance_a_second();
  const size_t settled = worker.began.size();
  for (int i = 0; i < 12; ++i) worker.advance_a_second();
  EXPECT_EQ(worker.began.size(), settled);
}

}  // namespace
}  // namespace holdfast::controllers
