// The contract of Store, run unchanged against every engine.
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <thread>

#include "store/test_support.h"

namespace holdfast::store::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StoreContract : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    engine_ = GetParam().start();
    // ./dev setup installs what the engines need: a missing one is a broken machine, not a reason to pass.
    ASSERT_TRUE(engine_) << GetParam().name << " is not installed; run ./dev setup";
    // Engines may be shared by all tests: each uses its own prefix, and revisions relative to where it starts.
    static std::atomic<int> serial = 0;
    root_ = "/registry/test" + std::to_string(++serial) + "-" + std::to_string(::getpid()) + "/";
    base_ = *waiting().current_revision();
  }

  Store& store() { return engine_->store(); }
  Waiting waiting() { return Waiting(store()); }
  std::string key(std::string_view name) const { return root_ + std::string(name); }
  std::string name(std::string_view key) const { return std::string(key.substr(root_.size())); }

  std::vector<std::string> names(const Page& page) const {
    std::vector<std::string> out;
    for (const KeyValue& item : page.items) out.push_back(name(item.key));
    return out;
  }

  // Relative to the test's prefix and first revision.
  std::vector<std::string> describe_all(const std::vector<EventRef>& events) const {
    std::vector<std::string> out;
    for (const EventRef& event : events) {
      Event relative = *event;
      relative.key = name(event->key);
      out.push_back(describe(relative, base_));
    }
    return out;
  }

  std::unique_ptr<EngineUnderTest> engine_;
  std::string root_;
  Revision base_;
};

std::string conflict_text(const StoreResult<WriteResult>& result) {
  if (!result) return result.error().message;
  const auto* conflict = std::get_if<Conflict>(&*result);
  if (!conflict) return "committed";
  return std::to_string(conflict->operation) + ":" + (conflict->current ? *conflict->current->value : "absent");
}

TEST_P(StoreContract, a_created_key_is_read_back_at_its_revision) {
  Revision created = waiting().create(key("a"), "one");
  EXPECT_EQ(created.value, base_.value + 1);
  StoreResult<Got> got = waiting().get(key("a"));
  ASSERT_TRUE(got);
  ASSERT_TRUE(got->item);
  EXPECT_EQ(got->item->key, key("a"));
  EXPECT_EQ(*got->item->value, "one");
  EXPECT_EQ(got->item->created, created);
  EXPECT_EQ(got->item->modified, created);
  EXPECT_GE(got->revision, created);
}

TEST_P(StoreContract, an_absent_key_is_not_an_error) {
  StoreResult<Got> got = waiting().get(key("nothing"));
  ASSERT_TRUE(got);
  EXPECT_FALSE(got->item);
  EXPECT_GE(got->revision, base_);
}

TEST_P(StoreContract, creating_an_existing_key_is_a_conflict_that_returns_it) {
  waiting().create(key("a"), "one");
  EXPECT_EQ(conflict_text(waiting().write({create(key("a"), make_blob("two"))})), "0:one");
  EXPECT_EQ(*waiting().get(key("a"))->item->value, "one");
}

TEST_P(StoreContract, an_update_keeps_the_creation_revision) {
  Revision first = waiting().create(key("a"), "one");
  Revision second = waiting().update(key("a"), first, "two");
  EXPECT_EQ(second.value, first.value + 1);
  StoreResult<Got> got = waiting().get(key("a"));
  EXPECT_EQ(*got->item->value, "two");
  EXPECT_EQ(got->item->created, first);
  EXPECT_EQ(got->item->modified, second);
}

TEST_P(StoreContract, an_update_or_delete_at_the_wrong_revision_is_a_conflict) {
  Revision first = waiting().create(key("a"), "one");
  Revision second = waiting().update(key("a"), first, "two");
  EXPECT_EQ(conflict_text(waiting().write({update(key("a"), first, make_blob("three"))})), "0:two");
  EXPECT_EQ(conflict_text(waiting().write({remove(key("a"), first)})), "0:two");
  EXPECT_EQ(conflict_text(waiting().write({update(key("b"), second, make_blob("three"))})), "0:absent");
  EXPECT_EQ(conflict_text(waiting().write({remove(key("b"), second)})), "0:absent");
  EXPECT_EQ(*waiting().current_revision(), second) << "a conflict does not use up a revision";
}

