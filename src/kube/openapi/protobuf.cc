// A v2 document in gnostic's Protobuf form (package openapi.v2).
#include "openapi/gnostic.h"
#include "openapi/model.h"

namespace holdfast::openapi {
namespace {

Message schema_message(const Value& schema);

Message named_schema(std::string_view name, const Value& schema) {
  Message named;
  named.text(1, name);
  named.message(2, schema_message(schema));
  return named;
}

Message schema_message(const Value& schema) {
  Message message;
  message.text(1, schema.text_at("$ref"));
  message.text(2, schema.text_at("format"));
  message.text(3, schema.text_at("title"));
  message.text(4, schema.text_at("description"));
  validations(message, 6, schema);
  if (const Value* additional = schema.find("additionalProperties")) {
    Message item;
    if (additional->is_bool())
      item.boolean(2, additional->as_bool());
    else
      item.message(1, schema_message(*additional));
    message.message(21, item);
  }
  if (const std::string_view type = schema.text_at("type"); !type.empty()) {
    Message item;
    item.text(1, type);
    message.message(22, item);
  }
  if (const Value* items = schema.find("items"); items != nullptr && items->is_map()) {
    Message item;
    item.message(1, schema_message(*items));
    message.message(23, item);
  }
  if (const Value* properties = schema.find("properties"); properties != nullptr && properties->is_map()) {
    Message all;
    for (const Member& member : properties->members()) all.message(1, named_schema(member.key, member.value));
    message.message(25, all);
  }
  vendor_extensions(message, 31, schema);
  return message;
}

// Parameter: a oneof of body and non-body; the latter a oneof of header, form, query, path.
Message parameter_message(const Value& parameter) {
  Message message;
  if (parameter.text_at("in") == "body") {
    Message body;
    body.text(1, parameter.text_at("description"));
    body.text(2, parameter.text_at("name"));
    body.text(3, "body");
    body.boolean(4, flag(parameter, "required"));
    if (const Value* schema = parameter.find("schema")) body.message(5, schema_message(*schema));
    message.message(1, body);
    return message;
  }
  const bool path = parameter.text_at("in") == "path";
  Message sub, non_body;
  sub.boolean(1, flag(parameter, "required"));
  sub.text(2, parameter.text_at("in"));
  sub.text(3, parameter.text_at("description"));
  sub.text(4, parameter.text_at("name"));
  // Query parameters have one more field (allow_empty_value) before these.
  sub.text(path ? 5 : 6, parameter.text_at("type"));
  sub.boolean(path ? 19 : 20, flag(parameter, "uniqueItems"));
  non_body.message(path ? 4 : 3, sub);
  message.message(2, non_body);
  return message;
}

Message parameters_item(const Value& parameter) {
  Message item;
  if (const std::string_view reference = parameter.text_at("$ref"); !reference.empty()) {
    Message target;
    target.text(1, reference);
    item.message(2, target);
  } else {
    item.message(1, parameter_message(parameter));
  }
  return item;
}

Message operation_message(const Value& op) {
  Message message;
  texts(message, 1, op.items_at("tags"));
  message.text(3, op.text_at("description"));
  message.text(5, op.text_at("operationId"));
  texts(message, 6, op.items_at("produces"));
  texts(message, 7, op.items_at("consumes"));
  for (const Value& parameter : op.items_at("parameters")) message.message(8, parameters_item(parameter));
  Message responses;
  for (const Member& member : op.members_at("responses")) {
    Message response, value, named;
    response.text(1, member.value.text_at("description"));
    if (const Value* schema = member.value.find("schema")) {
      Message item;
      item.message(1, schema_message(*schema));
      response.message(2, item);
    }
    value.message(1, response);
    named.text(1, member.key);
    named.message(2, value);
    responses.message(1, named);
  }
  message.message(9, responses);
  texts(message, 10, op.items_at("schemes"));
  vendor_extensions(message, 13, op);
  return message;
}

}  // namespace

std::string v2_to_protobuf(const Value& document) {
  Message root, info, paths, definitions, parameters, requirement, security;
  root.text(1, document.text_at("swagger"));
  info.text(1, document.text_at("info", "title"));
  info.text(2, document.text_at("info", "version"));
  root.message(2, info);

  constexpr std::pair<std::string_view, int> kMethods[] = {{"get", 2},     {"put", 3},  {"post", 4}, {"delete", 5},
                                                           {"options", 6}, {"head", 7}, {"patch", 8}};
  for (const Member& path : document.members_at("paths")) {
    Message item, named;
    for (const auto& [method, field] : kMethods) {
      if (const Value* op = path.value.find(method)) item.message(field, operation_message(*op));
    }
    for (const Value& parameter : path.value.items_at("parameters")) item.message(9, parameters_item(parameter));
    named.text(1, path.key);
    named.message(2, item);
    paths.message(2, named);
  }
  root.message(8, paths);
  for (const Member& member : document.members_at("definitions"))
    definitions.message(1, named_schema(member.key, member.value));
  root.message(9, definitions);
  for (const Member& member : document.members_at("parameters")) {
    Message named;
    named.text(1, member.key);
    named.message(2, parameter_message(member.value));
    parameters.message(1, named);
  }
  root.message(10, parameters);

  Message named_requirement;
  named_requirement.text(1, "BearerToken");
  named_requirement.message(2, Message());
  requirement.message(1, named_requirement);
  root.message(12, requirement);
  Message key, item, named_key;
  key.text(1, document.text_at("securityDefinitions", "BearerToken", "type"));
  key.text(2, document.text_at("securityDefinitions", "BearerToken", "name"));
  key.text(3, document.text_at("securityDefinitions", "BearerToken", "in"));
  key.text(4, document.text_at("securityDefinitions", "BearerToken", "description"));
  item.message(2, key);
  named_key.text(1, "BearerToken");
  named_key.message(2, item);
  security.message(1, named_key);
  root.message(13, security);
  return root.take();
}

}  // namespace holdfast::openapi
