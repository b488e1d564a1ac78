#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/api_error.h"
#include "base/api_version.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/gates.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/recycle.h"
#include "base/same_text.h"
#include "base/task.h"

namespace holdfast {
namespace {

TEST(SameText, ComparesEveryByteOfTextsOfEveryLength) {
  for (size_t size = 0; size < 40; ++size) {
    const std::string text(size, 'x');
    EXPECT_TRUE(same_text(text, std::string(size, 'x')));
    EXPECT_FALSE(same_text(text, text + 'x'));
    for (size_t at = 0; at < size; ++at) {
      std::string other = text;
      other[at] = 'y';
      EXPECT_FALSE(same_text(text, other)) << size << " " << at;
    }
  }
  EXPECT_TRUE(same_text({}, ""));
}

TEST(ArenaTest, AllocationsAreAlignedAndDoNotOverlap) {
  Arena arena(64);
  char* previous_end = nullptr;
  for (size_t i = 1; i < 300; ++i) {
    auto* piece = static_cast<char*>(arena.allocate(i, 16));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(piece) % 16, 0u);
    std::memset(piece, static_cast<int>(i), i);
    if (previous_end != nullptr) EXPECT_TRUE(piece != previous_end - 1);
    previous_end = piece + i;
  }
}

TEST(ArenaTest, ALargeAllocationLeavesTheCurrentBlockInUse) {
  Arena arena;
  (void)arena.allocate(16);
  (void)arena.allocate(1 << 22);
  const size_t before = arena.reserved_bytes();
  (void)arena.allocate(16);
  EXPECT_EQ(arena.reserved_bytes(), before);
}

TEST(RecycleTest, BlocksInUseNeverOverlapWhicheverThreadFreedThem) {
  struct Held {
    unsigned char* bytes;
    size_t size;
    unsigned char mark;
  };
  std::vector<Held> held;
  const auto hold = [&held](size_t size, unsigned char mark) {
    auto* bytes = static_cast<unsigned char*>(allocate_block(size));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % alignof(std::max_align_t), 0u);
    std::memset(bytes, mark, size);
    held.push_back({bytes, size, mark});
  };
  const auto release_half = [&held] {
    for (size_t i = 0; i < held.size(); ++i) {
      const auto [bytes, size, mark] = held[i];
      EXPECT_TRUE(std::all_of(bytes, bytes + size, [mark](unsigned char byte) { return byte == mark; })) << size;
      recycle_block(bytes, size);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
    }
  };
  unsigned char mark = 0;
  for (int round = 0; round < 6; ++round) {
    for (size_t size = 1; size < kMaxRecycledBytes + 200; size += 37) hold(size, ++mark);
    if (round % 2 == 0) {
      release_half();
    } else {
      std::thread(release_half).join();
    }
  }
  while (!held.empty()) release_half();
}

TEST(ClockTest, TimesAreFormattedAndParsedLikeKubernetes) {
  EXPECT_EQ(format_rfc3339({1767323045, 0}), "2026-01-02T03:04:05Z");
  EXPECT_EQ(format_rfc3339_micro({1767323045, 123456789}), "2026-01-02T03:04:05.123456Z");
  EXPECT_EQ(parse_rfc3339("2026-01-02T03:04:05Z"), (UnixTime{1767323045, 0}));
  EXPECT_EQ(parse_rfc3339("2026-01-02T05:04:05.5+02:00"), (UnixTime{1767323045, 500000000}));
  EXPECT_EQ(parse_rfc3339("2026-02-30T03:04:05Z"), std::nullopt);
  EXPECT_EQ(parse_rfc3339("2026-01-02 03:04:05Z"), std::nullopt);
  EXPECT_EQ(format_rfc3339({-62135596800, 0}), "0001-01-01T00:00:00Z");
}

TEST(GatesTest, AnUnknownGateIsRejectedWithTheKnownNames) {
  const Result<Gates> gates = Gates().parse("NoSuchGate=true");
  ASSERT_FALSE(gates);
  EXPECT_THAT(gates.error().message,
              testing::AllOf(testing::HasSubstr("NoSuchGate"), testing::HasSubstr("FieldsV2AtRest")));
}

TEST(GatesTest, ValuesAreThoseOfGo) {
  for (const char* on : {"1", "t", "T", "true", "TRUE", "True"}) {
    EXPECT_TRUE(Gates().parse("DropAnyField=" + std::string(on))->on(Gate::DropAnyField)) << on;
  }
  for (const char* off : {"0", "f", "F", "false", "FALSE", "False"}) {
    EXPECT_FALSE(Gates().parse("FieldsV2=" + std::string(off))->on(Gate::FieldsV2)) << off;
  }
  for (const char* bad : {"", "yes", "tRUE", "2"}) EXPECT_FALSE(Gates().parse("FieldsV2=" + std::string(bad))) << bad;
}

