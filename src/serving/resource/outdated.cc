#include "resource/outdated.h"

#include "codec/codec.h"
#include "kinds/stored_versions.h"

namespace holdfast::resource {

std::string outdated_version(std::string_view value) {
  Arena arena;
  std::string_view api_version, kind;
  if (codec::is_protobuf(value)) {
    const Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(value);
    if (!envelope) return "";
    api_version = envelope->type.api_version;
    kind = envelope->type.kind;
  } else {
    const auto text = [&](const std::string& member) -> std::string_view {
      Result<Value> found = codec::decode_json(arena, codec::json_text_at(value, {member}));
      return found && found->is_string() ? found->as_string() : std::string_view();
    };
    api_version = text("apiVersion");
    kind = text("kind");
  }
  if (kinds::find_stored_version(api_version, kind) == nullptr) return "";
  return std::string(api_version) + " " + std::string(kind);
}

}  // namespace holdfast::resource
