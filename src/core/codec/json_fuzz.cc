// Arbitrary bytes as JSON: never crashes; accepted input survives a round trip, and transcoding agrees.
#include <cassert>
#include <cstdint>
#include <string>

#include "codec/codec.h"

using namespace holdfast;         // NOLINT
using namespace holdfast::codec;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string source(reinterpret_cast<const char*>(data), size);
  // Dropped members are skipped without being validated: this must terminate whatever they contain.
  std::string shaped;
  static_cast<void>(json_to_json(source, {.drop = &managed_fields_paths(), .metadata_only = true}, shaped));
  std::vector<std::string> repeated;
  const auto document = parse_json(source, {.duplicates = &repeated});
  if (!document) {
    assert(!document.error().message.empty());
    return 0;
  }
  const std::string written = encode_json(document->root());
  const auto again = parse_json(written);
  assert(again && encode_json(again->root()) == written);
  assert(equal(document->root(), again->root(), Numbers::ByValue));

  std::string pretty;
  assert(json_to_pretty_json(written, {}, pretty).ok());
  assert(pretty == encode_json_pretty(again->root()));
  if (!repeated.empty()) return 0;

  std::string cbor;
  assert(json_to_cbor(source, {}, cbor).ok());
  assert(cbor == encode_cbor(document->root()));
  std::string bare;
  assert(json_to_json(source, {.drop = &managed_fields_paths()}, bare).ok());
  assert(parse_json(bare).ok());
  return 0;
}
