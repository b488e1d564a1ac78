// Arbitrary FieldsV2 input: never crashes, and accepted input is unchanged by a round trip. Converted to FieldsV1, it
// is unchanged after the first parse, which turns integers beyond 2^53 into doubles, as Kubernetes does.
#include <cstdlib>

#include "ownership/fields_v2.h"

using namespace holdfast;
using namespace holdfast::ownership;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Arena arena;
  const std::string_view given(reinterpret_cast<const char*>(data), size);
  const Result<FieldSet> set = parse_fields_v2(arena, given);
  const std::optional<size_t> measured = measure_fields_v2(given);
  if (!set) {
    if (measured) std::abort();
    return 0;
  }
  if (measured && (to_fields_v2(*set) != given || to_fields_v1(*set).size() != *measured)) std::abort();
  for (FieldsV2Layout layout : {FieldsV2Layout::Plain, FieldsV2Layout::NameTable, FieldsV2Layout::CodedNames}) {
    const std::string bytes = to_fields_v2(*set, layout);
    const Result<FieldSet> back = parse_fields_v2(arena, bytes);
    if (!back || !(*back == *set)) std::abort();
    if (to_fields_v2(*back, layout) != bytes) std::abort();
  }
  const std::string text = to_fields_v1(*set);
  std::string direct;
  append_fields_v1_of(to_fields_v2(*set), direct);
  if (direct != text) std::abort();
  const Result<FieldSet> read = parse_fields_v1(arena, text);
  if (!read) std::abort();
  const std::string settled = to_fields_v1(*read);
  const Result<FieldSet> again = parse_fields_v1(arena, settled);
  if (!again || to_fields_v1(*again) != settled) std::abort();
  return 0;
}