TEST_P(StoreContract, a_deleted_key_is_absent_and_may_be_created_again) {
  Revision first = waiting().create(key("a"), "one");
  Revision deleted = waiting().remove(key("a"), first);
  EXPECT_EQ(deleted.value, first.value + 1);
  EXPECT_FALSE(waiting().get(key("a"))->item);
  EXPECT_EQ(conflict_text(waiting().write({remove(key("a"), deleted)})), "0:absent");
  Revision again = waiting().create(key("a"), "two");
  EXPECT_EQ(waiting().get(key("a"))->item->created, again);
}

TEST_P(StoreContract, a_transaction_changes_all_of_its_keys_at_one_revision) {
  Revision a = waiting().create(key("a"), "one");
  Revision b = waiting().create(key("b"), "one");
  Revision both = waiting().commit(
      {update(key("a"), a, make_blob("two")), remove(key("b"), b), create(key("c"), make_blob("new"))});
  EXPECT_EQ(both.value, b.value + 1);
  EXPECT_EQ(waiting().get(key("a"))->item->modified, both);
  EXPECT_FALSE(waiting().get(key("b"))->item);
  EXPECT_EQ(waiting().get(key("c"))->item->modified, both);
}

TEST_P(StoreContract, a_transaction_with_one_conflict_changes_nothing) {
  Revision a = waiting().create(key("a"), "one");
  EXPECT_EQ(conflict_text(waiting().write(
                {update(key("a"), a, make_blob("two")), create(key("x"), make_blob("x")), remove(key("b"), a)})),
            "2:absent");
  EXPECT_EQ(*waiting().get(key("a"))->item->value, "one");
  EXPECT_FALSE(waiting().get(key("x"))->item);
}

TEST_P(StoreContract, a_check_guards_other_keys_and_changes_nothing_itself) {
  Revision a = waiting().create(key("a"), "one");
  Revision b = waiting().commit({check(key("a"), a), check(key("z"), {}), create(key("b"), make_blob("two"))});
  EXPECT_EQ(b.value, a.value + 1);
  EXPECT_EQ(waiting().get(key("a"))->item->modified, a);
  EXPECT_EQ(conflict_text(waiting().write({check(key("a"), b), create(key("c"), make_blob("x"))})), "0:one");
  EXPECT_EQ(conflict_text(waiting().write({create(key("c"), make_blob("x")), check(key("b"), {})})), "1:two");
  EXPECT_EQ(waiting().commit({check(key("a"), a)}), b) << "a transaction of checks does not use up a revision";
}

TEST_P(StoreContract, invalid_transactions_are_rejected_before_they_are_tried) {
  struct Case {
    const char* name;
    Transaction transaction;
    ErrorKind want;
  };
  Case cases[] = {
      {"no operations", {}, ErrorKind::Invalid},
      {"empty key", {create("", make_blob("x"))}, ErrorKind::Invalid},
      {"NUL in a key", {create(key(std::string_view("a\0b", 3)), make_blob("x"))}, ErrorKind::Invalid},
      {"no value", {create(key("a"), nullptr)}, ErrorKind::Invalid},
      {"update without a revision", {update(key("a"), {}, make_blob("x"))}, ErrorKind::Invalid},
      {"duplicate key", {create(key("a"), make_blob("x")), check(key("a"), {})}, ErrorKind::Invalid},
      {"more bytes than etcd allows", {create(key("a"), make_blob(std::string(2 << 20, 'x')))}, ErrorKind::TooLarge},
      {"more operations than etcd allows", Transaction(129, check(key("a"), {})), ErrorKind::TooLarge},
  };
  for (Case& c : cases) {
    StoreResult<WriteResult> result = waiting().write(c.transaction);
    ASSERT_FALSE(result) << c.name;
    EXPECT_EQ(result.error().kind, c.want) << c.name << ": " << result.error().message;
  }
  EXPECT_EQ(*waiting().current_revision(), base_);
}

TEST_P(StoreContract, values_are_arbitrary_bytes_and_may_be_empty) {
  std::string bytes("\0\xff\x00k8s", 6);
  waiting().create(key("bytes"), bytes);
  Revision empty = waiting().create(key("empty"), "");
  EXPECT_EQ(*waiting().get(key("bytes"))->item->value, bytes);
  EXPECT_EQ(*waiting().get(key("empty"))->item->value, "");
  auto watcher = store().watch({root_, empty});
  waiting().remove(key("empty"), empty);
  auto events = take(*watcher, 1);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(*events[0]->previous, "");
}

TEST_P(StoreContract, a_value_of_a_megabyte_is_stored) {
  std::string large(1 << 20, 'x');
  waiting().create(key("large"), large);
  EXPECT_EQ(*waiting().get(key("large"))->item->value, large);
}

