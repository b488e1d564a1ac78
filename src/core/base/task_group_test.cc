#include "base/task_group.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <thread>

#include "base/test_loop.h"

namespace holdfast {
namespace {

using std::chrono_literals::operator""ms;

// Something for a task to wait on.
struct Gate {
  std::coroutine_handle<> waiting;
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> h) { waiting = h; }
  void await_resume() const {}
};

Task<void> wait_at(Gate& gate) { co_await gate; }
Task<void> throw_now() {
  throw std::runtime_error("on purpose");
  co_return;
}
Task<void> count_sleeps(TaskGroup& group, int& count) {
  while (!group.closing()) {
    co_await group.sleep(100ms);
    ++count;
  }
}
Task<void> then_set(Task<void> task, bool& flag) {
  co_await task;
  flag = true;
}

// Starts close() and runs it as far as possible.
struct Closing {
  bool done = false;
  Closing(TaskGroup& group, ManualLoop& loop, std::function<void()> interrupt = {}) {
    spawn(then_set(group.close(loop, std::move(interrupt)), done), [](std::exception_ptr) {});
    loop.run();
  }
};

TEST(TaskGroupTest, AnExceptionIsCountedAndOtherTasksContinue) {
  ManualLoop loop;
  TaskGroup group(loop, "test");
  int count = 0;
  group.run(count_sleeps(group, count));
  const uint64_t before = failed_tasks();
  group.run(throw_now());
  group.post([] { return throw_now(); });
  loop.run();
  EXPECT_EQ(failed_tasks(), before + 2);
  loop.advance(100ms);
  EXPECT_EQ(count, 1);
  EXPECT_TRUE(Closing(group, loop).done);
}

TEST(TaskGroupTest, CloseWakesSleepersAndWaitsForTheRest) {
  ManualLoop loop;
  TaskGroup group(loop, "test");
  int count = 0;
  Gate gate;
  group.run(count_sleeps(group, count));
  group.run(wait_at(gate));
  Closing closing(group, loop);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(loop.timers(), 0u);
  EXPECT_FALSE(closing.done);
  gate.waiting.resume();
  loop.run();
  EXPECT_TRUE(closing.done);
}

TEST(TaskGroupTest, CloseInterruptsBeforeItWaits) {
  ManualLoop loop;
  TaskGroup group(loop, "test");
  Gate gate;
  group.run(wait_at(gate));
  EXPECT_TRUE(Closing(group, loop, [&gate] { gate.waiting.resume(); }).done);
}

TEST(TaskGroupTest, TasksStartedAfterCloseBeganNeverRun) {
  ManualLoop loop;
  TaskGroup group(loop, "test");
  bool made = false;
  const auto make = [&made] {
    made = true;
    return throw_now();
  };
  group.post(make);  // Counted, but run only after close() has begun.
  const uint64_t before = failed_tasks();
  bool done = false;
  spawn(then_set(group.close(loop), done), [](std::exception_ptr) {});
  group.post(make);
  group.run(throw_now());
  loop.run();
  EXPECT_TRUE(done);
  EXPECT_FALSE(made);
  EXPECT_EQ(failed_tasks(), before);
}

TEST(TaskGroupTest, ParametersOfTheLastTaskAreDestroyedWhenCloseReturns) {
  ManualLoop loop;
  auto group = std::make_unique<TaskGroup>(loop, "test");
  Gate gate;
  auto held = std::make_shared<int>(1);
  constexpr auto hold = [](Gate& until, std::shared_ptr<int>) -> Task<void> { co_await until; };
  group->run(hold(gate, held));
  bool alone = false;
  constexpr auto close = [](std::unique_ptr<TaskGroup>& which, ManualLoop& on, std::shared_ptr<int>& what,
                            bool& only) -> Task<void> {
    co_await which->close(on);
    only = what.use_count() == 1;
    which.reset();
  };
  spawn(close(group, loop, held, alone), [](std::exception_ptr) {});
  gate.waiting.resume();
  loop.run();
  EXPECT_TRUE(alone);
  EXPECT_EQ(group, nullptr);
}

TEST(TimerTest, IsCancelledAtTheEndOfItsScopeEvenByAnException) {
  ManualLoop loop;
  int fired = 0;
  try {
    const Timer timer(loop, 10ms, [&fired] { ++fired; });
    throw std::runtime_error("on purpose");
  } catch (const std::runtime_error&) {
  }
  loop.advance(20ms);
  EXPECT_EQ(fired, 0);
}

TEST(TimerTest, RestartingReplacesThePreviousWork) {
  ManualLoop loop;
  int first = 0, second = 0;
  Timer timer(loop);
  timer.start(10ms, [&first] { ++first; });
  timer.start(20ms, [&] {
    if (++second < 3) timer.start(10ms, [&second] { ++second; });
  });
  loop.advance(15ms);
  EXPECT_EQ(first, 0);
  loop.advance(15ms);
  loop.advance(15ms);
  EXPECT_EQ(second, 2);
  EXPECT_EQ(loop.timers(), 0u);
}

TEST(WhenAllTest, WaitsForTheLastTaskAndRethrowsTheFirstException) {
  ManualLoop loop;
  Gate gate;
  std::vector<Task<void>> tasks;
  tasks.push_back(throw_now());
  tasks.push_back(wait_at(gate));
  std::string what;
  bool ended = false;
  spawn(when_all(loop, std::move(tasks)), [&](std::exception_ptr failure) {
    ended = true;
    try {
      if (failure) std::rethrow_exception(failure);
    } catch (const std::exception& problem) {
      what = problem.what();
    }
  });
  loop.run();
  EXPECT_FALSE(ended);
  gate.waiting.resume();
  loop.run();
  EXPECT_TRUE(ended);
  EXPECT_EQ(what, "on purpose");
}

TEST(WhenAllTest, NoTasksCompleteImmediately) {
  ManualLoop loop;
  bool done = false;
  spawn(then_set(when_all(loop, {}), done), [](std::exception_ptr) {});
  EXPECT_TRUE(done);
}

// Runs posted work on a thread of its own.
class ThreadExecutor final : public Executor {
 public:
  ~ThreadExecutor() override {
    for (std::thread& thread : threads_) thread.join();
  }
  void post(std::function<void()> work) override { threads_.emplace_back(std::move(work)); }

 private:
  std::vector<std::thread> threads_;
};

TEST(BlockOnTest, ReturnsTheValueOrRethrowsTheException) {
  ThreadExecutor executor;
  constexpr auto answer = [](int value) -> Task<int> { co_return value; };
  EXPECT_EQ(block_on(executor, answer(42)), 42);
  EXPECT_THROW(block_on(executor, throw_now()), std::runtime_error);
}

}  // namespace
}  // namespace holdfast
