// Structural schemas: each field has a single type, declared once, outside of alternatives.
#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/api_error.h"
#include "base/go_regexp.h"
#include "base/hash.h"
#include "base/strings.h"
#include "cel/cel.h"
#include "codec/codec.h"
#include "crd/crd.h"
#include "crd/rules.h"

namespace holdfast::crd {
namespace {

enum class Level : uint8_t { Root, Item, Field };

bool is_schema(const Value* value) { return value != nullptr && value->is_map(); }
bool has_text(const Value& schema, std::string_view key) { return !schema.text_at(key).empty(); }
bool has_items(const Value& schema, std::string_view key) { return !schema.items_at(key).empty(); }

// {type: integer} and {type: string} only: allowed as the alternatives of an int-or-string.
bool is_int_or_string_any_of(const Value& schema) {
  const auto alternatives = schema.items_at("anyOf");
  if (alternatives.size() != 2) return false;
  auto only_type = [](const Value& item, std::string_view type) {
    return item.is_map() && item.count() == 1 && item.text_at("type") == type;
  };
  return only_type(alternatives[0], "integer") && only_type(alternatives[1], "string");
}

struct Structural {
  std::vector<FieldErrors> found = {};  // One error in each, to be sorted at the end.
  FieldErrors& report() { return found.emplace_back(); }

  // Inside allOf, anyOf, oneOf and not, only value validations are allowed.
  void nested(const Value& schema, bool skip_any_of, Level level, const Path& at) {
    junctors(schema, skip_any_of, false, level, at);
    if (const Value* items = schema.find("items"); is_schema(items)) nested(*items, false, level, at.child("items"));
    for (const Member& property : schema.members_at("properties")) {
      const Path properties = at.child("properties");
      nested(property.value, false, Level::Field, properties.key(property.key));
    }
    auto forbid = [&](bool present, std::string_view key, std::string_view detail) {
      if (present) report().forbidden(at.child(key), detail);
    };
    forbid(has_text(schema, "type"), "type", "must be empty to be structural");
    const Value* additional = schema.find("additionalProperties");
    forbid(additional != nullptr && (additional->is_map() || flag_at(schema, "additionalProperties")),
           "additionalProperties", "must be undefined to be structural");
    forbid(schema.has("default"), "default", "must be undefined to be structural");
    forbid(has_text(schema, "title"), "title", "must be empty to be structural");
    forbid(has_text(schema, "description"), "description", "must be empty to be structural");
    forbid(flag_at(schema, "nullable"), "nullable", "must be false to be structural");
    for (std::string_view key :
         {"x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"}) {
      forbid(flag_at(schema, key), key, "must be false to be structural");
    }
    forbid(has_items(schema, "x-kubernetes-list-map-keys"), "x-kubernetes-list-map-keys",
           "must be empty to be structural");
    forbid(schema.has("x-kubernetes-list-type"), "x-kubernetes-list-type", "must be undefined to be structural");
    forbid(schema.has("x-kubernetes-map-type"), "x-kubernetes-map-type", "must be undefined to be structural");
    forbid(has_items(schema, "x-kubernetes-validations"), "x-kubernetes-validations", "must be empty to be structural");
    if (schema.get("properties", "metadata") != nullptr) {
      const Path properties = at.child("properties");
      report().forbidden(properties.key("metadata"), "must not be specified in a nested context");
    }
  }

  void junctors(const Value& schema, bool skip_any_of, bool skip_first_all_of_any_of, Level level, const Path& at) {
    auto each = [&](std::string_view key, auto&& skips) {
      const auto items = schema.items_at(key);
      for (size_t i = 0; i < items.size(); ++i) {
        if (items[i].is_map()) nested(items[i], skips(i), level, at.item(key, i));
      }
    };
    if (!skip_any_of) each("anyOf", [](size_t) { return false; });
    each("allOf", [&](size_t i) { return skip_first_all_of_any_of && i == 0; });
    each("oneOf", [](size_t) { return false; });
    if (const Value* negated = schema.find("not"); is_schema(negated)) nested(*negated, false, level, at.child("not"));
    const std::string_view pattern = schema.text_at("pattern");
    if (pattern.empty()) return;
    if (const std::string why = go_regexp_error(pattern); !why.empty())
      report().invalid(at.child("pattern"), pattern, "must be a valid regular expression, but isn't: " + why);
  }

