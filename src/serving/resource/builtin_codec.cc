#include "resource/builtin_codec.h"

#include <atomic>
#include <cassert>

#include "base/api_version.h"
#include "base/limits.h"
#include "codec/codec.h"
#include "crd/crd.h"
#include "discovery/discovery.h"
#include "kinds/kinds.h"
#include "kinds/stored_versions.h"
#include "resource/managed.h"
#include "resource/object_codec.h"
#include "resource/outdated.h"

namespace holdfast::resource {
namespace {

using ownership::ManagedEntry;

class BuiltinCodec final : public ObjectCodec, public OutdatedValues {
 public:
  BuiltinCodec(const types::Resource& stored, const Gates& gates, std::string_view default_family)
      : stored_(stored),
        gates_(gates),
        default_family_(default_family),
        api_version_(api_version_of(stored)),
        written_version_(api_version_of(stored.storage_group, stored.storage_version)),
        is_definition_(stored.group == "apiextensions.k8s.io"),
        is_service_(stored.group.empty() && stored.kind == "Service"),
        selectable_(kinds::selectable_fields(stored)) {}

  const types::Resource& stored() const override { return stored_; }

  Result<cache::Decoded> decode(std::string_view key, std::string_view stored, Revision revision) const override {
    auto arena = std::make_shared<Arena>();
    Result<Value> tree = decode_stored(*arena, stored);
    if (!tree) return internal_error("stored object " + std::string(key) + ": " + tree.error().message);

    cache::Decoded decoded;
    decoded.managed = managed_entries(*arena, tree->get("metadata", "managedFields"));
    Draft draft(*arena, *tree);
    Draft::Node metadata = draft.root().child("metadata");
    metadata.remove("managedFields");
    metadata.remove("options");  // Request options. Earlier versions stored those added by a webhook.
    metadata.set("resourceVersion", Value::string(*arena, std::to_string(revision.value)));
    kinds::set_defaults(*arena, stored_, draft.root());
    if (is_service_) kinds::complete_stored_service(*arena, draft.root(), default_family_);
    const Value object = draft.value();

    Result<Unit> encoded = codec::encode_enveloped(*stored_.type, object, decoded.body);
    if (!encoded) return internal_error("stored object " + std::string(key) + ": " + encoded.error().message);
    decoded.uid = object.text_at("metadata", "uid");
    for (const Member& label : object.members_at("metadata", "labels")) {
      if (label.value.is_string()) decoded.labels.emplace_back(label.key, label.value.as_string());
    }
    decoded.fields = fields_of(*arena, object);
    // The views above also point into the stored bytes, which the caller keeps alive.
    decoded.memory = std::move(arena);
    return decoded;
  }

  Result<std::string> encode(std::string_view body, std::span<const ManagedEntry> managed) const override {
    if (!stored_.stored_as_json) return written(join_managed(body, managed, std::string_view()));
    Arena arena;
    Result<Value> object = tree(arena, body);
    if (!object) return object.take_error();
    const Value stored = stored_form(arena, *object, managed);
    std::string json;
    codec::encode_json(is_definition_ ? crd::stored_definition(arena, stored) : stored, json);
    json += '\n';
    return json;
  }

  std::string with_revision(std::string_view body, Revision revision) const override {
    return replace_revision(body, std::to_string(revision.value));
  }

  std::span<const std::string_view> field_names() const override { return selectable_.names; }
  std::span<const uint16_t> indexed_fields() const override { return kinds::indexed_fields(stored_); }

  Result<Value> tree(Arena& arena, std::string_view body) const override {
    Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(body);
    if (!envelope) return envelope.take_error();
    return codec::decode_protobuf(arena, *stored_.type, envelope->message, {api_version_, stored_.kind},
                                  {.gates = &gates_});
  }

  Result<std::string> body_of(Arena& arena, const Value& tree) const override {
    Value bare = tree;
    if (const Value* metadata = tree.find("metadata"); metadata != nullptr && metadata->has("managedFields")) {
      bare = with_member(arena, tree, "metadata", without_member(arena, *metadata, "managedFields"));
    }
    if (deeper_than(bare, limits::kObjectDepth)) return nested_too_deeply();
    std::string body;
    Result<Unit> encoded = codec::encode_enveloped(*stored_.type, bare, body);
    if (!encoded) return encoded.take_error();
    return body;
  }

  bool is_outdated(std::string_view stored) const override {
    const std::string version = stored_type(stored).api_version;
    return !version.empty() && version != written_version_ && version != api_version_;
  }
  bool has_read_outdated() const override { return read_outdated_.load(std::memory_order_relaxed); }

  std::vector<std::string_view> fields_of(Arena& arena, const Value& tree) const override {
    return kinds::selectable_values(arena, stored_, tree);
  }

