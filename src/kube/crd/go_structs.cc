// Prints parts of a definition as kube-apiserver's internal structs appear in error messages: every field of the
// struct, by its Go name.
#include <algorithm>
#include <vector>

#include "base/text.h"
#include "codec/codec.h"
#include "crd/rules.h"

namespace holdfast::crd {
namespace {

constexpr std::string_view kNull = "null";

std::string text_or_empty(const Value& holder, std::string_view key) { return json_quote(holder.text_at(key)); }

// A pointer in Go.
std::string text_or_null(const Value& holder, std::string_view key) {
  const Value* text = holder.find(key);
  return text != nullptr && text->is_string() ? json_quote(text->as_string()) : std::string(kNull);
}

std::string flag_or_null(const Value& holder, std::string_view key) {
  const Value* value = holder.find(key);
  if (value == nullptr || !value->is_bool()) return std::string(kNull);
  return value->as_bool() ? "true" : "false";
}

std::string flag(const Value& holder, std::string_view key) { return flag_at(holder, key) ? "true" : "false"; }

// For numbers, lists of strings, and JSON data.
std::string as_written(const Value& holder, std::string_view key) {
  const Value* value = holder.find(key);
  if (value == nullptr || (value->is_list() && value->count() == 0)) return std::string(kNull);
  return codec::encode_json_sorted(*value);
}

template <class Show>
std::string list_of(std::span<const Value> items, Show show) {
  if (items.empty()) return std::string(kNull);
  std::string out;
  for (const Value& item : items) out += (out.empty() ? "[" : ",") + show(item);
  return out + "]";
}

template <class Show>
std::string map_of(const Value& holder, std::string_view key, Show show) {
  std::vector<Member> sorted(holder.members_at(key).begin(), holder.members_at(key).end());
  if (sorted.empty()) return std::string(kNull);
  std::sort(sorted.begin(), sorted.end(), [](const Member& a, const Member& b) { return a.key < b.key; });
  std::string out;
  for (const Member& member : sorted) {
    out += (out.empty() ? "{" : ",") + json_quote(member.key) + ":" + show(member.value);
  }
  return out + "}";
}

std::string schema_or_null(const Value* schema) {
  return schema != nullptr && schema->is_map() ? go_schema(*schema) : std::string(kNull);
}

std::string schema_or_bool(const Value* value) {
  if (value == nullptr) return std::string(kNull);
  const bool allows = value->is_map() || (value->is_bool() && value->as_bool());
  return std::string("{\"Allows\":") + (allows ? "true" : "false") + ",\"Schema\":" + schema_or_null(value) + "}";
}

std::string schema_or_texts(const Value& value) {
  return "{\"Schema\":" + schema_or_null(&value) +
         ",\"Property\":" + (value.is_list() && value.count() > 0 ? codec::encode_json(value) : std::string(kNull)) +
         "}";
}

std::string documentation(const Value* value) {
  if (value == nullptr || !value->is_map()) return std::string(kNull);
  return "{\"Description\":" + text_or_empty(*value, "description") + ",\"URL\":" + text_or_empty(*value, "url") + "}";
}

std::string subresources(const Value* value) {
  if (value == nullptr || !value->is_map()) return std::string(kNull);
  const Value* scale = value->find("scale");
  std::string out = std::string("{\"Status\":") + (value->has("status") ? "{}" : "null") + ",\"Scale\":";
  if (scale == nullptr || !scale->is_map()) return out + "null}";
  return out + "{\"SpecReplicasPath\":" + text_or_empty(*scale, "specReplicasPath") +
         ",\"StatusReplicasPath\":" + text_or_empty(*scale, "statusReplicasPath") +
         ",\"LabelSelectorPath\":" + text_or_null(*scale, "labelSelectorPath") + "}}";
}

std::string column(const Value& value) {
  return "{\"Name\":" + text_or_empty(value, "name") + ",\"Type\":" + text_or_empty(value, "type") +
         ",\"Format\":" + text_or_empty(value, "format") + ",\"Description\":" + text_or_empty(value, "description") +
         ",\"Priority\":" + std::to_string(value.int_at_or(0, "priority")) +
         ",\"JSONPath\":" + text_or_empty(value, "jsonPath") + "}";
}

}  // namespace

std::string go_rule(const Value& rule) {
  return "{\"Rule\":" + text_or_empty(rule, "rule") + ",\"Message\":" + text_or_empty(rule, "message") +
         ",\"MessageExpression\":" + text_or_empty(rule, "messageExpression") +
         ",\"Reason\":" + text_or_null(rule, "reason") + ",\"FieldPath\":" + text_or_empty(rule, "fieldPath") +
         ",\"OptionalOldSelf\":" + flag_or_null(rule, "optionalOldSelf") + "}";
}

std::string go_schema(const Value& schema) {
  std::string out = "{";
  const auto add = [&out](std::string_view name, std::string_view shown) {
    out += (out.size() == 1 ? "\"" : ",\"") + std::string(name) + "\":";
    out += shown;
  };
  const auto schemas = [&schema](std::string_view key) { return list_of(schema.items_at(key), go_schema); };
  add("ID", text_or_empty(schema, "id"));
  add("Schema", text_or_empty(schema, "$schema"));
  add("Ref", text_or_null(schema, "$ref"));
  add("Description", text_or_empty(schema, "description"));
  add("Type", text_or_empty(schema, "type"));
  add("Nullable", flag(schema, "nullable"));
  add("Format", text_or_empty(schema, "format"));
  add("Title", text_or_empty(schema, "title"));
  add("Default", as_written(schema, "default"));
  add("Maximum", as_written(schema, "maximum"));
  add("ExclusiveMaximum", flag(schema, "exclusiveMaximum"));
  add("Minimum", as_written(schema, "minimum"));
  add("ExclusiveMinimum", flag(schema, "exclusiveMinimum"));
  add("MaxLength", as_written(schema, "maxLength"));
  add("MinLength", as_written(schema, "minLength"));
  add("Pattern", text_or_empty(schema, "pattern"));
  add("MaxItems", as_written(schema, "maxItems"));
  add("MinItems", as_written(schema, "minItems"));
  add("UniqueItems", flag(schema, "uniqueItems"));
  add("MultipleOf", as_written(schema, "multipleOf"));
  add("Enum", as_written(schema, "enum"));
  add("MaxProperties", as_written(schema, "maxProperties"));
  add("MinProperties", as_written(schema, "minProperties"));
  add("Required", as_written(schema, "required"));
  add("Items", schema.has("items") ? go_schema_or_list(*schema.find("items")) : std::string(kNull));
  add("AllOf", schemas("allOf"));
  add("OneOf", schemas("oneOf"));
  add("AnyOf", schemas("anyOf"));
  add("Not", schema_or_null(schema.find("not")));
  add("Properties", map_of(schema, "properties", go_schema));
  add("AdditionalProperties", schema_or_bool(schema.find("additionalProperties")));
  add("PatternProperties", map_of(schema, "patternProperties", go_schema));
  add("Dependencies", map_of(schema, "dependencies", schema_or_texts));
  add("AdditionalItems", schema_or_bool(schema.find("additionalItems")));
  add("Definitions", map_of(schema, "definitions", go_schema));
  add("ExternalDocs", documentation(schema.find("externalDocs")));
  add("Example", as_written(schema, "example"));
  add("XPreserveUnknownFields", flag_or_null(schema, "x-kubernetes-preserve-unknown-fields"));
  add("XEmbeddedResource", flag(schema, "x-kubernetes-embedded-resource"));
  add("XIntOrString", flag(schema, "x-kubernetes-int-or-string"));
  add("XListMapKeys", as_written(schema, "x-kubernetes-list-map-keys"));
  add("XListType", text_or_null(schema, "x-kubernetes-list-type"));
  add("XMapType", text_or_null(schema, "x-kubernetes-map-type"));
  add("XValidations", list_of(schema.items_at("x-kubernetes-validations"), go_rule));
  return out + "}";
}

std::string go_schema_or_list(const Value& items) {
  const auto several = items.is_list() ? items.items() : std::span<const Value>{};
  return "{\"Schema\":" + schema_or_null(&items) + ",\"JSONSchemas\":" + list_of(several, go_schema) + "}";
}

std::string go_version(const Value& version) {
  const Value* schema = version.find("schema");
  const auto field = [](const Value& selectable) {
    return "{\"JSONPath\":" + text_or_empty(selectable, "jsonPath") + "}";
  };
  return "{\"Name\":" + text_or_empty(version, "name") + ",\"Served\":" + flag(version, "served") +
         ",\"Storage\":" + flag(version, "storage") + ",\"Deprecated\":" + flag(version, "deprecated") +
         ",\"DeprecationWarning\":" + text_or_null(version, "deprecationWarning") + ",\"Schema\":" +
         (schema == nullptr ? std::string(kNull)
                            : "{\"OpenAPIV3Schema\":" + schema_or_null(schema->find("openAPIV3Schema")) + "}") +
         ",\"Subresources\":" + subresources(version.find("subresources")) +
         ",\"AdditionalPrinterColumns\":" + list_of(version.items_at("additionalPrinterColumns"), column) +
         ",\"SelectableFields\":" + list_of(version.items_at("selectableFields"), field) + "}";
}

}  // namespace holdfast::crd
