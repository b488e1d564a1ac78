#include "base/fair_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

namespace holdfast {
namespace {

using ::testing::ElementsAre;

// Records in which order work runs; blocked work runs until it is released.
class FairPoolTest : public ::testing::Test {
 protected:
  std::function<void()> blocked() {
    return [this] {
      started_.release();
      released_.wait();
    };
  }
  // Waits until this much blocked work runs.
  void wait_for_blocked(int count) {
    for (int i = 0; i < count; ++i) started_.acquire();
  }
  void release() { release_.set_value(); }

  std::function<void()> note(std::string name) {
    return [this, name = std::move(name)] {
      const std::lock_guard lock(mutex_);
      order.push_back(name);
    };
  }

  std::vector<std::string> order;

 private:
  class Semaphore {
   public:
    void release() {
      const std::lock_guard lock(mutex_);
      ++count_;
      changed_.notify_one();
    }
    void acquire() {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return count_ > 0; });
      --count_;
    }

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int count_ = 0;
  };
  std::mutex mutex_;
  Semaphore started_;
  std::promise<void> release_;
  const std::shared_future<void> released_ = release_.get_future().share();
};

void wait_for(FairPool::Lane lane) {
  std::promise<void> done;
  lane.post([&] { done.set_value(); });
  done.get_future().wait();
}

TEST_F(FairPoolTest, OneUserNeverHasAllThreads) {
  FairPool pool(3);
  FairPool::Lane greedy(pool, "greedy", FairPool::Size::Small);
  for (int i = 0; i < 10; ++i) greedy.post(blocked());
  wait_for_blocked(2);
  wait_for(FairPool::Lane(pool, "other", FairPool::Size::Small));
  release();
}

TEST_F(FairPoolTest, LargeWorkLeavesThreadsForSmallWork) {
  FairPool pool(4);
  for (const char* user : {"a", "b", "c", "d", "e", "f"})
    FairPool::Lane(pool, user, FairPool::Size::Large).post(blocked());
  wait_for_blocked(2);
  wait_for(FairPool::Lane(pool, "g", FairPool::Size::Small));
  wait_for(FairPool::Lane(pool, "a", FairPool::Size::Small));
  release();
}

TEST_F(FairPoolTest, UsersTakeTurnsAndSmallWorkComesFirst) {
  {
    FairPool pool(2);
    // Both threads are busy while the work is posted.
    FairPool::Lane(pool, "x", FairPool::Size::Small).post(blocked());
    FairPool::Lane(pool, "y", FairPool::Size::Large).post(blocked());
    wait_for_blocked(2);
    const auto post = [&](const char* user, FairPool::Size size, const char* name) {
      FairPool::Lane(pool, user, size).post(note(name));
    };
    // Large work runs one at a time, on one of the threads.
    post("a", FairPool::Size::Large, "a large 1");
    post("a", FairPool::Size::Large, "a large 2");
    post("a", FairPool::Size::Large, "a large 3");
    post("b", FairPool::Size::Large, "b large");
    release();
  }
  EXPECT_THAT(order, ElementsAre("a large 1", "b large", "a large 2", "a large 3"));
}

TEST_F(FairPoolTest, TheDestructorRunsEverything) {
  {
    FairPool pool(2);
    for (int i = 0; i < 100; ++i) {
      FairPool::Lane(pool, "user", i % 2 == 0 ? FairPool::Size::Large : FairPool::Size::Small).post(note("ran"));
    }
  }
  EXPECT_EQ(order.size(), 100u);
}

}  // namespace
}  // namespace holdfast
