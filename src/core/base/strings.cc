#include "base/strings.h"

#include <arpa/inet.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/ascii.h"

namespace holdfast {

std::string to_lower(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) c = to_lower(c);
  return lowered;
}

std::string to_upper(std::string_view text) {
  std::string raised(text);
  for (char& c : raised) c = to_upper(c);
  return raised;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return to_lower(x) == to_lower(y); });
}

std::vector<std::string_view> split(std::string_view text, char separator, size_t most) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = parts.size() + 1 < most ? text.find(separator) : std::string_view::npos;
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string to_hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
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

std::optional<bool> parse_bool(std::string_view text) {
  for (const std::string_view yes : {"1", "t", "T", "true", "TRUE", "True"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"0", "f", "F", "false", "FALSE", "False"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

}  // namespace holdfast