 private:
  // Sets the version in the envelope to the one kube-apiserver stores, if ours is another version with the same fields.
  std::string written(std::string value) const {
    if (written_version_ == api_version_) return value;
    Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(value);
    assert(envelope);
    std::string out;
    codec::write_envelope_head({written_version_, stored_.kind}, envelope->message.size(), out);
    out += envelope->message;
    out += codec::kEnvelopeTail;
    return out;
  }

  // Converts JSON, which is untyped, to the types expected by the code below.
  Result<Value> typed(Arena& arena, const types::Type& type, const Value& object) const {
    return codec::to_typed(arena, type, object, {.gates = &gates_});
  }

  // Decodes a stored value: Protobuf as kube-apiserver writes it by default, or JSON; in this version or another.
  Result<Value> decode_stored(Arena& arena, std::string_view stored) const {
    if (stored.starts_with("k8s:enc:")) return internal_error("the value is encrypted at rest, which is not supported");
    if (!codec::is_protobuf(stored)) {
      Result<Value> object = codec::decode_json(arena, stored);
      if (!object) return object;
      const bool has_metadata = object->is_map() && (!object->has("metadata") || object->find("metadata")->is_map());
      if (!has_metadata) return internal_error("it is not an object");
      if (is_definition_) return typed(arena, *stored_.type, crd::served_definition(arena, *object));
      Result<Version> version = version_named(object->text_at("apiVersion"), object->text_at("kind"));
      if (!version) return version.take_error();
      object = typed(arena, *version->type, *object);
      if (!object) return object;
      return in_stored_version(arena, *object, *version);
    }
    Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(stored);
    if (!envelope) return envelope.take_error();
    if (envelope->type.api_version == written_version_) envelope->type.api_version = api_version_;
    Result<Version> version = version_named(envelope->type.api_version, envelope->type.kind);
    if (!version) return version.take_error();
    Result<Value> object =
        codec::decode_protobuf(arena, *version->type, envelope->message, envelope->type, {.gates = &gates_});
    if (!object) return object;
    return in_stored_version(arena, *object, *version);
  }

  // The version of a stored value: a served one, or one that only older servers wrote.
  struct Version {
    const types::Resource* resource;
    const types::Type* type;
    const kinds::StoredVersion* old;  // Null if it is served.
  };
  Result<Version> version_named(std::string_view api_version, std::string_view kind) const {
    if (api_version == api_version_ && kind == stored_.kind) return Version{&stored_, stored_.type, nullptr};
    read_outdated_.store(true, std::memory_order_relaxed);
    const GroupVersion from = split_api_version(api_version);
    const types::Resource* resource = types::find_kind(from.group, from.version, kind);
    if (resource != nullptr && resource->type != nullptr) return Version{resource, resource->type, nullptr};
    const kinds::StoredVersion* old = kind == stored_.kind ? kinds::find_stored_version(api_version, kind) : nullptr;
    if (old != nullptr) return Version{&kinds::served_version(*old), &kinds::type_of(*old), old};
    return internal_error("no kind " + std::string(kind) + " in version " + std::string(api_version));
  }

  Result<Value> in_stored_version(Arena& arena, const Value& object, const Version& version) const {
    const Value current = version.old == nullptr ? object : kinds::upgraded(arena, *version.old, object);
    return kinds::convert(arena, *version.resource, stored_, current);
  }

  const types::Resource& stored_;
  const Gates gates_;
  const std::string default_family_;
  const std::string api_version_;
  const std::string written_version_;  // As stored by kube-apiserver.
  const bool is_definition_, is_service_;
  const kinds::SelectableFields selectable_;
  mutable std::atomic<bool> read_outdated_{false};
};

}  // namespace

std::shared_ptr<const ObjectCodec> make_builtin_codec(const types::Resource& stored, const Gates& gates) {
  return make_builtin_codec(stored, gates, "IPv4");
}

std::shared_ptr<const ObjectCodec> make_builtin_codec(const types::Resource& stored, const Gates& gates,
                                                      std::string_view default_family) {
  return std::make_shared<BuiltinCodec>(stored, gates, default_family);
}

const types::Resource& stored_version(const types::Resource& resource) {
  const types::Resource* stored = types::find_kind(resource.storage_group, resource.storage_version, resource.kind);
  if (stored != nullptr && discovery::is_stable(stored->version)) return *stored;
  // Most requests use the stable version, so objects are kept in its form; the stored version has the same fields, and
  // only the envelope in the store names it.
  for (const types::Resource& other : types::builtin_resources()) {
    if (other.storage_prefix == resource.storage_prefix && discovery::is_stable(other.version)) return other;
  }
  return resource;
}

Error nested_too_deeply() {
  return bad_request("the object is nested more than " + std::to_string(limits::kObjectDepth) + " levels deep");
}

std::string replace_revision(std::string_view enveloped, std::string_view revision) {
  std::string out;
  out.reserve(enveloped.size() + revision.size() + 8);
  Result<Unit> changed = codec::change_enveloped_metadata(enveloped, {.resource_version = revision}, out);
  assert(changed.ok());
  return out;
}

}  // namespace holdfast::resource
