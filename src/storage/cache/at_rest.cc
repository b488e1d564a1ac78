// How objects are stored in the embedded store: kube-apiserver's bytes with two differences (an etcd contains exactly
// what kube-apiserver would have written).
//
//   * managedFields that are field sets use FieldsV2: a quarter of the bytes. In JSON (custom resources), where it is
//     base64, only if that is shorter.
//   * The envelope's contentType, otherwise empty, contains a mark: "this object is in normal form" (defaults
//     applied, storage version, encoded as this program encodes it), and the values of the selectable fields. A value
//     with the mark enters the cache by copying; a value without it, or with a mark of another normal form, is decoded
//     and normalised like anything read from etcd.
#include <cassert>
#include <charconv>

#include "base/base64.h"
#include "base/varint.h"
#include "cache/cache.h"
#include "codec/codec.h"
#include "ownership/ownership.h"

namespace holdfast::cache {
namespace {

using ownership::ManagedEntry;

// A program with another catalog or other defaults has another normal form: only our own marks are trusted.
constexpr std::string_view kMark = "holdfast/" HOLDFAST_NORMAL_FORM;
constexpr std::string_view kAnyMark = "holdfast/";
constexpr std::string_view kEmptyContentType{"\x22\0", 2};

std::string mark_for(std::span<const std::string_view> fields) {
  std::string mark(kMark);
  mark += '\0';
  for (std::string_view field : fields) {
    put_varint(mark, field.size());
    mark += field;
  }
  return mark;
}

// Extracts the fields after our own mark; false for any other mark.
bool read_mark(std::string_view mark, std::vector<std::string_view>& fields) {
  if (!mark.starts_with(kMark) || mark.size() == kMark.size() || mark[kMark.size()] != '\0') return false;
  ByteReader reader(mark.substr(kMark.size() + 1));
  while (reader.ok() && !reader.rest().empty()) fields.push_back(reader.bytes(reader.varint()));
  return reader.ok();
}

std::pair<std::string_view, std::string_view> type_of(std::string_view enveloped) {
  Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(enveloped);
  if (!envelope) return {};
  return {envelope->type.api_version, envelope->type.kind};
}

void enclose(const codec::TypeMeta& type, std::string_view message, std::string& out) {
  out.reserve(message.size() + 64);
  codec::write_envelope_head(type, message.size(), out);
  out += message;
  out += codec::kEnvelopeTail;
}

class EmbeddedCodec final : public Codec {
 public:
  EmbeddedCodec(std::shared_ptr<const Codec> inner, AtRestOptions options)
      : inner_(std::move(inner)), options_(options) {}

  Result<Decoded> decode(std::string_view key, std::string_view stored, Revision revision) const override {
    if (!codec::is_protobuf(stored)) return inner_->decode(key, stored, revision);
    Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(stored);
    if (envelope && envelope->content_type.starts_with(kAnyMark)) {
      Decoded decoded;
      if (copy(*envelope, revision, decoded)) return decoded;
    }
    return decode_plain(key, stored, revision);
  }

  Result<std::string> encode(std::string_view body, std::span<const ManagedEntry> managed) const override {
    if (!codec::is_protobuf(body)) return with_compact_owners(body, managed);
    // The body is in normal form if decoding returns it unchanged; managedFields do not matter for that.
    Result<std::string> bare = inner_->encode(body, {});
    if (!bare || !codec::is_protobuf(*bare)) return inner_->encode(body, managed);
    Result<Decoded> back = inner_->decode("", *bare, Revision{1});
    if (!back || back->body != inner_->with_revision(body, Revision{1})) return with_compact_owners(body, managed);
    return marked(body, managed, back->fields);
  }

  Result<std::string> encode_normal(std::string_view body, std::span<const ManagedEntry> managed,
                                    std::span<const std::string_view> fields) const override {
    Result<std::string> value = marked(body, managed, fields);
#ifdef HOLDFAST_CHECK_NORMAL_FORM
    // Costs as much as the rest of a write, so only debug and sanitizer builds check it.
    assert(!value || *value == *encode(body, managed));
#endif
    return value;
  }