TEST_P(StoreContract, a_range_is_sorted_by_key_and_contains_only_its_prefix) {
  for (const char* k : {"pods/b/x", "pods/a/y", "pods/a/x", "pods/ab", "podsx/a", "pod"}) waiting().create(key(k), k);
  StoreResult<Page> page = waiting().range({.prefix = key("pods/")});
  ASSERT_TRUE(page);
  EXPECT_THAT(names(*page), ElementsAre("pods/a/x", "pods/a/y", "pods/ab", "pods/b/x"));
  EXPECT_EQ(*page->items[0].value, "pods/a/x");
  EXPECT_FALSE(page->more);
  EXPECT_EQ(page->revision, *waiting().current_revision());
  EXPECT_THAT(names(*waiting().range({.prefix = key("nothing/")})), IsEmpty());
}

TEST_P(StoreContract, the_next_page_starts_after_the_last_key) {
  for (int i = 0; i < 10; ++i) waiting().create(key("k" + std::to_string(i)), "v");
  RangeRequest request{.prefix = root_, .limit = 4, .count = true};
  StoreResult<Page> first = waiting().range(request);
  EXPECT_THAT(names(*first), ElementsAre("k0", "k1", "k2", "k3"));
  EXPECT_TRUE(first->more);
  EXPECT_EQ(first->count, 10u);
  request.from = first->items.back().key + '\0';
  request.at = first->revision;
  waiting().create(key("k4a"), "later");
  StoreResult<Page> second = waiting().range(request);
  EXPECT_THAT(names(*second), ElementsAre("k4", "k5", "k6", "k7"));
  EXPECT_EQ(second->count, 6u);
  EXPECT_EQ(second->revision, first->revision);
  request.from = second->items.back().key + '\0';
  StoreResult<Page> third = waiting().range(request);
  EXPECT_THAT(names(*third), ElementsAre("k8", "k9"));
  EXPECT_FALSE(third->more);
  request.limit = 2;
  EXPECT_FALSE(waiting().range(request)->more) << "exactly the limit means no more";
}

TEST_P(StoreContract, a_keys_only_range_has_no_values) {
  Revision a = waiting().create(key("a"), "one");
  StoreResult<Page> page = waiting().range({.prefix = root_, .keys_only = true});
  ASSERT_EQ(page->items.size(), 1u);
  EXPECT_EQ(page->items[0].value, nullptr);
  EXPECT_EQ(page->items[0].modified, a);
}

TEST_P(StoreContract, a_range_at_a_revision_shows_the_state_at_that_revision) {
  Revision a1 = waiting().create(key("a"), "a1");
  Revision b1 = waiting().create(key("b"), "b1");
  Revision a2 = waiting().update(key("a"), a1, "a2");
  Revision b2 = waiting().remove(key("b"), b1);
  auto values = [&](Revision at) {
    std::vector<std::string> out;
    StoreResult<Page> page = waiting().range({.prefix = root_, .at = at});
    if (!page) return std::vector{page.error().message};
    EXPECT_EQ(page->revision, at);
    for (const KeyValue& item : page->items) out.push_back(*item.value);
    return out;
  };
  EXPECT_THAT(values(a1), ElementsAre("a1"));
  EXPECT_THAT(values(b1), ElementsAre("a1", "b1"));
  EXPECT_THAT(values(a2), ElementsAre("a2", "b1"));
  EXPECT_THAT(values(b2), ElementsAre("a2"));
}

TEST_P(StoreContract, a_range_finds_its_version_in_a_long_history) {
  std::vector<Revision> revisions = {waiting().create(key("busy"), "0")};
  for (int i = 1; i < 60; ++i) revisions.push_back(waiting().update(key("busy"), revisions.back(), std::to_string(i)));
  waiting().create(key("next"), "n");
  EXPECT_THAT(names(*waiting().range({.prefix = root_})), ElementsAre("busy", "next"));
  EXPECT_THAT(names(*waiting().range({.prefix = root_, .from = key("busy") + '\0'})), ElementsAre("next"));
  EXPECT_EQ(*waiting().range({.prefix = root_, .at = revisions[3]})->items.at(0).value, "3");
}

TEST_P(StoreContract, a_future_revision_cannot_be_read) {
  StoreResult<Page> page = waiting().range({.prefix = root_, .at = {base_.value + 1000}});
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().kind, ErrorKind::FutureRevision) << page.error().message;
}

