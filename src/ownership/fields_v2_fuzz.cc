// FieldsV2 from anyone: never crashes, and what it accepts says the same after writing it again, also as FieldsV1.
#include <cstdlib>

#include "ownership/fields_v2.h"

using namespace holdfast;
using namespace holdfast::ownership;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Arena arena;
  const Result<FieldSet> set = parse_fields_v2(arena, {reinterpret_cast<const char*>(data), size});
  if (!set) return 0;
  for (FieldsV2Layout layout : {FieldsV2Layout::Plain, FieldsV2Layout::NameTable}) {
    const std::string bytes = to_fields_v2(*set, layout);
    const Result<FieldSet> back = parse_fields_v2(arena, bytes);
    if (!back || !(*back == *set)) std::abort();
    if (to_fields_v2(*back, layout) != bytes) std::abort();
  }
  const std::string text = to_fields_v1(*set);
  const Result<FieldSet> from_text = parse_fields_v1(arena, text);
  if (!from_text || to_fields_v1(*from_text) != text) std::abort();
  return 0;
}
