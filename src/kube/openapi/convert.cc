// Converts a v2 document to v3 like Kubernetes' aggregator.
#include "openapi/openapi.h"

namespace holdfast::openapi {
namespace {

// Moves a reference from below `from` to below `to`; leaves other references alone.
std::string moved(std::string_view reference, std::string_view from, std::string_view to) {
  const size_t at = reference.find(from);
  if (at == std::string_view::npos) return std::string(reference);
  return std::string(to) + std::string(reference.substr(at + from.size()));
}

void copy(MapBuilder& to, const Value& from, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (const Value* value = from.find(key)) to.add(key, *value);
  }
}

void copy_extensions(MapBuilder& to, const Value& from) {
  for (const Member& member : from.members()) {
    if (member.key.starts_with("x-")) to.add(member.key, member.value);
  }
}

Value schema(Arena& arena, const Value& v2);

Value schemas_by_name(Arena& arena, const Value& v2) {
  MapBuilder made(arena);
  for (const Member& member : v2.members()) made.add(member.key, schema(arena, member.value));
  return made.build();
}

Value schema_list(Arena& arena, const Value& v2) {
  ListBuilder made(arena);
  for (const Value& item : v2.items()) made.add(schema(arena, item));
  return made.build();
}

Value schema(Arena& arena, const Value& v2) {
  if (!v2.is_map()) return v2;  // additionalProperties: true
  MapBuilder made(arena);
  for (const auto& [key, value] : v2.members()) {
    if (key == "$ref" && value.is_string()) {
      const Value target = Value::string(arena, moved(value.as_string(), "#/definitions/", "#/components/schemas/"));
      if (v2.members().size() == 1) {
        made.add(key, target);
        continue;
      }
      // v3 ignores members next to a reference.
      MapBuilder reference(arena);
      reference.add(key, target);
      ListBuilder all(arena);
      all.add(reference.build());
      made.set("allOf", all.build());
    } else if (key == "allOf" && v2.has("$ref")) {
      continue;
    } else if (key == "properties" && value.is_map()) {
      made.add(key, schemas_by_name(arena, value));
    } else if (key == "items" || key == "additionalProperties" || key == "additionalItems" || key == "allOf") {
      made.add(key, value.is_list() ? schema_list(arena, value) : schema(arena, value));
    } else {
      made.add(key, value);
    }
  }
  return made.build();
}

// The same schema for each of these media types.
Value content(Arena& arena, const Value& v2_schema, std::span<const Value> types) {
  const Value converted = schema(arena, v2_schema);
  MapBuilder media(arena), made(arena);
  media.add("schema", converted);
  const Value all = media.build();
  for (const Value& type : types) {
    if (type.is_string()) made.set(type.as_string(), all);
  }
  return made.build();
}

Value parameter(Arena& arena, const Value& v2) {
  MapBuilder made(arena);
  if (const std::string_view target = v2.text_at("$ref"); !target.empty()) {
    made.add("$ref", Value::string(arena, moved(target, "#/parameters/", "#/components/parameters/")));
    return made.build();
  }
  copy(made, v2, {"name", "in", "description", "required", "allowEmptyValue"});
  if (const Value* own = v2.find("schema")) {
    made.add("schema", schema(arena, *own));
  } else {
    MapBuilder simple(arena);
    copy(simple, v2, {"type", "format", "uniqueItems"});
    made.add("schema", simple.build());
  }
  copy_extensions(made, v2);
  return made.build();
}

Value response(Arena& arena, const Value& v2, std::span<const Value> produces) {
  MapBuilder made(arena);
  if (const std::string_view target = v2.text_at("$ref"); !target.empty()) {
    made.add("$ref", Value::string(arena, moved(target, "#/responses/", "#/components/responses/")));
    return made.build();
  }
  copy(made, v2, {"description"});
  if (const Value* own = v2.find("schema"); own != nullptr && !produces.empty()) {
    made.add("content", content(arena, *own, produces));
  }
  copy_extensions(made, v2);
  return made.build();
}

Value operation(Arena& arena, const Value& v2) {
  MapBuilder made(arena);
  copy(made, v2, {"tags", "summary", "description", "externalDocs", "operationId"});
  ListBuilder parameters(arena);
  for (const Value& one : v2.items_at("parameters")) {
    const Value* own = one.find("schema");
    if (one.text_at("name") == "body" && own != nullptr) {
      MapBuilder body(arena);
      if (v2.has("consumes")) body.add("content", content(arena, *own, v2.items_at("consumes")));
      made.set("requestBody", body.build());
    } else {
      parameters.add(parameter(arena, one));
    }
  }
  if (parameters.count() > 0) made.add("parameters", parameters.build());
  MapBuilder responses(arena);
  for (const Member& member : v2.members_at("responses")) {
    responses.add(member.key,
                  member.key.starts_with("x-") ? member.value : response(arena, member.value, v2.items_at("produces")));
  }
  made.add("responses", responses.build());
  copy(made, v2, {"deprecated"});
  copy_extensions(made, v2);
  return made.build();
}

Value path_item(Arena& arena, const Value& v2) {
  MapBuilder made(arena);
  copy(made, v2, {"$ref"});
  for (const std::string_view method : {"get", "put", "post", "delete", "options", "head", "patch"}) {
    if (const Value* op = v2.find(method); op != nullptr && op->is_map()) made.add(method, operation(arena, *op));
  }
  ListBuilder parameters(arena);
  for (const Value& one : v2.items_at("parameters")) parameters.add(parameter(arena, one));
  if (parameters.count() > 0) made.add("parameters", parameters.build());
  copy_extensions(made, v2);
  return made.build();
}

Value security_scheme(Arena& arena, const Value& v2) {
  MapBuilder made(arena);
  copy(made, v2, {"type", "description", "name", "in"});
  if (const std::string_view flow = v2.text_at("flow"); !flow.empty()) {
    MapBuilder details(arena), flows(arena);
    copy(details, v2, {"authorizationUrl", "tokenUrl", "scopes"});
    flows.add(flow, details.build());
    made.add("flows", flows.build());
  }
  copy_extensions(made, v2);
  return made.build();
}

}  // namespace

