#include "base/keyed_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/test_loop.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

// Work that blocks until the test lets it go on, in any order.
struct Blocking {
  explicit Blocking(KeyedQueueOptions options = {})
      : queue{tasks, [this](std::string key) { return one(std::move(key)); }, std::move(options)} {}
  ~Blocking() {
    if (!closing) close();
    while (!waiting.empty()) go_on(waiting.begin()->first);
    loop.run();
    EXPECT_TRUE(closed);
  }
  void close() {
    closing = true;
    spawn(tasks.close(loop), [this](std::exception_ptr) { closed = true; });
  }

  Task<bool> one(std::string key) {
    began.push_back(key);
    struct Wait {
      std::coroutine_handle<>& waiting;
      bool await_ready() const { return false; }
      void await_suspend(std::coroutine_handle<> h) { waiting = h; }
      void await_resume() const {}
    };
    EXPECT_FALSE(waiting.contains(key)) << "two workers on one key";
    co_await Wait{waiting[key]};
    if (throws) throw std::runtime_error("on purpose");
    co_return succeeds;
  }
  void go_on(const std::string& key) { waiting.extract(key).mapped().resume(); }

  ManualLoop loop;
  TaskGroup tasks{loop, "test"};
  std::vector<std::string> began;
  std::map<std::string, std::coroutine_handle<>> waiting;
  bool throws = false, succeeds = true, closing = false, closed = false;
  KeyedQueue<std::string> queue;
};

TEST(KeyedQueue, AKeyAddedDuringItsWorkIsWorkedOnOnceMore) {
  Blocking test;
  for (int i = 0; i < 3; ++i) test.queue.add("a");
  EXPECT_EQ(test.began.size(), 1u);
  test.go_on("a");
  EXPECT_EQ(test.began.size(), 2u);  // One more time for both.
  test.go_on("a");
  EXPECT_EQ(test.began.size(), 2u);
  test.queue.add("a");
  EXPECT_EQ(test.began.size(), 3u);
}

TEST(KeyedQueue, WorkersAreLimitedAndOrderIsKept) {
  Blocking test({.workers = 2});
  for (const char* key : {"d", "c", "b", "a", "b"}) test.queue.add(key);
  EXPECT_THAT(test.began, ElementsAre("d", "c"));
  test.go_on("c");
  EXPECT_THAT(test.began, ElementsAre("d", "c", "b"));
  test.go_on("d");
  test.go_on("b");
  EXPECT_THAT(test.began, ElementsAre("d", "c", "b", "a"));
}

TEST(KeyedQueue, FailedWorkIsRepeatedAfterALongerAndLongerDelay) {
  Blocking test({.first_retry = 100ms, .longest_retry = 300ms});
  test.succeeds = false;
  test.queue.add("a");
  size_t times = 1;
  for (const std::chrono::milliseconds delay : {100ms, 200ms, 300ms, 300ms}) {
    test.go_on("a");
    test.loop.advance(delay - 1ms);
    EXPECT_EQ(test.began.size(), times);
    test.loop.advance(1ms);
    EXPECT_EQ(test.began.size(), ++times);
  }
  // After a success, the first delay is the shortest again.
  test.succeeds = true;
  test.go_on("a");
  test.loop.advance(10s);
  EXPECT_EQ(test.began.size(), times);
  test.succeeds = false;
  test.queue.add("a");
  test.go_on("a");
  test.loop.advance(100ms);
  EXPECT_EQ(test.began.size(), times + 2);
}

TEST(KeyedQueue, AnExceptionIsAFailure) {
  Blocking test;
  const uint64_t failures = failed_tasks();
  test.throws = true;
  test.queue.add("a");
  test.go_on("a");
  EXPECT_EQ(failed_tasks(), failures + 1);
  test.throws = false;
  test.loop.advance(1s);
  EXPECT_THAT(test.began, ElementsAre("a", "a"));
}

TEST(KeyedQueue, AFailedKeyIsWorkedOnAtOnceWhenItIsAddedAgain) {
  Blocking test({.first_retry = 1000ms, .longest_retry = 1000ms});
  test.succeeds = false;
  test.queue.add("a");
  test.go_on("a");
  test.queue.add("a");
  EXPECT_EQ(test.began.size(), 2u);
  // The retry that was planned earlier does not disturb it.
  test.loop.advance(1s);
  EXPECT_EQ(test.began.size(), 2u);
  test.succeeds = true;
  test.go_on("a");
  test.loop.advance(10s);
  EXPECT_EQ(test.began.size(), 2u);
}

TEST(KeyedQueue, AFailedKeyDoesNotHoldUpOthers) {
  Blocking test({.workers = 1});
  test.succeeds = false;
  for (const char* key : {"a", "b"}) test.queue.add(key);
  test.go_on("a");
  EXPECT_THAT(test.began, ElementsAre("a", "b"));
}

TEST(KeyedQueue, NothingBeginsDuringAPause) {
  bool paused = true;
  Blocking test({.paused = [&] { return paused; }, .look_after = 10ms});
  test.queue.add("a");
  test.loop.advance(1s);
  EXPECT_THAT(test.began, ElementsAre());
  paused = false;
  test.loop.advance(10ms);
  EXPECT_THAT(test.began, ElementsAre("a"));
}

TEST(KeyedQueue, KeysArePostedFromAnywhere) {
  Blocking test;
  test.queue.post("a");
  EXPECT_THAT(test.began, ElementsAre());
  test.loop.run();
  EXPECT_THAT(test.began, ElementsAre("a"));
}

TEST(KeyedQueue, NothingBeginsAfterClosing) {
  Blocking test({.workers = 1});
  test.queue.add("a");
  test.queue.add("b");
  test.close();
  test.go_on("a");
  test.queue.add("c");
  test.loop.advance(10s);
  EXPECT_THAT(test.began, ElementsAre("a"));
}

// Workers continue in a loop, not in one another.
TEST(KeyedQueue, AnyNumberOfKeysFitsOnTheStack) {
  ManualLoop loop;
  TaskGroup tasks{loop, "test"};
  bool paused = true;
  int count = 0;
  constexpr auto work = [](int& counter) -> Task<bool> {
    ++counter;
    co_return true;
  };
  KeyedQueue<int> queue(tasks, [&](int) { return work(count); }, {.workers = 4, .paused = [&] { return paused; }});
  constexpr int kKeys = 200'000;
  for (int i = 0; i < kKeys; ++i) queue.add(i);
  paused = false;
  loop.advance(1s);
  EXPECT_EQ(count, kKeys);
  spawn(tasks.close(loop), [](std::exception_ptr) {});
  loop.run();
}

}  // namespace
}  // namespace holdfast
