#include "simulation/objects.h"

#include <cstdio>
#include <cstdlib>

#include "base/strings.h"
#include "cache/cache.h"
#include "codec/codec.h"
#include "types/types.h"

namespace holdfast::simulation {
namespace {

std::string without_prefix(std::string_view text, std::string_view prefix) {
  return std::string(text.starts_with(prefix) ? text.substr(prefix.size()) : text);
}

// The keys of a set of fields: {"f:data":{"f:x":{}},"f:metadata":{"f:finalizers":{"v:\"example.com/f\"":{}}}}
std::set<std::string> owned_fields(const Value& fields) {
  std::set<std::string> keys;
  const auto add = [&](std::string_view name, std::span<const Member> members) {
    for (const Member& member : members) {
      if (member.key.starts_with("f:")) keys.insert(std::string(name) + "/" + without_prefix(member.key, "f:"));
      if (member.key.starts_with("v:\"")) {
        keys.insert(std::string(name) + "/" + std::string(member.key.substr(3, member.key.size() - 4)));
      }
    }
  };
  add("data", fields.members_at("f:data"));
  add("labels", fields.members_at("f:metadata", "f:labels"));
  add("finalizers", fields.members_at("f:metadata", "f:finalizers"));
  return keys;
}

Object object_of(const Value& value) {
  Object object;
  object.uid = value.text_at("metadata", "uid");
  object.deleting = value.get("metadata", "deletionTimestamp") != nullptr;
  const auto add = [&](std::string_view name, std::span<const Member> members) {
    for (const Member& member : members) {
      object.fields[std::string(name) + "/" + std::string(member.key)] = member.value.as_string();
    }
  };
  add("data", value.members_at("data"));
  add("labels", value.members_at("metadata", "labels"));
  for (const Value& finalizer : value.items_at("metadata", "finalizers")) {
    object.fields["finalizers/" + std::string(finalizer.as_string())] = "";
  }
  object.tracked = !value.items_at("metadata", "managedFields").empty();
  for (const Value& entry : value.items_at("metadata", "managedFields")) {
    const Value* fields = entry.find("fieldsV1");
    if (fields == nullptr) continue;
    Arena arena;
    Value set = *fields;
    if (set.is_raw()) {
      if (Result<Value> decoded = codec::decode_json(arena, set.raw_json())) set = *decoded;
    }
    std::set<std::string> keys = owned_fields(set);
    const std::string manager = std::string(entry.text_at("manager")) + " " + std::string(entry.text_at("operation"));
    if (!keys.empty()) object.owners[manager].merge(keys);
    const auto add_parent = [&](const char* name, const Value* owned) {
      // "f:data":{} if it is all that is owned.
      if (owned != nullptr && (owned->has(".") || owned->count() == 0)) object.parents[manager].insert(name);
    };
    add_parent("data", set.get("f:data"));
    add_parent("labels", set.get("f:metadata", "f:labels"));
    add_parent("finalizers", set.get("f:metadata", "f:finalizers"));
  }
  return object;
}

uint64_t revision_in(const Value& value) {
  return parse_number<uint64_t>(value.text_at("metadata", "resourceVersion")).value_or(0);
}

Seen seen_in(const ResourceName& resource, const Value& value, bool with_owners) {
  Seen seen;
  seen.key = resource.plural + "/" + std::string(value.text_at("metadata", "name"));
  seen.revision = revision_in(value);
  seen.object = object_of(value);
  seen.with_owners = with_owners;
  // A client that does not want them must not get them: for the checks, somebody whom nothing explains.
  if (!with_owners && value.get("metadata", "managedFields") != nullptr) {
    seen.object.fields["managedFields"] = "although they were not asked for";
  }
  return seen;
}

void append(std::string& text, std::string_view name, const std::optional<std::string>& value, std::string_view none) {
  if (text.back() != '{') text += ',';
  text += "\"" + std::string(name) + "\":" + (value ? "\"" + *value + "\"" : std::string(none));
}

}  // namespace

std::string ResourceName::name_in(std::string_view key) const { return std::string(key.substr(plural.size())); }

std::optional<std::string> ResourceName::key_of(std::string_view store_key) const {
  const bool custom = api_version.find('/') != std::string::npos;
  const std::string prefix =
      "/registry/" + (custom ? api_version.substr(0, api_version.find('/')) + "/" : "") + plural + "/default/";
  if (!store_key.starts_with(prefix)) return std::nullopt;
  return plural + "/" + std::string(store_key.substr(prefix.size()));
}

std::string method_of(Verb verb) {
  switch (verb) {
    case Verb::Create:
      return "POST";
    case Verb::Apply:
    case Verb::Patch:
      return "PATCH";
    case Verb::Put:
      return "PUT";
    case Verb::Delete:
    case Verb::DeleteCollection:
      return "DELETE";
    default:
      return "GET";
  }
}

std::string body_of(const ResourceName& resource, const std::string& key, const Wish& wish, bool declares) {
  if (wish.verb == Verb::Delete) {
    if (!wish.expected) return {};
    // With a body, the parameters of the query do not matter.
    return R"({"apiVersion":"v1","kind":"DeleteOptions",)" + std::string(wish.dry_run ? R"("dryRun":["All"],)" : "") +
           R"("preconditions":{"resourceVersion":")" + std::to_string(*wish.expected) + R"("}})";
  }
  const std::string_view none = wish.verb == Verb::Apply ? R"({"k8s_io__value":"unset"})" : "null";
  std::string data = "{", labels = "{", finalizers;
  for (const auto& [field, value] : wish.fields) {
    if (field.starts_with("data/")) append(data, without_prefix(field, "data/"), value, none);
    if (field.starts_with("labels/")) append(labels, without_prefix(field, "labels/"), value, none);
    if (field.starts_with("finalizers/")) {
      finalizers = value ? "[\"" + without_prefix(field, "finalizers/") + "\"]" : "null";
    }
  }
  data += "}";
  labels += "}";
  std::string metadata = "{\"name\":\"" + resource.name_in(key).substr(1) + "\"";
  if (wish.verb == Verb::Put && wish.expected) {
    metadata += ",\"resourceVersion\":\"" + std::to_string(*wish.expected) + "\"";
  }
  if (labels != "{}") metadata += ",\"labels\":" + labels;
  if (declares) metadata += R"(,"options":{"fieldManager":")" + wish.manager + "\"}";
  if (!finalizers.empty()) metadata += ",\"finalizers\":" + finalizers;
  metadata += "}";
  std::string body = "{";
  if (wish.verb != Verb::Patch) {
    body += R"("apiVersion":")" + resource.api_version + R"(","kind":")" + resource.kind + "\",";
  }
  body += "\"metadata\":" + metadata;
  if (data != "{}") body += ",\"data\":" + data;
  return body + "}";
}

