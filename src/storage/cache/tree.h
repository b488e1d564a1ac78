// A persistent ordered set of entries: an edit copies the nodes on its path, shares all others, and creates a new tree.
// Old trees stay unchanged for as long as they are referenced.
//
//   inner:  [ child, its first entry, count below ] ...     up to 32
//   leaf:   [ entry ] ... [ its labels ] ...                  up to 64
//
// Labels are stored in the leaf as well, so that a selector can skip entries without touching them: they are scattered
// in memory, and the cache misses would be most of the work.
//
// Threading: a Tree is immutable and may be read and copied on any thread; only one thread edits.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/cache.h"

namespace holdfast::cache {

// The order of a tree: by key, or by an indexed field and then by key.
struct Order {
  int field = -1;  // Position of the field; -1 for key only.
};

// A position in the order. Without a field only `key` counts.
struct Position {
  std::string_view value;
  std::string_view key;
};

struct TreeNode;  // Private.

class Tree {
 public:
  // Bytes of all live nodes of all trees derived from one another.
  using Bytes = std::shared_ptr<std::atomic<uint64_t>>;

  Tree(Order order, Bytes bytes) : order_(order), bytes_(std::move(bytes)) {}
  Tree(const Tree& other);
  Tree& operator=(Tree other) noexcept;
  ~Tree();

  // `sorted` must be in the order of this tree, without duplicates.
  void assign(const std::vector<EntryRef>& sorted);

  uint64_t count() const;
  const Entry* find(Position position) const;
  // Number of entries before the position.
  uint64_t rank(Position position) const;

  // Iterates over the entries from a position on.
  class Cursor {
   public:
    // Whether to prefetch entries into the CPU cache: not worth it if most are skipped.
    enum class Ahead : uint8_t { Fetch, Leave };
    Cursor(const Tree& tree, Position from, Ahead ahead = Ahead::Fetch);  // The tree must outlive it.
    explicit operator bool() const { return depth_ > 0; }
    const Entry& operator*() const;
    const LabelSet* labels() const;  // Of the current entry.
    void next();

   private:
    static constexpr int kMaxDepth = 16;
    struct Step {
      const TreeNode* node;
      uint32_t at;
    };
    void settle();
    Step steps_[kMaxDepth];
    int depth_ = 0;
    const Ahead ahead_;
  };

  // Calls `visit(before, now)` for each key whose entries differ, in order; null where there is none. What both trees
  // share is skipped, so the cost is that of the changes between them. Both are ordered by key only.
  static void compare(const Tree& before, const Tree& now,
                      const std::function<void(const Entry* before, const Entry* now)>& visit);

  // Several changes at once: nodes are copied the first time they are touched. The tree must not be used until the edit
  // ends.
  class Edit {
   public:
    explicit Edit(Tree& tree);
    // Adds the entry, or replaces the one at its position.
    void put(EntryRef entry);
    // Does nothing if there is no such entry.
    void erase(Position position);

   private:
    Tree& tree_;
    uint64_t id_;
  };

 private:
  friend class Edit;
  Order order_;
  Bytes bytes_;
  TreeNode* root_ = nullptr;
};

}  // namespace holdfast::cache
