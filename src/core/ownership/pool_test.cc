#include "ownership/pool.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <thread>
#include <vector>

#include "ownership/fields_v2.h"
#include "ownership/number_table.h"

namespace holdfast::ownership {
namespace {

constexpr std::string_view kController =
    R"({"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:image":{},"f:name":{}}}}})";

std::string kubelet(int i) {
  return R"({"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:status":{},"f:type":{}}},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"10.)" +
         std::to_string(i / 250 % 250) + "." + std::to_string(i % 250) + "." + std::to_string(i / 62500) +
         R"(\"}":{".":{},"f:ip":{}}},"f:startTime":{}}})";
}

ManagedEntry entry(std::string_view manager, std::string_view fields, int64_t seconds = 1700000000) {
  return {.manager = manager,
          .operation = "Update",
          .api_version = "v1",
          .subresource = {},
          .time = UnixTime{seconds, 0},
          .fields_type = kFieldsV1,
          .fields = fields};
}

OwnersRef pod(Pool& pool, int i) {
  const std::string mine = kubelet(i);
  const ManagedEntry entries[] = {entry("kube-controller-manager", kController),
                                  entry("kubelet", mine, 1700000000 + i)};
  return pool.intern(pool.kind("pods", MemberOrder::Canonical), entries);
}

TEST(PoolTest, EqualSetsAreInternedOnce) {
  Pool pool{Gates{}};
  const OwnersRef a = pod(pool, 1), b = pod(pool, 2);
  EXPECT_EQ(a.view().fields(0), b.view().fields(0));
  EXPECT_NE(a.view().fields(1), b.view().fields(1));
  const PoolUsage usage = pool.usage();
  EXPECT_EQ(usage.objects, 2u);
  EXPECT_EQ(usage.entries, 4u);
  EXPECT_EQ(usage.sets, 3u);
  EXPECT_EQ(usage.references, 4u);
  EXPECT_DOUBLE_EQ(usage.sharing_factor(), 4.0 / 3);
  EXPECT_EQ(usage.fields_v1_bytes, 2 * kController.size() + kubelet(1).size() + kubelet(2).size());
  EXPECT_EQ(usage.managers, 2u);
}

TEST(PoolTest, SetIsFreedWithItsLastUser) {
  Pool pool{Gates{}};
  const uint64_t empty = pool.usage().kept_bytes;
  {
    OwnersRef a = pod(pool, 1);
    {
      const OwnersRef b = pod(pool, 2);
      const OwnersRef again = a.share();
    }
    EXPECT_EQ(pool.usage().sets, 2u);
  }
  const PoolUsage usage = pool.usage();
  EXPECT_EQ(usage.sets, 0u);
  EXPECT_EQ(usage.objects, 0u);
  EXPECT_EQ(usage.references, 0u);
  EXPECT_EQ(usage.managers, 0u);
  EXPECT_EQ(usage.fields_v1_bytes, 0u);
  EXPECT_EQ(usage.kept_bytes, empty);
  EXPECT_EQ(usage.owner_bytes, 0u);
  EXPECT_EQ(usage.hot_text_bytes, 0u);
}

TEST(PoolTest, EntriesSurviveARoundTrip) {
  Pool pool{Gates{}};
  for (int i = 0; i < 500; ++i) {
    const OwnersRef ref = pod(pool, i);
    const Owners owners = ref.view();
    ASSERT_EQ(owners.count(), 2u);
    EXPECT_EQ(*owners.fields_v1(0), kController);
    EXPECT_EQ(*owners.fields_v1(1), kubelet(i));
    const ManagedEntry second = owners.manager(1);
    EXPECT_EQ(second.manager, "kubelet");
    EXPECT_EQ(second.operation, "Update");
    EXPECT_EQ(second.api_version, "v1");
    EXPECT_EQ(second.subresource, "");
    EXPECT_EQ(second.time, (UnixTime{1700000000 + i, 0}));
    EXPECT_EQ(second.fields_type, kFieldsV1);
    Arena arena;
    Result<FieldSet> set = owners.field_set(1, arena);
    ASSERT_TRUE(set);
    EXPECT_EQ(to_fields_v1(*set), kubelet(i));
    std::string v2;
    ASSERT_TRUE(owners.append_fields_v2(1, v2));
    EXPECT_EQ(v2, to_fields_v2(*set));
    EXPECT_EQ(*owners.entries(arena)[1].fields, kubelet(i));
    EXPECT_EQ(*owners.entries(arena, kFieldsV2)[1].fields, v2);
  }
}