  std::string with_revision(std::string_view body, Revision revision) const override {
    return inner_->with_revision(body, revision);
  }
  ownership::MemberOrder member_order() const override { return inner_->member_order(); }
  std::span<const std::string_view> field_names() const override { return inner_->field_names(); }
  std::span<const uint16_t> indexed_fields() const override { return inner_->indexed_fields(); }

 private:
  Result<std::string> with_compact_owners(std::string_view body, std::span<const ManagedEntry> managed) const {
    if (!options_.fields_v2) return inner_->encode(body, managed);
    Arena arena;
    std::vector<ManagedEntry> entries(managed.begin(), managed.end());
    const bool json = !codec::is_protobuf(body);
    for (ManagedEntry& entry : entries) to_fields_v2(arena, entry, json);
    return inner_->encode(body, entries);
  }

  Result<std::string> marked(std::string_view body, std::span<const ManagedEntry> managed,
                             std::span<const std::string_view> fields) const {
    Result<std::string> value = with_compact_owners(body, managed);
    // Copying keeps the envelope: if the stored envelope has another version than the body, the value cannot be copied.
    if (!value || !value->ends_with(kEmptyContentType) || type_of(*value) != type_of(body)) return value;
    const std::string mark = mark_for(fields);
    value->pop_back();
    put_varint(*value, mark.size());
    *value += mark;
    return value;
  }

  // Converts to Kubernetes' format for the inner codec, which knows only that.
  Result<Decoded> decode_plain(std::string_view key, std::string_view stored, Revision revision) const {
    Result<std::string> plain = kubernetes_value(stored);
    if (!plain) return internal_error("stored object " + std::string(key) + ": " + plain.error().message);
    auto memory = std::make_shared<std::pair<std::string, std::shared_ptr<void>>>(std::move(*plain), nullptr);
    Result<Decoded> decoded = inner_->decode(key, memory->first, revision);
    if (!decoded) return decoded;
    // Views may point into the decoded bytes.
    memory->second = std::move(decoded->memory);
    decoded->memory = std::move(memory);
    return decoded;
  }

  // Turns a value in normal form into an entry without decoding it. False if it is not in normal form after all.
  bool copy(const codec::ProtobufEnvelope& envelope, Revision revision, Decoded& decoded) const {
    if (!read_mark(envelope.content_type, decoded.fields) || decoded.fields.size() != field_names().size())
      return false;
    Result<codec::ObjectMetaMessage> meta = codec::read_object_meta(envelope.message);
    if (!meta) return false;
    thread_local std::string message;
    message.clear();
    char digits[20];
    const auto end = std::to_chars(digits, digits + sizeof(digits), revision.value).ptr;
    const codec::MetadataChange change{.drop_managed_fields = true,
                                       .resource_version = std::string_view(digits, static_cast<size_t>(end - digits))};
    if (!codec::change_metadata(envelope.message, change, message)) return false;
    enclose(envelope.type, message, decoded.body);
    decoded.uid = meta->uid;
    decoded.labels = std::move(meta->labels);
    decoded.managed.reserve(meta->managed_fields.size());
    for (const codec::ManagedFieldsMessage& entry : meta->managed_fields) {
      decoded.managed.push_back(ownership::to_entry(entry));
    }
    return true;
  }

  void to_fields_v2(Arena& arena, ManagedEntry& entry, bool json) const {
    if (entry.fields_type != ownership::kFieldsV1 || !entry.fields) return;
    std::optional<ownership::FieldSet> set = entry.set;
    if (!set) set = ownership::lossless_set(arena, *entry.fields, member_order());
    if (!set) return;
    const std::string bytes = ownership::to_fields_v2(*set);
    if (json && base64_size(bytes.size()) >= entry.fields->size()) return;
    entry.fields = arena.copy(std::string_view(bytes));
    entry.fields_type = ownership::kFieldsV2;
  }

