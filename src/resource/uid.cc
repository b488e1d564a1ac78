#include "resource/uid.h"

#include <cstdint>
#include <random>

namespace holdfast::resource {

std::string new_uid() {
  static thread_local std::mt19937_64 random = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  const uint64_t a = (random() & 0xffffffffffff0fffull) | 0x4000ull;
  const uint64_t b = (random() & 0x3fffffffffffffffull) | 0x8000000000000000ull;
  std::string text = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  int digit = 0;
  for (char& c : text) {
    if (c == '-') continue;
    c = "0123456789abcdef"[(digit < 16 ? a : b) >> (60 - 4 * (digit % 16)) & 15];
    ++digit;
  }
  return text;
}

}  // namespace holdfast::resource