  void metadata(const Value& schema, bool checked, Level level, const Path& at) {
    if (checked && schema.text_at("type") != "object")
      report().invalid(at.child("type"), schema.text_at("type"), "must be object");
    if (level != Level::Root) return;
    for (const Member& member : schema.members()) {
      if (member.key == "type" || member.key == "default" || member.key == "description") {
        if (member.key != "description") continue;
      }
      if (member.key == "properties" && member.value.is_map()) {
        const auto properties = member.value.members();
        if (std::all_of(properties.begin(), properties.end(),
                        [](const Member& p) { return p.key == "name" || p.key == "generateName"; }))
          continue;
      }
      report().forbidden(
          at, "must not specify anything other than name and generateName, but metadata is implicitly specified");
      return;
    }
  }

  void invariants(const Value& schema, Level level, const Path& at) {
    const std::string_view type = schema.text_at("type");
    const Value* items = schema.find("items");
    if (type == "array" && !is_schema(items)) report().required(at.child("items"), "must be specified");
    if (is_schema(items)) invariants(*items, Level::Item, at.child("items"));
    const Path properties_at = at.child("properties");
    for (const Member& property : schema.members_at("properties")) {
      if (property.value.is_map()) invariants(property.value, Level::Field, properties_at.key(property.key));
    }
    const Value* additional = schema.find("additionalProperties");
    if (additional != nullptr) {
      if (level == Level::Root) report().forbidden(at.child("additionalProperties"), "must not be used at the root");
      if (additional->is_map()) invariants(*additional, Level::Field, at.child("additionalProperties"));
    }
    const bool int_or_string = flag_at(schema, "x-kubernetes-int-or-string"),
               preserve = flag_at(schema, "x-kubernetes-preserve-unknown-fields"),
               embedded = flag_at(schema, "x-kubernetes-embedded-resource");
    if (int_or_string && preserve) {
      report().invalid(at.child("x-kubernetes-preserve-unknown-fields"), true,
                       "must be false if x-kubernetes-int-or-string is true");
    }
    if (int_or_string && embedded) {
      report().invalid(at.child("x-kubernetes-embedded-resource"), true,
                       "must be false if x-kubernetes-int-or-string is true");
    }
    const auto all_of = schema.items_at("allOf");
    junctors(schema, is_int_or_string_any_of(schema), !all_of.empty() && is_int_or_string_any_of(all_of[0]), level, at);

    const bool checked = level == Level::Root || embedded;
    if (embedded && type != "object") {
      constexpr std::string_view kDetail = "must be object if x-kubernetes-embedded-resource is true";
      if (type.empty())
        report().required(at.child("type"), kDetail);
      else
        report().invalid(at.child("type"), type, kDetail);
    } else if (type.empty() && !int_or_string && !preserve) {
      report().required(at.child("type"), level == Level::Root   ? "must not be empty at the root"
                                          : level == Level::Item ? "must not be empty for specified array items"
                                                                 : "must not be empty for specified object fields");
    }
    if (embedded && additional != nullptr)
      report().forbidden(at.child("additionalProperties"), "must not be used if x-kubernetes-embedded-resource is set");
    if (level == Level::Root && !type.empty() && type != "object")
      report().invalid(at.child("type"), type, "must be object at the root");
    for (std::string_view key : {"kind", "apiVersion"}) {
      const Value* property = schema.get("properties", key);
      if (property == nullptr || !checked || property->text_at("type") == "string") continue;
      const Path member = properties_at.key(key);
      report().invalid(member.child("type"), property->text_at("type"), "must be string");
    }
    if (const Value* property = schema.get("properties", "metadata"); is_schema(property))
      metadata(*property, checked, level, properties_at.key("metadata"));
    if (embedded && !preserve && schema.members_at("properties").empty()) {
      report().required(
          properties_at,
          "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields");
    }
  }

