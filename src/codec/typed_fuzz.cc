// JSON as an object of the type it names: never crashes, its form is stable, it has a Protobuf form, and the two ways
// of finding unknown fields agree.
#include <cstdlib>

#include "codec/codec.h"

using namespace holdfast;
using namespace holdfast::codec;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  Arena arena;
  std::vector<std::string> duplicates;
  const Result<Value> tree = decode_json(arena, source, {.duplicates = &duplicates, .keep_huge_numbers = true});
  if (!tree) return 0;
  const std::string_view api_version = tree->text_at("apiVersion");
  const size_t slash = api_version.find('/');
  const bool core = slash == std::string_view::npos;
  const types::Type* type =
      types::find_type_of(core ? "" : api_version.substr(0, slash), core ? api_version : api_version.substr(slash + 1),
                          tree->text_at("kind"));
  if (type == nullptr) type = types::find_type("core/v1.Pod");

  TypedReport report;
  const Result<Value> typed = to_typed(arena, *type, *tree, {.json_source = source}, &report);
  const std::vector<std::string> strict = strict_json_errors(*type, source);
  if (!typed) return 0;
  if (duplicates.empty()) {
    require(strict.empty() != report.has_unknown);
    require(strict_tree_errors(*type, *tree).size() == strict.size());
  }
  const std::string json = encode_json(*typed);
  const Result<Value> again = to_typed(arena, *type, *typed);
  require(again.ok());
  require(encode_json(*again) == json);

  std::string bytes;
  require(encode_protobuf(*type, *typed, bytes).ok() || type->fields_by_number.empty());
  const Result<Value> back = decode_protobuf(arena, *type, bytes);
  require(back.ok());
  return 0;
}
