#include <algorithm>
#include <map>

#include "openapi/model.h"
#include "types/descriptions.h"

namespace holdfast::openapi {
namespace {

using types::Shape;
using types::Type;

constexpr std::string_view kMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.";
constexpr std::string_view kVersionInfo = "io.k8s.apimachinery.pkg.version.Info";

// Groups that register the option kinds, in addition to those that serve resources.
constexpr std::pair<std::string_view, std::string_view> kOptionOnlyGroups[] = {{"admission.k8s.io", "v1"},
                                                                               {"admission.k8s.io", "v1beta1"}};

struct Writer {
  Arena& arena;
  const Source& source;
  Form form;
  std::string_view group, version;
  std::set<std::string> wanted;          // Referenced but not written yet.
  std::map<std::string, Value> written;  // By name.
  std::shared_ptr<const types::Descriptions> descriptions = types::Descriptions::get();

  std::string_view prefix() const { return form == Form::V3 ? "#/components/schemas/" : "#/definitions/"; }
  bool v3() const { return form == Form::V3; }

  Value text(std::string_view value) { return Value::string(arena, value); }

  Value strings(std::span<const std::string_view> values) {
    ListBuilder list(arena);
    for (std::string_view value : values) list.add(Value::string(value));
    return list.build();
  }

  Value reference(std::string_view name) {
    if (!written.contains(std::string(name))) wanted.insert(std::string(name));
    MapBuilder map(arena);
    map.add("$ref", text(std::string(prefix()) + std::string(name)));
    return map.build();
  }

  // A reference with members next to it: v3 wraps the reference, v2 puts them side by side.
  void add_reference(MapBuilder& schema, std::string_view name, bool alone) {
    const Value target = reference(name);
    if (!v3() || alone) {
      schema.add("$ref", *target.find("$ref"));
      return;
    }
    ListBuilder all(arena);
    all.add(target);
    schema.add("allOf", all.build());
  }

  static bool is_reference(const Type& type) { return !type.openapi_name.empty(); }

  // The zero value that v3 declares as the default of fields that always have a value, or null.
  static const Value* zero_default(const Type& type) {
    static constexpr Value kText = Value::string(""), kZero = Value::integer(0), kFalse = Value::boolean(false);
    static const Value kEmpty = Value::empty_map();
    switch (type.shape) {
      case Shape::String:
        return &kText;
      case Shape::Int32:
      case Shape::Int64:
      case Shape::Double:
        return &kZero;
      case Shape::Bool:
        return &kFalse;
      case Shape::Struct:
        return is_reference(type) ? &kEmpty : nullptr;
      default:
        return nullptr;
    }
  }

  void add_scalar(MapBuilder& schema, const Type& type) {
    auto set = [&](std::string_view name, std::string_view format) {
      schema.add("type", Value::string(name));
      if (!format.empty()) schema.add("format", Value::string(format));
    };
    switch (type.shape) {
      case Shape::Bool:
        return set("boolean", "");
      case Shape::Int32:
        return set("integer", "int32");
      case Shape::Int64:
        return set("integer", "int64");
      case Shape::Double:
        return set("number", "double");
      case Shape::Bytes:
        return set("string", "byte");
      case Shape::Duration:
        return set("string", "");
      default:
        return set("string", type.format);
    }
  }

  // An element of a list or map.
  Value element(const Type& type, bool pointer, std::span<const std::string_view> enum_values = {}) {
    const Value* zero = v3() && !pointer ? zero_default(type) : nullptr;
    MapBuilder schema(arena);
    if (is_reference(type)) {
      if (zero != nullptr) schema.add("default", *zero);
      add_reference(schema, type.openapi_name, zero == nullptr);
      return schema.build();
    }
    add_inline(schema, type);
    if (zero != nullptr) schema.add("default", *zero);
    if (!enum_values.empty()) schema.add("enum", strings(enum_values));
    return schema.build();
  }