  // Fields mentioned in an alternative must be declared outside of it. Kubernetes requires that only for alternatives
  // at the root (validateStructuralCompleteness).
  void complete(const Value& outer, const Value& inner, const Path& outer_at, const Path& inner_at) {
    auto each = [&](std::string_view key) {
      const auto items = inner.items_at(key);
      for (size_t i = 0; i < items.size(); ++i) {
        if (items[i].is_map()) complete_nested(outer, items[i], outer_at, inner_at.item(key, i));
      }
    };
    each("allOf");
    each("anyOf");
    each("oneOf");
    if (const Value* negated = inner.find("not"); is_schema(negated))
      complete_nested(outer, *negated, outer_at, inner_at.child("not"));
  }
  void complete_nested(const Value& outer, const Value& nested_schema, const Path& outer_at, const Path& nested_at) {
    complete(outer, nested_schema, outer_at, nested_at);
    if (const Value* items = nested_schema.find("items"); is_schema(items)) {
      const Value* declared = outer.find("items");
      if (!is_schema(declared))
        report().required(outer_at.child("items"), "because it is defined in " + nested_at.child("items").text());
      else
        complete_nested(*declared, *items, outer_at.child("items"), nested_at.child("items"));
    }
    const Path outer_properties = outer_at.child("properties"), nested_properties = nested_at.child("properties");
    for (const Member& property : nested_schema.members_at("properties")) {
      const Value* declared = outer.get("properties", property.key);
      if (declared == nullptr) {
        report().required(outer_properties.key(property.key),
                          "because it is defined in " + nested_properties.key(property.key).text());
      } else if (property.value.is_map()) {
        complete_nested(*declared, property.value, outer_properties.key(property.key),
                        nested_properties.key(property.key));
      }
    }
  }
};

// A value as JSON with sorted maps, as in Go.
Shown shown_sorted(const Value& value) {
  return value.is_string() ? Shown(value.as_string()) : Shown::verbatim(codec::encode_json_sorted(value));
}

// Defaults must survive pruning and be valid against their own schema.
struct Defaults {
  FieldErrors& errors;
  bool must_be_pruned = true;
  bool unpruned = false;  // A default had fields unknown to the schema.
  int64_t rule_budget = cel::kRuntimeBudget;
  Arena arena = Arena();

  // The location of a schema inside the metadata, apiVersion or kind of an embedded resource.
  struct InMeta {
    const InMeta* parent = nullptr;  // Null for a member of the resource.
    std::string_view name;           // Empty for any item of a list.

    // The smallest resource with this value at the location.
    Value around(Arena& arena, const Value& value) const {
      if (name.empty()) {
        ListBuilder list(arena);
        list.add(value);
        return parent->around(arena, list.build());
      }
      MapBuilder map(arena);
      if (parent == nullptr) {
        if (name != "apiVersion") map.add("apiVersion", Value::string("validation/v1"));
        if (name != "kind") map.add("kind", Value::string("Validation"));
      }
      map.add(name, value);
      return parent == nullptr ? map.build() : parent->around(arena, map.build());
    }
  };

  void check(const Value& schema, const Path& at, bool root, const InMeta* in_meta) {
    const bool resource = root || flag_at(schema, "x-kubernetes-embedded-resource");
    if (resource) in_meta = nullptr;
    if (const Value* value = schema.find("default"); value != nullptr)
      check_default(schema, *value, at.child("default"), resource, in_meta);
    if (const Value* items = schema.find("items"); is_schema(items)) {
      const InMeta item{in_meta, {}};
      check(*items, at.child("items"), false, in_meta == nullptr ? nullptr : &item);
    }
    const Path properties = at.child("properties");
    for (const Member& property : schema.members_at("properties")) {
      if (!property.value.is_map()) continue;
      const bool meta = property.key == "metadata" || property.key == "kind" || property.key == "apiVersion";
      const InMeta member{in_meta, property.key};
      check(property.value, properties.key(property.key), false,
            in_meta != nullptr || (resource && meta) ? &member : nullptr);
    }
    // Kubernetes does not check defaults below additionalProperties.
  }

  void check_default(const Value& schema, const Value& value, const Path& at, bool resource, const InMeta* in_meta) {
    const types::Type& wrapped = schema::types_of(arena, wrap(schema), false);
    const types::Type& type = *types::find_member(wrapped, "value")->type;
    if (in_meta == nullptr) {
      MapBuilder holder(arena);
      holder.add("value", value);
      const Value object = holder.build();
      if (!schema::prune(arena, wrapped, object).same(object)) {
        unpruned = true;
        if (must_be_pruned) errors.invalid(at, shown_sorted(value), "must not have unknown fields");
      }
    }
    // Each step only runs if the previous ones found no errors.
    const size_t before = errors.count();
    if (in_meta != nullptr) {
      result_in_metadata(in_meta->around(arena, value), value, at);
    } else {
      validate_embedded(type, value, at, errors);
    }
    if (errors.count() == before) validate_value(type, value, nullptr, &at, errors);
    if (errors.count() == before) run_default_rules(schema, resource, value, at, rule_budget, errors);
  }

