// Decoding of responses: objects and errors.
#include <algorithm>
#include <utility>

#include "base/api_version.h"
#include "base/varint.h"
#include "client/core.h"

namespace holdfast::client {

namespace {

constexpr std::pair<std::string_view, Reason> kReasons[] = {
    {"BadRequest", Reason::BadRequest},
    {"Unauthorized", Reason::Unauthorized},
    {"Forbidden", Reason::Forbidden},
    {"NotFound", Reason::NotFound},
    {"AlreadyExists", Reason::AlreadyExists},
    {"Conflict", Reason::Conflict},
    {"Gone", Reason::Gone},
    {"Expired", Reason::Expired},
    {"Invalid", Reason::Invalid},
    {"ServerTimeout", Reason::ServerTimeout},
    {"Timeout", Reason::Timeout},
    {"TooManyRequests", Reason::TooManyRequests},
    {"MethodNotAllowed", Reason::MethodNotAllowed},
    {"NotAcceptable", Reason::NotAcceptable},
    {"RequestEntityTooLarge", Reason::RequestEntityTooLarge},
    {"UnsupportedMediaType", Reason::UnsupportedMediaType},
    {"ServiceUnavailable", Reason::ServiceUnavailable},
    {"InternalError", Reason::InternalError},
};

constexpr std::pair<int, Reason> kCodes[] = {
    {400, Reason::BadRequest},
    {401, Reason::Unauthorized},
    {403, Reason::Forbidden},
    {404, Reason::NotFound},
    {405, Reason::MethodNotAllowed},
    {406, Reason::NotAcceptable},
    {409, Reason::Conflict},
    {410, Reason::Gone},
    {413, Reason::RequestEntityTooLarge},
    {415, Reason::UnsupportedMediaType},
    {422, Reason::Invalid},
    {429, Reason::TooManyRequests},
    {500, Reason::InternalError},
    {503, Reason::ServiceUnavailable},
    {504, Reason::Timeout},
};

Reason reason_of_code(int code) {
  for (const auto& [known, reason] : kCodes) {
    if (known == code) return reason;
  }
  return Reason::Unknown;
}

Value without(Arena& arena, const Value& fresh, const codec::FieldPaths& paths, codec::FieldPaths::Node node) {
  if (fresh.is_list()) {
    auto* items = const_cast<Value*>(fresh.items().data());
    for (size_t i = 0; i < fresh.items().size(); ++i) items[i] = without(arena, items[i], paths, node);
    return fresh;
  }
  if (!fresh.is_map()) return fresh;
  auto* members = const_cast<Member*>(fresh.members().data());
  size_t kept = 0;
  for (size_t i = 0; i < fresh.members().size(); ++i) {
    const codec::FieldPaths::Node below = paths.child(node, members[i].key);
    if (below != codec::FieldPaths::kNone && paths.ends_at(below)) continue;
    Member member = members[i];
    if (below != codec::FieldPaths::kNone) member.value = without(arena, member.value, paths, below);
    members[kept++] = member;
  }
  return kept == fresh.members().size() ? fresh : Value::map(arena, std::span<const Member>(members, kept));
}

bool has_any_below(const Value& value, const codec::FieldPaths& paths, codec::FieldPaths::Node node) {
  if (value.is_list()) {
    return std::any_of(value.items().begin(), value.items().end(),
                       [&](const Value& item) { return has_any_below(item, paths, node); });
  }
  if (!value.is_map()) return false;
  for (const Member& member : value.members()) {
    const codec::FieldPaths::Node below = paths.child(node, member.key);
    if (below == codec::FieldPaths::kNone) continue;
    if (paths.ends_at(below) || has_any_below(member.value, paths, below)) return true;
  }
  return false;
}

// Whether the message has managedFields: in its metadata, or in that of its items.
bool has_managed_fields(std::string_view message, Answered answered) {
  constexpr uint64_t kMetadata = 1, kItems = 2, kManaged = 17;
  bool found = false;
  const auto each_field = [](std::string_view bytes, uint64_t number, const auto& visit) {
    ByteReader reader(bytes);
    while (reader.ok() && !reader.rest().empty()) {
      const uint64_t tag = reader.varint();
      if ((tag & 7) == 0) {
        reader.varint();
      } else if ((tag & 7) == 2) {
        const std::string_view inner = reader.bytes(reader.varint());
        if (reader.ok() && tag >> 3 == number) visit(inner);
      } else {
        return;
      }
    }
  };
  const auto look = [&](std::string_view object) {
    each_field(object, kMetadata, [&](std::string_view metadata) {
      each_field(metadata, kManaged, [&](std::string_view) { found = true; });
    });
  };
  if (answered == Answered::List) {
    each_field(message, kItems, look);
  } else {
    look(message);
  }
  return found;
}

// A tree of its own memory: what it was decoded from can be freed.
codec::Document copy_of(const Value& root) {
  codec::Document document;
  document.set_root(deep_copy(document.arena(), root));
  return document;
}

}  // namespace

bool has_any(const Value& value, const codec::FieldPaths& paths) {
  return has_any_below(value, paths, codec::FieldPaths::kRoot);
}

Value without_fields(Arena& arena, const Value& fresh, const codec::FieldPaths& paths) {
  return without(arena, fresh, paths, codec::FieldPaths::kRoot);
}

Encoding encoding_of(std::string_view content_type) {
  if (content_type.starts_with("application/vnd.kubernetes.protobuf")) return Encoding::Protobuf;
  if (content_type.starts_with("application/cbor")) return Encoding::Cbor;
  return Encoding::Json;
}

Result<Object> decode_answer(Encoding encoding, std::string bytes, const Drops& drops, Answered answered) {
  codec::Document document(std::move(bytes));
  Result<Value> root = Value();
  const codec::FieldPaths* paths = answered == Answered::List ? &drops.list : &drops.object;
  if (encoding == Encoding::Protobuf) {
    Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(document.source());
    if (!envelope) return envelope.take_error();
    const std::string_view api_version = envelope->type.api_version;
    const auto [group, version] = split_api_version(api_version);
    const types::Type* type = types::find_type_of(group, version, envelope->type.kind);
    if (type == nullptr) {
      return bad_request("the server sent Protobuf of an unknown kind: " + std::string(api_version) + " " +
                         std::string(envelope->type.kind));
    }
    static const Gates kAll;
    std::string kept;
    if (drops.only_ownership() ? has_managed_fields(envelope->message, answered) : !drops.empty()) {
      Result<Unit> done = codec::drop_protobuf_fields(*type, envelope->message, *paths, kept);
      if (!done) return done.take_error();
    }
    if (kept.empty() || kept.size() == envelope->message.size()) {
      root = codec::decode_protobuf(document.arena(), *type, envelope->message, envelope->type, {.gates = &kAll});
    } else {
      codec::Document rest(std::move(kept));
      const codec::TypeMeta meta{rest.arena().copy(api_version), rest.arena().copy(envelope->type.kind)};
      root = codec::decode_protobuf(rest.arena(), *type, rest.source(), meta, {.gates = &kAll});
      document = std::move(rest);
    }
    if (!root) return root.take_error();
    document.set_root(*root);
    return Object(std::move(document), drops.empty() ? nullptr : drops.fields);
  }
  if (encoding == Encoding::Cbor) {
    root = codec::decode_cbor(document.arena(), document.source());
  } else {
    // Dropped fields remain text.
    root = codec::decode_json(document.arena(), document.source(),
                              {.raw = answered == Answered::Table || drops.empty() ? nullptr : paths});
  }
  if (!root) return root.take_error();
  if (answered == Answered::Table) {
    // A server without Tables sends the objects.
    paths = root->text_at("kind") == "Table" ? &drops.table : root->has("items") ? &drops.list : &drops.object;
  }
  FieldList dropped = drops.empty() ? nullptr : drops.fields;
  if (dropped != nullptr && has_any(*root, *paths)) {
    return Object(copy_of(without_fields(document.arena(), *root, *paths)), std::move(dropped));
  }
  document.set_root(*root);
  return Object(std::move(document), std::move(dropped));
}

Error error_of_status(const Value& status, int code) {
  Error error;
  error.code = code != 0 ? code : static_cast<int32_t>(status.int_at_or(0, "code"));
  error.reason = reason_of_code(error.code);
  const std::string_view reason = status.text_at("reason");
  for (const auto& [name, known] : kReasons) {
    if (name == reason) error.reason = known;
  }
  error.message = status.text_at("message");
  error.continue_token = status.text_at("metadata", "continue");
  if (const Value* details = status.find("details"); details != nullptr && details->is_map()) {
    error.details = ErrorDetails{std::string(details->text_at("name")), std::string(details->text_at("group")),
                                 std::string(details->text_at("kind")), std::string(details->text_at("uid"))};
    error.retry_after_seconds = static_cast<int32_t>(details->int_at_or(0, "retryAfterSeconds"));
    for (const Value& cause : details->items_at("causes")) {
      error.causes.push_back({std::string(cause.text_at("reason")), std::string(cause.text_at("message")),
                              std::string(cause.text_at("field"))});
    }
  }
  return error;
}

Error error_of(const net::ClientResponse& response) {
  Result<Object> body = decode_answer(encoding_of(response.header("content-type")), response.body);
  if (body && body->root().text_at("status") == "Failure") return error_of_status(body->root(), response.status);
  Error error;
  error.code = response.status;
  error.reason = reason_of_code(response.status);
  error.message = response.body.substr(0, 1000);
  while (error.message.ends_with('\n')) error.message.pop_back();
  if (error.message.empty()) error.message = "the server responded with " + std::to_string(response.status);
  return error;
}

}  // namespace holdfast::client
