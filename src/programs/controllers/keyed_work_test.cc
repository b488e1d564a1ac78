#include "controllers/keyed_work.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "base/test_loop.h"

namespace holdfast::controllers {
namespace {

// Work that blocks until the test resumes it.
struct Worker {
  ManualLoop loop;
  TaskGroup tasks{loop, "test"};
  std::vector<std::string> began;
  std::coroutine_handle<> waiting;
  bool throws = false, succeeds = true;
  KeyedWork work{tasks, nullptr, [this](std::string key) { return one(std::move(key)); }};

  ~Worker() {
    spawn(tasks.close(loop), [](std::exception_ptr) {});
    loop.run();
  }

  Task<bool> one(std::string key) {
    began.push_back(key);
    struct Wait {
      std::coroutine_handle<>& waiting;
      bool await_ready() const { return false; }
      void await_suspend(std::coroutine_handle<> h) { waiting = h; }
      void await_resume() const {}
    };
    co_await Wait{waiting};
    if (throws) throw std::runtime_error("on purpose");
    co_return succeeds;
  }
  void go_on() { std::exchange(waiting, {}).resume(); }
};

TEST(KeyedWork, RequestDuringRunTriggersAnotherRun) {
  Worker worker;
  worker.work.request("a");
  worker.work.request("a");
  worker.work.request("a");
  EXPECT_EQ(worker.began.size(), 1u);
  worker.go_on();
  EXPECT_EQ(worker.began.size(), 2u);  // One more run for both requests.
  worker.go_on();
  EXPECT_EQ(worker.began.size(), 2u);
  worker.work.request("a");
  EXPECT_EQ(worker.began.size(), 3u);
  worker.go_on();
}

TEST(KeyedWork, ExceptionDoesNotBlockTheKey) {
  Worker worker;
  worker.throws = true;
  worker.work.request("a");
  worker.go_on();
  worker.throws = false;
  worker.work.request("a");
  EXPECT_EQ(worker.began, (std::vector<std::string>{"a", "a"}));
  worker.go_on();
}

TEST(KeyedWork, FailedWorkIsRepeatedLater) {
  Worker worker;
  worker.succeeds = false;
  worker.work.request("a");
  worker.go_on();
  EXPECT_EQ(worker.began.size(), 1u);
  worker.loop.advance(std::chrono::seconds(1));
  EXPECT_EQ(worker.began.size(), 2u);
  worker.succeeds = true;
  worker.go_on();
  worker.loop.advance(std::chrono::seconds(10));
  EXPECT_EQ(worker.began.size(), 2u);
}

}  // namespace
}  // namespace holdfast::controllers