  const std::shared_ptr<const Codec> inner_;
  const AtRestOptions options_;
};

}  // namespace

std::shared_ptr<const Codec> embedded_codec(std::shared_ptr<const Codec> inner, AtRestOptions options) {
  return std::make_shared<EmbeddedCodec>(std::move(inner), options);
}

namespace {

// A custom resource, or anything else that is not Protobuf.
Result<std::string> kubernetes_json(std::string_view embedded) {
  if (embedded.find("\"FieldsV2\"") == std::string_view::npos) return std::string(embedded);
  Arena arena;
  Result<Value> object = codec::decode_json(arena, embedded);
  if (!object) return object.take_error();
  const Value* managed = object->get("metadata", "managedFields");
  if (managed == nullptr || !managed->is_list()) return std::string(embedded);
  ListBuilder entries(arena);
  for (const Value& entry : managed->items()) {
    const Value* binary = entry.is_map() ? entry.find("fieldsV2") : nullptr;
    if (binary == nullptr || !binary->is_string() || entry.text_at("fieldsType") != ownership::kFieldsV2) {
      entries.add(entry);
      continue;
    }
    const std::optional<std::string> bytes = base64_decode(binary->as_string());
    if (!bytes) return bad_request("fieldsV2 is not base64");
    Result<ownership::FieldSet> set = ownership::parse_fields_v2(arena, arena.copy(std::string_view(*bytes)));
    if (!set) return set.take_error();
    Value plain = without_member(arena, entry, "fieldsV2");
    plain = with_member(arena, plain, "fieldsType", Value::string(ownership::kFieldsV1));
    const std::string text = ownership::to_fields_v1(*set, ownership::MemberOrder::Bytewise);
    entries.add(with_member(arena, plain, "fieldsV1", Value::raw(arena.copy(std::string_view(text)))));
  }
  const std::string_view path[] = {"metadata", "managedFields"};
  std::string out = codec::encode_json_sorted(with_path(arena, *object, path, entries.build()));
  if (embedded.ends_with('\n')) out += '\n';
  return out;
}

}  // namespace

Result<std::string> kubernetes_value(std::string_view embedded) {
  if (!codec::is_protobuf(embedded)) return kubernetes_json(embedded);
  Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(embedded);
  if (!envelope) return envelope.take_error();
  // Unusual metadata was not written by us, and is left unchanged.
  Result<codec::ObjectMetaMessage> meta = codec::read_object_meta(envelope->message);
  bool binary = false;
  if (meta) {
    for (const codec::ManagedFieldsMessage& entry : meta->managed_fields) binary |= entry.fields_v2.has_value();
  }
  if (!binary && !envelope->content_type.starts_with(kAnyMark)) return std::string(embedded);
  std::string message;
  if (binary) {
    std::string entries;
    for (codec::ManagedFieldsMessage entry : meta->managed_fields) {
      std::string text;
      if (entry.fields_v2 && entry.fields_type == ownership::kFieldsV2) {
        Arena arena;
        Result<ownership::FieldSet> set = ownership::parse_fields_v2(arena, *entry.fields_v2);
        if (!set) return set.take_error();
        text = ownership::to_fields_v1(*set);
        entry.fields_v1 = text;
        entry.fields_v2.reset();
        entry.fields_type = ownership::kFieldsV1;
      }
      codec::append_managed_fields(entry, entries);
    }
    Result<Unit> changed =
        codec::change_metadata(envelope->message, {.drop_managed_fields = true, .managed_fields = entries}, message);
    if (!changed) return changed.take_error();
  } else {
    message = envelope->message;
  }
  std::string out;
  enclose(envelope->type, message, out);
  return out;
}

}  // namespace holdfast::cache
