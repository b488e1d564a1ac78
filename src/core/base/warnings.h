// The Warning headers of a response: deduplicated, and truncated to Kubernetes' limits.
//
// However many warnings are added, no more are kept than can be shown: an object with a problem in each of a million
// items costs no more memory than one with a hundred.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/hash.h"

namespace holdfast {

class Warnings {
 public:
  void add(std::string_view text);
  bool empty() const { return texts_.empty(); }
  // Whether further texts would not be shown. Code that could find many for one field or for one pair of items stops
  // looking for them.
  bool full() const { return shown_runes_ > kMaxRunes; }
  // In the order in which they were added, without repetitions. Very long ones are truncated.
  std::span<const std::string> texts() const { return texts_; }
  // Values of Warning headers: 299 - "text".
  std::vector<std::string> headers() const;

 private:
  // Limit for all texts together; above it, each text is truncated to kCutRunes and the excess is dropped
  // (k8s.io/apiserver pkg/endpoints/filters/warning.go).
  static constexpr size_t kMaxRunes = 4096;
  static constexpr size_t kCutRunes = 256;

  std::vector<std::string> texts_;
  size_t shown_runes_ = 0;            // Length of texts_ if each is truncated.
  std::unordered_set<size_t> known_;  // Hashes of the whole texts.
};

}  // namespace holdfast
