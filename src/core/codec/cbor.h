// CBOR as read and written by Kubernetes' serializer.
//
// Reading: the self-described tag is optional; byte strings are texts (not checked for UTF-8), text strings must be
// UTF-8; a byte string under tag 21, 22 or 23 is read as base64url, base64 or hex text; a time tag is read as RFC 3339
// text; other tags are skipped. Indefinite lengths are allowed. Rejected, with the messages of Kubernetes' decoder:
// NaN, infinities, big numbers, integers beyond int64, simple values other than false, true and null, duplicate keys,
// more than 10000 levels, bytes after the item.
//
// Writing: the self-described tag, then one item with definite lengths; texts and keys as byte strings, integers in
// their shortest form, floats in the smallest exact width.
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
  // If given, set to the offset of the error in the source.
  size_t* error_offset = nullptr;
};

// Strings are views into `source` if they are contiguous there; everything else is in `arena`.
Result<Value> decode_cbor(Arena& arena, std::string_view source, const CborOptions& options = {});

// The length of the first item of a sequence (a watch stream): 0 if it is still incomplete, an error if it can never
// become a valid item.
Result<size_t> first_cbor_item(std::string_view bytes);

inline constexpr std::string_view kCborSelfDescribed = "\xd9\xd9\xf7";

enum class CborOrder : uint8_t {
  AsIs,    // Members in their order: for responses.
  Sorted,  // By encoded key, hence shorter keys first: for storage.
};
// Appends the tag and the item. Raw leaves are written as the values they contain.
void encode_cbor(const Value& value, std::string& out, CborOrder order = CborOrder::AsIs);
std::string encode_cbor(const Value& value, CborOrder order = CborOrder::AsIs);

// --- Items, for transcoders ---

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
// Writes the head of an item in its shortest form and returns its end. `to` must have room for kMaxCborHead bytes.
char* write_cbor_head(CborMajor major, uint64_t argument, char* to);

inline void write_cbor_head(CborMajor major, uint64_t argument, Sink& sink) {
  sink.wrote(write_cbor_head(major, argument, sink.room(kMaxCborHead)));
}
inline void write_cbor_text(std::string_view text, Sink& sink) {
  write_cbor_head(CborMajor::Bytes, text.size(), sink);
  sink.put(text);
}
// Bytes that are base64 in JSON: tag 22.
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
// Writes null if the number is not finite.
void write_cbor_double(double number, Sink& sink);

// A list or map whose size is known only at its end: one byte is reserved for the head, and the content is moved if the
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
