// Protobuf to Protobuf: replaces an object's metadata or drops fields, copying bytes rather than re-encoding.
#include <optional>
#include <vector>

#include "base/varint.h"
#include "codec/protobuf.h"
#include "codec/protobuf_wire.h"

namespace holdfast::codec {
namespace {

using types::Field;
using types::Type;
using Kind = types::Shape;

// Field numbers in every kind's message and in ObjectMeta. They never change.
constexpr uint64_t kMetadata = 1, kResourceVersion = 6, kManagedFields = 17;

Error broken(std::string_view message, const char* at) {
  return bad_request("unexpected EOF at byte " + std::to_string(at - message.data()));
}

// The pieces of the new metadata, in order.
struct Metadata {
  std::vector<std::string_view> pieces;
  size_t size = 0;
  std::string revision;  // Its tag, length and text.

  void add(std::string_view piece) {
    if (piece.empty()) return;
    pieces.push_back(piece);
    size += piece.size();
  }
  // Extends the previous piece if this one follows it directly in memory.
  void add_adjoining(std::string_view piece) {
    if (!pieces.empty() && pieces.back().data() + pieces.back().size() == piece.data()) {
      pieces.back() = {pieces.back().data(), pieces.back().size() + piece.size()};
      size += piece.size();
    } else {
      add(piece);
    }
  }
};

Result<Unit> change(std::string_view metadata, const MetadataChange& change, Metadata& out) {
  out.pieces.reserve(8);
  const bool replaces_managed = change.drop_managed_fields || !change.managed_fields.empty();
  bool revision_due = change.resource_version.has_value();
  bool managed_due = !change.managed_fields.empty();
  if (revision_due) {
    out.revision = static_cast<char>(kResourceVersion << 3 | wire::kBytes);
    put_varint(out.revision, change.resource_version->size());
    out.revision += *change.resource_version;
  }
  const char* p = metadata.data();
  const char* const end = p + metadata.size();
  while (p != end) {
    const char* const from = p;
    uint64_t tag = 0;
    p = wire::read_varint(p, end, tag);
    if (p == nullptr) return broken(metadata, from);
    p = wire::skip_value(p, end, tag);
    if (p == nullptr) return broken(metadata, from);
    const uint64_t number = tag >> 3;
    if (revision_due && number >= kResourceVersion) {
      out.add(out.revision);
      revision_due = false;
    }
    if (managed_due && number >= kManagedFields) {
      out.add(change.managed_fields);
      managed_due = false;
    }
    if (number == kResourceVersion && change.resource_version) continue;
    if (number == kManagedFields && replaces_managed) continue;
    out.add_adjoining({from, static_cast<size_t>(p - from)});
  }
  if (revision_due) out.add(out.revision);
  if (managed_due) out.add(change.managed_fields);
  return Unit{};
}

// An object with changed metadata, ready to be written. Metadata comes first; everything after it is unchanged.
struct Changed {
  Changed() = default;
  Changed(const Changed&) = delete;  // Its pieces point into it.

  Metadata metadata;
  std::string_view behind;

  size_t size() const { return 1 + varint_size(metadata.size) + metadata.size + behind.size(); }
  void write(std::string& out) const {
    out += static_cast<char>(kMetadata << 3 | wire::kBytes);
    put_varint(out, metadata.size);
    for (std::string_view piece : metadata.pieces) out += piece;
    out += behind;
  }
};

Result<Unit> decode_metadata(std::string_view message, const MetadataChange& request, Changed& object) {
  const char* p = message.data();
  const char* const end = p + message.size();
  std::optional<std::string_view> metadata;
  while (p != end) {
    const char* const from = p;
    uint64_t tag = 0;
    p = wire::read_varint(p, end, tag);
    if (p == nullptr) return broken(message, from);
    if (tag != (kMetadata << 3 | wire::kBytes)) {
      // Fields are in the order of their numbers: no metadata can follow.
      if (tag >> 3 > kMetadata) {
        p = from;
        break;
      }
      return bad_request("the object has no metadata");
    }
    std::string_view bytes;
    p = wire::read_bytes(p, end, bytes);
    if (p == nullptr) return broken(message, from);
    if (metadata) return bad_request("the object's metadata is given in pieces");
    metadata = bytes;
  }
  if (!request.metadata_only) object.behind = {p, static_cast<size_t>(end - p)};
  return change(metadata.value_or(std::string_view()), request, object.metadata);
}

class Dropper {
 public:
  Dropper(const FieldPaths& paths) : paths_(paths) {}

