#include "cache/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "cache/test_support.h"

namespace holdfast::cache {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

TestObject object(std::string body, std::map<std::string, std::string> labels = {}, std::string node = {}) {
  return {.labels = std::move(labels), .node = std::move(node), .body = std::move(body)};
}

// --- Lists ----------------------------------------------------------------------------------------------------------

TEST(CacheTest, ContainsTheObjectsOfTheStoreInKeyOrder) {
  CacheFixture f;
  f.put("b/x", object("2"));
  f.put("a/y", object("1"));
  f.put("a/x", {.uid = "u-7", .labels = {{"app", "web"}, {"tier", "front"}}, .node = "n1", .body = "0"});
  f.start();
  ASSERT_TRUE(f.cache->ready());
  const Result<Snapshot> snapshot = f.cache->snapshot();
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->revision(), Revision{4});
  EXPECT_THAT(f.keys(*snapshot), ElementsAre("a/x", "a/y", "b/x"));
  const EntryRef entry = snapshot->find("a/x");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->namespace_name(), "a");
  EXPECT_EQ(entry->name(), "x");
  EXPECT_EQ(entry->uid(), "u-7");
  EXPECT_EQ(entry->label("app"), "web");
  EXPECT_EQ(entry->label("tier"), "front");
  EXPECT_EQ(entry->label("nothing"), std::nullopt);
  EXPECT_EQ(entry->field(0), "n1");
  EXPECT_EQ(*entry->body(), "rv=4;0");
  EXPECT_FALSE(snapshot->find("a/z"));
}

TEST(CacheTest, FollowsTheStoreWhileSnapshotsStayUnchanged) {
  CacheFixture f;
  f.put("a/x", object("old"));
  f.start();
  const Snapshot before = *f.cache->snapshot();
  f.put("a/x", object("new"));
  f.put("a/y", object("another"));
  const Snapshot between = *f.cache->snapshot();
  f.remove("a/x");
  EXPECT_EQ(*before.find("a/x")->body(), "rv=2;old");
  EXPECT_THAT(f.keys(before), ElementsAre("a/x"));
  EXPECT_EQ(*between.find("a/x")->body(), "rv=3;new");
  EXPECT_THAT(f.keys(between), ElementsAre("a/x", "a/y"));
  EXPECT_THAT(f.keys(*f.cache->snapshot()), ElementsAre("a/y"));
  EXPECT_EQ(f.cache->revision(), Revision{5});
}

TEST(CacheTest, PagesContinueAfterTheLastOneAndCountTheRemainingObjects) {
  CacheFixture f;
  for (const char* key : {"a/1", "a/2", "a/3", "b/1", "b/2", "c/1"}) f.put(key, object(key));
  f.start();
  const Snapshot snapshot = *f.cache->snapshot();
  ListPage page = snapshot.list({.scope = "", .limit = 4});
  EXPECT_EQ(page.entries.size(), 4u);
  EXPECT_TRUE(page.more);
  EXPECT_EQ(page.remaining, 2u);
  EXPECT_EQ(page.next, std::string("b/1\0", 4));
  page = snapshot.list({.scope = "", .from = page.next, .limit = 4});
  EXPECT_EQ(page.entries.size(), 2u);
  EXPECT_FALSE(page.more);
  EXPECT_EQ(page.remaining, 0u);
  page = snapshot.list({.scope = "a/", .limit = 1});
  EXPECT_EQ(page.remaining, 2u);
  EXPECT_THAT(f.keys(snapshot, {.scope = "b/"}), ElementsAre("b/1", "b/2"));
  EXPECT_THAT(f.keys(snapshot, {.scope = "none/"}), IsEmpty());
  EXPECT_THAT(f.keys(snapshot, {.scope = "a/", .from = "b/1"}), IsEmpty());
}

struct SelectorCase {
  const char* name;
  Selector selector;
  std::vector<std::string> want;
};

TEST(CacheTest, SelectorsFilterEntries) {
  using Operator = LabelRequirement::Operator;
  CacheFixture f;
  f.put("a/1", object("", {{"app", "web"}, {"size", "3"}}, "n1"));
  f.put("a/2", object("", {{"app", "db"}, {"size", "12"}}, "n2"));
  f.put("b/1", object("", {}, "n1"));
  f.put("b/2", object("", {{"app", ""}, {"size", "big"}}));
  f.start();
  const std::vector<SelectorCase> cases = {
      {"everything", {}, {"a/1", "a/2", "b/1", "b/2"}},
      {"label exists", {.labels = {{"app", Operator::Exists, {}}}}, {"a/1", "a/2", "b/2"}},
      {"label does not exist", {.labels = {{"app", Operator::Absent, {}}}}, {"b/1"}},
      {"label in several values", {.labels = {{"app", Operator::In, {"db", "web"}}}}, {"a/1", "a/2"}},
      {"label in the empty value", {.labels = {{"app", Operator::In, {""}}}}, {"b/2"}},
      {"label not in, which matches without the label",
       {.labels = {{"app", Operator::NotIn, {"web"}}}},
       {"a/2", "b/1", "b/2"}},
      {"label greater than", {.labels = {{"size", Operator::Greater, {"3"}}}}, {"a/2"}},
      {"label less than", {.labels = {{"size", Operator::Less, {"12"}}}}, {"a/1"}},
      {"indexed field", {.fields = {{0, true, "n1"}}}, {"a/1", "b/1"}},
      {"empty indexed field", {.fields = {{0, true, ""}}}, {"b/2"}},
      {"indexed field not equal", {.fields = {{0, false, "n1"}}}, {"a/2", "b/2"}},
      {"name", {.fields = {{FieldRequirement::kName, true, "1"}}}, {"a/1", "b/1"}},
      {"namespace", {.fields = {{FieldRequirement::kNamespace, true, "b"}}}, {"b/1", "b/2"}},
      {"indexed field and label", {.labels = {{"app", Operator::Exists, {}}}, .fields = {{0, true, "n1"}}}, {"a/1"}},
  };
  for (const SelectorCase& test : cases) {
    SCOPED_TRACE(test.name);
    EXPECT_EQ(f.keys(*f.cache->snapshot(), {.scope = "", .selector = test.selector}), test.want);
    // Selectors of hundreds of requirements are compared in another way, with the same result.
    Selector longer = test.selector;
    for (int i = 0; i < 100; ++i) {
      const std::string none = "none" + std::to_string(i);
      longer.labels.push_back({none, Operator::Absent, {}});
      longer.fields.push_back({FieldRequirement::kName, false, none});
      for (LabelRequirement& requirement : longer.labels) {
        const bool lists = requirement.op == Operator::In || requirement.op == Operator::NotIn;
        if (lists) requirement.values.push_back(none);
      }
    }
    EXPECT_EQ(f.keys(*f.cache->snapshot(), {.scope = "", .selector = longer}), test.want);
    longer.labels.push_back({"app", Operator::In, {"db"}});
    longer.labels.push_back({"app", Operator::In, {"web"}});
    EXPECT_THAT(f.keys(*f.cache->snapshot(), {.scope = "", .selector = longer}), IsEmpty());
  }
  // The index also respects scope and pages.
  const Selector on_n1{.fields = {{0, true, "n1"}}};
  EXPECT_THAT(f.keys(*f.cache->snapshot(), {.scope = "b/", .selector = on_n1}), ElementsAre("b/1"));
  const ListPage page = f.cache->snapshot()->list({.scope = "", .selector = on_n1, .limit = 1});
  ASSERT_TRUE(page.more);
  EXPECT_THAT(f.keys(*f.cache->snapshot(), {.scope = "", .selector = on_n1, .from = page.next}), ElementsAre("b/1"));
}

