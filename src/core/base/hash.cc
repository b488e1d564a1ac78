#include "base/hash.h"

#include <sys/random.h>

#include <array>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace holdfast {
namespace {

// A secret rather than just a seed: xxh3 mixes all of it into keys of every length.
using Secret = std::array<unsigned char, XXH3_SECRET_DEFAULT_SIZE>;
static_assert(XXH3_SECRET_DEFAULT_SIZE >= XXH3_SECRET_SIZE_MIN && XXH3_SECRET_DEFAULT_SIZE <= 256,
              "getrandom() gives up to 256 bytes at once");

Secret draw_secret() {
  Secret secret;
  while (getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size())) {
  }
  return secret;
}

}  // namespace

uint64_t hash_bytes(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

uint64_t hash_key(std::string_view key) {
  static const Secret secret = draw_secret();
  return XXH3_64bits_withSecret(key.data(), key.size(), secret.data(), secret.size());
}

}  // namespace holdfast
