#include "codec/protobuf_wire.h"

#include "base/varint.h"

namespace holdfast::codec::wire {

const char* read_varint_slow(const char* p, const char* end, uint64_t& value) {
  value = 0;
  for (size_t i = 0; i < kMaxVarint && p != end; ++i) {
    const auto byte = static_cast<uint8_t>(*p++);
    value |= uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) return p;
  }
  return nullptr;
}

const char* skip_value(const char* p, const char* end, uint64_t tag, int depth) {
  switch (tag & 7) {
    case kVarint: {
      uint64_t ignored;
      return read_varint(p, end, ignored);
    }
    case kFixed64:
      return end - p >= 8 ? p + 8 : nullptr;
    case kFixed32:
      return end - p >= 4 ? p + 4 : nullptr;
    case kBytes: {
      std::string_view ignored;
      return read_bytes(p, end, ignored);
    }
    case kGroup:
      if (depth == kMaxGroupDepth) return nullptr;
      while (true) {
        uint64_t inner;
        p = read_varint(p, end, inner);
        if (p == nullptr) return nullptr;
        if ((inner & 7) == kEndGroup) return p;
        p = skip_value(p, end, inner, depth + 1);
        if (p == nullptr) return nullptr;
      }
    default:
      return nullptr;
  }
}

}  // namespace holdfast::codec::wire