TEST_P(StoreContract, compaction_removes_old_versions_and_keeps_current_ones) {
  Revision a1 = waiting().create(key("a"), "a1");
  Revision b1 = waiting().create(key("b"), "b1");
  Revision a2 = waiting().update(key("a"), a1, "a2");
  Revision b2 = waiting().remove(key("b"), b1);
  Revision a3 = waiting().update(key("a"), a2, "a3");
  ASSERT_TRUE(waiting().compact(b2));
  EXPECT_EQ(waiting().range({.prefix = root_, .at = a2}).error().kind, ErrorKind::Compacted);
  EXPECT_EQ(*waiting().range({.prefix = root_, .at = b2})->items.at(0).value, "a2");
  EXPECT_THAT(names(*waiting().range({.prefix = root_, .at = b2})), ElementsAre("a"));
  EXPECT_EQ(*waiting().get(key("a"))->item->value, "a3");
  EXPECT_EQ(waiting().get(key("a"))->item->created, a1);

  EXPECT_EQ(waiting().compact(b2).error().kind, ErrorKind::Compacted) << "already compacted";
  EXPECT_EQ(waiting().compact({a3.value + 100}).error().kind, ErrorKind::FutureRevision);

  auto after = store().watch({root_, b2});
  EXPECT_THAT(describe_all(take(*after, 1)), ElementsAre("~a@5=a3<a2"));
  auto before = store().watch({root_, a1});
  StoreResult<WatchBatch> batch = next(*before);
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().kind, ErrorKind::Compacted) << batch.error().message;
  EXPECT_EQ(next(*before).error().kind, ErrorKind::Compacted) << "and every further call returns the same";
  EXPECT_FALSE(waiting().get(key("b"))->item);
  waiting().create(key("b"), "again");
}

TEST_P(StoreContract, a_watcher_gets_every_change_with_the_values_before_and_after) {
  auto watcher = store().watch({root_, base_});
  Revision r = waiting().create(key("a"), "1");
  r = waiting().update(key("a"), r, "2");
  r = waiting().remove(key("a"), r);
  r = waiting().create(key("a"), "3");
  auto events = take(*watcher, 4);
  EXPECT_THAT(describe_all(events), ElementsAre("+a@1=1", "~a@2=2<1", "-a@3<2", "+a@4=3"));
  EXPECT_EQ(events.at(1)->created.value, base_.value + 1);
  EXPECT_EQ(events.at(1)->previous_revision.value, base_.value + 1);
  EXPECT_EQ(events.at(2)->previous_revision.value, base_.value + 2);
  EXPECT_EQ(events.at(3)->created.value, base_.value + 4);
}

TEST_P(StoreContract, a_watcher_sees_only_its_range) {
  auto watcher = store().watch({key("pods/"), base_});
  waiting().create(key("podsx"), "no");
  waiting().create(key("pods/a"), "yes");
  waiting().create(key("qods/a"), "no");
  waiting().create(key("pods/b"), "yes");
  EXPECT_THAT(describe_all(take(*watcher, 2)), ElementsAre("+pods/a@2=yes", "+pods/b@4=yes"));
}

TEST_P(StoreContract, a_watcher_started_in_the_past_gets_history_and_then_new_changes) {
  Revision r1 = waiting().create(key("a"), "1");
  Revision r2 = waiting().update(key("a"), r1, "2");
  waiting().remove(key("a"), r2);
  auto watcher = store().watch({root_, r1});
  EXPECT_THAT(describe_all(take(*watcher, 2)), ElementsAre("~a@2=2<1", "-a@3<2"));
  waiting().create(key("b"), "3");
  EXPECT_THAT(describe_all(take(*watcher, 1)), ElementsAre("+b@4=3"));
}

TEST_P(StoreContract, a_transaction_arrives_in_one_batch) {
  auto watcher = store().watch({root_, base_});
  Transaction many;
  for (int i = 0; i < 50; ++i) many.push_back(create(key("k" + std::to_string(100 + i)), make_blob("v")));
  Revision revision = waiting().commit(many);
  StoreResult<WatchBatch> batch = next(*watcher);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->events.size(), 50u);
  EXPECT_EQ(batch->revision, revision);
}

TEST_P(StoreContract, a_watcher_without_a_start_begins_now_and_reports_the_revision) {
  Revision before = waiting().create(key("a"), "1");
  auto watcher = store().watch({root_, {}});
  StoreResult<WatchBatch> first = next(*watcher);
  ASSERT_TRUE(first);
  EXPECT_THAT(first->events, IsEmpty());
  EXPECT_GE(first->revision, before);
  waiting().create(key("b"), "2");
  EXPECT_THAT(describe_all(take(*watcher, 1)), ElementsAre("+b@2=2"));
}

