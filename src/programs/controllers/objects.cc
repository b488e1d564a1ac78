#include "controllers/objects.h"

#include <algorithm>

#include "codec/codec.h"

namespace holdfast::controllers {

Result<Value> object_tree(Arena& arena, const types::Type& type, std::string_view body) {
  if (!codec::is_protobuf(body)) return codec::decode_json(arena, body);
  Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(body);
  if (!envelope) return envelope.take_error();
  return codec::decode_protobuf(arena, type, envelope->message, envelope->type);
}

Result<Value> metadata_of(Arena& arena, std::string_view body) {
  // Metadata is the same in every object; fields unknown to this type are skipped.
  static const types::Type& type = *types::find_type("meta/v1.PartialObjectMetadata");
  Result<Value> object = object_tree(arena, type, body);
  if (!object) return object;
  const Value* metadata = object->find("metadata");
  return metadata == nullptr ? Value::empty_map() : *metadata;
}

std::string_view namespace_of(const types::Resource& resource, std::string_view key) {
  return resource.namespaced ? key.substr(0, key.find('/')) : std::string_view{};
}

std::string_view name_of(const types::Resource& resource, std::string_view key) {
  return resource.namespaced ? key.substr(key.find('/') + 1) : key;
}

own_calls::Target target_of(const types::Resource& resource, std::string_view key) {
  return own_calls::object(resource, namespace_of(resource, key), name_of(resource, key));
}

bool has_verb(const types::Resource& resource, std::string_view verb) {
  return std::find(resource.verbs.begin(), resource.verbs.end(), verb) != resource.verbs.end();
}

}  // namespace holdfast::controllers
