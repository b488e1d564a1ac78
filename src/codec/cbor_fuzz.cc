// Any bytes as CBOR: never a crash; what is accepted is written and read alike.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "codec/codec.h"

using namespace holdfast;         // NOLINT
using namespace holdfast::codec;  // NOLINT

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string source(reinterpret_cast<const char*>(data), size);
  const auto length = first_cbor_item(source);
  const auto document = parse_cbor(source);
  if (!document) {
    check(!document.error().message.empty());
    return 0;
  }
  check(length && *length == size);
  const std::string written = encode_cbor(document->root());
  const auto again = parse_cbor(written);
  check(again && equal(document->root(), again->root()));
  check(encode_cbor(again->root()) == written);
  // Texts of a CBOR tree may be no UTF-8; JSON shows those bytes as U+FFFD.
  check(parse_json(encode_json(document->root())).ok());
  return 0;
}