  // `enum_values` of a list or map apply to its elements.
  void add_inline(MapBuilder& schema, const Type& type, std::span<const std::string_view> enum_values = {}) {
    switch (type.shape) {
      case Shape::List:
        schema.add("type", Value::string("array"));
        schema.add("items", element(*type.element, type.element_pointer, enum_values));
        return;
      case Shape::Map:
        schema.add("type", Value::string("object"));
        schema.add("additionalProperties", element(*type.element, type.element_pointer, enum_values));
        return;
      case Shape::Any:
      case Shape::Raw:
      case Shape::FieldsV1:
      case Shape::Struct:
        schema.add("type", Value::string("object"));
        return;
      default:
        add_scalar(schema, type);
        return;
    }
  }

  // PodList and the like.
  static bool is_list_kind(const Type& type) {
    const types::Field* metadata = types::find_member(type, "metadata");
    return metadata != nullptr && metadata->type->name == "meta/v1.ListMeta";
  }

  void add_extensions(MapBuilder& schema, const Type& parent, const types::Field& field) {
    const Type& type = *field.type;
    // Kubernetes declares no list type for lists that are not marked in its source.
    if (type.shape == Shape::List) {
      if (type.list_kind == types::ListKind::Keyed) {
        schema.add("x-kubernetes-list-map-keys", strings(type.list_keys));
        schema.add("x-kubernetes-list-type", Value::string("map"));
      } else if (type.list_kind == types::ListKind::Set) {
        schema.add("x-kubernetes-list-type", Value::string("set"));
      } else if (!type.wrapped && !(field.name == "items" && is_list_kind(parent))) {
        schema.add("x-kubernetes-list-type", Value::string("atomic"));
      }
    }
    if (field.overrides_map_kind) {
      schema.add("x-kubernetes-map-type",
                 Value::string(field.map_kind == types::MapKind::Atomic ? "atomic" : "granular"));
    } else if (type.shape == Shape::Map && type.map_kind == types::MapKind::Atomic) {
      schema.add("x-kubernetes-map-type", Value::string("atomic"));
    }
    if (!field.patch_merge_key.empty())
      schema.add("x-kubernetes-patch-merge-key", Value::string(field.patch_merge_key));
    if (field.patch_strategy != types::kPatchNone) {
      std::string strategy;
      auto add = [&strategy](std::string_view word) { strategy += (strategy.empty() ? "" : ",") + std::string(word); };
      if (field.patch_strategy & types::kPatchMerge) add("merge");
      if (field.patch_strategy & types::kPatchRetainKeys) add("retainKeys");
      if (field.patch_strategy & types::kPatchReplace) add("replace");
      schema.add("x-kubernetes-patch-strategy", text(strategy));
    }
  }

  Value property(const Type& parent, const types::Field& field) {
    const Type& type = *field.type;
    MapBuilder extensions(arena);
    add_extensions(extensions, parent, field);
    const Value extra = extensions.build();
    const Value* default_value = nullptr;
    if (v3()) {
      default_value = field.default_value;
      // Fields that Go always prints have a value even if not set.
      const bool always_printed = !field.omit_empty && !field.omit_zero && !field.pointer;
      if (default_value == nullptr && always_printed && type.shape != Shape::Struct) default_value = zero_default(type);
    }
    MapBuilder schema(arena);
    const std::string_view description = descriptions->of(field);
    if (!description.empty()) schema.add("description", text(description));
    if (is_reference(type)) {
      if (default_value != nullptr) schema.add("default", *default_value);
      add_reference(schema, type.openapi_name, default_value == nullptr && extra.count() == 0 && description.empty());
    } else {
      const bool of_elements = type.shape == Shape::List || type.shape == Shape::Map;
      add_inline(schema, type, field.enum_values);
      if (default_value != nullptr) schema.add("default", *default_value);
      if (!field.enum_values.empty() && !of_elements) schema.add("enum", strings(field.enum_values));
    }
    for (const Member& member : extra.members()) schema.add(member.key, member.value);
    return schema.build();
  }

  Value kind_entry(std::string_view kind_group, std::string_view kind, std::string_view kind_version) {
    MapBuilder entry(arena);
    entry.add("group", text(kind_group));
    entry.add("kind", text(kind));
    entry.add("version", text(kind_version));
    return entry.build();
  }

