#include "value/value.h"
#include "value/map_edit.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

Value small_pod(Arena& arena) {
  MapBuilder container(arena);
  container.add("name", Value::string("web"));
  ListBuilder containers(arena);
  containers.add(container.build());
  MapBuilder spec(arena);
  spec.add("containers", containers.build());
  MapBuilder pod(arena);
  pod.add("kind", Value::string("Pod"));
  pod.add("spec", spec.build());
  return pod.build();
}

TEST(ValueTest, MembersKeepTheirOrderAndAreFoundByKey) {
  Arena arena;
  const Value pod = small_pod(arena);
  EXPECT_EQ(pod.members()[0].key, "kind");
  EXPECT_EQ(pod.text_at("kind"), "Pod");
  EXPECT_EQ(pod.get("spec", "containers")->items()[0].text_at("name"), "web");
  EXPECT_EQ(pod.get("spec", "volumes", "x"), nullptr);
}

TEST(ValueTest, LargeMapsAreIndexed) {
  Arena arena;
  MapBuilder builder(arena);
  for (int i = 0; i < 1000; ++i) builder.add_copy("key" + std::to_string(i), Value::integer(i));
  const Value map = builder.build();
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(map.find("key" + std::to_string(i))->as_int(), i);
  EXPECT_FALSE(map.has("key1000"));
  EXPECT_TRUE(equal(map, deep_copy(arena, map)));
  EXPECT_FALSE(without_member(arena, map, "key500").has("key500"));
}

TEST(ValueTest, MapBuilderFindsKeysAmongMany) {
  Arena arena;
  MapBuilder builder(arena);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 1000; ++i) {
      const std::string_view key = arena.copy("key" + std::to_string(i));
      (i % 2 == 0 ? builder.add(key, Value::integer(i)) : builder.set(key, Value::integer(i)));
      builder.set(key, Value::integer(-i));
      EXPECT_EQ(builder.find("key" + std::to_string(i / 2))->as_int(), -(i / 2));
      EXPECT_EQ(builder.find("no" + std::to_string(i)), nullptr);
    }
    EXPECT_EQ(builder.count(), 1000u);
    builder.build();
  }
}

TEST(ValueTest, DeeperThanComparesNestingWithALimit) {
  Arena arena;
  Value deep = Value::empty_map();
  for (int i = 0; i < 10; ++i) deep = with_member(arena, Value::empty_map(), "a", deep);
  EXPECT_FALSE(deeper_than(deep, 11));
  EXPECT_TRUE(deeper_than(deep, 10));
  EXPECT_FALSE(deeper_than(Value::integer(1), 0));
}

TEST(ValueTest, EqualityIgnoresMapOrderAndMayCompareNumbersByValue) {
  Arena arena;
  MapBuilder a(arena), b(arena);
  a.add("x", Value::integer(1));
  a.add("y", Value::null());
  b.add("y", Value::null());
  b.add("x", Value::number(1.0));
  const Value va = a.build(), vb = b.build();
  EXPECT_FALSE(equal(va, vb));
  EXPECT_TRUE(equal(va, vb, Numbers::ByValue));
  EXPECT_EQ(hash(va), hash(vb));
  EXPECT_FALSE(equal(Value::null(), Value::empty_map()));
}

TEST(ValueTest, ChangingAPathSharesTheRest) {
  Arena arena;
  const Value pod = small_pod(arena);
  const std::string_view path[] = {"spec", "nodeName"};
  const Value bound = with_path(arena, pod, path, Value::string("node-1"));
  EXPECT_EQ(bound.text_at("spec", "nodeName"), "node-1");
  EXPECT_FALSE(pod.get("spec")->has("nodeName"));
  EXPECT_TRUE(bound.get("spec", "containers")->same(*pod.get("spec", "containers")));
  EXPECT_TRUE(equal(without_path(arena, bound, path), pod));
}