TEST_P(StoreContract, a_watcher_started_in_the_future_gets_only_changes_after_that) {
  auto watcher = store().watch({root_, {base_.value + 2}});
  waiting().create(key("a"), "1");
  waiting().create(key("b"), "2");
  waiting().create(key("c"), "3");
  EXPECT_THAT(describe_all(take(*watcher, 1)), ElementsAre("+c@3=3"));
}

TEST_P(StoreContract, progress_is_reported_on_request_and_covers_writes_outside_the_range) {
  if (!waiting().status()->progress_is_exact) {
    // An etcd before 3.4.31 (Debian's is 3.4.23) may report progress before the events it covers. Its status must say
    // so, and readers use the store instead; no other engine may.
    EXPECT_EQ(std::string_view(GetParam().name).substr(0, 4), "etcd");
    return;
  }
  auto watcher = store().watch({root_ + "nothing-here/", base_});
  Revision elsewhere = waiting().create(key("a"), "1");
  // An engine may respond with the current position of its stream; repeated requests must reach the revision.
  for (int i = 0; i < 100; ++i) {
    watcher->request_progress();
    StoreResult<WatchBatch> batch = next(*watcher);
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_THAT(batch->events, IsEmpty());
    if (batch->revision >= elsewhere) return;
  }
  ADD_FAILURE() << "progress never reached " << elsewhere.value;
}

TEST_P(StoreContract, progress_never_exceeds_what_was_delivered) {
  auto watcher = store().watch({root_, base_});
  Revision last = base_;
  for (int i = 0; i < 50; ++i) {
    last = waiting().create(key("k" + std::to_string(i)), "v");
    watcher->request_progress();
  }
  Revision delivered;
  for (size_t events = 0; events < 50;) {
    StoreResult<WatchBatch> batch = next(*watcher);
    ASSERT_TRUE(batch) << batch.error().message;
    for (const EventRef& event : batch->events) {
      EXPECT_GT(event->revision, delivered);
      delivered = event->revision;
    }
    events += batch->events.size();
    EXPECT_EQ(batch->revision, std::max(delivered, base_)) << "every revision here is an event of the range";
  }
}

TEST_P(StoreContract, destroying_a_watcher_completes_the_pending_call) {
  auto watcher = store().watch({root_, base_});
  StoreResult<WatchBatch> result = WatchBatch{};
  bool called = false;
  watcher->next([&](StoreResult<WatchBatch> r) {
    result = std::move(r);
    called = true;
  });
  watcher.reset();
  ASSERT_TRUE(called);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::Closed);
}

TEST_P(StoreContract, a_watcher_may_be_destroyed_by_its_own_callback) {
  auto watcher = store().watch({root_, base_});
  std::promise<void> destroyed;
  watcher->next([&](StoreResult<WatchBatch>) {
    watcher.reset();
    destroyed.set_value();
  });
  waiting().create(key("a"), "1");
  ASSERT_EQ(destroyed.get_future().wait_for(kPatience), std::future_status::ready);
}

TEST_P(StoreContract, closing_the_store_ends_its_watchers) {
  auto idle = store().watch({root_, base_});
  auto pending = store().watch({root_, base_});
  std::promise<ErrorKind> kind;
  pending->next([&](StoreResult<WatchBatch> r) { kind.set_value(r ? ErrorKind::Internal : r.error().kind); });
  engine_->close();
  EXPECT_EQ(kind.get_future().get(), ErrorKind::Closed);
  StoreResult<WatchBatch> late = next(*idle);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::Closed);
}

TEST_P(StoreContract, a_watcher_that_falls_far_behind_misses_nothing) {
  auto watcher = store().watch({root_, base_});
  constexpr int kWrites = 300;
  std::string padding(30000, 'x');  // More than is kept in memory.
  Revision r = waiting().create(key("a"), "0" + padding);
  for (int i = 1; i < kWrites; ++i) r = waiting().update(key("a"), r, std::to_string(i) + padding);
  auto events = take(*watcher, kWrites);
  ASSERT_EQ(events.size(), static_cast<size_t>(kWrites));
  for (int i = 0; i < kWrites; ++i) {
    EXPECT_EQ(events[i]->revision.value, base_.value + 1 + i);
    ASSERT_EQ(*events[i]->value, std::to_string(i) + padding);
    if (i > 0) ASSERT_EQ(*events[i]->previous, std::to_string(i - 1) + padding);
  }
}