  void result_in_metadata(const Value& resource, const Value& value, const Path& at) {
    FieldErrors found;
    validate_lone_resource(resource, found);
    if (found.empty()) return;
    errors.invalid(at, shown_sorted(value), "must result in valid metadata: " + aggregate_text(found.all()));
  }

  // {type: object, properties: {value: SCHEMA}}: wraps any schema in a valid root.
  Value wrap(const Value& schema) {
    MapBuilder properties(arena), root(arena);
    properties.add("value", schema);
    root.add("type", Value::string("object"));
    root.add("properties", properties.build());
    return root.build();
  }
};

constexpr std::string_view kTypes[] = {"array", "boolean", "integer", "number", "object", "string"};
bool has_known_type(const Value& schema) {
  const std::string_view type = schema.text_at("type");
  return type.empty() || std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

// The keyword that should make the items of a set atomic but does not; empty if they are atomic or it is not a set.
std::string_view not_atomic(const Value& schema) {
  const Value* items = schema.find("items");
  if (schema.text_at("x-kubernetes-list-type") != "set" || !is_schema(items)) return {};
  constexpr std::string_view kList = "x-kubernetes-list-type", kMap = "x-kubernetes-map-type";
  const std::string_view type = items->text_at("type");
  if (type == "array" && items->has(kList) && items->text_at(kList) != "atomic") return kList;
  if (type == "object" && items->text_at(kMap) != "atomic") return kMap;
  return {};
}

// Items and keys of sets and keyed lists must always be present.
void list_items(const Value& schema, const Path& at, FieldErrors& errors) {
  const Value* items = schema.find("items");
  const std::string_view kind = schema.text_at("x-kubernetes-list-type");
  if (!is_schema(items) || (kind != "set" && kind != "map")) return;
  const Path items_at = at.child("items"), properties = items_at.child("properties");
  if (flag_at(*items, "nullable")) {
    errors.forbidden(items_at.child("nullable"),
                     "cannot be nullable when x-kubernetes-list-type is " + std::string(kind));
  }
  if (kind != "map") return;
  std::unordered_set<std::string_view, KeyHash> required;
  for (const Value& name : items->items_at("required")) {
    if (name.is_string()) required.insert(name.as_string());
  }
  for (const Value& key : schema.items_at("x-kubernetes-list-map-keys")) {
    if (!key.is_string()) continue;
    const Value* property = items->get("properties", key.as_string());
    if (property == nullptr) continue;
    const Path at_key = properties.key(key.as_string());
    if (!required.contains(key.as_string()) && !property->has("default")) {
      errors.required(
          at_key.child("default"),
          "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property");
    }
    if (flag_at(*property, "nullable")) {
      errors.forbidden(at_key.child("nullable"),
                       "this property is in x-kubernetes-list-map-keys, so it cannot be nullable");
    }
  }
}

// Validates the individual keywords.
struct Keywords {
  FieldErrors& errors;
  const SchemaRequirements& demands;
  std::set<std::string> flawed = {};  // Paths of schemas with an error in their rules or anywhere below.

  struct Place {
    bool root = false;
    bool inside_meta = false;
    std::string forbidden_default = {};  // Why a default is not allowed here; empty if it is.
  };

  void standard(const Value& schema, const Place& place, const Path& at) {
    const std::string_view type = schema.text_at("type");
    if (demands.known_types && !has_known_type(schema)) errors.not_supported(at.child("type"), type, kTypes);
    if (schema.has("default") && !place.forbidden_default.empty())
      errors.forbidden(at.child("default"), "must not be set " + place.forbidden_default);
    auto unsupported = [&](bool present, std::string_view key) {
      if (present) errors.forbidden(at.child(key), std::string(key) + " is not supported");
    };
    unsupported(has_text(schema, "id"), "id");
    unsupported(schema.has("additionalItems"), "additionalItems");
    unsupported(!schema.members_at("patternProperties").empty(), "patternProperties");
    unsupported(!schema.members_at("definitions").empty(), "definitions");
    unsupported(schema.has("dependencies"), "dependencies");
    unsupported(schema.has("$ref"), "$ref");
    if (type == "null")
      errors.forbidden(at.child("type"), "type cannot be set to null, use nullable as an alternative");
    if (const Value* items = schema.find("items"); items != nullptr && items->is_list() && items->count() > 0) {
      errors.forbidden(at.child("items"), "items must be a schema object and not an array");
    }
    if (place.inside_meta && flag_at(schema, "x-kubernetes-embedded-resource")) {
      errors.forbidden(at.child("x-kubernetes-embedded-resource"), "must not be used inside of resource meta");
    }
  }

  void check(const Value& schema, const Place& place, const Path& at) {
    const size_t before = errors.count();
    check_all(schema, place, at);
    if (errors.count() > before && !schema.items_at("x-kubernetes-validations").empty()) flawed.insert(at.text());
  }

  void check_each(const Value& schema, std::string_view key, const Place& place, const Path& at) {
    const auto items = schema.items_at(key);
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].is_map()) check(items[i], place, at.item(key, i));
    }
  }
  void check_named(const Value& schema, std::string_view key, const Place& place, const Path& at) {
    const Path named = at.child(key);
    for (const Member& member : schema.members_at(key)) {
      if (member.value.is_map()) check(member.value, place, named.key(member.key));
    }
  }

