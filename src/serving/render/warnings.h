// Warning headers of a response: deduplicated, and truncated to Kubernetes' limits.
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
  std::vector<std::string> texts_;  // No more than headers() may return.
  size_t shown_runes_ = 0;          // Length of texts_ after truncation, counting only those that can be encoded.
  std::unordered_set<std::string, KeyHash> known_;
};

}  // namespace holdfast::render
