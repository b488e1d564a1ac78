#include "controllers/owner_graph.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace holdfast::controllers {
namespace {

using Owners = std::vector<OwnerGraph::Owner>;

Uid uid(int i) { return Uid::of("object-" + std::to_string(i)); }

TEST(OwnerGraph, UuidsAreBitsAndOtherTextsAreHashed) {
  EXPECT_EQ(Uid::of("00112233-4455-6677-8899-aabbccddeeff").bits,
            (std::array<uint64_t, 2>{0x0011223344556677, 0x8899aabbccddeeff}));
  EXPECT_NE(Uid::of("a"), Uid::of("b"));
  EXPECT_NE(Uid::of("00112233-4455-6677-8899-AABBCCDDEEFF"), Uid::of("00112233-4455-6677-8899-aabbccddeeff"));
}

TEST(OwnerGraph, SetReturnsGainedAndLostOwners) {
  OwnerGraph graph;
  const Uid a = uid(1), b = uid(2), child = uid(3);
  OwnerGraph::Change change = graph.set(child, 7, "ns/child", Owners{{a}, {b}});
  EXPECT_EQ(change.gained, (std::vector<Uid>{a, b}));
  change = graph.set(child, 7, "ns/child", Owners{{b}});
  EXPECT_TRUE(change.gained.empty());
  EXPECT_EQ(change.lost, (std::vector<Uid>{a}));
  EXPECT_FALSE(graph.has_dependents(a));
  ASSERT_NE(graph.find(child), nullptr);
  EXPECT_EQ(graph.find(child)->key, "ns/child");
  change = graph.set(child, 7, "ns/child", {});
  EXPECT_EQ(change.lost, (std::vector<Uid>{b}));
  EXPECT_EQ(graph.count(), 0u);
}

TEST(OwnerGraph, AnObjectMayBeginAndStopToBlockItsOwner) {
  OwnerGraph graph;
  graph.set(uid(1), 7, "ns/child", Owners{{uid(2), true}, {uid(3)}});
  EXPECT_EQ(graph.blocking_dependents(uid(2)), (std::vector<Uid>{uid(1)}));
  EXPECT_TRUE(graph.blocking_dependents(uid(3)).empty());
  const OwnerGraph::Change change = graph.set(uid(1), 7, "ns/child", Owners{{uid(3), true}, {uid(2)}});
  EXPECT_TRUE(change.gained.empty() && change.lost.empty());
  EXPECT_TRUE(graph.blocking_dependents(uid(2)).empty());
  EXPECT_EQ(graph.blocking_dependents(uid(3)), (std::vector<Uid>{uid(1)}));
}

TEST(OwnerGraph, ObjectBelongsToTheKindThatSetItLast) {
  OwnerGraph graph;
  graph.set(uid(1), 7, "ns/child", Owners{{uid(2)}});
  EXPECT_TRUE(graph.set(uid(1), 8, "ns/child", Owners{{uid(2)}}).gained.empty());
  EXPECT_EQ(graph.find(uid(1))->kind, 8u);
}

TEST(OwnerGraph, RandomChangesMatchAPlainMap) {
  std::mt19937 random(1);
  OwnerGraph graph;
  std::map<int, std::set<int>> plain;
  for (int step = 0; step < 20'000; ++step) {
    const int child = 100 + static_cast<int>(random() % 50);
    std::set<int> owners;
    for (unsigned n = random() % 4; n > 0; --n) owners.insert(static_cast<int>(random() % 6));
    Owners all;
    // Every other object blocks its owners.
    for (int owner : owners) all.push_back({uid(owner), child % 2 == 0});
    graph.set(uid(child), 0, "", all);
    plain[child] = owners;
    if (step % 500 != 0) continue;
    for (int owner = 0; owner < 6; ++owner) {
      std::set<uint64_t> want, got, want_blocking, got_blocking;
      for (const auto& [each, of] : plain) {
        if (!of.contains(owner)) continue;
        want.insert(uid(each).bits[0]);
        if (each % 2 == 0) want_blocking.insert(uid(each).bits[0]);
      }
      for (const Uid& each : graph.dependents(uid(owner))) got.insert(each.bits[0]);
      for (const Uid& each : graph.blocking_dependents(uid(owner))) got_blocking.insert(each.bits[0]);
      ASSERT_EQ(got, want);
      ASSERT_EQ(got_blocking, want_blocking);
    }
  }
}

}  // namespace
}  // namespace holdfast::controllers
