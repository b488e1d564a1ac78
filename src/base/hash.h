// Fast non-cryptographic hashing of bytes (xxh3) and combining of hashes.
#pragma once

#include <cstdint>
#include <string_view>

namespace holdfast {

uint64_t hash_bytes(std::string_view bytes, uint64_t seed = 0);

inline uint64_t hash_combine(uint64_t a, uint64_t b) {
  // The finalizer of splitmix64 over the sum: order matters, and similar inputs are spread.
  uint64_t x = a * 0x9e3779b97f4a7c15ull + b + 0x7f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace holdfast
