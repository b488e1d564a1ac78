// An ordered set of entries that is never changed in place: an edit copies the nodes on its way, shares all others, and
// gives a new tree. Old trees stay unchanged for as long as they are referenced.
//
//   inner:  [ child, its first entry, count below ] ...     up to 32
//   leaf:   [ entry ] ... [ its labels ] ...                  up to 64
//
// Labels are in the leaf, too, so that a selector skips entries without touching them: they are anywhere in
// memory, and waiting for them would be most of the work.
//
// Threading: a Tree is immutable and may be read and copied by anyone; one thread edits.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/cache.h"

namespace holdfast::cache {

// By what a tree is ordered: by key, or by an indexed field and then by key.
struct Order {
  int field = -1;  // Position of the field; -1: key alone.
};

// A place in the order. Without a field only `key` counts.
struct Position {
  std::string_view value;
  std::string_view key;
};

struct TreeNode;  // Private.

class Tree {
 public:
  // Bytes of all nodes alive of all trees that come from one another.
  using Bytes = std::shared_ptr<std::atomic<uint64_t>>;

  Tree(Order order, Bytes bytes) : order_(order), bytes_(std::move(bytes)) {}
  Tree(const Tree& other);
  Tree& operator=(Tree other) noexcept;
  ~Tree();

  // `sorted` in the order of this tree, distinct.
  void assign(const std::vector<EntryRef>& sorted);

  uint64_t count() const;
  const Entry* find(Position position) const;
  // Entries before the position.
  uint64_t rank(Position position) const;

  // Entries from a position on.
  class Cursor {
   public:
    // Whether entries are fetched into the processor's cache ahead of their turn: not where most are skipped.
    enum class Ahead : uint8_t { Fetch, Leave };
    Cursor(const Tree& tree, Position from, Ahead ahead = Ahead::Fetch);  // The tree outlives it.
    explicit operator bool() const { return depth_ > 0; }
    const Entry& operator*() const;
    const LabelSet* labels() const;  // Of that entry.
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

  // Several changes at once: nodes are copied the first time they are touched. The tree is the edit's until it ends.
  class Edit {
   public:
    explicit Edit(Tree& tree);
    // Adds it, or replaces the entry in its place.
    void put(EntryRef entry);
    // Nothing happens when there is no such entry.
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
