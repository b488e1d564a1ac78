// Warning headers of an answer: each text once, cut when there is too much of it, as Kubernetes does.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/hash.h"

namespace holdfast::render {

class Warnings {
 public:
  void add(std::string_view text);
  bool empty() const { return texts_.empty(); }
  // Values of Warning headers: 299 - "text".
  std::vector<std::string> headers() const;

 private:
  std::vector<std::string> texts_;  // No more than headers() may show.
  size_t shown_runes_ = 0;          // Of them, cut, as far as they can be shown at all.
  std::unordered_set<std::string, KeyHash> known_;
};

}  // namespace holdfast::render