// --- Freshness ------------------------------------------------------------------------------------------------------

TEST(CacheTest, ALabelSelectorSeesEveryChangeHoweverTheIndexWasEdited) {
  CacheFixture f;
  const auto key_of = [](int i) { return "a/" + std::to_string(1000 + i); };
  const auto labels_of = [](int i) { return object("", {{"app", std::to_string(i % 7)}}); };
  for (int i = 0; i < 300; i += 2) f.put(key_of(i), labels_of(i));
  f.start();
  // Insert in between, replace, and remove: leaves grow, split and shrink.
  for (int i = 1; i < 300; i += 2) f.put(key_of(i), labels_of(i));
  for (int i = 0; i < 300; i += 5) f.put(key_of(i), labels_of(i + 1));
  for (int i = 100; i < 200; ++i) f.remove(key_of(i));
  std::vector<std::string> want;
  for (int i = 0; i < 300; ++i) {
    if ((i < 100 || i >= 200) && (i % 5 == 0 ? i + 1 : i) % 7 == 3) want.push_back(key_of(i));
  }
  const Selector threes{.labels = {{"app", LabelRequirement::Operator::In, {"3"}}}};
  EXPECT_EQ(f.keys(*f.cache->snapshot(), {.scope = "a/", .selector = threes}), want);
}

TEST(CacheTest, AConsistentReadSeesEveryAcknowledgedWrite) {
  CacheFixture f;
  f.put("a/x", object("1"));
  f.start();
  // Nothing of this resource changes: only a progress notification can tell.
  const Revision elsewhere = f.write_elsewhere();
  const Result<Snapshot> snapshot = f.get(f.cache->consistent(f.executor));
  ASSERT_TRUE(snapshot);
  EXPECT_GE(snapshot->revision(), elsewhere);
  EXPECT_EQ(f.cache->counters().store_fallbacks, 0u);
}

TEST(CacheTest, AFutureRevisionFailsAsTooLargeAfterThreeSeconds) {
  CacheFixture f;
  f.put("a/x", object("1"));
  f.start();
  std::optional<Result<Snapshot>> answer;
  spawn(put_into(f.cache->at_least(Revision{100}, f.executor), &answer), [](std::exception_ptr) {});
  f.executor.run();
  f.pass(2900ms);
  EXPECT_FALSE(answer);
  f.pass(200ms);
  ASSERT_TRUE(answer);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(answer->error().reason, Reason::Timeout);
  EXPECT_THAT(answer->error().message, HasSubstr("Too large resource version: 100, current: 2"));
  EXPECT_EQ(answer->error().retry_after_seconds, 1);
}

TEST(CacheTest, AReadWaitsForItsRevision) {
  CacheFixture f;
  f.start();
  std::optional<Result<Snapshot>> answer;
  spawn(put_into(f.cache->at_least(Revision{3}, f.executor), &answer), [](std::exception_ptr) {});
  f.executor.run();
  f.put("a/x", object("1"));
  EXPECT_FALSE(answer);
  f.put("a/y", object("2"));
  ASSERT_TRUE(answer);
  EXPECT_THAT(f.keys(**answer), ElementsAre("a/x", "a/y"));
}

TEST(CacheTest, AConsistentReadFallsBackToTheStoreIfTheFeedIsBehind) {
  CacheFixture f;
  f.put("a/x", object("1"));
  f.start();
  f.store.break_watchers({store::ErrorKind::Unavailable, "connection lost"});
  f.executor.run();
  f.put("a/y", object("2"));
  std::optional<Result<Snapshot>> answer;
  // The feed would retry after 100 ms, but there is no tick until the wait has timed out.
  spawn(put_into(f.cache->consistent(f.executor), &answer), [](std::exception_ptr) {});
  f.executor.run();
  EXPECT_FALSE(answer);
  f.store.set_failure(std::nullopt);
  f.clock.pass(3100ms);
  f.cache->tick();
  f.executor.run();
  ASSERT_TRUE(answer);
  ASSERT_TRUE(*answer);
  EXPECT_THAT(f.keys(**answer), ElementsAre("a/x", "a/y"));
}

TEST(CacheTest, WithoutProgressNotificationsReadsAndWatchesStartFromTheStore) {
  CacheFixture f;
  f.store.disable_progress();
  f.put("a/x", object("1"));
  f.start();
  const Revision elsewhere = f.write_elsewhere();
  Result<Snapshot> snapshot = f.get(f.cache->at_least(elsewhere, f.executor));
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->revision(), elsewhere);
  EXPECT_FALSE(f.get(f.cache->at_least(Revision{elsewhere.value + 1}, f.executor)));

  Watcher watcher = f.watch({.scope = "",
                             .start = WatchRequest::Start::Initial,
                             .revision = elsewhere,
                             .bookmarks = true,
                             .initial_events_bookmark = true});
  f.put("a/y", object("2"));
  EXPECT_THAT(f.events(watcher),
              ElementsAre(HasSubstr("ADDED a/x"), "BOOKMARK " + std::to_string(elsewhere.value) + " end",
                          HasSubstr("ADDED a/y")));
}

