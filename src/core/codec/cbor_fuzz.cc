// Arbitrary bytes as CBOR: never crashes; accepted input survives a round trip.
#include <cassert>
#include <cstdint>
#include <string>

#include "codec/codec.h"

using namespace holdfast;         // NOLINT
using namespace holdfast::codec;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string source(reinterpret_cast<const char*>(data), size);
  const auto length = first_cbor_item(source);
  const auto document = parse_cbor(source);
  if (!document) {
    assert(!document.error().message.empty());
    return 0;
  }
  assert(length && *length == size);
  const std::string written = encode_cbor(document->root());
  const auto again = parse_cbor(written);
  assert(again && equal(document->root(), again->root()));
  assert(encode_cbor(again->root()) == written);
  // Texts of a CBOR tree may be invalid UTF-8; in JSON those bytes become U+FFFD.
  assert(parse_json(encode_json(document->root())).ok());
  return 0;
}
