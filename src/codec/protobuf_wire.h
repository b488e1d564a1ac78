// The Protobuf wire format: varints, tags, and passing over fields. Private to the module.
//
// Readers take a position and the end of the message and return the position after what they read, or null.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace holdfast::codec::wire {

enum Type : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kGroup = 3, kEndGroup = 4, kFixed32 = 5 };

inline constexpr int kMaxVarint = 10;  // Bytes.
// Groups inside groups that are skipped; nothing of ours has groups at all.
inline constexpr int kMaxGroupDepth = 64;

const char* read_varint_slow(const char* p, const char* end, uint64_t& value);

inline const char* read_varint(const char* p, const char* end, uint64_t& value) {
  if (p != end && static_cast<signed char>(*p) >= 0) [[likely]] {
    value = static_cast<uint8_t>(*p);
    return p + 1;
  }
  return read_varint_slow(p, end, value);
}

// A length and that many bytes.
inline const char* read_bytes(const char* p, const char* end, std::string_view& bytes) {
  uint64_t size = 0;
  p = read_varint(p, end, size);
  if (p == nullptr || size > static_cast<uint64_t>(end - p)) return nullptr;
  bytes = {p, static_cast<size_t>(size)};
  return p + size;
}

inline uint64_t load64(const char* p) {
  uint64_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return bits;  // Little endian on the wire and on every machine we build for.
}
static_assert(std::endian::native == std::endian::little);

// Passes over the value of a field whose tag has been read.
const char* skip_value(const char* p, const char* end, uint64_t tag, int depth = 0);

inline size_t varint_size(uint64_t value) { return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7; }

inline char* write_varint(uint64_t value, char* to) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
  *to++ = static_cast<char>(value);
  return to;
}

}  // namespace holdfast::codec::wire
