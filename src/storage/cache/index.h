// All entries of a resource at one revision: by key, and by each indexed field. A snapshot is a copy of it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cache/tree.h"

namespace holdfast::cache {

using UnreadableByKey = std::map<std::string, Unreadable, std::less<>>;

struct Index {
  Tree by_key;
  std::shared_ptr<const UnreadableByKey> unreadable;  // Null if there are none, which is the normal case.
  std::vector<std::pair<uint16_t, Tree>> by_field;    // Position of the field, and the tree.

  Index(std::span<const uint16_t> indexed_fields, const Tree::Bytes& bytes) : by_key(Order{}, bytes) {
    for (uint16_t field : indexed_fields) by_field.emplace_back(field, Tree(Order{field}, bytes));
  }

  // `sorted` must be sorted by key.
  void assign(std::vector<EntryRef> sorted);
};

// A set of changes to one index.
class IndexEdit {
 public:
  explicit IndexEdit(Index& index);
  // Replaces `before` with `now`; either may be null. Both have the same key.
  void change(const EntryRef& before, const EntryRef& now);

 private:
  Index& index_;
  Tree::Edit by_key_;
  std::vector<Tree::Edit> by_field_;
};

}  // namespace holdfast::cache
