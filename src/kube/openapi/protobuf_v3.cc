// A v3 document in gnostic's Protobuf form (package openapi.v3).
#include "openapi/gnostic.h"
#include "openapi/openapi.h"

namespace holdfast::openapi {
namespace {

// A list of messages {name, value}.
template <class Make>
void named(Message& message, int field, std::span<const Member> members, Make make) {
  for (const Member& member : members) {
    Message entry;
    entry.text(1, member.key);
    entry.message(2, make(member.value));
    message.message(field, entry);
  }
}

// A oneof of a value and a reference to one, like everything below `components`.
template <class Make>
Message or_reference(const Value& value, Make make) {
  Message item;
  if (const std::string_view target = value.text_at("$ref"); !target.empty()) {
    Message reference;
    reference.text(1, target);
    reference.text(2, value.text_at("summary"));
    reference.text(3, value.text_at("description"));
    item.message(2, reference);
  } else {
    item.message(1, make(value));
  }
  return item;
}

Message schema_message(const Value& schema);
Message schema_or_reference(const Value& schema) { return or_reference(schema, schema_message); }

void external_docs(Message& message, int field, const Value& from) {
  const Value* docs = from.find("externalDocs");
  if (docs == nullptr || !docs->is_map()) return;
  Message made;
  made.text(1, docs->text_at("description"));
  made.text(2, docs->text_at("url"));
  message.message(field, made);
}

// Defaults other than numbers, booleans and strings cannot be represented.
void default_value(Message& message, int field, const Value& schema) {
  const Value* value = schema.find("default");
  if (value == nullptr) return;
  // A oneof: written even if it is zero.
  Message item;
  if (value->is_number()) {
    item.set_number(1, value->number_value());
  } else if (value->is_bool()) {
    item.set_boolean(2, value->as_bool());
  } else if (value->is_string()) {
    item.bytes(3, value->as_string());
  }
  message.message(field, item);
}

Message schema_message(const Value& schema) {
  Message message;
  message.boolean(1, flag(schema, "nullable"));
  message.boolean(3, flag(schema, "readOnly"));
  external_docs(message, 6, schema);
  if (const Value* example = schema.find("example")) message.message(7, any(*example));
  message.text(9, schema.text_at("title"));
  validations(message, 10, schema);
  message.text(25, schema.text_at("type"));
  for (const Value& part : schema.items_at("allOf")) message.message(26, schema_or_reference(part));
  for (const Value& part : schema.items_at("oneOf")) message.message(27, schema_or_reference(part));
  for (const Value& part : schema.items_at("anyOf")) message.message(28, schema_or_reference(part));
  if (const Value* part = schema.find("not")) message.message(29, schema_message(*part));
  if (const Value* items = schema.find("items"); items != nullptr && items->is_map()) {
    Message item;
    item.message(1, schema_or_reference(*items));
    message.message(30, item);
  }
  if (const Value* properties = schema.find("properties"); properties != nullptr && properties->is_map()) {
    Message all;
    named(all, 1, properties->members(), schema_or_reference);
    message.message(31, all);
  }
  if (const Value* additional = schema.find("additionalProperties")) {
    Message item;
    if (additional->is_bool()) {
      item.set_boolean(2, additional->as_bool());
    } else {
      item.message(1, schema_or_reference(*additional));
    }
    message.message(32, item);
  }
  default_value(message, 33, schema);
  message.text(34, schema.text_at("description"));
  message.text(35, schema.text_at("format"));
  vendor_extensions(message, 36, schema);
  return message;
}

Message media_type_message(const Value& media) {
  Message message;
  if (const Value* schema = media.find("schema")) message.message(1, schema_or_reference(*schema));
  vendor_extensions(message, 5, media);
  return message;
}

void content(Message& message, int field, const Value& from) {
  const Value* content = from.find("content");
  if (content == nullptr || !content->is_map()) return;
  Message all;
  named(all, 1, content->members(), media_type_message);
  message.message(field, all);
}

Message parameter_message(const Value& parameter) {
  Message message;
  message.text(1, parameter.text_at("name"));
  message.text(2, parameter.text_at("in"));
  message.text(3, parameter.text_at("description"));
  message.boolean(4, flag(parameter, "required"));
  message.boolean(5, flag(parameter, "deprecated"));
  message.boolean(6, flag(parameter, "allowEmptyValue"));
  message.text(7, parameter.text_at("style"));
  message.boolean(8, flag(parameter, "explode"));
  message.boolean(9, flag(parameter, "allowReserved"));
  if (const Value* schema = parameter.find("schema")) message.message(10, schema_or_reference(*schema));
  content(message, 13, parameter);
  vendor_extensions(message, 14, parameter);
  return message;
}

Message body_message(const Value& body) {
  Message message;
  message.text(1, body.text_at("description"));
  content(message, 2, body);
  message.boolean(3, flag(body, "required"));
  vendor_extensions(message, 4, body);
  return message;
}

Message response_message(const Value& response) {
  Message message;
  message.text(1, response.text_at("description"));
  content(message, 3, response);
  vendor_extensions(message, 5, response);
  return message;
}

Message requirement_message(const Value& requirement) {
  Message message;
  named(message, 1, requirement.members(), [](const Value& scopes) {
    Message all;
    if (scopes.is_list()) texts(all, 1, scopes.items());
    return all;
  });
  return message;
}

Message parameter_or_reference(const Value& parameter) { return or_reference(parameter, parameter_message); }

Message operation_message(const Value& op) {
  Message message;
  texts(message, 1, op.items_at("tags"));
  message.text(2, op.text_at("summary"));
  message.text(3, op.text_at("description"));
  external_docs(message, 4, op);
  message.text(5, op.text_at("operationId"));
  for (const Value& parameter : op.items_at("parameters")) message.message(6, parameter_or_reference(parameter));
  if (const Value* body = op.find("requestBody")) message.message(7, or_reference(*body, body_message));
  Message responses;
  for (const Member& member : op.members_at("responses")) {
    if (member.key.starts_with("x-")) continue;
    const Message response = or_reference(member.value, response_message);
    if (member.key == "default") {
      responses.message(1, response);
    } else {
      Message entry;
      entry.text(1, member.key);
      entry.message(2, response);
      responses.message(2, entry);
    }
  }
  message.message(8, responses);
  message.boolean(10, flag(op, "deprecated"));
  for (const Value& requirement : op.items_at("security")) message.message(11, requirement_message(requirement));
  vendor_extensions(message, 13, op);
  return message;
}

Message path_message(const Value& path) {
  constexpr std::pair<std::string_view, int> kMethods[] = {{"get", 4},     {"put", 5},  {"post", 6},   {"delete", 7},
                                                           {"options", 8}, {"head", 9}, {"patch", 10}, {"trace", 11}};
  Message message;
  message.text(1, path.text_at("$ref"));
  message.text(2, path.text_at("summary"));
  message.text(3, path.text_at("description"));
  for (const auto& [method, field] : kMethods) {
    if (const Value* op = path.find(method)) message.message(field, operation_message(*op));
  }
  for (const Value& parameter : path.items_at("parameters")) message.message(13, parameter_or_reference(parameter));
  vendor_extensions(message, 14, path);
  return message;
}

Message security_message(const Value& scheme) {
  Message message;
  message.text(1, scheme.text_at("type"));
  message.text(2, scheme.text_at("description"));
  message.text(3, scheme.text_at("name"));
  message.text(4, scheme.text_at("in"));
  message.text(5, scheme.text_at("scheme"));
  message.text(6, scheme.text_at("bearerFormat"));
  message.text(8, scheme.text_at("openIdConnectUrl"));
  vendor_extensions(message, 9, scheme);
  return message;
}

}  // namespace

std::string v3_to_protobuf(const Value& document) {
  Message root, info, paths;
  root.text(1, document.text_at("openapi"));
  info.text(1, document.text_at("info", "title"));
  info.text(2, document.text_at("info", "description"));
  info.text(6, document.text_at("info", "version"));
  root.message(2, info);
  for (const Member& path : document.members_at("paths")) {
    if (path.key.starts_with("x-")) continue;
    Message entry;
    entry.text(1, path.key);
    entry.message(2, path_message(path.value));
    paths.message(1, entry);
  }
  root.message(4, paths);

  if (const Value* components = document.find("components"); components != nullptr && components->is_map()) {
    Message all;
    const auto add = [&](int field, std::string_view key, auto make) {
      const Value* of_kind = components->find(key);
      if (of_kind == nullptr || !of_kind->is_map()) return;
      Message entries;
      named(entries, 1, of_kind->members(), [&](const Value& value) { return or_reference(value, make); });
      all.message(field, entries);
    };
    add(1, "schemas", schema_message);
    add(2, "responses", response_message);
    add(3, "parameters", parameter_message);
    add(5, "requestBodies", body_message);
    add(7, "securitySchemes", security_message);
    root.message(5, all);
  }
  for (const Value& requirement : document.items_at("security")) root.message(6, requirement_message(requirement));
  external_docs(root, 8, document);
  return root.take();
}

}  // namespace holdfast::openapi