namespace {

Value decode_stored(Arena& arena, std::string_view plural, std::string_view stored) {
  Result<Value> value = Value::null();
  const Result<std::string> in_etcd = cache::kubernetes_value(stored);
  if (in_etcd) stored = arena.copy(*in_etcd);
  if (codec::is_protobuf(stored)) {
    const types::Resource* known = types::find_resource("", "v1", plural);
    Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(stored);
    if (known != nullptr && envelope) {
      value = codec::decode_protobuf(arena, *known->type, envelope->message, envelope->type);
    }
  } else {
    value = codec::decode_json(arena, stored);
  }
  if (!value || !value->is_map()) {
    std::fprintf(stderr, "cannot read a stored object of %s\n", std::string(plural).c_str());
    std::abort();
  }
  return *value;
}

}  // namespace

Object object_of_stored(const ResourceName& resource, std::string_view stored) {
  Arena arena;
  return object_of(decode_stored(arena, resource.plural, stored));
}

std::set<std::string> allocations_of_stored(std::string_view service) {
  Arena arena;
  const Value value = decode_stored(arena, "services", service);
  std::set<std::string> allocations;
  for (const Value& ip : value.items_at("spec", "clusterIPs")) {
    if (ip.as_string() != "None") allocations.emplace(ip.as_string());
  }
  for (const Value& port : value.items_at("spec", "ports")) {
    if (const int64_t node_port = port.int_at_or(0, "nodePort"); node_port != 0) {
      allocations.insert("port " + std::to_string(node_port));
    }
  }
  return allocations;
}

Parsed::Parsed(std::string_view body) {
  if (Result<Value> value = codec::decode_json(arena_, body); value) {
    root_ = *value;
  } else {
    unreadable_ = body;
  }
}

std::string Parsed::message() const { return is_status() ? std::string(root_.text_at("message")) : unreadable_; }

Seen Parsed::seen(const ResourceName& resource, bool with_owners) const {
  return seen_in(resource, root_, with_owners);
}

uint64_t Parsed::list_revision() const { return revision_in(root_); }

std::vector<Seen> Parsed::items(const ResourceName& resource, bool with_owners) const {
  std::vector<Seen> items;
  for (const Value& item : root_.items_at("items")) items.push_back(seen_in(resource, item, with_owners));
  return items;
}

WatchEvent Parsed::event(const ResourceName& resource, bool with_owners) const {
  WatchEvent event;
  event.type = event_type();
  const Value* object = root_.find("object");
  if (object == nullptr) return event;
  if (event.type == "BOOKMARK") {
    event.seen.revision = revision_in(*object);
    event.initial_end = object->text_at("metadata", "annotations", "k8s.io/initial-events-end") == "true";
  } else {
    event.seen = seen_in(resource, *object, with_owners);
  }
  return event;
}

}  // namespace holdfast::simulation
