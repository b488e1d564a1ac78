// Reads JSON schemas of CustomResourceDefinitions and OpenAPI v3 documents.
#include <algorithm>
#include <set>

#include "applygen/applygen.h"
#include "applygen/literal.h"
#include "base/ascii.h"
#include "types/types.h"

namespace holdfast::applygen {

namespace {

constexpr std::string_view kRefPrefix = "#/components/schemas/";

std::string package_name(std::string_view group, std::string_view version) {
  // Named like the catalog's packages: the first label of the group, or "core".
  std::string name(group.empty() ? "core" : group.substr(0, group.find('.')));
  name += "_" + std::string(version);
  for (char& c : name) c = is_lower_alnum(c) ? c : '_';
  return name;
}

std::string capitalized(std::string_view text) {
  std::string out;
  bool up = true;
  for (const char c : text) {
    const bool letter = is_alnum(c);
    if (!letter) {
      up = true;
      continue;
    }
    out += up ? to_upper(c) : c;
    up = false;
  }
  return out;
}

class Reader {
 public:
  // References are resolved in `document`; null for a CustomResourceDefinition.
  Reader(const Value* document, Package& package) : document_(document), package_(package) {
    for (const Struct& known : package.structs) names_.insert(known.name);
  }

  // Adds the struct described by the schema, and nested ones.
  void add_struct(const Value& schema, const std::string& name) {
    if (!names_.insert(name).second) return;
    Struct made;
    made.name = name;
    made.description = schema.text_at("description");
    for (const Member& property : schema.members_at("properties")) {
      Field field;
      field.json_name = property.key;
      field.description = property.value.text_at("description");
      field.shape = shape_of(property.value, name + capitalized(property.key));
      if (const Value* declared = property.value.find("default")) field.default_text = literal_of(*declared);
      made.fields.push_back(std::move(field));
    }
    package_.structs.push_back(std::move(made));
  }

  Shape shape_of(const Value& schema, const std::string& name) {
    Shape shape;
    std::string_view reference = schema.text_at("$ref");
    // A reference with a default is wrapped in an allOf with one element.
    for (const Value& part : schema.items_at("allOf")) {
      if (reference.empty()) reference = part.text_at("$ref");
    }
    if (!reference.empty()) return referenced(reference);
    const Value* int_or_string = schema.find("x-kubernetes-int-or-string");
    const std::string_view format = schema.text_at("format");
    if ((int_or_string != nullptr && int_or_string->is_bool() && int_or_string->as_bool()) ||
        format == "int-or-string") {
      shape.kind = Shape::Kind::IntOrString;
      return shape;
    }
    const std::string_view type = schema.text_at("type");
    if (type == "boolean") {
      shape.kind = Shape::Kind::Bool;
    } else if (type == "integer") {
      shape.kind = format == "int32" ? Shape::Kind::Int32 : Shape::Kind::Int64;
    } else if (type == "number") {
      shape.kind = Shape::Kind::Double;
    } else if (type == "string") {
      shape.kind = format == "byte" && document_ != nullptr ? Shape::Kind::Bytes : Shape::Kind::Text;
    } else if (type == "array") {
      shape.kind = Shape::Kind::List;
      static const Value kAnything = Value::empty_map();
      const Value* items = schema.find("items");
      shape.element.push_back(shape_of(items == nullptr ? kAnything : *items, name));
      if (schema.text_at("x-kubernetes-list-type") == "map") {
        for (const Value& key : schema.items_at("x-kubernetes-list-map-keys")) {
          if (key.is_string()) shape.list_keys.emplace_back(key.as_string());
        }
      }
    } else if (!schema.members_at("properties").empty()) {
      shape.kind = Shape::Kind::Struct;
      shape.name = name;
      add_struct(schema, name);
    } else if (const Value* values = schema.find("additionalProperties"); values != nullptr && values->is_map()) {
      shape.kind = Shape::Kind::Map;
      shape.element.push_back(shape_of(*values, name));
    }
    return shape;
  }

 private:
  // A named schema of the document: a built-in struct of another header, an alias of a scalar, or a struct of this one.
  Shape referenced(std::string_view reference) {
    reference.remove_prefix(std::min(kRefPrefix.size(), reference.size()));
    if (const types::Type* type = types::find_type_by_openapi_name(reference);
        type != nullptr && type->shape == types::Shape::Struct && !type->members.empty()) {
      Shape shape;
      shape.kind = Shape::Kind::Struct;
      const size_t dot = type->name.rfind('.');
      shape.package = type->name.substr(0, dot);
      for (char& c : shape.package) c = is_lower_alnum(c) ? c : '_';
      shape.name = type->name.substr(dot + 1);
      if (shape.package != package_.name) return shape;  // Types of this package are defined by the document.
    }
    const Value* schema = document_ == nullptr ? nullptr : document_->get("components", "schemas", reference);
    if (schema == nullptr) return {};
    return shape_of(*schema, capitalized(reference.substr(reference.rfind('.') + 1)));
  }

