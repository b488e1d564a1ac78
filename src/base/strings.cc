#include "base/strings.h"

#include <arpa/inet.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace holdfast {
namespace {

template <class Text>
std::string join_all(std::span<const Text> parts, std::string_view separator) {
  std::string joined;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) joined += separator;
    joined += parts[i];
  }
  return joined;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

std::string to_lower(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) c = lower(c);
  return lowered;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string join(std::span<const std::string> parts, std::string_view separator) { return join_all(parts, separator); }
std::string join(std::span<const std::string_view> parts, std::string_view separator) {
  return join_all(parts, separator);
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool is_ip_address(std::string_view text) {
  const std::string terminated(text);
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, terminated.c_str(), bytes) == 1 || inet_pton(AF_INET6, terminated.c_str(), bytes) == 1;
}

std::string random_uuid() {
  thread_local std::array<uint64_t, 4> s = [] {
    std::array<uint64_t, 4> seed{};
    while (getrandom(seed.data(), sizeof seed, 0) != sizeof seed) {
    }
    return seed;
  }();
  auto rotate = [](uint64_t x, int by) { return (x << by) | (x >> (64 - by)); };
  auto next = [&] {  // xoshiro256**
    const uint64_t result = rotate(s[1] * 5, 7) * 9;
    const uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
  };
  const uint64_t high = (next() & ~0xf000ull) | 0x4000ull;
  const uint64_t low = (next() & ~(3ull << 62)) | (2ull << 62);
  std::string text = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  int digit = 0;
  for (char& c : text) {
    if (c == '-') continue;
    c = "0123456789abcdef"[(digit < 16 ? high : low) >> (60 - 4 * (digit % 16)) & 15];
    ++digit;
  }
  return text;
}

}  // namespace holdfast
