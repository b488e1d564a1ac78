// Comparing short texts without a call. Names of fields are compared by the hundred in every request, are mostly
// shorter than two words, and calling memcmp costs more than comparing them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace holdfast {

inline bool same_text(std::string_view one, std::string_view other) {
  const size_t size = one.size();
  if (size != other.size()) return false;
  const char* const a = one.data();
  const char* const b = other.data();
  // How two ends of a text overlap does not matter: the first word and the last, the words between where there are any.
  const auto same = [&]<class Word>(Word, size_t at) {
    Word x, y;
    std::memcpy(&x, a + at, sizeof x);
    std::memcpy(&y, b + at, sizeof y);
    return x == y;
  };
  if (size >= 8) {
    if (!same(uint64_t{}, size - 8)) return false;
    for (size_t at = 0; at + 8 < size; at += 8) {
      if (!same(uint64_t{}, at)) return false;
    }
    return true;
  }
  if (size >= 4) return same(uint32_t{}, size - 4) && same(uint32_t{}, 0);
  for (size_t at = 0; at < size; ++at) {
    if (a[at] != b[at]) return false;
  }
  return true;
}

}  // namespace holdfast
