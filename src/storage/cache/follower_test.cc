#include "cache/follower.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "base/test_loop.h"
#include "cache/test_support.h"

namespace holdfast::cache {
namespace {

using std::chrono_literals::operator""s;
using Seen = std::vector<std::string>;

// A follower on a loop of its own.
struct Following : CacheFixture {
  ManualLoop loop;
  TaskGroup tasks{loop, "test"};
  Follower follower{tasks};
  Seen seen;
  bool wanted = true, throws = false;
  size_t largest = 0;  // Batch.

  ~Following() {
    bool closed = false;
    spawn(tasks.close(loop, [this] { follower.cancel(); }), [&](std::exception_ptr) { closed = true; });
    settle();
    EXPECT_TRUE(closed);
  }

  void follow(Follower::Following how = {}) {
    how.wanted = [this] { return wanted; };
    how.begin = [this] { seen.push_back("BEGIN"); };
    how.see = [this](std::span<const Delivery> events) {
      largest = std::max(largest, events.size());
      if (std::exchange(throws, false)) throw std::runtime_error("on purpose");
      for (const Delivery& event : events) seen.push_back(to_text(event));
    };
    tasks.run(follower.run(*cache, std::move(how)));
    settle();
  }
  // Everything that happens without time passing, except timers of zero.
  void settle() {
    for (int i = 0; i < 20; ++i) {
      executor.run();
      loop.advance(std::chrono::milliseconds(0));
    }
  }
  Seen take() {
    settle();
    return std::exchange(seen, {});
  }
};

TEST(Follower, DeliversEveryObjectThenEachChange) {
  Following test;
  test.start();
  test.put("a/x", {.body = "1"});
  test.follow();
  EXPECT_EQ(test.take(), (Seen{"BEGIN", "ADDED a/x rv=2;1"}));
  test.put("a/x", {.body = "2"});
  test.remove("a/x");
  EXPECT_EQ(test.take(), (Seen{"MODIFIED a/x rv=3;2", "DELETED a/x rv=4;2"}));
}

TEST(Follower, StartingNowDeliversChangesOnly) {
  Following test;
  test.start();
  test.put("a/x", {.body = "1"});
  test.follow({.start = WatchRequest::Start::Now});
  EXPECT_EQ(test.take(), (Seen{"BEGIN"}));
  test.put("a/y", {.body = "2"});
  EXPECT_EQ(test.take(), (Seen{"ADDED a/y rv=3;2"}));
}

TEST(Follower, TheEndOfTheInitialStateIsMarked) {
  Following test;
  test.start();
  test.put("a/x", {.body = "1"});
  test.follow({.marks_initial_end = true});
  EXPECT_EQ(test.take(), (Seen{"BEGIN", "ADDED a/x rv=2;1", "BOOKMARK 2 end"}));
}

TEST(Follower, AWatchThatEndsStartsAgain) {
  Following test;
  test.start();
  test.put("a/x", {.body = "1"});
  test.follow();
  EXPECT_TRUE(test.follower.watching());
  test.take();
  test.follower.cancel();
  EXPECT_EQ(test.take(), (Seen{"BEGIN", "ADDED a/x rv=2;1"}));
}

TEST(Follower, EndsWhenTheCacheIsNoLongerWanted) {
  Following test;
  test.start();
  test.follow();
  test.wanted = false;
  test.take();
  EXPECT_TRUE(test.follower.watching());  // Until the current watch ends.
  test.follower.cancel();
  EXPECT_EQ(test.take(), Seen{});
  EXPECT_FALSE(test.follower.watching());
}

TEST(Follower, WaitsUntilTheCacheIsReady) {
  Following test;
  test.cache = std::make_unique<Cache>(test.store, std::make_shared<TestCodec>(), test.pool,
                                       Executors{&test.executor, &test.executor}, test.options, test.clock);
  test.follow();
  EXPECT_EQ(test.take(), Seen{});
  test.cache->start();
  test.executor.run();
  test.loop.advance(1s);
  EXPECT_EQ(test.take(), Seen{"BEGIN"});
}

TEST(Follower, AnExceptionStartsTheWatchAgain) {
  Following test;
  test.start();
  test.put("a/x", {.body = "1"});
  const uint64_t failures = failed_tasks();
  test.throws = true;
  test.follow();
  EXPECT_EQ(test.take(), Seen{"BEGIN"});
  EXPECT_EQ(failed_tasks(), failures + 1);
  test.loop.advance(1s);
  EXPECT_EQ(test.take(), (Seen{"BEGIN", "ADDED a/x rv=2;1"}));
}

TEST(Follower, BatchesAreLimited) {
  Following test;
  test.start();
  for (int i = 0; i < 10; ++i) test.put("a/" + std::to_string(i), {});
  test.follow({.batch = 3});
  EXPECT_EQ(test.take().size(), 11u);
  EXPECT_EQ(test.largest, 3u);
}

}  // namespace
}  // namespace holdfast::cache