  // The kinds whose objects have this schema.
  Value kinds_of(const Type& type) {
    const size_t dot = type.name.rfind('.');
    const std::string_view kind = dot == std::string_view::npos ? type.name : type.name.substr(dot + 1);
    ListBuilder list(arena);
    const bool meta = type.openapi_name.starts_with(kMeta);
    if (meta && (kind == "DeleteOptions" || kind == "WatchEvent")) {
      std::set<std::pair<std::string_view, std::string_view>> all = {{"", "v1"}};
      if (v3()) {
        all.insert({group, version});
      } else {
        all.insert(std::begin(kOptionOnlyGroups), std::end(kOptionOnlyGroups));
        for (const Served& served : source.resources) {
          if (!served.custom) all.insert({served.resource->group, served.resource->version});
        }
      }
      for (const auto& [g, v] : all) list.add(kind_entry(g, kind, v));
      return list.build();
    }
    if (meta) {
      static constexpr std::string_view kPlain[] = {"APIGroup", "APIGroupList", "APIResourceList", "APIVersions",
                                                    "Status"};
      if (std::find(std::begin(kPlain), std::end(kPlain), kind) != std::end(kPlain))
        list.add(kind_entry("", kind, "v1"));
      return list.build();
    }
    for (const types::Resource& resource : types::builtin_resources()) {
      if (resource.type == &type || resource.list_type == &type) {
        list.add(kind_entry(resource.group, kind, resource.version));
        return list.build();
      }
      for (const types::Subresource& sub : resource.subresources) {
        // Bodies that exist only as subresources: Scale, Eviction, TokenRequest.
        if (sub.version.empty() || sub.kind != kind) continue;
        const std::string_view first = sub.group.substr(0, sub.group.find('.'));
        if (type.name != std::string(first) + "/" + std::string(sub.version) + "." + std::string(kind)) continue;
        list.add(kind_entry(sub.group, kind, sub.version));
        return list.build();
      }
    }
    return list.build();
  }

  void add_properties(MapBuilder& schema, const Type& type) {
    std::map<std::string_view, const types::Field*> by_name;
    ListBuilder required(arena);
    for (const types::Field* member : type.members) {
      if (!member->exists(&source.gates)) continue;
      by_name.emplace(member->name, member);
      if (member->required) required.add(Value::string(member->name));
    }
    if (required.count() > 0) schema.add("required", required.build());
    if (by_name.empty()) return;
    MapBuilder properties(arena);
    for (const auto& [name, field] : by_name) properties.add(name, property(type, *field));
    schema.add("properties", properties.build());
  }

  Value one_of(std::string_view a, std::string_view b) {
    ListBuilder list(arena);
    for (std::string_view type : {a, b}) {
      MapBuilder option(arena);
      option.add("type", Value::string(type));
      list.add(option.build());
    }
    return list.build();
  }

  Value schema_of(const Type& type) {
    MapBuilder schema(arena);
    if (const std::string_view own = descriptions->of(type); !own.empty()) schema.add("description", text(own));
    switch (type.shape) {
      case Shape::Struct: {
        schema.add("type", Value::string("object"));
        add_properties(schema, type);
        break;
      }
      case Shape::Quantity:
        if (v3())
          schema.add("oneOf", one_of("string", "number"));
        else
          schema.add("type", Value::string("string"));
        break;
      case Shape::IntOrString:
        if (v3()) {
          schema.add("format", Value::string("int-or-string"));
          schema.add("oneOf", one_of("integer", "string"));
        } else {
          schema.add("type", Value::string("string"));
          schema.add("format", Value::string("int-or-string"));
        }
        break;
      case Shape::Time:
      case Shape::MicroTime:
        schema.add("type", Value::string("string"));
        schema.add("format", Value::string("date-time"));
        break;
      case Shape::SchemaOrBool:
      case Shape::SchemaOrArray:
      case Shape::SchemaOrStringArray:
        break;  // Their schema cannot be expressed.
      case Shape::Raw:
        // apiextensions' JSON is any value; a RawExtension is an object.
        if (type.openapi_name.find("apiextensions") == std::string_view::npos)
          schema.add("type", Value::string("object"));
        break;
      default:
        add_inline(schema, type);
        break;
    }
    if (const Value kinds = kinds_of(type); kinds.count() > 0) schema.add("x-kubernetes-group-version-kind", kinds);
    if (type.shape == Shape::Struct && type.map_kind == types::MapKind::Atomic)
      schema.add("x-kubernetes-map-type", Value::string("atomic"));
    if (!type.unions.empty()) {
      ListBuilder unions(arena);
      for (const types::Union& item : type.unions) {
        MapBuilder fields(arena), entry(arena);
        for (const auto& field : item.fields) fields.add(field.name, Value::string(field.value));
        if (!item.discriminator.empty()) entry.add("discriminator", Value::string(item.discriminator));
        entry.add("fields-to-discriminateBy", fields.build());
        unions.add(entry.build());
      }
      schema.add("x-kubernetes-unions", unions.build());
    }
    return schema.build();
  }

