// Protobuf as Kubernetes reads and writes it, driven by the catalog's types instead of generated code.
//
// Reading produces the same tree as the JSON of the object: exactly the members that Go would print, in declaration
// order. Writing produces the same bytes as Kubernetes' generated marshallers. Like there, strings are not checked for
// UTF-8. RawExtension and FieldsV1 are Raw leaves that keep their bytes.
//
//   6b 38 73 00                     "k8s\0"
//   0a .. { 0a .. "v1"              runtime.Unknown: 1 typeMeta {1 apiVersion, 2 kind}
//           12 .. "Pod" }
//   12 .. { the object's message }                   2 raw
//   1a 00 22 00                                      3 contentEncoding, 4 contentType: empty
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/error.h"
#include "base/gates.h"
#include "base/limits.h"
#include "codec/fields.h"
#include "codec/message_memo.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::codec {

// An object's kind and apiVersion, which Protobuf stores outside of the object's own message.
struct TypeMeta {
  std::string_view api_version, kind;
};

inline constexpr std::string_view kProtobufMagic{"k8s\0", 4};
// Nesting of messages. The catalog's types nest about fifteen deep; only JSON schemas are recursive.
inline constexpr int kMaxProtobufDepth = limits::kProtobufDepth;

struct ProtobufEnvelope {
  TypeMeta type;
  std::string_view message;  // The object, without its apiVersion and kind.
  std::string_view content_encoding, content_type;
};

inline bool is_protobuf(std::string_view bytes) { return bytes.starts_with(kProtobufMagic); }
Result<ProtobufEnvelope> open_envelope(std::string_view bytes);
// Appends the envelope up to and including the length of the message; the message and the tail must follow.
void write_envelope_head(const TypeMeta& type, size_t message_size, std::string& out);
inline constexpr std::string_view kEnvelopeTail{"\x1a\0\x22\0", 4};

struct ProtobufOptions {
  const Gates* gates = nullptr;  // Holdfast fields whose gate is off are unknown fields. Null if all are off.
};

// Decodes a message of that type. Strings are views into `message`, which must outlive the tree. `meta` becomes the
// root's kind and apiVersion.
Result<Value> decode_protobuf(Arena& arena, const types::Type& type, std::string_view message,
                              const TypeMeta& meta = {}, const ProtobufOptions& options = {});
// Appends the message. `value` is a tree from to_typed or decode_protobuf; values that do not match the type are an
// error.
Result<Unit> encode_protobuf(const types::Type& type, const Value& value, std::string& out);
// The same in an envelope with the root's kind and apiVersion.
Result<Unit> encode_enveloped(const types::Type& type, const Value& value, std::string& out);

// --- Bytes to bytes, without a tree. Each appends to `out`, and leaves it unchanged on error. ---

struct RenderAdditions {
  // A list, as compact JSON or as a CBOR item, to write as the last member of the object's metadata, which must have no
  // managedFields of its own.
  std::string_view managed_fields = {};
  // For many objects in one format and shape, with the same options. Null to disable caching.
  MessageMemo* memo = nullptr;
};
Result<Unit> protobuf_to_json(const types::Type& type, std::string_view message, const TypeMeta& meta,
                              const Shape& shape, std::string& out, const ProtobufOptions& options = {},
                              const RenderAdditions& additions = {});

// A single item, without the self-described tag.
Result<Unit> protobuf_to_cbor(const types::Type& type, std::string_view message, const TypeMeta& meta,
                              const Shape& shape, std::string& out, const ProtobufOptions& options = {},
                              const RenderAdditions& additions = {});

// Replaces parts of an object's metadata. Everything else is copied unchanged, apart from the enclosing lengths.
struct MetadataChange {
  bool drop_managed_fields = false;
  // Encoded entries to insert in their place, each with the tag of ObjectMeta's field 17; may be empty.
  std::string_view managed_fields = {};
  // The new resourceVersion; stored objects have an empty one. If not set, it is unchanged.
  std::optional<std::string_view> resource_version = {};
  // Write only the metadata: the message of a PartialObjectMetadata.
  bool metadata_only = false;
};
Result<Unit> change_metadata(std::string_view message, const MetadataChange& request, std::string& out);
// The same for an object in its envelope.
Result<Unit> change_enveloped_metadata(std::string_view enveloped, const MetadataChange& request, std::string& out);

// A message without the fields at those paths, wherever they occur.
Result<Unit> drop_protobuf_fields(const types::Type& type, std::string_view message, const FieldPaths& paths,
                                  std::string& out);

}  // namespace holdfast::codec
