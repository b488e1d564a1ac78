// The Protobuf wire format: reading varints and tags, and skipping fields. Private to the module.
//
// Readers take a position and the end of the message and return the position after what they read, or null.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace holdfast::codec::wire {

enum Type : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kGroup = 3, kEndGroup = 4, kFixed32 = 5 };

// Maximum nesting of skipped groups. Kubernetes' messages have no groups at all.
inline constexpr int kMaxGroupDepth = 64;

const char* read_varint_slow(const char* p, const char* end, uint64_t& value);

inline const char* read_varint(const char* p, const char* end, uint64_t& value) {
  if (p != end && static_cast<signed char>(*p) >= 0) [[likely]] {
    value = static_cast<uint8_t>(*p);
    return p + 1;
  }
  return read_varint_slow(p, end, value);
}

// Reads a length and that many bytes.
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
  return bits;  // Little endian on the wire and on every platform we support.
}
static_assert(std::endian::native == std::endian::little);

// Skips the value of a field whose tag has been read.
const char* skip_value(const char* p, const char* end, uint64_t tag, int depth = 0);

// Calls read_value(tag, p, end) for each field of a message, which returns the position after the value, or null.
// Returns where the field begins that could not be read; null if all could.
template <class ReadValue>
inline const char* each_field(std::string_view message, ReadValue read_value) {
  const char* p = message.data();
  const char* const end = p + message.size();
  while (p != end) {
    const char* const from = p;
    uint64_t tag = 0;
    p = read_varint(p, end, tag);
    if (p != nullptr) p = read_value(tag, p, end);
    if (p == nullptr) return from;
  }
  return nullptr;
}

}  // namespace holdfast::codec::wire
