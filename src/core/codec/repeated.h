// Finds duplicate keys among the members of a map. Private to the module.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "value/value.h"

namespace holdfast::codec {

inline constexpr size_t kNoneRepeated = SIZE_MAX;

// The position of the first member whose key occurred before. `scratch` is kept between calls to avoid allocations for
// large maps.
inline size_t first_repeated(std::span<const Member> members, std::vector<uint32_t>& scratch) {
  // Maps up to this size compare keys; larger ones use a hash table.
  constexpr size_t kFewMembers = 32;
  if (members.size() <= kFewMembers) {
    uint64_t seen = 0;
    for (size_t i = 0; i < members.size(); ++i) {
      const std::string_view key = members[i].key;
      // A filter on length, first and last byte: two keys of an object rarely agree in all of them.
      const size_t mix = key.empty() ? 0
                                     : static_cast<unsigned char>(key.front()) * 5u +
                                           static_cast<unsigned char>(key.back()) * 11u + key.size() * 17u;
      const uint64_t bit = uint64_t{1} << (mix & 63);
      if (seen & bit) {
        for (size_t j = 0; j < i; ++j) {
          if (members[j].key == key) return i;
        }
      }
      seen |= bit;
    }
    return kNoneRepeated;
  }
  // Open addressing of positions + 1.
  const size_t slots = std::bit_ceil(members.size() * 2);
  scratch.assign(slots, 0);
  for (size_t i = 0; i < members.size(); ++i) {
    size_t slot = hash_key(members[i].key) & (slots - 1);
    for (; scratch[slot] != 0; slot = (slot + 1) & (slots - 1)) {
      if (members[scratch[slot] - 1].key == members[i].key) return i;
    }
    scratch[slot] = static_cast<uint32_t>(i + 1);
  }
  return kNoneRepeated;
}

}  // namespace holdfast::codec
