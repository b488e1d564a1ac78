// The names seen so far in a client's list. A few are searched linearly; many are looked up in a table, so that the
// cost is linear in the length of the list. The views must outlive this object.
#pragma once

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/hash.h"

namespace holdfast::kinds {

class Names {
 public:
  bool contains(std::string_view name) const {
    if (!table_.empty()) return table_.contains(name);
    return std::find(row_.begin(), row_.end(), name) != row_.end();
  }
  void push_back(std::string_view name) {
    row_.push_back(name);
    if (row_.size() <= kFew) return;
    if (table_.empty()) {
      table_.insert(row_.begin(), row_.end());
    } else {
      table_.insert(name);
    }
  }
  // False if the name was already present.
  bool add(std::string_view name) {
    if (contains(name)) return false;
    push_back(name);
    return true;
  }

  bool empty() const { return row_.empty(); }
  // In insertion order.
  auto begin() const { return row_.begin(); }
  auto end() const { return row_.end(); }

 private:
  static constexpr size_t kFew = 16;
  std::vector<std::string_view> row_;
  std::unordered_set<std::string_view, KeyHash> table_;
};

inline bool contains(const Names& names, std::string_view name) { return names.contains(name); }

}  // namespace holdfast::kinds