TEST(CacheTest, LatestReadsTheStoreAndSharesTheEntryOfTheCache) {
  CacheFixture f;
  const Revision written = f.put("a/x", object("1"));
  f.start();
  const Result<Cache::Latest> latest = f.get(f.cache->latest("a/x", f.executor));
  ASSERT_TRUE(latest);
  EXPECT_EQ(latest->entry->revision(), written);
  EXPECT_EQ(latest->entry, f.cache->snapshot()->find("a/x"));
  EXPECT_FALSE(f.get(f.cache->latest("a/none", f.executor))->entry);
}

// --- Exact revisions ------------------------------------------------------------------------------------------------

TEST(CacheTest, EveryRevisionInTheWindowCanBeReadExactlyWithItsOwnership) {
  CacheFixture f;
  f.options.events_per_snapshot = 16;
  f.options.history_events = 500;
  f.start();
  std::mt19937 random(3);
  std::map<std::string, std::string> state;  // Key -> body and owners.
  std::map<uint64_t, std::map<std::string, std::string>> history;
  for (int i = 0; i < 400; ++i) {
    const std::string key = "a/" + std::to_string(random() % 30);
    Revision at;
    if (random() % 4 == 0 && state.contains(key)) {
      at = f.remove(key);
      state.erase(key);
    } else {
      const std::string fields = "{\"f:n" + std::to_string(i) + "\":{}}";
      at = f.put(key,
                 {.node = "n" + std::to_string(random() % 3), .owners = {{"m", fields}}, .body = std::to_string(i)});
      state[key] = "rv=" + std::to_string(at.value) + ";" + std::to_string(i) + "m" + fields;
    }
    history[at.value] = state;
  }
  for (const auto& [revision, want] : history) {
    SCOPED_TRACE(revision);
    const Result<Snapshot> snapshot = f.get(f.cache->exactly(Revision{revision}, f.executor));
    ASSERT_TRUE(snapshot);
    EXPECT_EQ(snapshot->revision().value, revision);
    std::map<std::string, std::string> got;
    for (const EntryRef& entry : snapshot->list({}).entries) {
      got[std::string(entry->key())] = *entry->body() + f.owners(*entry);
    }
    ASSERT_EQ(got, want);
    // The index is consistent with the keys.
    size_t indexed = 0;
    for (const char* node : {"n0", "n1", "n2"}) {
      indexed += snapshot->list({.scope = "", .selector = {.fields = {{0, true, node}}}}).entries.size();
    }
    ASSERT_EQ(indexed, want.size());
  }
  EXPECT_EQ(f.cache->counters().store_fallbacks, 0u);
}

TEST(CacheTest, ARevisionBeforeTheWindowIsReadFromTheStoreUntilItIsCompacted) {
  CacheFixture f;
  f.options.history_events = 2;
  f.options.history_age = 0ms;
  f.start();
  const Revision early = f.put("a/x", object("1"));
  for (int i = 0; i < 10; ++i) {
    f.put("a/y", object(std::to_string(i)));
    f.pass(1s);
  }
  Result<Snapshot> snapshot = f.get(f.cache->exactly(early, f.executor));
  ASSERT_TRUE(snapshot);
  EXPECT_THAT(f.keys(*snapshot), ElementsAre("a/x"));
  EXPECT_EQ(f.cache->counters().store_fallbacks, 1u);
  f.store.compact(Revision{8}, [](store::StoreResult<Unit> done) { ASSERT_TRUE(done); });
  snapshot = f.get(f.cache->exactly(early, f.executor));
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().reason, Reason::Expired);
  EXPECT_EQ(snapshot.error().message, "The resourceVersion for the provided list is too old.");
}

TEST(CacheTest, RetainedStatesExpireWhenTheStoreIsCompacted) {
  CacheFixture f;
  f.start();
  const Revision early = f.put("a/x", object("1"));
  f.put("a/x", object("2"));
  f.put("a/x", object("3"));
  ASSERT_TRUE(f.get(f.cache->exactly(early, f.executor)));
  f.store.compact(Revision{4}, [](store::StoreResult<Unit> done) { ASSERT_TRUE(done); });
  f.pass(16s);
  const Result<Snapshot> snapshot = f.get(f.cache->exactly(early, f.executor));
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().reason, Reason::Expired);
}

// --- Watches --------------------------------------------------------------------------------------------------------

TEST(CacheTest, AWatchAfterARevisionGetsEveryLaterChangeOnce) {
  CacheFixture f;
  f.start();
  f.put("a/x", object("1"));
  const Revision from = f.put("a/y", object("1"));
  f.put("a/x", object("2"));
  Watcher watcher = f.watch({.start = WatchRequest::Start::After, .revision = from});
  f.remove("a/y");
  f.put("b/z", object("1"));
  EXPECT_THAT(f.events(watcher), ElementsAre("MODIFIED a/x rv=4;2", "DELETED a/y rv=5;1", "ADDED b/z rv=6;1"));
  EXPECT_FALSE(watcher.pending());
}

TEST(CacheTest, InitialEventsAreTheStateInKeyOrderThenABookmarkThenChanges) {
  CacheFixture f;
  f.put("b/x", object("1"));
  f.put("a/x", object("2"));
  f.start();
  Watcher watcher =
      f.watch({.start = WatchRequest::Start::Initial, .bookmarks = true, .initial_events_bookmark = true});
  f.put("a/y", object("3"));
  EXPECT_THAT(f.events(watcher),
              ElementsAre("ADDED a/x rv=3;2", "ADDED b/x rv=2;1", "BOOKMARK 3 end", "ADDED a/y rv=4;3"));
}

TEST(CacheTest, InitialEventsOfAnEmptyResourceAreOnlyTheBookmark) {
  CacheFixture f;
  f.start();
  Watcher watcher =
      f.watch({.start = WatchRequest::Start::Initial, .bookmarks = true, .initial_events_bookmark = true});
  EXPECT_THAT(f.events(watcher), ElementsAre("BOOKMARK 1 end"));
}

