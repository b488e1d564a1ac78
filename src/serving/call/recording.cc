// Collects audit data from requests and responses.
#include "call/call.h"

#include "codec/codec.h"
#include "render/status.h"

namespace holdfast::call {
namespace {

// Converts a body in any encoding to compact JSON; empty if it cannot be converted.
std::string json_of(request::Format format, std::string_view bytes, const types::Type* type) {
  Arena arena;
  Result<Value> tree = Value::null();
  switch (format) {
    case request::Format::Json:
      tree = codec::decode_json(arena, bytes);
      break;
    case request::Format::Yaml:
      tree = codec::decode_yaml(arena, bytes);
      break;
    case request::Format::Cbor:
      tree = codec::decode_cbor(arena, bytes);
      break;
    case request::Format::Protobuf: {
      Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(bytes);
      if (!envelope || type == nullptr) return "";
      tree = codec::decode_protobuf(arena, *type, envelope->message, envelope->type);
      break;
    }
  }
  return tree ? codec::encode_json(*tree) : "";
}

std::string joined(const net::Body& body) {
  std::string bytes;
  bytes.reserve(body.bytes());
  for (const net::Bytes& part : body.parts()) bytes += part.view;
  return bytes;
}

}  // namespace

void record_request(Call& call, const Value& object) {
  Recording* recording = call.recording;
  if (recording == nullptr || !object.is_map()) return;
  recording->ns = object.text_at("metadata", "namespace");
  recording->name = object.text_at("metadata", "name");
  recording->uid = object.text_at("metadata", "uid");
  recording->resource_version = object.text_at("metadata", "resourceVersion");
  if (recording->wants_request) recording->request = codec::encode_json(object);
}

void record_request(Call& call, request::Format format, std::string_view bytes) {
  if (call.recording == nullptr || !call.recording->wants_request || bytes.empty()) return;
  call.recording->request = json_of(format, bytes, nullptr);
}

std::optional<render::View> recorded_view(const Call& call) {
  if (call.recording == nullptr || !call.recording->wants_response) return std::nullopt;
  render::View view = call.view;
  view.accepted.format = request::Format::Json;
  view.accepted.pretty = false;
  view.accepted.ownership = request::Ownership::AsIs;
  view.accepted.drop_paths.clear();
  view.drop = {};
  return view;
}

void record_response(Call& call, const Result<std::string>& json) {
  if (!json || !call.recording->response.empty()) return;
  std::string_view text = *json;
  while (text.ends_with('\n')) text.remove_suffix(1);  // Audit events are one line each.
  call.recording->response = text;
}

void record_response(Call& call, std::string_view content_type, const net::Body& body) {
  if (call.recording == nullptr || !call.recording->wants_response || !call.recording->response.empty()) return;
  const types::Type* type = call.served == nullptr ? nullptr : call.served->resource->type;
  for (const request::Format format :
       {request::Format::Json, request::Format::Yaml, request::Format::Cbor, request::Format::Protobuf}) {
    if (content_type == media_type(format)) call.recording->response = json_of(format, joined(body), type);
  }
}

void record_status(Call& call, const Value& status) {
  if (call.recording == nullptr) return;
  call.recording->status = codec::encode_json(status);
  if (call.recording->wants_response) call.recording->response = call.recording->status;
}

void record_error(Call& call, const Error& error) {
  if (call.recording == nullptr) return;
  Arena arena;
  record_status(call, render::status_of(arena, error));
}

void record_annotation(Call& call, std::string key, std::string value) {
  if (call.recording != nullptr) call.recording->annotations.emplace(std::move(key), std::move(value));
}

}  // namespace holdfast::call
