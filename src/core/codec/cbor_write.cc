#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "codec/cbor.h"
#include "codec/transcode_json.h"
#include "codec/tree_walk.h"

namespace holdfast::codec {
namespace {

char* write_big_endian(uint64_t number, int bytes, char* to) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) *to++ = static_cast<char>(number >> shift);
  return to;
}

// Converts to a half-precision number, if there is one that is equal.
bool to_half(float number, uint16_t& half) {
  const auto bits = std::bit_cast<uint32_t>(number);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const int exponent = static_cast<int>(bits >> 23 & 0xff) - 127;
  const uint32_t mantissa = bits & 0x7fffff;
  if ((bits & 0x7fffffff) == 0) {
    half = sign;
    return true;
  }
  if (exponent >= -14 && exponent <= 15) {
    if ((mantissa & 0x1fff) != 0) return false;
    half = static_cast<uint16_t>(sign | static_cast<uint32_t>(exponent + 15) << 10 | mantissa >> 13);
    return true;
  }
  if (exponent >= -24 && exponent < -14) {  // Subnormal: a multiple of 2^-24.
    const uint32_t whole = mantissa | 0x800000;
    const int shift = -exponent - 1;
    if ((whole & ((1u << shift) - 1)) != 0) return false;
    half = static_cast<uint16_t>(sign | whole >> shift);
    return true;
  }
  return false;
}

class Writer : TreeWalk<Writer> {
  friend TreeWalk<Writer>;

 public:
  Writer(Sink& sink, CborOrder order) : sink_(sink), order_(order) {}

  void write(const Value& root) { walk(root); }

 private:
  void separate(size_t) {}
  void key(std::string_view text) { write_cbor_text(text, sink_); }
  void end(bool) {}

  void begin(const Value& value) {
    switch (value.kind()) {
      case Value::Kind::Null:
        return write_cbor_null(sink_);
      case Value::Kind::Bool:
        return write_cbor_bool(value.as_bool(), sink_);
      case Value::Kind::Int:
        return write_cbor_int(value.as_int(), sink_);
      case Value::Kind::Double:
        return write_cbor_double(value.as_double(), sink_);
      case Value::Kind::String:
        return write_cbor_text(value.as_string(), sink_);
      case Value::Kind::Raw:
        return write_json_as_cbor(value.raw_json(), sink_);
      case Value::Kind::List:
        write_cbor_head(CborMajor::List, value.count(), sink_);
        if (value.count() > 0) enter(value.items());
        return;
      case Value::Kind::Map:
        write_cbor_head(CborMajor::Map, value.count(), sink_);
        if (value.count() > 0) enter(in_order(value.members()));
        return;
    }
  }

  std::span<const Member> in_order(std::span<const Member> members) {
    if (order_ == CborOrder::AsIs) return members;
    const std::span<Member> sorted = arena_.copy(members);
    std::sort(sorted.begin(), sorted.end(), [](const Member& a, const Member& b) {
      return a.key.size() != b.key.size() ? a.key.size() < b.key.size() : a.key < b.key;
    });
    return sorted;
  }

  Sink& sink_;
  CborOrder order_;
  Arena arena_;  // For sorted members.
};

}  // namespace

char* write_cbor_head(CborMajor major, uint64_t argument, char* to) {
  const auto high = static_cast<unsigned char>(static_cast<unsigned>(major) << 5);
  if (argument < 24) {
    *to++ = static_cast<char>(high | argument);
    return to;
  }
  const int log = argument <= 0xff ? 0 : argument <= 0xffff ? 1 : argument <= 0xffffffff ? 2 : 3;
  *to++ = static_cast<char>(high | (24 + log));
  return write_big_endian(argument, 1 << log, to);
}

void write_cbor_double(double number, Sink& sink) {
  if (!std::isfinite(number)) return write_cbor_null(sink);
  char* to = sink.room(kMaxCborHead);
  // Out-of-range conversion to float is undefined, so check the magnitude first.
  const bool fits = std::fabs(number) <= static_cast<double>(std::numeric_limits<float>::max());
  const float single = fits ? static_cast<float>(number) : 0.0f;
  uint16_t half = 0;
  if (!fits || static_cast<double>(single) != number) {
    *to++ = '\xfb';
    to = write_big_endian(std::bit_cast<uint64_t>(number), 8, to);
  } else if (to_half(single, half)) {
    *to++ = '\xf9';
    to = write_big_endian(half, 2, to);
  } else {
    *to++ = '\xfa';
    to = write_big_endian(std::bit_cast<uint32_t>(single), 4, to);
  }
  sink.wrote(to);
}

void CborContainer::finish(CborMajor major, Sink& sink) const {
  char head[kMaxCborHead];
  const auto length = static_cast<size_t>(write_cbor_head(major, count_, head) - head);
  if (length > 1) {
    sink.room(length - 1);
    const size_t body = sink.size() - head_ - 1;
    std::memmove(sink.at(head_ + length), sink.at(head_ + 1), body);
    sink.wrote(sink.at(head_ + length + body));
  }
  std::memcpy(sink.at(head_), head, length);
}

void encode_cbor(const Value& value, std::string& out, CborOrder order) {
  Sink sink(out);
  sink.put(kCborSelfDescribed);
  Writer(sink, order).write(value);
}

std::string encode_cbor(const Value& value, CborOrder order) {
  std::string out;
  encode_cbor(value, out, order);
  return out;
}

}  // namespace holdfast::codec