TEST(CacheTest, ASelectorTurnsChangesIntoAddedAndDeleted) {
  CacheFixture f;
  f.start();
  Selector selector{.labels = {{"app", LabelRequirement::Operator::In, {"web"}}}};
  Watcher watcher = f.watch({.selector = selector});
  // More values than are compared one by one.
  for (int i = 0; i < 100; ++i) selector.labels[0].values.push_back("none" + std::to_string(i));
  Watcher longer = f.watch({.selector = selector});
  f.put("a/x", object("1", {{"app", "db"}}));
  f.put("a/x", object("2", {{"app", "web"}}));
  f.put("a/x", object("3", {{"app", "web"}}));
  f.put("a/x", object("4", {{"app", "db"}}));
  f.put("a/x", object("5", {{"app", "web"}}));
  f.remove("a/x");
  // Deleted shows the state the watcher saw last, with the revision of the change.
  const auto seen = ElementsAre("ADDED a/x rv=3;2", "MODIFIED a/x rv=4;3", "DELETED a/x rv=5;3", "ADDED a/x rv=6;5",
                                "DELETED a/x rv=7;5");
  EXPECT_THAT(f.events(watcher), seen);
  EXPECT_THAT(f.events(longer), seen);
}

TEST(CacheTest, WatchersOfAFieldANamespaceOrAnObjectGetOnlyTheirEvents) {
  CacheFixture f;
  f.start();
  Watcher node = f.watch({.selector = {.fields = {{0, true, "n1"}}}});
  Watcher space = f.watch({.scope = "b/"});
  Watcher one = f.watch({.scope = "a/", .selector = {.fields = {{FieldRequirement::kName, true, "x"}}}});
  Watcher anywhere = f.watch({.selector = {.fields = {{FieldRequirement::kName, true, "x"}}}});
  f.put("a/x", object("1", {}, "n1"));
  f.put("b/x", object("2", {}, "n2"));
  f.put("a/x", object("3", {}, "n2"));
  f.put("b/y", object("4", {}, "n1"));
  EXPECT_THAT(f.events(node), ElementsAre("ADDED a/x rv=2;1", "DELETED a/x rv=4;1", "ADDED b/y rv=5;4"));
  EXPECT_THAT(f.events(space), ElementsAre("ADDED b/x rv=3;2", "ADDED b/y rv=5;4"));
  EXPECT_THAT(f.events(one), ElementsAre("ADDED a/x rv=2;1", "MODIFIED a/x rv=4;3"));
  EXPECT_THAT(f.events(anywhere), ElementsAre("ADDED a/x rv=2;1", "ADDED b/x rv=3;2", "MODIFIED a/x rv=4;3"));
}

TEST(CacheTest, EventsHaveTheOwnershipOfTheirRevisionAndDeletedHasTheLast) {
  CacheFixture f;
  f.start();
  Watcher watcher = f.watch({});
  f.put("a/x", {.owners = {{"alice", R"({"f:one":{}})"}}, .body = "1"});
  f.put("a/x", {.owners = {{"bob", R"({"f:two":{}})"}}, .body = "2"});
  f.remove("a/x");
  f.put("a/x", {.owners = {{"carol", R"({"f:three":{}})"}}, .body = "4"});
  std::vector<std::string> seen;
  for (const Delivery& delivery : f.next(watcher)) seen.push_back(f.owners(*delivery.object()));
  EXPECT_THAT(
      seen, ElementsAre(R"(alice{"f:one":{}})", R"(bob{"f:two":{}})", R"(bob{"f:two":{}})", R"(carol{"f:three":{}})"));
}

TEST(CacheTest, AWatchFromBeforeTheHistoryIsExpired) {
  CacheFixture f;
  f.options.history_events = 3;
  f.options.history_age = 0ms;
  f.start();
  for (int i = 0; i < 10; ++i) f.put("a/x", object(std::to_string(i)));
  f.pass(1s);
  const Result<Watcher> watcher =
      f.get(f.cache->watch({.start = WatchRequest::Start::After, .revision = Revision{2}}, f.executor));
  ASSERT_FALSE(watcher);
  EXPECT_EQ(watcher.error().reason, Reason::Expired);
  EXPECT_EQ(watcher.error().message, "too old resource version: 2 (8)");
  Watcher fits = f.watch({.start = WatchRequest::Start::After, .revision = Revision{8}});
  EXPECT_THAT(f.events(fits), ElementsAre("MODIFIED a/x rv=9;7", "MODIFIED a/x rv=10;8", "MODIFIED a/x rv=11;9"));
}

TEST(CacheTest, OldHistoryOfLargeObjectsIsShorter) {
  CacheFixture f;
  f.start();
  for (int i = 0; i < 40; ++i) f.put("a/x", object(std::string(1 << 20, static_cast<char>('a' + i))));
  // Fewer than Options::history_events, but 40 MB.
  EXPECT_TRUE(f.get(f.cache->watch({.start = WatchRequest::Start::After, .revision = Revision{3}}, f.executor)));
  f.pass(80s);
  EXPECT_FALSE(f.get(f.cache->watch({.start = WatchRequest::Start::After, .revision = Revision{20}}, f.executor)));
  Watcher fits = f.watch({.start = WatchRequest::Start::After, .revision = Revision{30}});
  EXPECT_EQ(f.events(fits).size(), 11u);
}

