// Arbitrary enveloped Protobuf: never crashes, the transcoders agree with the tree, and encoding survives a round trip.
#include <cassert>

#include "base/api_version.h"
#include "codec/codec.h"

using namespace holdfast;
using namespace holdfast::codec;

namespace {

const types::Type* type_of(const TypeMeta& meta) {
  const auto [group, version] = split_api_version(meta.api_version);
  return types::find_type_of(group, version, meta.kind);
}

Value dropped(Arena& arena, const Value& object) {
  constexpr std::string_view kManaged[] = {"metadata", "managedFields"};
  Value value = without_path(arena, object, kManaged);
  const Value* items = value.find("items");
  if (items == nullptr || !items->is_list()) return value;
  ListBuilder list(arena);
  for (const Value& item : items->items()) list.add(without_path(arena, item, kManaged));
  return with_member(arena, value, "items", list.build());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const Result<ProtobufEnvelope> envelope = open_envelope(source);
  if (!envelope) return 0;
  const types::Type* type = type_of(envelope->type);
  if (type == nullptr) return 0;

  std::string changed, fewer;
  (void)change_metadata(envelope->message, {.drop_managed_fields = true, .resource_version = "7"}, changed);
  (void)drop_protobuf_fields(*type, envelope->message, FieldPaths::of({"spec.template", "metadata.labels.a"}), fewer);

  Arena arena;
  const Result<Value> tree = decode_protobuf(arena, *type, envelope->message, envelope->type);
  std::string json, cbor, without;
  const Result<Unit> to_json = protobuf_to_json(*type, envelope->message, envelope->type, {}, json);
  assert(to_json.ok() == tree.ok());
  if (!tree) return 0;
  const std::string tree_json = encode_json(*tree);
  assert(json == tree_json);
  assert(protobuf_to_json(*type, envelope->message, envelope->type, {.drop = &managed_fields_paths()}, without).ok());
  assert(without == encode_json(dropped(arena, *tree)));
  assert(protobuf_to_cbor(*type, envelope->message, envelope->type, {}, cbor).ok());

  // A time beyond the year 9999 has a text that is not RFC 3339 and cannot be encoded again.
  std::string bytes;
  if (!encode_protobuf(*type, *tree, bytes)) return 0;
  const Result<Value> again = decode_protobuf(arena, *type, bytes, envelope->type);
  assert(again.ok());
  assert(encode_json(*again) == tree_json);
  return 0;
}
