// Arbitrary FieldsV1 input: never crashes, and accepted input is written in one form that parses to the same set.
#include <cstdlib>

#include "ownership/field_set.h"

using namespace holdfast;
using namespace holdfast::ownership;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Arena arena;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<FieldSet> set = parse_fields_v1(arena, text);
  if (!set) return 0;
  const std::string written = to_fields_v1(*set);
  const Result<FieldSet> back = parse_fields_v1(arena, written);
  if (!back) std::abort();
  // Invalid UTF-8 is replaced on the first write, so texts are compared after that.
  if (to_fields_v1(*back) != written &&
      to_fields_v1(*parse_fields_v1(arena, to_fields_v1(*back))) != to_fields_v1(*back))
    std::abort();
  if (!(copy(arena, *set) == *set) || hash(copy(arena, *set)) != hash(*set)) std::abort();
  if (!difference(arena, *set, *set).empty() || !(union_of(arena, *set, copy(arena, *set)) == *set)) std::abort();
  if (!(intersection(arena, *set, copy(arena, *set)) == *set) || !set->includes(leaves(arena, *set))) std::abort();
  return 0;
}
