// CBOR as Kubernetes' serializer reads and writes it.
//
// Reading: the self-described tag may be there or not; byte strings are texts (not checked for UTF-8), text strings
// must be UTF-8; a byte string under tag 21, 22 or 23 reads as its base64url, base64 or hex text; a time tag reads as
// RFC 3339 text; other tags are skipped. Indefinite lengths are fine. Refused, in the wording of Kubernetes'
// decoder: NaN, infinities, big numbers, integers beyond int64, simple values other than false, true and null, keys
// given twice, more than 10000 levels, bytes after the item.
//
// Writing: the self-described tag, then one item of definite lengths; texts and keys as byte strings, integers in their
// shortest form, floats in the smallest width that is exact.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/error.h"
#include "codec/sink.h"
#include "value/value.h"

namespace holdfast::codec {

struct CborOptions {
  // Filled, when given, when the result is an error: where in the source it was found.
  size_t* error_offset = nullptr;
};

// Strings are views into `source` where they are contiguous there; everything else is in `arena`.
Result<Value> decode_cbor(Arena& arena, std::string_view source, const CborOptions& options = {});

// The length of the first item of a sequence (a watch's stream): 0 when its end has not arrived yet, an error when no
// continuation can make it an item.
Result<size_t> first_cbor_item(std::string_view bytes);

inline constexpr std::string_view kCborSelfDescribed = "\xd9\xd9\xf7";

enum class CborOrder : uint8_t {
  AsIs,    // Members in their order: what answers use.
  Sorted,  // By the encoded key, so shorter keys first: what storage uses.
};
// Appends the tag and the item. Raw leaves are written as the values they hold.
void encode_cbor(const Value& value, std::string& out, CborOrder order = CborOrder::AsIs);
std::string encode_cbor(const Value& value, CborOrder order = CborOrder::AsIs);

// --- items, for transcoders ---

enum class CborMajor : uint8_t {
  Unsigned = 0,
  Negative = 1,
  Bytes = 2,
  Text = 3,
  List = 4,
  Map = 5,
  Tag = 6,
  Simple = 7
};
inline constexpr size_t kMaxCborHead = 9;
// Writes the first bytes of an item in the shortest form; returns their end. `to` has room for kMaxCborHead.
char* write_cbor_head(CborMajor major, uint64_t argument, char* to);

inline void write_cbor_head(CborMajor major, uint64_t argument, Sink& sink) {
  sink.wrote(write_cbor_head(major, argument, sink.room(kMaxCborHead)));
}
inline void write_cbor_text(std::string_view text, Sink& sink) {
  write_cbor_head(CborMajor::Bytes, text.size(), sink);
  sink.put(text);
}
// Bytes that JSON shows as base64: tag 22.
inline void write_cbor_bytes(std::string_view bytes, Sink& sink) {
  write_cbor_head(CborMajor::Tag, 22, sink);
  write_cbor_text(bytes, sink);
}
inline void write_cbor_int(int64_t number, Sink& sink) {
  if (number < 0) {
    write_cbor_head(CborMajor::Negative, static_cast<uint64_t>(~number), sink);
  } else {
    write_cbor_head(CborMajor::Unsigned, static_cast<uint64_t>(number), sink);
  }
}
inline void write_cbor_bool(bool b, Sink& sink) { sink.put(b ? '\xf5' : '\xf4'); }
inline void write_cbor_null(Sink& sink) { sink.put('\xf6'); }
// Not finite: null.
void write_cbor_double(double number, Sink& sink);

// A list or map whose size is known only when it ends: one byte is kept for the head, and what follows moves when the
// count needs more.
class CborContainer {
 public:
  explicit CborContainer(Sink& sink) : head_(sink.size()) { sink.put('\0'); }
  void add(uint64_t count = 1) { count_ += count; }
  uint64_t count() const { return count_; }
  void finish(CborMajor major, Sink& sink) const;

 private:
  size_t head_;
  uint64_t count_ = 0;
};

}  // namespace holdfast::codec