Value v3_from_v2(Arena& arena, const Value& v2) {
  MapBuilder document(arena), paths(arena), components(arena);
  document.add("openapi", Value::string("3.0.0"));
  copy(document, v2, {"info", "externalDocs"});
  for (const Member& member : v2.members_at("paths")) {
    paths.add(member.key, member.key.starts_with("x-") ? member.value : path_item(arena, member.value));
  }
  document.add("paths", paths.build());
  if (const Value* definitions = v2.find("definitions"); definitions != nullptr && definitions->is_map()) {
    components.add("schemas", schemas_by_name(arena, *definitions));
  }
  if (const Value* of_all = v2.find("responses"); of_all != nullptr && of_all->is_map()) {
    MapBuilder responses(arena);
    for (const Member& member : of_all->members()) {
      responses.add(member.key, response(arena, member.value, v2.items_at("produces")));
    }
    components.add("responses", responses.build());
  }
  if (const Value* of_all = v2.find("parameters"); of_all != nullptr && of_all->is_map()) {
    MapBuilder parameters(arena);
    for (const Member& member : of_all->members()) parameters.add(member.key, parameter(arena, member.value));
    components.add("parameters", parameters.build());
  }
  if (const Value* known = v2.find("securityDefinitions"); known != nullptr && known->is_map()) {
    MapBuilder schemes(arena);
    for (const Member& member : known->members()) schemes.add(member.key, security_scheme(arena, member.value));
    components.add("securitySchemes", schemes.build());
  }
  document.add("components", components.build());
  return document.build();
}

}  // namespace holdfast::openapi
