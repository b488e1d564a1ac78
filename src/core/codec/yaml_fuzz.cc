// Arbitrary bytes as YAML: never crashes; accepted input that can be written as YAML survives a round trip.
#include <cassert>
#include <cstdint>
#include <string>

#include "codec/codec.h"

using namespace holdfast;         // NOLINT
using namespace holdfast::codec;  // NOLINT

namespace {

// A raw NEL in a text is folded into a space when writing, as in Kubernetes.
bool has_next_line(const Value& value) { return encode_json(value).find("\xc2\x85") != std::string::npos; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string source(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> repeated;
  const auto document = parse_yaml(source, {.duplicates = &repeated});
  static_cast<void>(split_documents(source));
  if (!document) {
    assert(!document.error().message.empty());
    return 0;
  }
  std::string written;
  if (!encode_yaml(document->root(), written)) return 0;
  const auto again = parse_yaml(written);
  assert(again.ok());
  if (!has_next_line(document->root())) assert(equal(document->root(), again->root(), Numbers::ByValue));
  return 0;
}