TEST(CacheTest, FormerManagersLeaveMemoryWithTheHistory) {
  CacheFixture f;
  f.start();
  constexpr uint64_t kUpdates = 40, kManagers = 10'000;
  for (uint64_t i = 0; i < kUpdates; ++i) {
    TestObject changed = object("x");
    for (uint64_t m = 0; m < kManagers; ++m) {
      changed.owners.emplace_back("m" + std::to_string(i * kManagers + m), R"({"f:one":{}})");
    }
    f.put("a/x", changed);
  }
  EXPECT_EQ(f.pool.usage().managers, kUpdates * kManagers);
  f.pass(80s);
  EXPECT_LT(f.pool.usage().managers, 200'000u);
}

TEST(CacheTest, AWatchFromAFutureRevisionGetsOnlyLaterChanges) {
  CacheFixture f;
  f.start();
  Watcher watcher = f.watch({.start = WatchRequest::Start::After, .revision = Revision{3}});
  f.put("a/x", object("1"));
  f.put("a/x", object("2"));
  f.put("a/x", object("3"));
  EXPECT_THAT(f.events(watcher), ElementsAre("MODIFIED a/x rv=4;3"));
}

TEST(CacheTest, HistoryIsRetainedByAgeBeyondItsMinimumCount) {
  CacheFixture f;
  f.options.history_events = 2;
  f.options.history_age = 75s;
  f.start();
  f.put("a/x", object("0"));
  f.pass(70s);
  for (int i = 0; i < 10; ++i) f.put("a/x", object(std::to_string(i)));
  EXPECT_EQ(f.cache->usage().events, 11u);
  f.pass(10s);
  EXPECT_EQ(f.cache->usage().events, 10u);
  f.pass(75s);
  EXPECT_EQ(f.cache->usage().events, 2u);
}

TEST(CacheTest, AnEmptiedResourceUsesNoMemoryAfterItsHistoryExpired) {
  CacheFixture f;
  f.start();
  const Usage empty = f.cache->usage();
  const uint64_t owners = f.pool.usage().owner_bytes;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 300; ++i) f.put("a/" + std::to_string(i), object("x"));
    EXPECT_GT(f.cache->usage().body_raw_bytes, 0u);
    for (int i = 0; i < 300; ++i) f.remove("a/" + std::to_string(i));
    // A client that reconnects soon gets every deletion.
    f.pass(70s);
    EXPECT_GE(f.cache->usage().events, 300u);
    f.pass(10s);
    const Usage now = f.cache->usage();
    EXPECT_EQ(now.events, 0u) << round;
    EXPECT_EQ(now.body_raw_bytes, empty.body_raw_bytes) << round;
    EXPECT_EQ(now.entry_bytes, empty.entry_bytes) << round;
    EXPECT_LE(now.index_bytes, empty.index_bytes + 4096) << round;
    EXPECT_EQ(f.pool.usage().owner_bytes, owners) << round;
  }
}

TEST(CacheTest, ASlowWatcherIsClosedAfterItsQueuedEventsAndOthersAreUnaffected) {
  CacheFixture f;
  f.options.watcher_queue_events = 3;
  f.start();
  Watcher slow = f.watch({}), quick = f.watch({});
  std::vector<std::string> seen;
  for (int i = 0; i < 6; ++i) {
    f.put("a/" + std::to_string(i), object("x"));
    for (std::string& event : f.events(quick)) seen.push_back(std::move(event));
  }
  EXPECT_EQ(seen.size(), 6u);
  EXPECT_EQ(quick.end(), Watcher::End::Open);
  EXPECT_EQ(slow.end(), Watcher::End::TooSlow);
  EXPECT_THAT(f.events(slow), ElementsAre("ADDED a/0 rv=2;x", "ADDED a/1 rv=3;x", "ADDED a/2 rv=4;x", "END"));
  EXPECT_EQ(f.cache->counters().slow_watchers, 1u);
}

TEST(CacheTest, ABurstAfterALostConnectionClosesOnlyWatchersThatWereBehind) {
  CacheFixture f;
  f.options.watcher_queue_events = 3;
  f.start();
  Watcher kept_up = f.watch({}), behind = f.watch({});
  for (int i = 0; i < 3; ++i) {
    f.put("a/" + std::to_string(i), object("x"));
    EXPECT_EQ(f.events(kept_up).size(), 1u);
  }
  f.store.break_watchers({store::ErrorKind::Unavailable, "connection lost"});
  f.executor.run();
  for (int i = 0; i < 10; ++i) f.put("b/" + std::to_string(i), object("x"));
  f.pass(200ms);
  f.put("c/1", object("x"));  // Nor does an event right after the burst.
  EXPECT_EQ(f.events(kept_up).size(), 11u);
  EXPECT_EQ(kept_up.end(), Watcher::End::Open);
  EXPECT_EQ(behind.end(), Watcher::End::TooSlow);
}

TEST(CacheTest, AWatcherMayBeFarBehindWhileReadingItsInitialState) {
  CacheFixture f;
  f.options.watcher_queue_events = 3;
  for (int i = 0; i < 10; ++i) f.put("a/" + std::to_string(i), object("x"));
  f.start();
  Watcher watcher = f.watch({.start = WatchRequest::Start::Initial});
  EXPECT_EQ(f.next(watcher, 5).size(), 5u);
  for (int i = 0; i < 8; ++i) f.put("b/" + std::to_string(i), object("y"));
  EXPECT_EQ(f.events(watcher).size(), 13u);
  EXPECT_EQ(watcher.end(), Watcher::End::Open);
}

TEST(CacheTest, BookmarksComeEveryMinuteAndBeforeTheDeadline) {
  CacheFixture f;
  f.start();
  Watcher watcher = f.watch({.bookmarks = true, .deadline = f.clock.monotonic() + 90s});
  Watcher without = f.watch({});
  f.put("a/x", object("1"));
  EXPECT_THAT(f.events(watcher), ElementsAre("ADDED a/x rv=2;1"));
  f.pass(59s);
  EXPECT_THAT(f.events(watcher), IsEmpty());
  f.pass(2s);
  EXPECT_THAT(f.events(watcher), ElementsAre("BOOKMARK 2"));
  f.pass(26s);
  EXPECT_THAT(f.events(watcher), IsEmpty());
  f.pass(1s);
  EXPECT_THAT(f.events(watcher), ElementsAre("BOOKMARK 2"));
  f.pass(1s);
  EXPECT_THAT(f.events(watcher), IsEmpty());
  EXPECT_THAT(f.events(without), ElementsAre("ADDED a/x rv=2;1"));
}

TEST(CacheTest, NoBookmarkIsSentBeforeTheFirstChange) {
  CacheFixture f;
  f.start();
  Watcher watcher = f.watch({.bookmarks = true});
  f.pass(2min);
  EXPECT_THAT(f.events(watcher), IsEmpty());
}

TEST(CacheTest, CancellingEndsAWaitImmediately) {
  CacheFixture f;
  f.start();
  Watcher watcher = f.watch({});
  std::optional<std::vector<Delivery>> batch;
  spawn(put_into(next_of(&watcher, &f.executor), &batch), [](std::exception_ptr) {});
  f.executor.run();
  EXPECT_FALSE(batch);
  EXPECT_EQ(f.cache->usage().watchers, 1u);
  watcher.cancel();
  f.executor.run();
  ASSERT_TRUE(batch);
  EXPECT_TRUE(batch->empty());
  EXPECT_EQ(f.cache->usage().watchers, 0u);
}