  void check_all(const Value& schema, const Place& place, const Path& at) {
    standard(schema, place, at);
    if (flag_at(schema, "uniqueItems")) {
      errors.forbidden(at.child("uniqueItems"),
                       "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
    }
    if (const Value* additional = schema.find("additionalProperties")) {
      const bool plainly_true = additional->is_bool() && additional->as_bool();
      if (!schema.members_at("properties").empty() && !plainly_true) {
        errors.forbidden(at.child("additionalProperties"), "additionalProperties and properties are mutual exclusive");
      }
      if (additional->is_map()) {
        Place inner{false, place.inside_meta, place.forbidden_default};
        if (place.inside_meta) inner.forbidden_default = "inside additionalProperties applying to object metadata";
        check(*additional, inner, at.child("additionalProperties"));
      }
    }
    const bool resource = place.root || flag_at(schema, "x-kubernetes-embedded-resource");
    const Path properties = at.child("properties");
    for (const Member& property : schema.members_at("properties")) {
      Place inner{false, place.inside_meta, place.forbidden_default};
      if (resource && (property.key == "metadata" || property.key == "kind" || property.key == "apiVersion")) {
        inner.inside_meta = true;
        if (place.root) inner.forbidden_default = "in top-level " + std::string(property.key);
      }
      if (property.value.is_map()) check(property.value, inner, properties.key(property.key));
    }
    const Place inner{false, place.inside_meta, place.forbidden_default};
    if (const Value* negated = schema.find("not"); is_schema(negated)) check(*negated, inner, at.child("not"));
    for (const std::string_view key : {"allOf", "oneOf", "anyOf"}) check_each(schema, key, inner, at);
    check_named(schema, "definitions", inner, at);
    if (const Value* items = schema.find("items"); is_schema(items)) check(*items, inner, at.child("items"));
    check_each(schema, "items", inner, at);
    check_named(schema, "dependencies", inner, at);
    if (const Value* preserve = schema.find("x-kubernetes-preserve-unknown-fields");
        preserve != nullptr && preserve->is_bool() && !preserve->as_bool()) {
      errors.invalid(at.child("x-kubernetes-preserve-unknown-fields"), false, "must be true or undefined");
    }
    map_type(schema, at);
    list_type(schema, at);
    list_map(schema, at);
    if (demands.present_keys) list_items(schema, at, errors);
    rules(schema, at);
  }

  void map_type(const Value& schema, const Path& at) {
    const Value* kind = schema.find("x-kubernetes-map-type");
    if (kind == nullptr || !kind->is_string()) return;
    const std::string_view type = schema.text_at("type");
    constexpr std::string_view kDetail = "must be object if x-kubernetes-map-type is specified";
    if (type.empty())
      errors.required(at.child("type"), kDetail);
    else if (type != "object")
      errors.invalid(at.child("type"), type, kDetail);
    if (kind->as_string() != "atomic" && kind->as_string() != "granular") {
      errors.not_supported(at.child("x-kubernetes-map-type"), kind->as_string(), {"atomic", "granular"});
    }
  }

  void list_type(const Value& schema, const Path& at) {
    const Value* kind = schema.find("x-kubernetes-list-type");
    const bool has_kind = kind != nullptr && kind->is_string();
    const std::string_view kind_text = has_kind ? kind->as_string() : std::string_view{}, type = schema.text_at("type");
    if (has_kind) {
      constexpr std::string_view kDetail = "must be array if x-kubernetes-list-type is specified";
      if (type.empty()) {
        errors.required(at.child("type"), kDetail);
      } else if (type != "array") {
        errors.invalid(at.child("type"), type, kDetail);
      } else if (const std::string_view key = not_atomic(schema); !key.empty() && demands.atomic_sets) {
        const Path items = at.child("items");
        errors.invalid(items.child(key), schema.get("items", "x-kubernetes-list-type"),
                       "must be atomic as item of a list with x-kubernetes-list-type=set");
      }
      if (kind_text != "atomic" && kind_text != "set" && kind_text != "map") {
        errors.not_supported(at.child("x-kubernetes-list-type"), kind_text, {"atomic", "set", "map"});
      }
    }
    if (schema.items_at("x-kubernetes-list-map-keys").empty()) return;
    constexpr std::string_view kDetail = "must be map if x-kubernetes-list-map-keys is non-empty";
    if (!has_kind)
      errors.required(at.child("x-kubernetes-list-type"), kDetail);
    else if (kind_text != "map")
      errors.invalid(at.child("x-kubernetes-list-type"), kind_text, kDetail);
  }

  void list_map(const Value& schema, const Path& at) {
    if (schema.text_at("x-kubernetes-list-type") != "map") return;
    const Value* items = schema.find("items");
    const auto keys = schema.items_at("x-kubernetes-list-map-keys");
    const Path items_at = at.child("items"), keys_at = at.child("x-kubernetes-list-map-keys");
    if (keys.empty()) errors.required(keys_at, "must not be empty if x-kubernetes-list-type is map");
    if (items == nullptr) return errors.required(items_at, "must have a schema if x-kubernetes-list-type is map");
    if (!items->is_map()) {
      return errors.invalid(items_at, Shown::verbatim(go_schema_or_list(*items)),
                            "must only have a single schema if x-kubernetes-list-type is map");
    }
    if (items->text_at("type") != "object") {
      return errors.invalid(items_at.child("type"), items->text_at("type"),
                            "must be object if parent array's x-kubernetes-list-type is map");
    }
    std::set<std::string_view> seen;
    const Value* const written = schema.find("x-kubernetes-list-map-keys");  // Non-null if there are keys.
    const Path properties = items_at.child("properties");
    for (const Value& key : keys) {
      if (!key.is_string()) continue;
      const Value* property = items->get("properties", key.as_string());
      if (property == nullptr) {
        errors.invalid(keys_at, *written, "entries must all be names of item properties");
      } else if (const std::string_view type = property->text_at("type"); type == "array" || type == "object") {
        const Path at_key = properties.key(key.as_string());
        errors.invalid(at_key.child("type"), items->text_at("type"),
                       "must be a scalar type if parent array's x-kubernetes-list-type is map");
      }
      if (!seen.insert(key.as_string()).second) errors.invalid(keys_at, *written, "must not contain duplicate entries");
    }
  }

  // Checks of CEL rules that do not require compilation.
  void rules(const Value& schema, const Path& at) {
    const auto all = schema.items_at("x-kubernetes-validations");
    for (size_t i = 0; i < all.size(); ++i) {
      const Path rule_at = at.item("x-kubernetes-validations", i);
      auto has_break = [](std::string_view text) { return text.find_first_of("\n\r") != std::string_view::npos; };
      const std::string_view rule = all[i].text_at("rule"), message = all[i].text_at("message");
      if (trim(rule).empty()) {
        errors.required(rule_at.child("rule"), "rule is not specified");
      } else if (!message.empty() && trim(message).empty()) {
        errors.invalid(rule_at.child("message"), message, "must be non-empty if specified");
      } else if (has_break(trim(message))) {
        errors.invalid(rule_at.child("message"), message, "must not contain line breaks");
      } else if (has_break(trim(rule)) && trim(message).empty()) {
        errors.required(rule_at.child("message"), "message must be specified if rule contains line breaks");
      }
      if (const std::string_view expression = all[i].text_at("messageExpression");
          !expression.empty() && trim(expression).empty()) {
        errors.required(rule_at.child("messageExpression"), "messageExpression must be non-empty if specified");
      }
      if (const Value* reason = all[i].find("reason"); reason != nullptr && reason->is_string()) {
        static constexpr std::string_view kReasons[] = {"FieldValueDuplicate", "FieldValueForbidden",
                                                        "FieldValueInvalid", "FieldValueRequired"};
        if (std::find(std::begin(kReasons), std::end(kReasons), reason->as_string()) == std::end(kReasons)) {
          errors.not_supported(rule_at.child("reason"), reason->as_string(), kReasons);
        }
      }
      if (const std::string_view path = all[i].text_at("fieldPath"); !path.empty()) {
        if (trim(path).empty()) errors.invalid(rule_at.child("fieldPath"), path, "must be non-empty if specified");
        if (has_break(path)) errors.invalid(rule_at.child("fieldPath"), path, "must not contain line breaks");
        if (nonstructural_keyword(schema).empty() && !cel::shown_field_path(path, schema)) {
          errors.invalid(rule_at.child("fieldPath"), path, "must be a valid path");
        }
      }
    }
  }
};

}  // namespace

