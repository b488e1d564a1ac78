// Fast non-cryptographic hashing of bytes (xxh3) and combining of hashes.
#pragma once

#include <cstdint>
#include <string_view>

namespace holdfast {

// The same in every process: for checksums and content-derived names. Not for tables with untrusted keys, because an
// attacker could choose keys that collide.
uint64_t hash_bytes(std::string_view bytes, uint64_t seed = 0);

// For tables: keyed with a random per-process secret, so that nobody can predict which keys collide.
uint64_t hash_key(std::string_view key);

// hash_key for std::unordered_map and std::unordered_set; looks up views without creating a string.
struct KeyHash {
  using is_transparent = void;
  size_t operator()(std::string_view key) const { return hash_key(key); }
};

inline uint64_t hash_combine(uint64_t a, uint64_t b) {
  // The finalizer of splitmix64 over the sum: order matters, and similar inputs are spread.
  uint64_t x = a * 0x9e3779b97f4a7c15ull + b + 0x7f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace holdfast
