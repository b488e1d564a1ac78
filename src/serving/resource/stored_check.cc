#include "resource/stored_check.h"

#include <map>
#include <memory>
#include <vector>

#include "codec/codec.h"
#include "ownership/ownership.h"
#include "resource/managed.h"
#include "resource/object_codec.h"

namespace holdfast::resource {
namespace {

struct StoredKind {
  const types::Resource* resource = nullptr;
  std::shared_ptr<const ObjectCodec> codec;
  std::shared_ptr<const cache::Codec> at_rest;
};

// By prefix: "/registry/pods/".
using Kinds = std::map<std::string, StoredKind, std::less<>>;

// The kind of a key, by prefix. No prefix is the beginning of another.
const StoredKind* kind_of(const Kinds& kinds, std::string_view key, std::string_view& below) {
  auto behind = kinds.upper_bound(key);
  if (behind == kinds.begin()) return nullptr;
  const auto& [prefix, kind] = *std::prev(behind);
  if (!key.starts_with(prefix)) return nullptr;
  below = key.substr(prefix.size());
  return &kind;
}

std::optional<std::string> wrong_owners(std::span<const ownership::ManagedEntry> managed) {
  for (const ownership::ManagedEntry& entry : managed) {
    if (!entry.fields) continue;
    Arena arena;
    std::optional<Error> wrong;
    if (entry.fields_type == ownership::kFieldsV2) {
      Result<ownership::FieldSet> set = ownership::parse_fields_v2(arena, *entry.fields);
      if (!set) wrong = set.take_error();
    } else if (entry.fields_type == ownership::kFieldsV1) {
      Result<ownership::FieldSet> set = ownership::parse_fields_v1(arena, *entry.fields);
      if (!set) wrong = set.take_error();
    } else {
      wrong = bad_request("its fieldsType \"" + std::string(entry.fields_type) + "\" is not known");
    }
    if (wrong) return "the fields of manager \"" + std::string(entry.manager) + "\": " + wrong->message;
  }
  return std::nullopt;
}

// `below` is "namespace/name" or "name".
std::optional<std::string> wrong_name(const Value& object, std::string_view below) {
  const std::string_view ns = object.text_at("metadata", "namespace");
  const std::string_view name = object.text_at("metadata", "name");
  std::string named = ns.empty() ? std::string(name) : std::string(ns) + "/" + std::string(name);
  if (named == below) return std::nullopt;
  return "it holds " + (named.empty() ? "an object without a name" : "the object " + named);
}

std::optional<std::string> wrong_builtin(const StoredKind& kind, std::string_view key, std::string_view below,
                                         std::string_view value) {
  Result<cache::Decoded> decoded = kind.at_rest->decode(key, value, Revision{1});
  if (!decoded) return decoded.error().message;
  Arena arena;
  Result<Value> object = kind.codec->tree(arena, decoded->body);
  if (!object) return object.error().message;
  if (std::optional<std::string> wrong = wrong_name(*object, below)) return wrong;
  // A value marked as normal form was copied, not decoded: decoding it must give the same result.
  const Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(value);
  if (envelope && !envelope->content_type.empty()) {
    Result<std::string> plain = cache::kubernetes_value(value);
    if (!plain) return plain.error().message;
    Result<cache::Decoded> normalised = kind.codec->decode(key, *plain, Revision{1});
    if (!normalised) return normalised.error().message;
    if (normalised->body != decoded->body || normalised->fields != decoded->fields) {
      return "it is marked as being in normal form, but is not";
    }
  }
  return wrong_owners(decoded->managed);
}

// Keys of custom resources are GROUP/PLURAL/[NAMESPACE/]NAME; group names contain a dot.
std::optional<std::string> wrong_custom(std::string_view group, std::string_view below, std::string_view value) {
  Arena arena;
  Result<Value> object = value.starts_with(codec::kCborSelfDescribed) ? codec::decode_cbor(arena, value)
                                                                      : codec::decode_json(arena, value);
  if (!object) return object.error().message;
  if (!object->is_map()) return "it is not an object";
  const std::string_view version = object->text_at("apiVersion");
  if (version.substr(0, version.find('/')) != group) {
    return "it is of version \"" + std::string(version) + "\", which is not one of " + std::string(group);
  }
  if (std::optional<std::string> wrong = wrong_name(*object, below)) return wrong;
  return wrong_owners(managed_entries(arena, object->get("metadata", "managedFields")));
}

}  // namespace

StoredCheck make_stored_check(const std::string& registry_prefix) {
  auto kinds = std::make_shared<Kinds>();
  for (const types::Resource& resource : types::builtin_resources()) {
    if (resource.storage_prefix.empty()) continue;
    StoredKind& kind = (*kinds)[registry_prefix + "/" + std::string(resource.storage_prefix) + "/"];
    if (kind.resource != nullptr) continue;
    kind.resource = &resource;
    kind.codec = make_builtin_codec(stored_version(resource), Gates());
    kind.at_rest = cache::embedded_codec(kind.codec, {});
  }
  return [kinds, registry_prefix](std::string_view key, std::string_view value) -> std::optional<std::string> {
    if (value.starts_with("k8s:enc:")) return "it is encrypted (k8s:enc:), and there are no keys to read it";
    std::string_view below;
    if (const StoredKind* kind = kind_of(*kinds, key, below)) return wrong_builtin(*kind, key, below, value);
    if (!key.starts_with(registry_prefix + "/")) return std::nullopt;  // Not a key of the server.
    key.remove_prefix(registry_prefix.size() + 1);
    const size_t slash = key.find('/');
    const std::string_view group = key.substr(0, slash);
    if (slash != std::string_view::npos && group.find('.') != std::string_view::npos) {
      const size_t plural = key.find('/', slash + 1);
      if (plural != std::string_view::npos) return wrong_custom(group, key.substr(plural + 1), value);
    }
    // Internal objects of other API servers (masterleases, ranges).
    if (!codec::is_protobuf(value)) return "it is in an unknown format";
    Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(value);
    if (!envelope) return envelope.error().message;
    return std::nullopt;
  };
}

}  // namespace holdfast::resource
