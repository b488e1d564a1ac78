// Any bytes as JSON: never a crash; what is accepted is written, read and transcoded alike.
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
  // Members that are left out are skipped without a close look: whatever they hold, that must come to an end.
  std::string shaped;
  static_cast<void>(json_to_json(source, {.drop = &managed_fields_paths(), .metadata_only = true}, shaped));
  std::vector<std::string> repeated;
  const auto document = parse_json(source, {.duplicates = &repeated});
  if (!document) {
    check(!document.error().message.empty());
    return 0;
  }
  const std::string written = encode_json(document->root());
  const auto again = parse_json(written);
  check(again && encode_json(again->root()) == written);
  check(equal(document->root(), again->root(), Numbers::ByValue));

  std::string pretty;
  check(json_to_pretty_json(written, {}, pretty).ok());
  check(pretty == encode_json_pretty(again->root()));
  if (!repeated.empty()) return 0;

  std::string cbor;
  check(json_to_cbor(source, {}, cbor).ok());
  check(cbor == encode_cbor(document->root()));
  std::string bare;
  check(json_to_json(source, {.drop = &managed_fields_paths()}, bare).ok());
  check(parse_json(bare).ok());
  return 0;
}