  const Value* document_;
  Package& package_;
  std::set<std::string> names_;
};

const Field* find_field(const Struct& made, std::string_view name) {
  for (const Field& field : made.fields) {
    if (field.json_name == name) return &field;
  }
  return nullptr;
}

// Adds the fields common to all objects, regardless of the schema.
void complete_kind(Struct& made) {
  Shape text;
  text.kind = Shape::Kind::Text;
  for (const char* name : {"kind", "apiVersion"}) {
    if (find_field(made, name) == nullptr) made.fields.insert(made.fields.begin(), Field{name, text, ""});
  }
  Shape metadata;
  metadata.kind = Shape::Kind::Struct;
  metadata.package = "meta_v1";
  metadata.name = "ObjectMeta";
  std::erase_if(made.fields, [](const Field& field) { return field.json_name == "metadata"; });
  made.fields.insert(made.fields.begin() + 2, Field{"metadata", metadata, ""});
}

}  // namespace

Result<std::vector<Package>> packages_of_crd(const Value& definition) {
  if (definition.text_at("kind") != "CustomResourceDefinition") {
    return bad_request("not a CustomResourceDefinition: kind is \"" + std::string(definition.text_at("kind")) + "\"");
  }
  const std::string_view group = definition.text_at("spec", "group");
  const std::string kind(definition.text_at("spec", "names", "kind"));
  if (group.empty() || kind.empty()) return bad_request("spec.group and spec.names.kind are required");
  std::vector<Package> packages;
  for (const Value& version : definition.items_at("spec", "versions")) {
    const Value* served = version.find("served");
    if (served != nullptr && served->is_bool() && !served->as_bool()) continue;
    Package package;
    package.name = package_name(group, version.text_at("name"));
    const Value* schema = version.get("schema", "openAPIV3Schema");
    static const Value kAnything = Value::empty_map();
    Reader(nullptr, package).add_struct(schema == nullptr ? kAnything : *schema, kind);
    for (Struct& made : package.structs) {
      if (made.name != kind) continue;
      made.is_kind = true;
      made.group = group;
      made.version = version.text_at("name");
      made.plural = definition.text_at("spec", "names", "plural");
      made.namespaced = definition.text_at("spec", "scope") == "Namespaced";
      made.crd_schema = schema == nullptr ? "{}" : codec::encode_json(*schema);
      complete_kind(made);
    }
    packages.push_back(std::move(package));
  }
  if (packages.empty()) return bad_request("no version is served");
  return packages;
}

Result<std::vector<Package>> packages_of_openapi(const Value& document) {
  // Kinds and their resources are found in the paths.
  struct Kind {
    std::string group, version, kind, plural;
    bool namespaced = false;
  };
  std::map<std::string, Kind> kinds;
  for (const Member& path : document.members_at("paths")) {
    const Value* patch = path.value.get("patch", "x-kubernetes-group-version-kind");
    if (patch == nullptr || !path.key.ends_with("/{name}")) continue;
    Kind kind{std::string(patch->text_at("group")),
              std::string(patch->text_at("version")),
              std::string(patch->text_at("kind")),
              {},
              path.key.find("/{namespace}/") != std::string_view::npos};
    const std::string_view collection = path.key.substr(0, path.key.size() - 7);
    kind.plural = collection.substr(collection.rfind('/') + 1);
    kinds.emplace(kind.kind, std::move(kind));
  }
  std::map<std::string, Package> packages;
  for (const Member& schema : document.members_at("components", "schemas")) {
    for (const Value& named : schema.value.items_at("x-kubernetes-group-version-kind")) {
      const auto found = kinds.find(std::string(named.text_at("kind")));
      if (found == kinds.end() || found->second.group != named.text_at("group") ||
          found->second.version != named.text_at("version")) {
        continue;
      }
      const Kind& kind = found->second;
      Package& package = packages[package_name(kind.group, kind.version)];
      package.name = package_name(kind.group, kind.version);
      Reader(&document, package).add_struct(schema.value, kind.kind);
      for (Struct& made : package.structs) {
        if (made.name != kind.kind || made.is_kind) continue;
        made.is_kind = true;
        made.group = kind.group;
        made.version = kind.version;
        made.plural = kind.plural;
        made.namespaced = kind.namespaced;
        if (types::find_kind(kind.group, kind.version, kind.kind) == nullptr) {
          made.crd_schema = codec::encode_json(schema.value);
        }
        complete_kind(made);
      }
    }
  }
  if (packages.empty()) return bad_request("the OpenAPI document describes no kind that can be applied");
  std::vector<Package> all;
  all.reserve(packages.size());
  for (auto& [name, package] : packages) all.push_back(std::move(package));
  return all;
}

}  // namespace holdfast::applygen
