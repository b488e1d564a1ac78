#include "resource/outdated.h"

#include "codec/codec.h"
#include "kinds/stored_versions.h"

namespace holdfast::resource {

const OutdatedValues* outdated_values(const ObjectCodec& codec) { return dynamic_cast<const OutdatedValues*>(&codec); }

StoredType stored_type(std::string_view value) {
  if (codec::is_protobuf(value)) {
    const Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(value);
    if (!envelope) return {};
    return {std::string(envelope->type.api_version), std::string(envelope->type.kind)};
  }
  Arena arena;
  if (value.starts_with(codec::kCborSelfDescribed)) {
    const Result<Value> object = codec::decode_cbor(arena, value);
    if (!object) return {};
    return {std::string(object->text_at("apiVersion")), std::string(object->text_at("kind"))};
  }
  const auto text = [&](const std::string& member) {
    const Result<Value> found = codec::decode_json(arena, codec::json_text_at(value, {member}));
    return found && found->is_string() ? std::string(found->as_string()) : std::string();
  };
  return {text("apiVersion"), text("kind")};
}

std::string outdated_version(std::string_view value) {
  const StoredType type = stored_type(value);
  if (kinds::find_stored_version(type.api_version, type.kind) == nullptr) return "";
  return type.api_version + " " + type.kind;
}

}  // namespace holdfast::resource
