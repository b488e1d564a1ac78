#include "controllers/keyed_work.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "base/test_loop.h"

namespace holdfast::controllers {
namespace {

// Work that waits until the test lets it go on.
struct Worker {
  ManualLoop loop;
  TaskGroup tasks{loop, "test"};
  std::vector<std::string> began;
  std::coroutine_handle<> waiting;
  bool throws = false;
  KeyedWork work{tasks, [this](std::string_view key) { return one(std::string(key)); }};

  ~Worker() {
    spawn(tasks.close(loop), [](std::exception_ptr) {});
    loop.run();
  }

  Task<void> one(std::string key) {
    began.push_back(key);
    struct Wait {
      std::coroutine_handle<>& waiting;
      bool await_ready() const { return false; }
      void await_suspend(std::coroutine_handle<> h) { waiting = h; }
      void await_resume() const {}
    };
    co_await Wait{waiting};
    if (throws) throw std::runtime_error("on purpose");
  }
  void go_on() { std::exchange(waiting, {}).resume(); }
};

TEST(KeyedWork, ARequestDuringTheWorkMeansAnotherRun) {
  Worker worker;
  worker.work.request("a");
  worker.work.request("a");
  worker.work.request("a");
  EXPECT_EQ(worker.began.size(), 1u);
  worker.go_on();
  EXPECT_EQ(worker.began.size(), 2u);  // One more for both.
  worker.go_on();
  EXPECT_EQ(worker.began.size(), 2u);
  worker.work.request("a");
  EXPECT_EQ(worker.began.size(), 3u);
  worker.go_on();
}

TEST(KeyedWork, AnExceptionDoesNotBlockTheKey) {
  Worker worker;
  worker.throws = true;
  worker.work.request("a");
  worker.go_on();
  worker.throws = false;
  worker.work.request("a");
  EXPECT_EQ(worker.began, (std::vector<std::string>{"a", "a"}));
  worker.go_on();
}

}  // namespace
}  // namespace holdfast::controllers
