// For tests and benchmarks of the cache: pods in kube-apiserver's storage format, with a single default.
#pragma once

#include <memory>

#include "cache/cache.h"
#include "codec/codec.h"
#include "ownership/ownership.h"
#include "types/types.h"

namespace holdfast::cache {

class PodCodec : public Codec {
 public:
  Result<Decoded> decode(std::string_view key, std::string_view stored, Revision revision) const override {
    auto arena = std::make_shared<Arena>();
    Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(stored);
    if (!envelope) return internal_error(std::string(key) + ": " + envelope.error().message);
    Result<Value> tree = codec::decode_protobuf(*arena, *pods_.type, envelope->message, envelope->type);
    if (!tree) return internal_error(std::string(key) + ": " + tree.error().message);
    Result<codec::ObjectMetaMessage> meta = codec::read_object_meta(envelope->message);
    if (!meta) return meta.take_error();
    Decoded decoded;
    for (const codec::ManagedFieldsMessage& entry : meta->managed_fields) {
      decoded.managed.push_back(ownership::to_entry(entry));
    }
    Draft draft(*arena, *tree);
    Draft::Node metadata = draft.root().child("metadata");
    metadata.remove("managedFields");
    metadata.set("resourceVersion", Value::string(*arena, std::to_string(revision.value)));
    draft.root().child("spec").set_if_zero("restartPolicy", Value::string("Always"));
    const Value pod = draft.value();
    Result<Unit> encoded = codec::encode_enveloped(*pods_.type, pod, decoded.body);
    if (!encoded) return encoded.take_error();
    decoded.uid = meta->uid;
    decoded.labels = meta->labels;
    decoded.fields = {pod.text_at("spec", "nodeName"), pod.text_at("status", "phase"), pod.text_at("status", "podIP")};
    decoded.memory = std::move(arena);
    return decoded;
  }

  Result<std::string> encode(std::string_view body, std::span<const ownership::ManagedEntry> managed) const override {
    std::string entries;
    for (const ownership::ManagedEntry& entry : managed) {
      codec::append_managed_fields(ownership::to_message(entry), entries);
    }
    return changed(body, {.drop_managed_fields = true, .managed_fields = entries, .resource_version = ""});
  }
  std::string with_revision(std::string_view body, Revision revision) const override {
    return changed(body, {.resource_version = std::to_string(revision.value)});
  }
  std::span<const std::string_view> field_names() const override { return kNames; }
  std::span<const uint16_t> indexed_fields() const override { return kIndexed; }

 private:
  static std::string changed(std::string_view body, const codec::MetadataChange& change) {
    std::string out;
    const Result<Unit> done = codec::change_enveloped_metadata(body, change, out);
    assert(done);
    (void)done;
    return out;
  }
  static constexpr std::string_view kNames[] = {"spec.nodeName", "status.phase", "status.podIP"};
  static constexpr uint16_t kIndexed[] = {0};
  const types::Resource& pods_ = *types::find_resource("", "v1", "pods");
};

}  // namespace holdfast::cache
