#include "admission/event_limits.h"

#include <gtest/gtest.h>

#include "base/arena.h"
#include "codec/json.h"

namespace holdfast::admission {
namespace {

class EventLimitsTest : public ::testing::Test {
 protected:
  // The message of the error; empty if the event is accepted.
  std::string accept(EventLimits& limits, std::string_view ns, std::string_view user, std::string_view object = "o") {
    Arena arena;
    const std::string json =
        R"({"source":{"component":"kubelet","host":"n1"},"involvedObject":{"kind":"Pod","name":")" +
        std::string(object) + R"("}})";
    const Result<Unit> done = limits.accept(ns, user, *codec::decode_json(arena, json), now_);
    if (!done) EXPECT_EQ(done.error().reason, Reason::TooManyRequests);
    return done ? "" : done.error().message;
  }
  EventLimits::Time now_ = EventLimits::Time(std::chrono::hours(1));
};

TEST_F(EventLimitsTest, ABurstIsAcceptedAndThenWhatIsRefilled) {
  EventLimits limits({{.per = EventLimit::Per::Server, .per_second = 2, .burst = 3}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(accept(limits, "a", "u"), "");
  EXPECT_EQ(accept(limits, "b", "v"), "limit reached on type Server for key ");
  now_ += std::chrono::milliseconds(500);
  EXPECT_EQ(accept(limits, "a", "u"), "");
  EXPECT_NE(accept(limits, "a", "u"), "");
  now_ += std::chrono::hours(1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(accept(limits, "a", "u"), "");
  EXPECT_NE(accept(limits, "a", "u"), "");
}

TEST_F(EventLimitsTest, EachKeyHasItsOwnBucket) {
  EventLimits limits({{.per = EventLimit::Per::Namespace, .per_second = 1, .burst = 2},
                      {.per = EventLimit::Per::User, .per_second = 1, .burst = 3},
                      {.per = EventLimit::Per::SourceAndObject, .per_second = 1, .burst = 1}});
  EXPECT_EQ(accept(limits, "a", "u", "x"), "");
  EXPECT_EQ(accept(limits, "a", "u", "x"), "limit reached on type SourceAndObject for key kubeletn1Podx");
  EXPECT_EQ(accept(limits, "a", "u", "y"), "limit reached on type Namespace for key a");
  EXPECT_EQ(accept(limits, "b", "u", "y"),
            "[limit reached on type User for key u, limit reached on type SourceAndObject for key kubeletn1Pody]");
  EXPECT_EQ(accept(limits, "b", "v", "z"), "");
}

TEST_F(EventLimitsTest, TheBucketThatWasNotUsedForLongestMakesRoom) {
  EventLimits limits({{.per = EventLimit::Per::Namespace, .per_second = 1, .burst = 1, .cache_size = 2}});
  EXPECT_EQ(accept(limits, "a", "u"), "");
  EXPECT_EQ(accept(limits, "b", "u"), "");
  EXPECT_NE(accept(limits, "a", "u"), "");
  EXPECT_EQ(accept(limits, "c", "u"), "");  // Instead of b.
  EXPECT_NE(accept(limits, "a", "u"), "");
  EXPECT_EQ(accept(limits, "b", "u"), "");
}

}  // namespace
}  // namespace holdfast::admission
