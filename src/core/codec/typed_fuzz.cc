// JSON as an object of the type it names: never crashes, converting twice changes nothing, it can be encoded as
// Protobuf, and both ways of finding unknown fields agree.
#include <cassert>

#include "base/api_version.h"
#include "codec/codec.h"

using namespace holdfast;
using namespace holdfast::codec;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  Arena arena;
  std::vector<std::string> duplicates;
  const Result<Value> tree = decode_json(arena, source, {.duplicates = &duplicates, .keep_huge_numbers = true});
  if (!tree) return 0;
  const auto [group, version] = split_api_version(tree->text_at("apiVersion"));
  const types::Type* type = types::find_type_of(group, version, tree->text_at("kind"));
  if (type == nullptr) type = types::find_type("core/v1.Pod");

  TypedReport report;
  const Result<Value> typed = to_typed(arena, *type, *tree, {.json_source = source}, &report);
  const std::vector<std::string> strict = strict_json_errors(*type, source);
  if (!typed) return 0;
  if (duplicates.empty()) {
    assert(strict.empty() != report.has_unknown);
    assert(strict_tree_errors(*type, *tree).size() == strict.size());
  }
  const std::string json = encode_json(*typed);
  const Result<Value> again = to_typed(arena, *type, *typed);
  assert(again.ok());
  assert(encode_json(*again) == json);

  std::string bytes;
  assert(encode_protobuf(*type, *typed, bytes).ok() || type->fields_by_number.empty());
  const Result<Value> back = decode_protobuf(arena, *type, bytes);
  assert(back.ok());
  return 0;
}