TEST(GatesTest, GateOfTheClientIsUnknownToServers) {
  EXPECT_FALSE(Gates().parse("ManagedFieldsOptOutClient=false"));
  EXPECT_TRUE(Gates().on(Gate::ManagedFieldsOptOutClient));
}

TEST(GatesTest, SettingsAreAppliedOnTopOfTheDefaults) {
  const Result<Gates> gates = Gates().parse("DropAnyField=true, FieldsV2=false");
  ASSERT_TRUE(gates);
  EXPECT_TRUE(gates->on(Gate::DropAnyField));
  EXPECT_FALSE(gates->on(Gate::FieldsV2));
  EXPECT_TRUE(gates->on(Gate::ManagedFieldsOptOut));
}

struct QueueExecutor : Executor {
  std::vector<std::function<void()>> queue;
  void post(std::function<void()> work) override { queue.push_back(std::move(work)); }
  void run() {
    for (size_t i = 0; i < queue.size(); ++i) std::exchange(queue[i], nullptr)();
  }
};

Task<int> answer_later(Executor& executor, std::function<void(int)>& done) {
  co_return co_await from_callback<int>(executor,
                                        [&done](std::function<void(int)> callback) { done = std::move(callback); });
}

Task<void> store_answer(Executor& executor, std::function<void(int)>& done, int& out) {
  out = co_await answer_later(executor, done) + 1;
}

TEST(TaskTest, ResumesOnTheExecutorWhenTheCallbackComesLater) {
  QueueExecutor executor;
  std::function<void(int)> done;
  int out = 0;
  bool ended = false;
  spawn(store_answer(executor, done, out), [&](std::exception_ptr failure) { ended = !failure; });
  EXPECT_EQ(out, 0);
  done(41);
  EXPECT_FALSE(ended);
  executor.run();
  EXPECT_TRUE(ended);
  EXPECT_EQ(out, 42);
}

Task<void> throwing() {
  throw std::runtime_error("broken");
  co_return;
}

TEST(TaskTest, AnExceptionReachesTheCallerOfSpawn) {
  bool failed = false;
  spawn(throwing(), [&](std::exception_ptr failure) { failed = failure != nullptr; });
  EXPECT_TRUE(failed);
}

TEST(ApiVersion, IsSplitAtTheFirstSlash) {
  for (const char* text : {"v1", "apps/v1"}) {
    const auto [group, version] = split_api_version(text);
    EXPECT_EQ(version, "v1");
    EXPECT_EQ(api_version_of(group, version), text);
  }
  EXPECT_EQ(api_path("", "v1"), "/api/v1");
  EXPECT_EQ(api_path("apps", "v1"), "/apis/apps/v1");
  EXPECT_EQ(go_kind_text("v1", "Pod"), "/v1, Kind=Pod");
  EXPECT_EQ(go_kind_text("apps/v1", "Deployment"), "apps/v1, Kind=Deployment");
}

struct DurationCase {
  int64_t nanoseconds;
  std::string_view text;
};

constexpr DurationCase kDurations[] = {
    {0, "0s"},
    {1, "1ns"},
    {1100, "1.1\xc2\xb5s"},
    {2200000, "2.2ms"},
    {3300000000, "3.3s"},
    {245000000000, "4m5s"},
    {245001000000, "4m5.001s"},
    {18367001000000, "5h6m7.001s"},
    {480000000001, "8m0.000000001s"},
    {3600000000000, "1h0m0s"},
    {-90000000000, "-1m30s"},
    {INT64_MAX, "2562047h47m16.854775807s"},
    {INT64_MIN, "-2562047h47m16.854775808s"},
};

TEST(Duration, IsFormattedAndParsedLikeGo) {
  for (const DurationCase& c : kDurations) {
    EXPECT_EQ(format_go_duration(std::chrono::nanoseconds(c.nanoseconds)), c.text);
    EXPECT_EQ(*parse_go_duration(c.text), c.nanoseconds);
  }
}

TEST(Duration, IsParsedInOtherNotations) {
  EXPECT_EQ(*parse_go_duration("0"), 0);
  EXPECT_EQ(*parse_go_duration("+5s"), 5000000000);
  EXPECT_EQ(*parse_go_duration("1.5h"), 5400000000000);
  EXPECT_EQ(*parse_go_duration(".5s"), 500000000);
  EXPECT_EQ(*parse_go_duration("5.s"), 5000000000);
  EXPECT_EQ(*parse_go_duration("3us"), 3000);
  EXPECT_EQ(*parse_go_duration("1s1h"), 3601000000000);
  for (const char* bad : {"", "3", "-", "s", ".", ".s", "1x", "3000000h", "1h-5m", " 1s"}) {
    EXPECT_FALSE(parse_go_duration(bad)) << bad;
  }
}