TEST(PoolTest, FieldsV2AndFieldsV1ShareTheSameSet) {
  Pool pool{Gates{}};
  Arena arena;
  const std::string v2 = to_fields_v2(*parse_fields_v1(arena, kController));
  ManagedEntry binary = entry("a", v2);
  binary.fields_type = kFieldsV2;
  const ManagedEntry entries[] = {entry("a", kController), binary};
  const OwnersRef ref = pool.intern(pool.kind("x", MemberOrder::Canonical), entries);
  EXPECT_EQ(ref.view().fields(0), ref.view().fields(1));
  EXPECT_EQ(ref.view().manager(1).fields_type, kFieldsV1);
  EXPECT_EQ(pool.usage().managers, 1u);
}

struct Verbatim {
  const char* name;
  const char* type;
  const char* fields;
};
constexpr Verbatim kVerbatim[] = {
    {"text that is not JSON", "FieldsV1", "{not json"},
    {"elements of an unknown kind", "FieldsV1", R"({"x:what":{},"f:a":{}})"},
    {"members in another order", "FieldsV1", R"({"f:b":{},"f:a":{}})"},
    {"space", "FieldsV1", R"({"f:a": {}})"},
    {"another type", "FieldsV9", "anything"},
    {"an empty type", "", "{}"},
    {"invalid FieldsV2", "FieldsV2", "\x07\x07"},
};

TEST(PoolTest, FieldsThatAreNotACanonicalSetAreKeptAsFound) {
  for (const Verbatim& test : kVerbatim) {
    SCOPED_TRACE(test.name);
    Pool pool{Gates{}};
    ManagedEntry odd = entry("odd", test.fields);
    odd.fields_type = test.type;
    const ManagedEntry entries[] = {odd, odd};
    const OwnersRef ref = pool.intern(pool.kind("x", MemberOrder::Canonical), entries);
    EXPECT_EQ(ref.view().manager(0).fields_type, test.type);
    EXPECT_EQ(*ref.view().fields_v1(0), test.fields);
    EXPECT_EQ(ref.view().fields(0), ref.view().fields(1));
    std::string v2;
    EXPECT_FALSE(ref.view().append_fields_v2(0, v2));
  }
}

TEST(PoolTest, SortedTextOfCustomResourcesWithEscapesIsASet) {
  Pool pool{Gates{}};
  const ManagedEntry entries[] = {
      entry("a", R"({"f:spec":{"f:\u003ca\u003e":{},"f:tags":{"v:-0.5":{},"v:0.1":{},"v:1":{}}}})")};
  const OwnersRef ref = pool.intern(pool.kind("widgets", MemberOrder::Bytewise), entries);
  std::string v2;
  EXPECT_TRUE(ref.view().append_fields_v2(0, v2));
  EXPECT_EQ(*ref.view().fields_v1(0, MemberOrder::Bytewise),
            R"({"f:spec":{"f:<a>":{},"f:tags":{"v:-0.5":{},"v:0.1":{},"v:1":{}}}})");
}