  // The response of /version, which is not an API type.
  Value version_info() {
    static constexpr std::string_view kRequired[] = {
        "major", "minor", "gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"};
    static constexpr std::pair<std::string_view, std::string_view> kDescribed[] = {
        {"buildDate", "When the server was built."},
        {"compiler", "Compiler that built the server."},
        {"emulationMajor", "Major version of the API that is served."},
        {"emulationMinor", "Minor version of the API that is served."},
        {"gitCommit", "Commit that the server was built from."},
        {"gitTreeState", "Whether the sources were those of the commit."},
        {"gitVersion", "Version of the API with its patch level, such as v1.36.0."},
        {"goVersion", "Version of Go, where the server is written in it."},
        {"major", "Major version of the server's API."},
        {"minCompatibilityMajor", "Major version of the oldest servers that can share its data."},
        {"minCompatibilityMinor", "Minor version of the oldest servers that can share its data."},
        {"minor", "Minor version of the server's API."},
        {"platform", "Operating system and processor of the server."},
    };
    MapBuilder properties(arena);
    for (const auto& [name, description] : kDescribed) {
      MapBuilder property(arena);
      property.add("description", Value::string(description));
      property.add("type", Value::string("string"));
      const bool required = std::find(std::begin(kRequired), std::end(kRequired), name) != std::end(kRequired);
      if (required && v3()) property.add("default", Value::string(""));
      properties.add(name, property.build());
    }
    MapBuilder schema(arena);
    schema.add("description", Value::string("Versions of the server."));
    schema.add("type", Value::string("object"));
    schema.add("required", strings(kRequired));
    schema.add("properties", properties.build());
    return schema.build();
  }

  // --- Custom resources: the source schema, plus the members that every object has. ---

  Value type_property(std::string_view description) {
    MapBuilder property(arena);
    property.add("description", Value::string(description));
    property.add("type", Value::string("string"));
    return property.build();
  }

  static bool is_true(const Value& schema, std::string_view key) {
    const Value* value = schema.find(key);
    return value != nullptr && value->is_bool() && value->as_bool();
  }

  static bool is_junctor(std::string_view key) {
    return key == "oneOf" || key == "anyOf" || key == "allOf" || key == "not";
  }