TEST(CacheTest, EndedWatchesDeliverQueuedEventsAndReadsContinue) {
  CacheFixture f;
  f.start();
  f.put("a/x", object("1"));
  Watcher watcher = f.watch({});
  f.put("a/y", object("2"));
  f.cache->end_watches();
  f.put("a/z", object("3"));
  EXPECT_THAT(f.events(watcher), ElementsAre("ADDED a/y rv=3;2", "END"));
  WatchRequest request;
  request.start = WatchRequest::Start::Initial;
  Watcher late = f.watch(request);
  EXPECT_THAT(f.events(late), ElementsAre("ADDED a/x rv=2;1", "ADDED a/y rv=3;2", "ADDED a/z rv=4;3", "END"));
  EXPECT_EQ(f.cache->usage().watchers, 0u);
  EXPECT_TRUE(f.cache->snapshot());
}

TEST(CacheTest, ClosingTheCacheEndsItsWatchesAndWaitingReads) {
  CacheFixture f;
  f.start();
  Watcher watcher = f.watch({});
  std::optional<Result<Snapshot>> waiting;
  spawn(put_into(f.cache->at_least(Revision{100}, f.executor), &waiting), [](std::exception_ptr) {});
  f.executor.run();
  f.put("a/x", object("1"));
  const Snapshot snapshot = *f.cache->snapshot();
  f.close();
  EXPECT_EQ(watcher.end(), Watcher::End::Closed);
  ASSERT_TRUE(waiting);
  EXPECT_FALSE(*waiting);
  // Snapshots and queued events outlive the cache.
  EXPECT_EQ(*snapshot.find("a/x")->body(), "rv=2;1");
  EXPECT_THAT(f.events(watcher), ElementsAre("ADDED a/x rv=2;1", "END"));
}

// Like gRPC: a callback may be destroyed long after it was called, on a thread that nobody waits for.
class StoreThatKeepsCallbacks : public store::MemoryStore {
 public:
  using MemoryStore::MemoryStore;
  void status(store::Callback<store::Status> done) override {
    kept.push_back(std::make_unique<store::Callback<store::Status>>(std::move(done)));
    (*kept.back())(store::Status{});
  }
  std::vector<std::unique_ptr<store::Callback<store::Status>>> kept;
};

TEST(CacheTest, ClosingWaitsUntilNoCallbackOfTheStoreReferencesTheCache) {
  TestClock clock;
  QueueExecutor executor;
  StoreThatKeepsCallbacks store(clock);
  const int64_t before = cache_count();
  ownership::Pool pool{Gates{}};
  {
    Cache cache(store, std::make_shared<TestCodec>(), pool, Executors{&executor, &executor},
                {.prefix = "/registry/pods/", .resource = "pods"}, clock);
    cache.start();
    executor.run();
    bool closed = false;
    spawn(cache.close(executor), [&](std::exception_ptr) { closed = true; });
    executor.run();
    EXPECT_FALSE(closed);
    store.kept.clear();
    executor.run();
    EXPECT_TRUE(closed);
  }
  EXPECT_EQ(cache_count(), before);
}

// --- Rendering ------------------------------------------------------------------------------------------------------

TEST(CacheTest, EachFormOfAnEventIsRenderedOnceForAllWatchers) {
  CacheFixture f;
  f.start();
  std::vector<Watcher> watchers;
  for (int i = 0; i < 10; ++i) watchers.push_back(f.watch({}));
  f.put("a/x", object("1"));
  f.put("a/x", object("2"));
  int rendered = 0;
  const auto json = [&](const Delivery& delivery) {
    ++rendered;
    return "json " + CacheFixture::to_text(delivery);
  };
  Blob first;
  for (size_t i = 0; i < watchers.size(); ++i) {
    const std::vector<Delivery> batch = f.next(watchers[i]);
    ASSERT_EQ(batch.size(), 2u);
    for (const Delivery& delivery : batch) {
      const Blob bytes = delivery.render(i % 2 == 0 ? "json" : "json without managedFields", json);
      EXPECT_EQ(*bytes, "json " + CacheFixture::to_text(delivery));
      if (delivery.type == EventType::Added && i % 2 == 0) {
        if (i == 0) first = bytes;
        EXPECT_EQ(bytes, first);
      }
    }
  }
  EXPECT_EQ(rendered, 4);  // Two events in two forms.
  EXPECT_EQ(f.cache->counters().renders, 4u);
  EXPECT_EQ(f.cache->counters().render_hits, 16u);
  EXPECT_GT(f.cache->usage().rendered_bytes, 0u);
}

TEST(CacheTest, RenderingsAreLimitedInMemory) {
  CacheFixture f;
  f.options.rendered_bytes = 1000;
  f.start();
  Watcher watcher = f.watch({});
  for (int i = 0; i < 50; ++i) {
    f.put("a/x", object(std::to_string(i)));
    for (const Delivery& delivery : f.next(watcher)) {
      delivery.render("form", [](const Delivery&) { return std::string(100, 'x'); });
    }
    EXPECT_LE(f.cache->usage().rendered_bytes, 1200u);
  }
}

// --- Trouble --------------------------------------------------------------------------------------------------------

TEST(CacheTest, BeforeTheFirstListReadsFailWithRetryAfter) {
  CacheFixture f;
  f.store.set_failure(store::StoreError{store::ErrorKind::Unavailable, "no connection to 127.0.0.1:2379"});
  f.start();
  EXPECT_FALSE(f.cache->ready());
  Result<Snapshot> snapshot = f.cache->snapshot();
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().reason, Reason::TooManyRequests);
  EXPECT_EQ(snapshot.error().retry_after_seconds, 1);
  EXPECT_THAT(f.cache->last_error()->message, HasSubstr("127.0.0.1:2379"));
  f.pass(7s);
  EXPECT_EQ(f.cache->snapshot().error().retry_after_seconds, 7);
  f.pass(60s);
  EXPECT_EQ(f.cache->snapshot().error().retry_after_seconds, 30);
  f.store.set_failure(std::nullopt);
  f.pass(10s);
  EXPECT_TRUE(f.cache->ready());
  EXPECT_FALSE(f.cache->last_error());
}

// The keys and reasons of values that a list could not decode.
std::vector<std::string> unreadable(const Snapshot& snapshot, const ListRequest& request) {
  std::vector<std::string> found;
  for (const Unreadable& each : snapshot.list(request).unreadable) found.push_back(each.key + ": " + each.why);
  return found;
}