std::string nonstructural_keyword(const Value& schema) {
  if (!schema.is_map()) return {};
  const auto unsupported = [](std::string_view key) {
    return "OpenAPIV3Schema '" + std::string(key) + "' is not supported";
  };
  if (has_text(schema, "id")) return unsupported("id");
  if (has_text(schema, "$schema")) return unsupported("schema");
  if (has_text(schema, "$ref")) return unsupported("$ref");
  if (!schema.members_at("patternProperties").empty()) return unsupported("patternProperties");
  if (!schema.members_at("dependencies").empty()) return unsupported("dependencies");
  if (schema.has("additionalItems")) return unsupported("additionalItems");
  if (!schema.members_at("definitions").empty()) return unsupported("definitions");
  const auto inside = [&schema](std::string_view key) {
    const Value* inner = schema.find(key);
    return is_schema(inner) ? nonstructural_keyword(*inner) : std::string();
  };
  if (std::string why = inside("not"); !why.empty()) return why;
  for (const std::string_view key : {"allOf", "anyOf", "oneOf"}) {
    for (const Value& item : schema.items_at(key)) {
      if (std::string why = nonstructural_keyword(item); !why.empty()) return why;
    }
  }
  constexpr std::string_view kPreserve = "x-kubernetes-preserve-unknown-fields";
  if (const Value* preserve = schema.find(kPreserve);
      preserve != nullptr && preserve->is_bool() && !preserve->as_bool()) {
    return "internal error: '" + std::string(kPreserve) + "' must be true or undefined";
  }
  if (!schema.items_at("items").empty()) return "OpenAPIV3Schema 'items' must be a schema, but is an array";
  if (std::string why = inside("items"); !why.empty()) return why;
  for (const Member& property : schema.members_at("properties")) {
    if (std::string why = nonstructural_keyword(property.value); !why.empty()) return why;
  }
  return inside("additionalProperties");
}