TEST_P(StoreContract, independent_transactions_are_submitted_together) {
  waiting().create(key("taken"), "x");
  std::vector<Transaction> many;
  for (int i = 0; i < 200; ++i) many.push_back({create(key("k" + std::to_string(i)), make_blob("v"))});
  many.push_back({create(key("taken"), make_blob("y"))});
  std::promise<std::vector<StoreResult<WriteResult>>> promise;
  store().write_all(std::move(many), [&](auto results) { promise.set_value(std::move(results)); });
  auto results = promise.get_future().get();
  ASSERT_EQ(results.size(), 201u);
  std::set<uint64_t> revisions;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(results[i]);
    revisions.insert(std::get<Committed>(*results[i]).revision.value);
  }
  EXPECT_EQ(revisions.size(), 200u) << "one revision per transaction";
  EXPECT_EQ(*revisions.rbegin() - *revisions.begin(), 199u);
  EXPECT_EQ(conflict_text(results[200]), "0:x");
  EXPECT_EQ(waiting().range({.prefix = root_, .limit = 1, .count = true})->count, 201u);
}

TEST_P(StoreContract, a_key_with_a_ttl_expires_and_watchers_are_notified) {
  auto watcher = store().watch({root_, base_});
  waiting().commit({create(key("event"), make_blob("e"), std::chrono::seconds(1))});
  EXPECT_TRUE(waiting().get(key("event"))->item);
  engine_->pass(std::chrono::seconds(2));
  EXPECT_THAT(describe_all(take(*watcher, 2)), ElementsAre("+event@1=e", "-event@2<e"));
  EXPECT_FALSE(waiting().get(key("event"))->item);
}

TEST_P(StoreContract, a_write_without_a_ttl_removes_the_old_ttl) {
  Revision r = waiting().commit({create(key("stays"), make_blob("1"), std::chrono::seconds(1))});
  waiting().update(key("stays"), r, "2");
  // The same TTL means the same lease or sweep: if the first key still had its TTL, both would be deleted together.
  Revision marker = waiting().commit({create(key("goes"), make_blob("x"), std::chrono::seconds(1))});
  auto watcher = store().watch({key("goes"), marker});
  engine_->pass(std::chrono::seconds(2));
  take(*watcher, 1);
  ASSERT_TRUE(waiting().get(key("stays"))->item);
  EXPECT_EQ(*waiting().get(key("stays"))->item->value, "2");
}

TEST_P(StoreContract, status_reports_the_engine_and_its_revision) {
  Revision r = waiting().create(key("a"), "1");
  StoreResult<Status> status = waiting().status();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->engine, GetParam().name);
  EXPECT_FALSE(status->version.empty());
  EXPECT_EQ(status->current, r);
  EXPECT_GT(status->db_bytes, 0u);
}

TEST_P(StoreContract, concurrent_increments_of_one_counter_are_not_lost) {
  constexpr int kThreads = 8, kIncrements = 25;
  auto watcher = store().watch({root_, base_});
  waiting().create(key("counter"), "0");
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      Waiting mine(store());
      for (int i = 0; i < kIncrements;) {
        StoreResult<Got> got = mine.get(key("counter"));
        if (!got) return;
        std::string next = std::to_string(std::stoi(*got->item->value) + 1);
        StoreResult<WriteResult> result = mine.write({update(key("counter"), got->item->modified, make_blob(next))});
        if (!result) return;
        i += std::holds_alternative<Committed>(*result);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*waiting().get(key("counter"))->item->value, std::to_string(kThreads * kIncrements));
  auto events = take(*watcher, 1 + kThreads * kIncrements);
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(*events[i]->value, std::to_string(i));
    EXPECT_EQ(events[i]->revision.value, base_.value + 1 + i) << "no revision is skipped or repeated";
  }
}

TEST_P(StoreContract, a_read_after_an_acknowledged_write_sees_it) {
  Revision r = waiting().create(key("a"), "0");
  for (int i = 1; i < 200; ++i) {
    r = waiting().update(key("a"), r, std::to_string(i));
    ASSERT_EQ(waiting().get(key("a"))->item->modified, r);
    ASSERT_GE(*waiting().current_revision(), r);
    if (i % 20 == 0) {
      ASSERT_EQ(waiting().range({.prefix = root_})->items.at(0).modified, r);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, StoreContract, ::testing::ValuesIn(engines()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace holdfast::store::testing