TEST(CacheTest, AnEncryptedValueIsReportedAsSuchAndOthersAreServed) {
  CacheFixture f;
  f.put("a/x", object("1"));
  f.put_bytes("a/secret", "k8s:enc:aescbc:v1:key1:...");
  f.start();
  EXPECT_TRUE(f.cache->ready());
  EXPECT_THAT(f.keys(*f.cache->snapshot()), ElementsAre("a/x"));
  EXPECT_THAT(unreadable(*f.cache->snapshot(), {}),
              ElementsAre(HasSubstr("a/secret: data from the storage is not transformable revision=0: the value is "
                                    "encrypted (k8s:enc:)")));
}

TEST(CacheTest, AnUndecodableValueAffectsOnlyItsObject) {
  CacheFixture f;
  f.put("a/x", object("1"));
  f.put_bytes("a/y", "nonsense");
  f.put("b/x", object("1"));
  f.start();
  EXPECT_TRUE(f.cache->ready());
  EXPECT_FALSE(f.cache->last_error());
  const Snapshot now = *f.cache->snapshot();
  EXPECT_THAT(f.keys(now), ElementsAre("a/x", "b/x"));
  EXPECT_EQ(f.cache->usage().unreadable, 1u);
  EXPECT_FALSE(now.find("a/y"));
  ASSERT_NE(now.find_unreadable("a/y"), nullptr);
  EXPECT_EQ(now.find_unreadable("a/x"), nullptr);
  const auto bad = ElementsAre("a/y: object not decodable revision=3: cannot read /registry/pods/a/y");
  EXPECT_THAT(unreadable(now, {}), bad);
  EXPECT_THAT(unreadable(now, {.scope = "a/"}), bad);
  EXPECT_THAT(unreadable(now, {.scope = "b/"}), IsEmpty());
  // Values outside the page, or with another name, are not reported.
  EXPECT_THAT(unreadable(now, {.scope = "", .limit = 1}), IsEmpty());
  EXPECT_THAT(unreadable(now, {.scope = "", .limit = 2}), bad);
  EXPECT_THAT(unreadable(now, {.scope = "", .from = "b/"}), IsEmpty());
  const auto named = [](const char* name) {
    ListRequest request{.scope = "a/"};
    request.selector.fields.push_back({FieldRequirement::kName, true, name});
    return request;
  };
  EXPECT_THAT(unreadable(now, named("x")), IsEmpty());
  EXPECT_THAT(unreadable(now, named("y")), bad);
  Result<Cache::Latest> latest = f.get(f.cache->latest("a/y", f.executor));
  ASSERT_FALSE(latest);
  EXPECT_EQ(latest.error().reason, Reason::StoreReadError);
  EXPECT_TRUE(f.get(f.cache->latest("a/x", f.executor))->entry);
}

TEST(CacheTest, WatchersAreClosedWhenAValueBecomesUnreadableAndWhenItIsDeleted) {
  CacheFixture f;
  f.put("a/x", object("1"));
  f.put("a/y", object("1"));
  f.start();
  Watcher watcher = f.watch({});
  const auto after = [](uint64_t revision) {
    return WatchRequest{.scope = "", .start = WatchRequest::Start::After, .revision = Revision{revision}};
  };
  f.put_bytes("a/y", "nonsense");
  EXPECT_TRUE(f.cache->ready());
  EXPECT_THAT(f.events(watcher), ElementsAre("END"));
  EXPECT_EQ(watcher.end(), Watcher::End::Relisted);
  EXPECT_THAT(f.keys(*f.cache->snapshot()), ElementsAre("a/x"));
  // Clients cannot resume from before: no event shows what happened to the object.
  EXPECT_EQ(f.get(f.cache->watch(after(3), f.executor)).error().reason, Reason::Expired);

  Watcher second = f.watch(after(4));
  f.put("a/x", object("2"));
  EXPECT_THAT(f.events(second), ElementsAre("MODIFIED a/x rv=5;2"));
  f.remove("a/y");
  EXPECT_THAT(f.events(second), ElementsAre("END"));
  EXPECT_EQ(second.end(), Watcher::End::Relisted);
  EXPECT_THAT(unreadable(*f.cache->snapshot(), {}), IsEmpty());
  EXPECT_EQ(f.cache->usage().unreadable, 0u);

  // A repaired value is an Added event.
  f.put_bytes("a/z", "nonsense");
  Watcher third = f.watch({});
  f.put("a/z", object("3"));
  EXPECT_THAT(f.events(third), ElementsAre("ADDED a/z rv=8;3"));
  EXPECT_THAT(f.keys(*f.cache->snapshot()), ElementsAre("a/x", "a/z"));
  // The state before the repair still reports it.
  const Result<Snapshot> before = f.get(f.cache->exactly(Revision{7}, f.executor));
  ASSERT_TRUE(before);
  EXPECT_THAT(f.keys(*before), ElementsAre("a/x"));
  EXPECT_NE(before->find_unreadable("a/z"), nullptr);
}

TEST(CacheTest, TheFeedContinuesWithoutAGapAfterALostConnection) {
  CacheFixture f;
  f.put("a/x", object("1"));
  f.start();
  Watcher watcher = f.watch({});
  f.store.break_watchers({store::ErrorKind::Unavailable, "connection lost"});
  f.executor.run();
  f.put("a/y", object("2"));
  f.put("a/y", object("3"));
  EXPECT_THAT(f.events(watcher), IsEmpty());
  EXPECT_TRUE(f.cache->ready());
  EXPECT_THAT(f.cache->last_error()->message, HasSubstr("connection lost"));
  f.pass(200ms);
  EXPECT_THAT(f.events(watcher), ElementsAre("ADDED a/y rv=3;2", "MODIFIED a/y rv=4;3"));
  EXPECT_FALSE(f.cache->last_error());
  EXPECT_EQ(f.cache->counters().relists, 0u);
}