void validate_structural(const Value& schema, const Path& at, FieldErrors& errors) {
  Structural form;
  form.invariants(schema, Level::Root, at);
  form.complete(schema, schema, at, at);
  const auto text = [](const FieldErrors& one) { return one.all()[0].field + ": " + one.all()[0].message; };
  std::sort(form.found.begin(), form.found.end(),
            [&](const FieldErrors& a, const FieldErrors& b) { return text(a) < text(b); });
  for (FieldErrors& one : form.found) errors.append(std::move(one));
}

void validate_schema(const Value& schema, bool status_enabled, const SchemaRequirements& demands, const Path& at,
                     FieldErrors& errors) {
  const size_t at_first = errors.count();
  if (status_enabled) {
    // Status is validated by its own part of the schema, so only keywords that cannot affect it are allowed at the
    // root.
    static constexpr std::string_view kAllowed[] = {"description",
                                                    "type",
                                                    "format",
                                                    "title",
                                                    "maximum",
                                                    "exclusiveMaximum",
                                                    "minimum",
                                                    "exclusiveMinimum",
                                                    "maxLength",
                                                    "minLength",
                                                    "pattern",
                                                    "maxItems",
                                                    "minItems",
                                                    "uniqueItems",
                                                    "multipleOf",
                                                    "required",
                                                    "items",
                                                    "properties",
                                                    "externalDocs",
                                                    "example",
                                                    "x-kubernetes-preserve-unknown-fields",
                                                    "x-kubernetes-validations"};
    for (const Member& member : schema.members()) {
      if (member.key == "type") {
        if (schema.text_at("type") != "object") {
          errors.invalid(
              at.child("type"), schema.text_at("type"),
              "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled");
          break;
        }
        continue;
      }
      if (std::find(std::begin(kAllowed), std::end(kAllowed), member.key) == std::end(kAllowed)) {
        errors.invalid(at, Shown::verbatim(go_schema(schema)),
                       "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum "
                       "MaxLength MinLength Pattern MaxItems MinItems "
                       "UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
                       "XValidations] fields are allowed at the "
                       "root of the schema if the status subresource is enabled");
        break;
      }
    }
  }
  if (flag_at(schema, "nullable")) errors.forbidden(at.child("nullable"), "nullable cannot be true at the root");

  // A schema without structural form gets only keyword errors, or a single error if there are none.
  const std::string formless = demands.structural ? nonstructural_keyword(schema) : std::string();
  bool is_right = demands.structural && formless.empty();
  if (is_right) {
    const size_t before = errors.count();
    validate_structural(schema, at, errors);
    if (errors.count() == before)
      Defaults{.errors = errors, .must_be_pruned = demands.pruned_defaults}.check(schema, at, true, nullptr);
    is_right = errors.count() == before;
  }
  Keywords keywords{.errors = errors, .demands = demands};
  keywords.check(schema, {.root = true}, at);
  if (errors.count() == at_first && !formless.empty()) errors.invalid(at, "", formless);
  // Rules are compiled only if they and everything below them are valid otherwise.
  if (is_right) validate_rules(schema, keywords.flawed, demands.rule_costs, at, errors);
}