TEST(MapEditTest, ManyMembersAreChangedAtOnce) {
  Arena arena;
  MapBuilder builder(arena);
  constexpr int kMembers = 2000;
  for (int i = 0; i < kMembers; ++i) builder.add_copy("k" + std::to_string(i), Value::integer(i));
  const Value map = builder.build();
  EXPECT_TRUE(MapEdit(arena, map).build().same(map));
  const size_t before = arena.reserved_bytes();
  MapEdit edit(arena, map);
  for (const Member& member : map.members()) {
    const int64_t i = member.value.as_int();
    if (i % 3 == 0) edit.remove(member.value);
    if (i % 3 == 1) edit.replace(*map.find(member.key), Value::integer(-i));
  }
  edit.add("new", Value::boolean(true));
  const Value changed = edit.build();
  EXPECT_LT(arena.reserved_bytes() - before, 8 * kMembers * sizeof(Member));
  EXPECT_EQ(changed.find("k0"), nullptr);
  EXPECT_EQ(changed.find("k1")->as_int(), -1);
  EXPECT_EQ(changed.find("k2")->as_int(), 2);
  EXPECT_TRUE(changed.find("new")->as_bool());
  EXPECT_EQ(changed.count(), kMembers - (kMembers + 2) / 3 + 1);
  EXPECT_EQ(map.count(), kMembers);
  EXPECT_EQ(map.find("k1")->as_int(), 1);
  MapEdit from_nothing(arena, Value::empty_map());
  from_nothing.add("a", Value::integer(1));
  EXPECT_EQ(from_nothing.build().find("a")->as_int(), 1);
}

TEST(DraftTest, ChangesNeverAffectTheOriginal) {
  Arena arena;
  const Value pod = small_pod(arena);
  const Value before = deep_copy(arena, pod);

  Draft first(arena, pod);
  Draft::Node spec = first.root().child("spec");
  for (Draft::Node container : spec.list("containers")) {
    container.set_default("imagePullPolicy", Value::string("Always"));
    container.set_default("name", Value::string("not used"));
  }
  spec.set("restartPolicy", Value::string("Always"));
  first.root().child("status").set("phase", Value::string("Pending"));
  const Value defaulted = first.value();
  EXPECT_TRUE(equal(pod, before));
  EXPECT_EQ(defaulted.get("spec", "containers")->items()[0].text_at("name"), "web");
  EXPECT_EQ(defaulted.get("spec", "containers")->items()[0].text_at("imagePullPolicy"), "Always");
  EXPECT_EQ(defaulted.text_at("status", "phase"), "Pending");

  const Value snapshot = deep_copy(arena, defaulted);
  Draft second(arena, defaulted);
  second.root().child("spec").remove("restartPolicy");
  second.root().child("spec").append("containers", Value::empty_map());
  second.root().remove("status");
  EXPECT_TRUE(equal(defaulted, snapshot));
  EXPECT_EQ(second.value().get("spec", "containers")->count(), 2u);
  EXPECT_FALSE(second.value().has("status"));
}

TEST(DraftTest, LookupsWorkWhenGrowingPastTheIndexThreshold) {
  Arena arena;
  MapBuilder builder(arena);
  for (int i = 0; i < 40; ++i) builder.add_copy("k" + std::to_string(i), Value::integer(i));
  Draft draft(arena, builder.build());
  for (int i = 40; i < 80; ++i) draft.root().set(arena.copy("k" + std::to_string(i)), Value::integer(i));
  draft.root().remove("k3");
  for (int i = 0; i < 80; ++i) {
    if (i != 3) ASSERT_EQ(draft.value().find("k" + std::to_string(i))->as_int(), i);
  }
  EXPECT_FALSE(draft.value().has("k3"));
}

TEST(DraftTest, AListThatGrowsIsCopiedAFewTimes) {
  Arena arena;
  Draft draft(arena, Value::empty_map());
  constexpr int kItems = 20'000;
  for (int i = 0; i < kItems; ++i) draft.root().append("list", Value::integer(i));
  EXPECT_EQ(draft.value().items_at("list").size(), static_cast<size_t>(kItems));
  EXPECT_EQ(draft.value().items_at("list")[kItems - 1].as_int(), kItems - 1);
  EXPECT_LT(arena.reserved_bytes(), 8 * kItems * sizeof(Value));
}

TEST(DraftTest, SetIfZeroReplacesGoZeroValues) {
  Arena arena;
  MapBuilder builder(arena);
  builder.add("policy", Value::string(""));
  builder.add("replicas", Value::integer(0));
  Draft draft(arena, builder.build());
  draft.root().set_if_zero("policy", Value::string("Always"));
  draft.root().set_default("replicas", Value::integer(1));
  EXPECT_EQ(draft.value().text_at("policy"), "Always");
  EXPECT_EQ(draft.value().find("replicas")->as_int(), 0);
}

}  // namespace
}  // namespace holdfast
