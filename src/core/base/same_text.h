// Compares short strings inline. Every request compares hundreds of field names, mostly shorter than two machine words,
// for which a call to memcmp costs more than the comparison.
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
  // Words may overlap: the last one and those that begin before it cover the whole text.
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
