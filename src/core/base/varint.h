// Integers as bytes: varints (seven bits per byte, lowest first) and fixed widths, with bounds-checked reads.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast {

inline constexpr size_t kMaxVarint = 10;  // Bytes.

inline size_t varint_size(uint64_t value) { return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7; }

// Returns the end. `to` must have room for varint_size(value) bytes.
inline char* write_varint(uint64_t value, char* to) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
  *to++ = static_cast<char>(value);
  return to;
}

inline void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

inline void put_big_endian(std::string& out, uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
}

inline uint64_t read_big_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

inline void put_little_endian(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

inline uint64_t read_little_endian(std::string_view bytes, int count) {
  uint64_t value = 0;
  for (int i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[static_cast<size_t>(i)]);
  return value;
}

// Reads from the front; after the first read beyond the end, all further reads fail.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  uint8_t byte() { return take(1) ? static_cast<uint8_t>(taken_[0]) : 0; }
  uint64_t u64() { return take(8) ? read_big_endian(taken_) : 0; }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      uint8_t b = byte();
      if (!ok_) return 0;
      value |= static_cast<uint64_t>(b & 0x7f) << shift;
      if (b < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }
  std::string_view bytes(uint64_t count) { return take(count) ? taken_ : std::string_view(); }
  std::string_view rest() const { return rest_; }
  bool ok() const { return ok_; }

 private:
  bool take(uint64_t count) {
    ok_ = ok_ && rest_.size() >= count;
    if (!ok_) return false;
    taken_ = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return true;
  }

  std::string_view rest_;
  std::string_view taken_;
  bool ok_ = true;
};

}  // namespace holdfast