struct BadDuration {
  const char* text;
  const char* message;
};

TEST(Duration, ErrorsMatchGo) {
  const BadDuration cases[] = {{"abc", "time: invalid duration \"abc\""},
                               {"", "time: invalid duration \"\""},
                               {"5", "time: missing unit in duration \"5\""},
                               {"5x", "time: unknown unit \"x\" in duration \"5x\""}};
  for (const BadDuration& c : cases) EXPECT_EQ(parse_go_duration(c.text).error().message, c.message);
}

TEST(ArenaBudgetTest, LimitsEachArenaAndAllTogether) {
  ArenaBudget budget(1 << 20, 3 << 19);
  Arena first(budget);
  first.allocate(900'000);
  try {
    first.allocate(200'000);
    FAIL() << "one arena exceeded its limit";
  } catch (const ArenaExhausted& exhausted) {
    EXPECT_EQ(exhausted.why(), ArenaExhausted::Why::Own);
  }
  {
    Arena second(budget);
    second.allocate(500'000);
    EXPECT_THROW(second.allocate(300'000), ArenaExhausted);
  }
  const size_t held = budget.taken_bytes();
  EXPECT_EQ(held, first.reserved_bytes());
  Arena moved = std::move(first);
  EXPECT_EQ(budget.taken_bytes(), held);
  moved = Arena();
  EXPECT_EQ(budget.taken_bytes(), 0u);
}

TEST(ArenaBudgetTest, EnforcesTheLimitsOfRequests) {
  ArenaBudget budget(limits::kRequestBytes, limits::kAllRequestsBytes);
  EXPECT_THROW(Arena(budget).allocate(limits::kRequestBytes), ArenaExhausted);
  constexpr size_t kEach = limits::kRequestBytes - 4096;  // Never touched, so that no physical memory is used.
  std::vector<Arena> arenas;
  for (size_t i = 0; i < limits::kAllRequestsBytes / limits::kRequestBytes; ++i)
    arenas.emplace_back(budget).allocate(kEach);
  try {
    Arena(budget).allocate(1 << 20);
    FAIL() << "all arenas together exceeded their limit";
  } catch (const ArenaExhausted& exhausted) {
    EXPECT_EQ(exhausted.why(), ArenaExhausted::Why::Shared);
  }
}

TEST(HashTest, HashesOfKeysDifferFromChecksums) {
  // The unseeded hash is public; which keys of a table collide must not be.
  EXPECT_NE(hash_key("metadata"), hash_bytes("metadata"));
  EXPECT_EQ(hash_key("metadata"), hash_key(std::string("metadata")));
}

TEST(ApiError, UnreadableObjectsInAListErrorAreLimited) {
  const auto listed = [](size_t count) {
    return unreadable_list({"apps", "deployments"},
                           std::vector<Cause>(count, corrupt_item("/registry/deployments/a/b", "why")));
  };
  EXPECT_EQ(listed(limits::kReportedUnreadable).causes.size(), limits::kReportedUnreadable);
  const Error error = listed(limits::kReportedUnreadable + 1);
  EXPECT_EQ(error.message, "failed to read one or more deployments.apps from the storage");
  ASSERT_EQ(error.causes.size(), limits::kReportedUnreadable + 1);
  EXPECT_EQ(error.causes.front(), (Cause{"UnexpectedServerResponse",
                                         "StorageError: corrupt object, Code: 7, Key: /registry/deployments/a/b, "
                                         "ResourceVersion: 0, AdditionalErrorMsg: why",
                                         "/registry/deployments/a/b"}));
  EXPECT_EQ(error.causes.back(), (Cause{"TooMany", "too many errors, the list is truncated", ""}));
}

TEST(LogTest, HiddenCharactersOfOthersAreShownAsText) {
  ::testing::internal::CaptureStderr();
  log::info("plain", {{"a", "b"}, {"c", "d e"}});
  log::warning("from \x1b[2J",
               {{"title", "\x1b]0;x\x07"}, {"c1", "\xc2\x9b"}, {"bidi", "\xe2\x80\xae"}, {"bad", "\xff"}});
  const std::string logged = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(logged.find("INFO plain a=b c=\"d e\"\n"), std::string::npos) << logged;
  EXPECT_NE(logged.find(R"(WARN "from \x1b[2J" title="\x1b]0;x\a" c1="\u009b" bidi="\u202e" bad="\xff")"),
            std::string::npos)
      << logged;
}

}  // namespace
}  // namespace holdfast
