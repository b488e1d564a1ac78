#include <algorithm>

#include "audit/audit.h"
#include "codec/codec.h"
#include "value/value.h"

namespace holdfast::audit {
namespace {

// Longer user agents are truncated, as in kube-apiserver.
constexpr size_t kMaxUserAgent = 1024;

class Members {
 public:
  explicit Members(Arena& arena) : arena_(arena), map_(arena) {}
  void text(std::string_view key, std::string_view value) {
    if (!value.empty()) map_.add(key, Value::string(arena_, value));
  }
  void texts(std::string_view key, const std::vector<std::string>& values) {
    if (!values.empty()) map_.add(key, list(values));
  }
  void add(std::string_view key, Value value) { map_.add(key, value); }
  void json(std::string_view key, std::string_view value) {
    if (value.empty()) return;
    Result<Value> tree = codec::decode_json(arena_, arena_.copy(value));
    if (tree) map_.add(key, *tree);
  }
  Value list(const std::vector<std::string>& values) {
    ListBuilder builder(arena_);
    for (const std::string& value : values) builder.add(Value::string(arena_, value));
    return builder.build();
  }
  Value build() { return map_.build(); }

 private:
  Arena& arena_;
  MapBuilder map_;
};

Value user_value(Arena& arena, const auth::UserInfo& user) {
  Members map(arena);
  map.text("username", user.name);
  map.text("uid", user.uid);
  map.texts("groups", user.groups);
  if (!user.extra.empty()) {
    auto sorted = user.extra;
    std::sort(sorted.begin(), sorted.end());
    MapBuilder extra(arena);
    for (const auto& [key, values] : sorted) extra.add_copy(key, map.list(values));
    map.add("extra", extra.build());
  }
  return map.build();
}

// {"metadata":{},"code":201}, or the members of a Status other than kind and apiVersion.
Value status_value(Arena& arena, const Event& event) {
  Members map(arena);
  map.add("metadata", Value::empty_map());
  if (!event.response_status.empty()) {
    Result<Value> status = codec::decode_json(arena, arena.copy(event.response_status));
    if (status && status->is_map()) {
      for (const std::string_view key : {"status", "message", "reason"}) map.text(key, status->text_at(key));
      if (const Value* details = status->find("details")) map.add("details", *details);
    }
  }
  map.add("code", Value::integer(event.code));
  return map.build();
}

Value stripped(Arena& arena, const Value& object) {
  const Value* metadata = object.find("metadata");
  if (metadata == nullptr || !metadata->is_map() || !metadata->has("managedFields")) return object;
  return with_member(arena, object, "metadata", without_member(arena, *metadata, "managedFields"));
}

}  // namespace

std::string to_line(const Event& event, Stage stage, UnixTime at) {
  Arena arena;
  Members map(arena);
  map.text("kind", "Event");
  map.text("apiVersion", "audit.k8s.io/v1");
  map.text("level", to_string(event.level));
  map.text("auditID", event.audit_id);
  map.text("stage", to_string(stage));
  map.text("requestURI", event.request_uri);
  map.text("verb", event.verb);
  map.add("user", event.user ? user_value(arena, *event.user) : Value::empty_map());
  const bool began = stage != Stage::RequestReceived;
  if (event.impersonated) {
    map.add("impersonatedUser", user_value(arena, *event.impersonated));
    if (!event.impersonation_constraint.empty()) {
      Members constraint(arena);
      constraint.text("impersonationConstraint", event.impersonation_constraint);
      map.add("authenticationMetadata", constraint.build());
    }
  }
  map.texts("sourceIPs", event.source_ips);
  if (event.user_agent.size() > kMaxUserAgent) {
    map.text("userAgent", event.user_agent.substr(0, kMaxUserAgent) + "...TRUNCATED");
  } else {
    map.text("userAgent", event.user_agent);
  }
  if (event.object) {
    const Event::ObjectRef& object = *event.object;
    Members reference(arena);
    reference.text("resource", object.resource);
    reference.text("namespace", object.ns);
    reference.text("name", object.name);
    reference.text("uid", object.uid);
    reference.text("apiGroup", object.api_group);
    reference.text("apiVersion", object.api_version);
    reference.text("resourceVersion", object.resource_version);
    reference.text("subresource", object.subresource);
    map.add("objectRef", reference.build());
  }
  if (began && event.code > 0) map.add("responseStatus", status_value(arena, event));
  if (began) {
    map.json("requestObject", event.request_object);
    map.json("responseObject", event.response_object);
  }
  map.text("requestReceivedTimestamp", format_rfc3339_micro(event.received));
  map.text("stageTimestamp", format_rfc3339_micro(at));
  if (began && !event.annotations.empty()) {
    auto sorted = event.annotations;
    std::sort(sorted.begin(), sorted.end());
    MapBuilder annotations(arena);
    for (const auto& [key, value] : sorted) annotations.add_copy(key, Value::string(arena, value));
    map.add("annotations", annotations.build());
  }
  return codec::encode_json(map.build());
}

std::string without_managed_fields(std::string json) {
  Arena arena;
  Result<Value> tree = codec::decode_json(arena, json);
  if (!tree || !tree->is_map()) return json;
  Value result = stripped(arena, *tree);
  if (const Value* items = result.find("items"); items != nullptr && items->is_list()) {
    ListBuilder list(arena);
    for (const Value& item : items->items()) list.add(item.is_map() ? stripped(arena, item) : item);
    result = with_member(arena, result, "items", list.build());
  }
  return codec::encode_json(result);
}

}  // namespace holdfast::audit