  bool message(const Type& type, std::string_view bytes, FieldPaths::Node node, std::string& out, int depth) {
    if (depth > kMaxProtobufDepth) return false;
    const char* p = bytes.data();
    const char* const end = p + bytes.size();
    const char* kept = p;  // Start of the bytes not copied yet.
    while (p != end) {
      const char* const from = p;
      uint64_t tag = 0;
      p = wire::read_varint(p, end, tag);
      if (p == nullptr) return false;
      const char* const value = p;
      p = wire::skip_value(p, end, tag);
      if (p == nullptr) return false;
      const uint64_t number = tag >> 3;
      const size_t position = number < type.field_at_number.size() ? type.field_at_number[number] : 0;
      if (position == 0) continue;
      const Field& field = type.fields[position - 1];
      const FieldPaths::Node below = field.inlined ? node : paths_.child(node, field.name);
      if (below == FieldPaths::kNone) continue;
      const bool dropped = !field.inlined && paths_.ends_at(below);
      const Type* inner = inner_type(*field.type);
      if (!dropped && (inner == nullptr || (tag & 7) != wire::kBytes)) continue;
      out.append(kept, from);
      kept = p;
      if (dropped) continue;
      std::string_view content;
      wire::read_bytes(value, end, content);
      std::string changed;
      const bool ok = field.type->shape == Kind::Map ? entry(*inner, content, below, changed, depth)
                                                     : message(*inner, content, below, changed, depth + 1);
      if (!ok) return false;
      if (changed.empty() && !content.empty() && field.type->shape == Kind::Map) continue;  // The entry was dropped.
      out.append(from, value);
      put_varint(out, changed.size());
      out += changed;
    }
    out.append(kept, end);
    return true;
  }

 private:
  // The message type to descend into, or null.
  static const Type* inner_type(const Type& type) {
    const bool holds = type.shape == Kind::Map || (type.shape == Kind::List && !type.wrapped);
    const Type* inner = holds ? type.element : &type;
    if (type.shape == Kind::Map) return inner;
    return inner->shape == Kind::Struct ? inner : nullptr;
  }

  // A map entry: dropped if its key is, otherwise its value is processed.
  bool entry(const Type& element, std::string_view bytes, FieldPaths::Node node, std::string& out, int depth) {
    std::string_view key, value;
    const char* const bad = wire::each_field(bytes, [&](uint64_t tag, const char* p, const char* end) {
      if (tag == (1 << 3 | wire::kBytes)) return wire::read_bytes(p, end, key);
      if (tag == (2 << 3 | wire::kBytes)) return wire::read_bytes(p, end, value);
      return wire::skip_value(p, end, tag);
    });
    if (bad != nullptr) return false;
    const FieldPaths::Node below = paths_.child(node, key);
    if (below >= 0 && paths_.ends_at(below)) return true;
    if (below == FieldPaths::kNone || element.shape != Kind::Struct) {
      out += bytes;
      return true;
    }
    std::string changed;
    if (!message(element, value, below, changed, depth + 1)) return false;
    out += '\x0a';
    put_varint(out, key.size());
    out += key;
    out += '\x12';
    put_varint(out, changed.size());
    out += changed;
    return true;
  }

  const FieldPaths& paths_;
};

}  // namespace

Result<Unit> change_metadata(std::string_view message, const MetadataChange& request, std::string& out) {
  Changed object;
  Result<Unit> done = decode_metadata(message, request, object);
  if (!done) return done;
  out.reserve(out.size() + object.size());
  object.write(out);
  return Unit{};
}

Result<Unit> change_enveloped_metadata(std::string_view enveloped, const MetadataChange& request, std::string& out) {
  Result<ProtobufEnvelope> envelope = open_envelope(enveloped);
  if (!envelope) return envelope.take_error();
  Changed object;
  Result<Unit> done = decode_metadata(envelope->message, request, object);
  if (!done) return done;
  constexpr size_t kAround = 64;
  const TypeMeta type = request.metadata_only ? TypeMeta{"meta.k8s.io/v1", "PartialObjectMetadata"} : envelope->type;
  out.reserve(out.size() + object.size() + type.api_version.size() + type.kind.size() + kAround);
  write_envelope_head(type, object.size(), out);
  object.write(out);
  out += kEnvelopeTail;
  return Unit{};
}

Result<Unit> drop_protobuf_fields(const types::Type& type, std::string_view message, const FieldPaths& paths,
                                  std::string& out) {
  const size_t before = out.size();
  if (Dropper(paths).message(type, message, FieldPaths::kRoot, out, 0)) return Unit{};
  out.resize(before);
  return bad_request("the message is broken");
}

}  // namespace holdfast::codec