TEST(PoolTest, HandlesMoreKindsThanNumbers) {
  Pool pool{Gates{}};
  const Pool::Kind pods = pool.kind("pods", MemberOrder::Canonical);
  for (int i = 0; i < 70'000; ++i) (void)pool.kind("kind" + std::to_string(i), MemberOrder::Bytewise);
  EXPECT_EQ(pool.kind("pods", MemberOrder::Canonical).number, pods.number);
  const ManagedEntry entries[] = {entry("a", R"({"f:spec":{"f:b":{},"f:a":{}}})")};
  const OwnersRef ref = pool.intern(pool.kind("kind69999", MemberOrder::Bytewise), entries);
  EXPECT_EQ(*ref.view().fields_v1(0, MemberOrder::Bytewise), R"({"f:spec":{"f:b":{},"f:a":{}}})");
}

TEST(PoolTest, AbsentFieldsAndAllTimesSurviveARoundTrip) {
  Pool pool{Gates{}};
  std::vector<ManagedEntry> entries;
  for (std::optional<UnixTime> time :
       {std::optional<UnixTime>{}, std::optional(UnixTime{0, 0}), std::optional(UnixTime{-5, 0}),
        std::optional(UnixTime{1, 0}), std::optional(UnixTime{4294967295, 0}),
        std::optional(UnixTime{4294967296, 0})}) {
    ManagedEntry one = entry("m", kController);
    one.time = time;
    one.fields = std::nullopt;
    entries.push_back(one);
  }
  const OwnersRef ref = pool.intern(pool.kind("x", MemberOrder::Canonical), entries);
  for (size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(ref.view().manager(i).time, entries[i].time) << i;
    EXPECT_EQ(ref.view().fields(i), nullptr);
    EXPECT_EQ(ref.view().fields_v1(i), nullptr);
  }
}

TEST(PoolTest, SetsUsedOnceAreCompressed) {
  Pool pool{Gates{}};
  std::vector<OwnersRef> pods;
  for (int i = 0; i < 5000; ++i) pods.push_back(pod(pool, i));
  const PoolUsage usage = pool.usage();
  EXPECT_EQ(usage.sets, 5001u);
  EXPECT_GE(usage.packed_sets, 4800u);
  EXPECT_EQ(usage.dictionaries, 1u);
  EXPECT_LT(usage.kept_bytes, 5001u * 64);  // Headers included; FieldsV1 takes 5000 * 230.
  EXPECT_GT(usage.fields_v1_bytes, 5000u * 300);
}

TEST(PoolTest, EmptiedPoolReleasesItsMemory) {
  Pool pool{Gates{}};
  {
    const OwnersRef one = pod(pool, 0);
  }
  const uint64_t empty = pool.usage().total_bytes();
  for (int round = 0; round < 10; ++round) {
    std::vector<OwnersRef> pods;
    for (int i = 0; i < 3000; ++i) pods.push_back(pod(pool, i));
    EXPECT_GT(pool.usage().total_bytes(), empty + 100000);
    pods.clear();
    const PoolUsage usage = pool.usage();
    EXPECT_EQ(usage.sets, 0u);
    EXPECT_EQ(usage.dictionaries, 0u);
    EXPECT_EQ(usage.table_bytes, 0u);
    // Samples of sets that are not packed yet may be kept for the next dictionary.
    EXPECT_LE(usage.total_bytes() - usage.sample_bytes, empty) << round;
    EXPECT_LT(usage.sample_bytes, 100000u) << round;
  }
}

TEST(PoolTest, DictionaryIsReplacedWhenItNoLongerFitsAndFreedWithItsSets) {
  Pool pool{Gates{}};
  std::vector<OwnersRef> first, second;
  for (int i = 0; i < 400; ++i) first.push_back(pod(pool, i));
  const uint64_t one = pool.usage().dictionary_bytes;
  std::mt19937 random(1);
  const auto other = [&](int i) {
    std::string text = "{";
    for (int f = 0; f < 12; ++f)
      text += "\"f:field-" + std::to_string(f) + "-another-shape-" + std::to_string(f * 7919 % 1000) + "\":{},";
    text += "\"f:zz-" + std::to_string(i) + "\":{}}";
    Arena arena;
    const std::string canonical = to_fields_v1(*parse_fields_v1(arena, text));
    const ManagedEntry entries[] = {entry("m", canonical)};
    return pool.intern(pool.kind("pods", MemberOrder::Canonical), entries);
  };
  for (int i = 0; i < 2000; ++i) second.push_back(other(i));
  EXPECT_EQ(pool.usage().dictionaries, 2u);
  EXPECT_GT(pool.usage().dictionary_bytes, one);
  // Later sets compress well again.
  const uint64_t before = pool.usage().kept_bytes;
  for (int i = 2000; i < 3000; ++i) second.push_back(other(i));
  EXPECT_LT((pool.usage().kept_bytes - before) / 1000, 64u);
  for (int i = 0; i < 400; ++i) EXPECT_EQ(*first[static_cast<size_t>(i)].view().fields_v1(1), kubelet(i));
  first.clear();
  second.erase(second.begin(), second.begin() + 2000);
  EXPECT_EQ(pool.usage().dictionaries, 1u);
}

TEST(PoolTest, FeatureGatesControlSharingAndCompression) {
  struct {
    bool pool, compress;
    uint64_t sets;
    bool packed;
  } const cases[] = {
      {true, true, 1001, true}, {true, false, 1001, false}, {false, true, 2000, true}, {false, false, 2000, false}};
  for (const auto& test : cases) {
    Pool pool(Gates{}.with(Gate::ManagedFieldsPool, test.pool).with(Gate::CompressManagedFieldsInCache, test.compress));
    std::vector<OwnersRef> pods;
    for (int i = 0; i < 1000; ++i) pods.push_back(pod(pool, i));
    EXPECT_EQ(pool.usage().sets, test.sets);
    EXPECT_EQ(pool.usage().packed_sets > 0, test.packed);
    EXPECT_EQ(*pods[999].view().fields_v1(1), kubelet(999));
    EXPECT_EQ(*pods[999].view().fields_v1(0), kController);
  }
}

// Twenty keys that no other object has.
std::string random_keys(std::mt19937& random) {
  std::set<std::string> names;
  while (names.size() < 20) {
    std::string name;
    for (int i = 0; i < 12; ++i) name += static_cast<char>('a' + random() % 26);
    names.insert(name);
  }
  std::string members;
  for (const std::string& name : names) members += (members.empty() ? "\"f:" : ",\"f:") + name + "\":{}";
  return R"({"f:data":{)" + members + "}}";
}

TEST(PoolTest, SetsThatAreNeverEqualTakeNoMoreMemoryThanWithoutSharing) {
  const auto load = [](Pool& pool, std::vector<OwnersRef>& objects) {
    std::mt19937 random(1);
    for (int i = 0; i < 20000; ++i) {
      const std::string mine = random_keys(random);
      const ManagedEntry entries[] = {entry("m", mine)};
      objects.push_back(pool.intern(pool.kind("maps", MemberOrder::Canonical), entries));
    }
  };
  Pool off(Gates{}.with(Gate::ManagedFieldsPool, false).with(Gate::CompressManagedFieldsInCache, false));
  Pool on{Gates{}};
  std::vector<OwnersRef> without, with;
  load(off, without);
  load(on, with);
  // The first thousand sets are in the table: a fixed cost.
  EXPECT_LE(on.usage().total_bytes(), off.usage().total_bytes() + 20000);
  EXPECT_EQ(*with[19999].view().fields_v1(0), *without[19999].view().fields_v1(0));
  // Sets of the same kind that are equal later are shared before long.
  const uint64_t before = on.usage().sets;
  std::mt19937 random(2);
  const std::string same = random_keys(random);
  for (int i = 0; i < 20000; ++i) {
    const ManagedEntry entries[] = {entry("m", same)};
    with.push_back(on.intern(on.kind("maps", MemberOrder::Canonical), entries));
  }
  EXPECT_LT(on.usage().sets - before, 10000u);
}

TEST(PoolTest, HotTextsAreSharedWithinTheirBudget) {
  Pool pool(Gates{}, {.hot_text_bytes = 20000});
  std::vector<OwnersRef> refs;
  for (int app = 0; app < 200; ++app) {
    for (int i = 0; i < 3; ++i) {
      const std::string fields = kubelet(app);
      const ManagedEntry entries[] = {entry("m", fields)};
      refs.push_back(pool.intern(pool.kind("pods", MemberOrder::Canonical), entries));
    }
  }
  EXPECT_GT(pool.usage().hot_texts, 10u);
  EXPECT_LE(pool.usage().hot_text_bytes, 20000u);
  EXPECT_EQ(refs[597].view().fields_v1(0).get(), refs[598].view().fields_v1(0).get());
}

// More distinct managers than fit the first table of numbers, one time, and nothing left of them afterwards.
TEST(PoolTest, HasRoomForMillionsOfDistinctManagers) {
  Pool pool{Gates{}};
  const Pool::Kind kind = pool.kind("configmaps", MemberOrder::Canonical);
  const uint64_t empty = pool.usage().manager_bytes;
  {
    std::vector<OwnersRef> objects;
    std::vector<std::string> names;
    std::vector<ManagedEntry> entries;
    constexpr int kObjects = 125, kEntries = 34'000;
    for (int i = 0; i < kObjects; ++i) {
      names.clear();
      entries.clear();
      for (int m = 0; m < kEntries; ++m) names.push_back(std::to_string(i * kEntries + m));
      for (const std::string& name : names) {
        ManagedEntry one = entry(name, "");
        one.fields = std::nullopt;
        entries.push_back(one);
      }
      objects.push_back(pool.intern(kind, entries));
    }
    EXPECT_EQ(pool.usage().managers, static_cast<uint64_t>(kObjects) * kEntries);
    EXPECT_LT(pool.usage().manager_bytes / pool.usage().managers, 120u);
    EXPECT_EQ(objects.back().view().manager(kEntries - 1).manager, std::to_string(kObjects * kEntries - 1));
    // Former managers of one object: their numbers and their memory are used again.
    objects.erase(objects.begin() + 1, objects.end());
    EXPECT_EQ(objects.front().view().manager(7).manager, "7");
    EXPECT_EQ(pool.usage().managers, static_cast<uint64_t>(kEntries));
  }
  EXPECT_EQ(pool.usage().managers, 0u);
  EXPECT_LT(pool.usage().manager_bytes, empty + 100'000);
}

TEST(PoolTest, ManagersDifferInEachPart) {
  Pool pool{Gates{}};
  std::vector<ManagedEntry> entries(8, entry("m", kController));
  entries[1].manager = "n";
  entries[2].operation = "Apply";
  entries[3].api_version = "v2";
  entries[4].subresource = "status";
  entries[5].time = UnixTime{-1, 0};
  entries[6].time = UnixTime{-1, 5};
  // The same texts, split elsewhere.
  entries[7].manager = "mU";
  entries[7].operation = "pdate";
  const OwnersRef ref = pool.intern(pool.kind("x", MemberOrder::Canonical), entries);
  EXPECT_EQ(pool.usage().managers, entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    const ManagedEntry found = ref.view().manager(i);
    EXPECT_EQ(found.manager, entries[i].manager) << i;
    EXPECT_EQ(found.operation, entries[i].operation) << i;
    EXPECT_EQ(found.api_version, entries[i].api_version) << i;
    EXPECT_EQ(found.subresource, entries[i].subresource) << i;
    EXPECT_EQ(found.time, entries[i].time) << i;
  }
}

TEST(NumberTableTest, GivesOutEachNumberOnceUntilNoneIsLeft) {
  NumberTable<int, 6, 2, 1> table;  // 512 numbers.
  std::vector<int> things(512);
  std::set<uint32_t> numbers;
  for (int& thing : things) {
    const std::optional<uint32_t> number = table.take(&thing);
    ASSERT_TRUE(number);
    EXPECT_TRUE(numbers.insert(*number).second);
    EXPECT_EQ(table.get(*number), &thing);
  }
  int more = 0;
  EXPECT_EQ(table.take(&more), std::nullopt);
  const uint64_t full = table.allocated();
  // One that comes free is taken again.
  table.give_back(300);
  EXPECT_EQ(table.take(&more), 300u);
  EXPECT_EQ(table.get(300), &more);
  for (const uint32_t number : numbers) table.give_back(number);
  EXPECT_LT(table.allocated(), full / 2);
  for (int& thing : things) EXPECT_TRUE(table.take(&thing));
  EXPECT_EQ(table.take(&more), std::nullopt);
}

TEST(PoolTest, ManyThreadsShareAndReleaseTheSameSets) {
  Pool pool(Gates{}, {.hot_text_bytes = 5000, .dictionary_samples = 16});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      std::mt19937 random(static_cast<uint32_t>(t));
      std::vector<OwnersRef> held(20);
      for (int i = 0; i < 2000; ++i) {
        const int which = static_cast<int>(random() % 50);
        held[random() % held.size()] = pod(pool, which);
        const OwnersRef& any = held[random() % held.size()];
        if (!any.view().empty() && any.view().fields_v1(0)->size() != kController.size()) std::abort();
        if (i % 100 == 0) held = std::vector<OwnersRef>(20);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.usage().sets, 0u);
  EXPECT_EQ(pool.usage().managers, 0u);
  EXPECT_EQ(pool.usage().hot_texts, 0u);
}

}  // namespace
}  // namespace holdfast::ownership