TEST(CacheTest, TheCacheListsAgainAndClosesItsWatchersIfMissedChangesWereCompacted) {
  CacheFixture f;
  f.put("a/x", object("1"));
  f.put("a/gone", object("1"));
  f.start();
  Watcher watcher = f.watch({});
  const EntryRef unchanged = f.cache->snapshot()->find("a/x");
  f.store.break_watchers({store::ErrorKind::Unavailable, "connection lost"});
  f.executor.run();
  f.remove("a/gone");
  const Revision last = f.put("a/y", object("2"));
  f.store.compact(last, [](store::StoreResult<Unit> done) { ASSERT_TRUE(done); });
  f.pass(200ms);
  EXPECT_EQ(watcher.end(), Watcher::End::Relisted);
  EXPECT_THAT(f.events(watcher), ElementsAre("END"));
  ASSERT_TRUE(f.cache->ready());
  EXPECT_EQ(f.cache->counters().relists, 1u);
  EXPECT_THAT(f.keys(*f.cache->snapshot()), ElementsAre("a/x", "a/y"));
  // Unchanged objects are not decoded again.
  EXPECT_EQ(f.cache->snapshot()->find("a/x"), unchanged);
  const Result<Watcher> old =
      f.get(f.cache->watch({.start = WatchRequest::Start::After, .revision = Revision{3}}, f.executor));
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().reason, Reason::Expired);
  Watcher again = f.watch({.start = WatchRequest::Start::After, .revision = last});
  f.put("a/y", object("3"));
  EXPECT_THAT(f.events(again), ElementsAre("MODIFIED a/y rv=6;3"));
}

// --- Memory ---------------------------------------------------------------------------------------------------------

std::string long_body(int i) {
  std::string body;
  for (int line = 0; line < 30; ++line) body += "setting-" + std::to_string(line * 7919) + "=the same everywhere;";
  return body + "unique-" + std::to_string(i);
}

TEST(CacheTest, BodiesBeyondTheLimitAreCompressedAndDecompressedOnRead) {
  CacheFixture f;
  f.options.plain_body_bytes = 20000;
  f.options.list_page = 100;
  for (int i = 0; i < 1000; ++i) f.put("a/" + std::to_string(i), object(long_body(i)));
  f.start();
  Usage usage = f.cache->usage();
  EXPECT_EQ(usage.entries, 1000u);
  EXPECT_GT(usage.body_raw_bytes, 1000u * 1000);
  EXPECT_LE(usage.body_plain_bytes, 22000u);
  EXPECT_LT(usage.body_packed_bytes, 100u * 1000);
  const Snapshot snapshot = *f.cache->snapshot();
  BodyReader reader;
  for (int i = 0; i < 1000; ++i) {
    const EntryRef entry = snapshot.find("a/" + std::to_string(i));
    const std::string want = "rv=" + std::to_string(i + 2) + ";" + long_body(i);
    ASSERT_EQ(*entry->body(), want);
    ASSERT_EQ(reader.read(*entry), want);
  }
  // Reading a body with Use::Hot keeps it plain, until others evict it.
  const EntryRef hot = snapshot.find("a/500");
  EXPECT_EQ(hot->body(Entry::Use::Hot), hot->body(Entry::Use::Hot));
  EXPECT_NE(snapshot.find("a/501")->body(), snapshot.find("a/501")->body());
  for (int i = 600; i < 700; ++i) snapshot.find("a/" + std::to_string(i))->body(Entry::Use::Hot);
  EXPECT_LE(f.cache->usage().body_plain_bytes, 22000u);
}

TEST(CacheTest, ChangedBodiesAreHotAndCoolDown) {
  CacheFixture f;
  f.options.plain_body_bytes = 20000;
  f.start();
  for (int i = 0; i < 300; ++i) f.put("a/" + std::to_string(i % 50), object(long_body(i)));
  const Usage usage = f.cache->usage();
  EXPECT_LE(usage.body_plain_bytes, 22000u);
  EXPECT_GE(f.cache->counters().dictionaries, 1u);
  for (int i = 250; i < 300; ++i) {
    EXPECT_EQ(*f.cache->snapshot()->find("a/" + std::to_string(i % 50))->body(),
              "rv=" + std::to_string(i + 2) + ";" + long_body(i));
  }
}

TEST(CacheTest, ADictionaryThatNoLongerFitsIsReplaced) {
  CacheFixture f;
  f.options.plain_body_bytes = 10000;
  f.options.list_page = 50;
  f.options.dictionary_samples = 100;
  for (int i = 0; i < 200; ++i) f.put("a/" + std::to_string(i), object(long_body(i)));
  f.start();
  const uint64_t first = f.cache->counters().dictionaries;
  EXPECT_GE(first, 1u);
  const auto other = [](int i) {
    std::string body;
    for (int line = 0; line < 40; ++line) body += "quite-another-line-" + std::to_string(line * 104729 % 1000) + "!";
    return body + std::to_string(i);
  };
  for (int i = 0; i < 600; ++i) f.put("b/" + std::to_string(i), object(other(i)));
  f.pass(1s);
  EXPECT_GT(f.cache->counters().dictionaries, first);
  EXPECT_LT(f.cache->usage().body_packed_bytes, 800u * 120);
  for (int i = 0; i < 600; ++i) {
    ASSERT_THAT(*f.cache->snapshot()->find("b/" + std::to_string(i))->body(), HasSubstr(other(i)));
  }
}

TEST(CacheTest, WithoutCompressionBodiesStayPlain) {
  CacheFixture f;
  f.options.compress_bodies = false;
  f.options.plain_body_bytes = 1000;
  for (int i = 0; i < 1000; ++i) f.put("a/" + std::to_string(i), object(long_body(i)));
  f.start();
  EXPECT_EQ(f.cache->usage().body_plain_bytes, f.cache->usage().body_raw_bytes);
  EXPECT_EQ(f.cache->usage().body_packed_bytes, 0u);
}

TEST(CacheTest, EqualLabelsAreSharedAndAllMemoryIsReleased) {
  CacheFixture f;
  f.options.history_events = 1;
  f.options.history_age = 0ms;
  f.start();
  for (int i = 0; i < 100; ++i) {
    f.put("a/" + std::to_string(i), {.labels = {{"app", "web"}}, .owners = {{"m", R"({"f:a":{}})"}}, .body = "x"});
  }
  EXPECT_LT(f.cache->usage().label_bytes, 1000u);
  EXPECT_EQ(f.pool.usage().sets, 1u);
  for (int i = 0; i < 100; ++i) f.remove("a/" + std::to_string(i));
  f.pass(1s);
  f.write_elsewhere();
  const Usage usage = f.cache->usage();
  EXPECT_EQ(usage.entries, 0u);
  EXPECT_EQ(usage.index_bytes, 0u);
  f.close();
  EXPECT_EQ(f.pool.usage().objects, 0u);
}

}  // namespace
}  // namespace holdfast::cache