SchemaRequirements demands_after(std::span<const Value> stored_schemas) {
  SchemaRequirements demands;
  for (const Value& schema : stored_schemas) {
    FieldErrors found;
    if (nonstructural_keyword(schema).empty()) validate_structural(schema, Path("schema"), found);
    const bool structural = nonstructural_keyword(schema).empty() && found.empty();
    demands.structural &= structural;
    demands.known_types &= !any_schema(schema, [](const Value& part) { return !has_known_type(part); });
    demands.atomic_sets &= !any_schema(schema, [](const Value& part) { return !not_atomic(part).empty(); });
    demands.present_keys &= !any_schema(schema, [](const Value& part) {
      FieldErrors missing;
      list_items(part, Path("schema"), missing);
      return !missing.empty();
    });
    if (!structural) continue;
    Defaults defaults{.errors = found};
    defaults.check(schema, Path("schema"), true, nullptr);
    demands.pruned_defaults &= !defaults.unpruned;
  }
  return demands;
}

bool any_schema(const Value& schema, const std::function<bool(const Value& part)>& holds) {
  if (!schema.is_map()) return false;
  if (holds(schema)) return true;
  const auto inside = [&holds](const Value& part) { return any_schema(part, holds); };
  for (const std::string_view key : {"items", "not", "additionalProperties", "additionalItems"}) {
    if (const Value* inner = schema.find(key); inner != nullptr && inside(*inner)) return true;
  }
  for (const std::string_view key : {"items", "allOf", "anyOf", "oneOf"}) {
    const auto inner = schema.items_at(key);
    if (std::any_of(inner.begin(), inner.end(), inside)) return true;
  }
  for (const std::string_view key : {"properties", "patternProperties", "definitions", "dependencies"}) {
    const auto inner = schema.members_at(key);
    if (std::any_of(inner.begin(), inner.end(), [&](const Member& member) { return inside(member.value); }))
      return true;
  }
  return false;
}

}  // namespace holdfast::crd
