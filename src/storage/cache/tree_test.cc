#include "cache/tree.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "cache/bodies.h"
#include "cache/index.h"
#include "cache/test_support.h"

namespace holdfast::cache {
namespace {

class TreeTest : public testing::Test {
 protected:
  ~TreeTest() override { bodies.release(); }

  EntryRef entry(const std::string& key, const std::string& node, uint64_t revision) {
    Decoded decoded;
    decoded.fields = {node};
    decoded.body = "x";
    return bodies.make(key, Revision{revision}, std::move(decoded), Bodies::Begin::Hot);
  }

  ownership::Pool pool{Gates{}};
  Bodies& bodies =
      *new Bodies(pool, pool.kind("pods", ownership::MemberOrder::Canonical), true, {1 << 20, false, 0, 0});
  Tree::Bytes bytes = std::make_shared<std::atomic<uint64_t>>(0);
};

using Model = std::map<std::pair<std::string, std::string>, uint64_t>;  // (value, key) -> revision.

void expect_same(const Tree& tree, const Model& model) {
  ASSERT_EQ(tree.count(), model.size());
  auto want = model.begin();
  for (Tree::Cursor at(tree, {}); at; at.next(), ++want) {
    ASSERT_NE(want, model.end());
    ASSERT_EQ((*at).key(), want->first.second);
    ASSERT_EQ((*at).revision().value, want->second);
  }
  ASSERT_EQ(want, model.end());
}

// What compare() visits, as "key old-revision new-revision"; 0 for none.
std::vector<std::string> compared(const Tree& before, const Tree& now) {
  std::vector<std::string> visited;
  Tree::compare(before, now, [&](const Entry* a, const Entry* b) {
    visited.push_back(std::string((a == nullptr ? b : a)->key()) + " " +
                      std::to_string(a == nullptr ? 0 : a->revision().value) + " " +
                      std::to_string(b == nullptr ? 0 : b->revision().value));
  });
  return visited;
}

std::vector<std::string> compared(const Model& before, const Model& now) {
  std::map<std::string, std::pair<uint64_t, uint64_t>> all;
  for (const auto& [place, revision] : before) all[place.second].first = revision;
  for (const auto& [place, revision] : now) all[place.second].second = revision;
  std::vector<std::string> differences;
  for (const auto& [key, revisions] : all) {
    if (revisions.first != revisions.second) {
      differences.push_back(key + " " + std::to_string(revisions.first) + " " + std::to_string(revisions.second));
    }
  }
  return differences;
}

TEST_F(TreeTest, ComparingTreesVisitsWhatDiffers) {
  std::mt19937 random(11);
  Tree tree(Order{}, bytes);
  Model model;
  std::vector<std::pair<Tree, Model>> kept;
  kept.emplace_back(tree, model);
  for (uint64_t round = 0; round < 200; ++round) {
    const bool growing = round / 40 % 2 == 0;
    const uint64_t changes = uint64_t{1} << random() % 9;
    Tree::Edit edit(tree);
    for (uint64_t i = 0; i < changes; ++i) {
      const std::string key = "k" + std::to_string(random() % 6000);
      if (random() % 10 < (growing ? 9 : 2)) {
        edit.put(entry(key, "", round + 1));
        model[{"", key}] = round + 1;
      } else {
        edit.erase({{}, key});
        model.erase({"", key});
      }
    }
    kept.emplace_back(tree, model);
    const size_t other = random() % kept.size();
    for (const size_t from : {kept.size() - 2, other}) {
      const auto& [old_tree, old_model] = kept[from];
      ASSERT_EQ(compared(old_tree, tree), compared(old_model, model)) << "round " << round;
      ASSERT_EQ(compared(tree, old_tree), compared(model, old_model)) << "round " << round;
    }
  }
}

TEST_F(TreeTest, RandomEditsAgreeWithAMapAndOldTreesStayUnchanged) {
  for (int field : {-1, 0}) {
    std::mt19937 random(static_cast<uint32_t>(field + 7));
    Tree tree(Order{field}, bytes);
    Model model;
    std::vector<std::pair<Tree, Model>> kept;
    for (uint64_t round = 0; round < 300; ++round) {
      Tree::Edit edit(tree);
      // Growing and shrinking phases, so that nodes split and merge.
      const bool growing = round / 50 % 2 == 0;
      for (int i = 0; i < 40; ++i) {
        const std::string key = "k" + std::to_string(random() % 3000);
        const std::string node = "n" + std::to_string(std::hash<std::string>()(key) % 7);
        const std::pair<std::string, std::string> place{field < 0 ? "" : node, key};
        if (random() % 10 < (growing ? 8 : 3)) {
          edit.put(entry(key, node, round + 1));
          model[place] = round + 1;
        } else {
          edit.erase({field < 0 ? std::string_view{} : std::string_view(node), key});
          model.erase(place);
        }
      }
      if (round % 25 == 0) kept.emplace_back(tree, model);
    }
    expect_same(tree, model);
    for (const auto& [old_tree, old_model] : kept) expect_same(old_tree, old_model);
    // Finding and counting positions.
    for (int i = 0; i < 500; ++i) {
      const std::string key = "k" + std::to_string(random() % 3000);
      const std::string node = field < 0 ? "" : "n" + std::to_string(std::hash<std::string>()(key) % 7);
      const Position position{node, key};
      const auto want = model.find({node, key});
      ASSERT_EQ(tree.find(position) != nullptr, want != model.end());
      ASSERT_EQ(tree.rank(position),
                static_cast<uint64_t>(std::distance(model.begin(), model.lower_bound({node, key}))));
      Tree::Cursor at(tree, position);
      const auto next = model.lower_bound({node, key});
      ASSERT_EQ(static_cast<bool>(at), next != model.end());
      if (at) ASSERT_EQ((*at).key(), next->first.second);
    }
    Tree::Edit edit(tree);
    for (const auto& [place, revision] : model) edit.erase({place.first, place.second});
    EXPECT_EQ(tree.count(), 0u);
  }
  EXPECT_EQ(bytes->load(), 0u);
}

TEST_F(TreeTest, ALongSortedListIsBuiltInOneStepAndCanBeEdited) {
  std::vector<EntryRef> sorted;
  Model model;
  for (int i = 0; i < 10000; ++i) {
    char key[16];
    std::snprintf(key, sizeof(key), "k%06d", i * 2);
    sorted.push_back(entry(key, "", 1));
    model[{"", key}] = 1;
  }
  {
    Tree tree(Order{}, bytes);
    tree.assign(sorted);
    expect_same(tree, model);
    Tree::Edit edit(tree);
    for (int i = 1; i < 20000; i += 37) {
      char key[16];
      std::snprintf(key, sizeof(key), "k%06d", i);
      edit.put(entry(key, "", 2));
      model[{"", key}] = 2;
    }
    expect_same(tree, model);
  }
  EXPECT_EQ(bytes->load(), 0u);
}

}  // namespace
}  // namespace holdfast::cache