  // The schema as interpreted by the rules for structural schemas. v2 cannot express alternatives and nulls, and
  // clients validate against it: anything that would make them reject valid objects is omitted.
  Value published(const Value& schema) {
    if (!schema.is_map()) return schema;
    const bool open = is_true(schema, "x-kubernetes-preserve-unknown-fields");
    const bool may_be_null = is_true(schema, "nullable");
    const bool embedded = is_true(schema, "x-kubernetes-embedded-resource") && (v3() || !open);
    const bool without_parts = !v3() && (open || may_be_null);
    const Value* additional = schema.find("additionalProperties");
    std::map<std::string_view, Value> properties;
    std::vector<std::string_view> required;
    MapBuilder result(arena);
    for (const Member& member : schema.members()) {
      const std::string_view key = member.key;
      if (!v3() && (is_junctor(key) || key == "nullable" || key == "default")) continue;
      if (member.value.is_bool() && !member.value.as_bool() && key != "default" && key != "example" &&
          key != "additionalProperties") {
        continue;
      }
      if (key == "required") {
        for (const Value& name : member.value.items()) {
          const Value* property = schema.get("properties", name.as_string());
          if (v3() || property == nullptr || !is_true(*property, "nullable")) required.push_back(name.as_string());
        }
        if (!v3() && additional != nullptr && additional->is_map() && is_true(*additional, "nullable")) {
          required.clear();
        }
      } else if (key == "properties") {
        if (without_parts) continue;
        for (const Member& property : member.value.members()) {
          properties.insert_or_assign(property.key, published(property.value));
        }
      } else if (key == "items") {
        if (!without_parts) result.add(key, published(member.value));
      } else if (key == "additionalProperties") {
        result.add(key, published(member.value));
      } else if (key == "type") {
        const std::string_view type = member.value.is_string() ? member.value.as_string() : "";
        const bool unsaid = may_be_null || (open && (type == "array" || type == "object"));
        if (v3() || !unsaid) result.add(key, member.value);
      } else {
        result.add(key, member.value);
      }
    }
    if (v3() && is_true(schema, "x-kubernetes-int-or-string")) add_alternatives(result);
    if (embedded) {
      properties.insert_or_assign("apiVersion",
                                  type_property("API group and version of the object, such as `example.com/v1`."));
      properties.insert_or_assign("kind", type_property("Kind of the object; cannot be changed."));
      properties.insert_or_assign("metadata", metadata_property());
      for (const std::string_view name : {"kind", "apiVersion"}) {
        if (std::find(required.begin(), required.end(), name) == required.end()) required.push_back(name);
      }
    }
    if (!properties.empty()) {
      MapBuilder all(arena);
      for (const auto& [name, property] : properties) all.add(name, property);
      result.add("properties", all.build());
    }
    if (!required.empty()) result.add("required", strings(required));
    return result.build();
  }

  // Int-or-string: expressed as alternatives, unless the schema already does so.
  void add_alternatives(MapBuilder& schema) {
    const Value both = one_of("integer", "string");
    const Value* any = schema.find("anyOf");
    const Value* all = schema.find("allOf");
    if (any == nullptr || (any->is_list() && any->count() == 0)) {
      const Value* first =
          all != nullptr && all->is_list() && all->count() > 0 ? all->items()[0].find("anyOf") : nullptr;
      if (first == nullptr || !equal(*first, both)) schema.set("anyOf", both);
      return;
    }
    if (equal(*any, both)) return;
    MapBuilder alternatives(arena);
    alternatives.add("anyOf", both);
    ListBuilder list(arena);
    list.add(alternatives.build());
    if (all != nullptr && all->is_list()) {
      for (const Value& item : all->items()) list.add(item);
    }
    schema.set("allOf", list.build());
  }

  Value metadata_property() {
    MapBuilder metadata(arena);
    // kubectl's conformance tests look for the first three words.
    metadata.add("description", Value::string("Standard object's metadata: name, labels, annotations, owners and field "
                                              "managers."));
    add_reference(metadata, std::string(kMeta) + "ObjectMeta", false);
    return metadata.build();
  }

  Value custom_schema(const Served& served) {
    MapBuilder result(arena);
    const types::Resource& resource = *served.resource;
    const Value own = served.schema == nullptr ? Value::null() : served.schema->written(arena);
    bool open_root = !own.is_map();
    if (!open_root && !v3()) {
      const Value* preserve = own.find("x-kubernetes-preserve-unknown-fields");
      open_root = preserve != nullptr && preserve->is_bool() && preserve->as_bool();
    }
    Value schema = Value::empty_map();
    if (!open_root) schema = published(own);
    std::map<std::string_view, Value> properties;
    if (const Value* declared = schema.find("properties"); declared != nullptr && declared->is_map()) {
      for (const Member& member : declared->members()) properties.insert_or_assign(member.key, member.value);
    }
    properties.insert_or_assign("apiVersion",
                                type_property("API group and version of the object, such as `example.com/v1`."));
    properties.insert_or_assign("kind", type_property("Kind of the object; cannot be changed."));
    properties.insert_or_assign("metadata", metadata_property());
    MapBuilder all(arena);
    for (const auto& [name, property] : properties) all.add(name, property);
    bool has_type = false;
    for (const Member& member : schema.members()) {
      if (member.key == "properties") continue;
      has_type |= member.key == "type";
      result.add(member.key, member.value);
    }
    if (!has_type) result.add("type", Value::string("object"));
    if (!open_root || !own.is_map() || v3()) result.add("properties", all.build());
    ListBuilder kinds(arena);
    kinds.add(kind_entry(resource.group, resource.kind, resource.version));
    result.add("x-kubernetes-group-version-kind", kinds.build());
    if (!served.selectable_fields.empty()) {
      ListBuilder fields(arena);
      for (const std::string& path : served.selectable_fields) {
        MapBuilder field(arena);
        field.add("fieldPath", text(path));
        fields.add(field.build());
      }
      result.add("x-kubernetes-selectable-fields", fields.build());
    }
    return result.build();
  }

