// Protobuf as Kubernetes reads and writes it, driven by the catalog's types: no generated code.
//
// Reading gives the tree that the JSON of the same object would give: members in declaration order, exactly those that
// Go would print. Writing gives the bytes that Kubernetes' generated marshallers give. Strings are not checked for
// UTF-8 (neither are Kubernetes'). RawExtension and FieldsV1 are Raw leaves that keep their bytes.
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

// What an object says it is. Protobuf has it outside of the object's own message.
struct TypeMeta {
  std::string_view api_version, kind;
};

inline constexpr std::string_view kProtobufMagic{"k8s\0", 4};
// Messages inside messages. The catalog's types nest about fifteen deep; only JSON schemas recurse.
inline constexpr int kMaxProtobufDepth = limits::kProtobufDepth;

struct ProtobufEnvelope {
  TypeMeta type;
  std::string_view message;  // The object, without its apiVersion and kind.
  std::string_view content_encoding, content_type;
};

inline bool is_protobuf(std::string_view bytes) { return bytes.starts_with(kProtobufMagic); }
Result<ProtobufEnvelope> open_envelope(std::string_view bytes);
// Appends the envelope up to and including the length of the message, which must follow, and then the tail.
void write_envelope_head(const TypeMeta& type, size_t message_size, std::string& out);
inline constexpr std::string_view kEnvelopeTail{"\x1a\0\x22\0", 4};

struct ProtobufOptions {
  const Gates* gates = nullptr;  // Fields of ours whose gate is off are unknown fields. Null: all are off.
};

// One message of that type. Strings are views into `message`, which must outlive the tree. `meta` becomes the root's
// kind and apiVersion.
Result<Value> decode_protobuf(Arena& arena, const types::Type& type, std::string_view message,
                              const TypeMeta& meta = {}, const ProtobufOptions& options = {});
// Appends the message. `value` is a tree as to_typed or decode_protobuf give it; what is not of its type is an error.
Result<Unit> encode_protobuf(const types::Type& type, const Value& value, std::string& out);
// The same in its envelope, with the root's own kind and apiVersion.
Result<Unit> encode_enveloped(const types::Type& type, const Value& value, std::string& out);

// --- bytes -> bytes, no tree in between. Each appends to `out`, and leaves it as it was on error. ---

struct RenderAdditions {
  // A list, as compact JSON or as a CBOR item, to show as the last member of the object's metadata, which must have
  // none of its own.
  std::string_view managed_fields = {};
  // For many objects in one format and shape, with the same options. Null: nothing is remembered.
  MessageMemo* memo = nullptr;
};
Result<Unit> protobuf_to_json(const types::Type& type, std::string_view message, const TypeMeta& meta,
                              const Shape& shape, std::string& out, const ProtobufOptions& options = {},
                              const RenderAdditions& additions = {});

// One item, without the self-described tag.
Result<Unit> protobuf_to_cbor(const types::Type& type, std::string_view message, const TypeMeta& meta,
                              const Shape& shape, std::string& out, const ProtobufOptions& options = {},
                              const RenderAdditions& additions = {});

// An object's bytes with other metadata. Everything else is copied unchanged; only the lengths around it change.
struct MetadataChange {
  bool drop_managed_fields = false;
  // Entries to put in their place, encoded: each with the tag of ObjectMeta's field 17. Empty: none.
  std::string_view managed_fields = {};
  // Replaces it; empty text is what the store holds. Nothing: it stays.
  std::optional<std::string_view> resource_version = {};
  // Nothing but the metadata: the message of a PartialObjectMetadata.
  bool metadata_only = false;
};
Result<Unit> change_metadata(std::string_view message, const MetadataChange& request, std::string& out);
// The same for an object in its envelope.
Result<Unit> change_enveloped_metadata(std::string_view enveloped, const MetadataChange& request, std::string& out);

// A message without the fields at those paths, wherever they are.
Result<Unit> drop_protobuf_fields(const types::Type& type, std::string_view message, const FieldPaths& paths,
                                  std::string& out);

}  // namespace holdfast::codec