  Value custom_list(const types::Resource& resource, std::string_view item_name) {
    MapBuilder items(arena), metadata(arena), properties(arena), schema(arena);
    items.add("type", Value::string("array"));
    items.add("items", reference(item_name));
    metadata.add("description", Value::string("Resource version and continue token of the list."));
    add_reference(metadata, std::string(kMeta) + "ListMeta", false);
    properties.add("apiVersion", type_property("API group and version of the list, such as `example.com/v1`."));
    properties.add("items", items.build());
    properties.add("kind", type_property("Kind of the list."));
    properties.add("metadata", metadata.build());
    schema.add("type", Value::string("object"));
    static constexpr std::string_view kItems[] = {"items"};
    schema.add("required", strings(kItems));
    schema.add("properties", properties.build());
    ListBuilder kinds(arena);
    kinds.add(kind_entry(resource.group, list_kind_of(resource), resource.version));
    schema.add("x-kubernetes-group-version-kind", kinds.build());
    return schema.build();
  }

  bool write_custom(const std::string& name) {
    for (const Served& served : source.resources) {
      if (!served.custom) continue;
      const std::string own =
          custom_schema_name(served.resource->group, served.resource->version, served.resource->kind);
      if (name == own) {
        written.emplace(name, custom_schema(served));
        return true;
      }
      if (name ==
          custom_schema_name(served.resource->group, served.resource->version, list_kind_of(*served.resource))) {
        written.emplace(name, custom_list(*served.resource, own));
        return true;
      }
    }
    return false;
  }

  void write_all() {
    while (!wanted.empty()) {
      const std::string name = *wanted.begin();
      wanted.erase(wanted.begin());
      if (written.contains(name)) continue;
      if (name == kVersionInfo) {
        written.emplace(name, version_info());
      } else if (name == std::string(kMeta) + "Patch") {
        MapBuilder patch(arena);
        patch.add("description", Value::string("A patch, in the form that its media type names."));
        patch.add("type", Value::string("object"));
        written.emplace(name, patch.build());
      } else if (const Type* type = types::find_type_by_openapi_name(name)) {
        written.emplace(name, Value());  // Recursive types refer to themselves.
        written[name] = schema_of(*type);
      } else if (!write_custom(name)) {
        assert(false && "a schema that nothing describes");
      }
    }
  }
};

}  // namespace

Value schemas(Arena& arena, const Source& source, Form form, std::set<std::string> names, std::string_view group,
              std::string_view version) {
  Writer writer{arena, source, form, group, version, std::move(names), {}};
  writer.write_all();
  MapBuilder result(arena);
  for (const auto& [name, schema] : writer.written) result.add_copy(name, schema);
  return result.build();
}

std::string list_kind_of(const types::Resource& resource) {
  return resource.list_kind.empty() ? std::string(resource.kind) + "List" : std::string(resource.list_kind);
}

std::string custom_schema_name(std::string_view group, std::string_view version, std::string_view kind) {
  std::string name;
  for (size_t end = group.size(); end != std::string_view::npos;) {
    const size_t dot = end == 0 ? std::string_view::npos : group.rfind('.', end - 1);
    const size_t start = dot == std::string_view::npos ? 0 : dot + 1;
    name += std::string(group.substr(start, end - start)) + ".";
    end = dot;
  }
  return name + std::string(version) + "." + std::string(kind);
}

}  // namespace holdfast::openapi
