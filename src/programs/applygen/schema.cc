// Reads JSON schemas of CustomResourceDefinitions and OpenAPI v3 documents.
#include <algorithm>
#include <map>
#include <set>

#include "applygen/applygen.h"
#include "applygen/literal.h"
#include "base/api_version.h"
#include "base/ascii.h"
#include "codec/codec.h"
#include "types/types.h"

namespace holdfast::applygen {

namespace {

constexpr std::string_view kRefPrefix = "#/components/schemas/";

std::string identifier(std::string_view text) {
  std::string name(text);
  for (char& c : name) c = is_lower_alnum(c) ? c : '_';
  return name.empty() || is_digit(name[0]) ? "x" + name : name;
}

std::string_view first_label(std::string_view group) {
  return group.empty() ? "core" : group.substr(0, group.find('.'));
}

bool is_builtin(std::string_view group) {
  const auto& all = types::builtin_resources();
  return std::any_of(all.begin(), all.end(), [&](const types::Resource& one) { return one.group == group; });
}

// The package's name with only the first label of the group.
std::string short_name(std::string_view group, std::string_view version) {
  return identifier(first_label(group)) + "_" + identifier(version);
}

// Whether a group that is not built in would get the name of a built-in package: core.x.io, meta.x.io.
bool has_builtin_label(std::string_view group) {
  const std::string_view label = first_label(group);
  if (label == "core" || label == "meta") return true;
  const auto& all = types::builtin_resources();
  return std::any_of(all.begin(), all.end(),
                     [&](const types::Resource& one) { return first_label(one.group) == label; });
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

// Names that generated code uses itself. Kinds with such a name become ObjectKind, structs Object2.
constexpr std::string_view kTakenNames[] = {"Fields", "Kind", "Node", "Object", "Result", "Struct", "Value"};

class Reader {
 public:
  explicit Reader(Package& package) : package_(package), names_(std::begin(kTakenNames), std::end(kTakenNames)) {}

  // A class name that is not used yet, starting with `wanted`.
  std::string unique_name(const std::string& wanted) {
    std::string name = wanted;
    for (size_t number = 2; !names_.insert(name).second; ++number) name = wanted + std::to_string(number);
    return name;
  }

  std::string kind_name(const std::string& kind) {
    const bool taken = std::find(std::begin(kTakenNames), std::end(kTakenNames), kind) != std::end(kTakenNames);
    return unique_name(taken ? kind + "Kind" : kind);
  }

  // References are resolved in `document`; null for a CustomResourceDefinition.
  void resolve_in(const Value* document) {
    if (document != document_) referenced_.clear();
    document_ = document;
  }
  // The class of a named schema that is added separately: a kind.
  void refer(const std::string& reference, const std::string& name) { referenced_[reference] = name; }

  // Adds a struct with this name, and the nested ones. Returns its position.
  size_t add_struct(const Value& schema, const std::string& name) {
    const size_t position = package_.structs.size();
    package_.structs.emplace_back().name = name;
    package_.structs[position].description = schema.text_at("description");
    std::vector<Field> fields;
    for (const Member& property : schema.members_at("properties")) {
      fields.push_back({std::string(property.key), shape_of(property.value, name + capitalized(property.key)),
                        std::string(property.value.text_at("description"))});
    }
    package_.structs[position].fields = std::move(fields);
    return position;
  }

  // `name`: for the struct that the schema describes, if it does.
  Shape shape_of(const Value& schema, const std::string& name) {
    Shape shape;
    if (const std::string_view reference = reference_of(schema); !reference.empty()) return referenced(reference);
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
      const Value* found = schema.find("items");
      const Value& items = found == nullptr ? kAnything : *found;
      shape.element.push_back(shape_of(items, name));
      if (schema.text_at("x-kubernetes-list-type") == "map") {
        for (const Value& key : schema.items_at("x-kubernetes-list-map-keys")) {
          if (key.is_string()) shape.list_keys.push_back(key_of(items, key.as_string()));
        }
      }
    } else if (!schema.members_at("properties").empty()) {
      shape.kind = Shape::Kind::Struct;
      shape.name = unique_name(name);
      add_struct(schema, shape.name);
    } else if (const Value* values = schema.find("additionalProperties"); values != nullptr && values->is_map()) {
      shape.kind = Shape::Kind::Map;
      shape.element.push_back(shape_of(*values, name));
    }
    return shape;
  }

 private:
  static std::string_view reference_of(const Value& schema) {
    std::string_view reference = schema.text_at("$ref");
    // A reference with a default is wrapped in an allOf with one element.
    for (const Value& part : schema.items_at("allOf")) {
      if (reference.empty()) reference = part.text_at("$ref");
    }
    reference.remove_prefix(std::min(kRefPrefix.size(), reference.size()));
    return reference;
  }

  const Value* schema_of(std::string_view reference) const {
    return document_ == nullptr ? nullptr : document_->get("components", "schemas", reference);
  }

  Shape::Key key_of(const Value& items, std::string_view name) {
    const Value* schema = &items;
    if (const std::string_view reference = reference_of(items); !reference.empty()) schema = schema_of(reference);
    const Value* member = schema == nullptr ? nullptr : schema->get("properties", name);
    Shape::Key key{std::string(name), Shape::Kind::Text, ""};
    if (member == nullptr) return key;
    key.kind = shape_of(*member, "").kind;  // Keys are scalars.
    if (const Value* declared = member->find("default")) key.default_text = literal_of(*declared);
    return key;
  }

  // A named schema of the document: a built-in struct of another header, an alias of a scalar, or a struct of this one.
  Shape referenced(std::string_view reference) {
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
    const Value* schema = schema_of(reference);
    if (schema == nullptr) return {};
    if (schema->members_at("properties").empty()) {
      // Not a struct. A schema may contain itself through lists and maps.
      if (!open_.insert(std::string(reference)).second) return {};
      Shape shape = shape_of(*schema, capitalized(reference.substr(reference.rfind('.') + 1)));
      open_.erase(std::string(reference));
      return shape;
    }
    Shape shape;
    shape.kind = Shape::Kind::Struct;
    const auto [known, added] = referenced_.try_emplace(std::string(reference));
    if (added) {
      const std::string name = unique_name(capitalized(reference.substr(reference.rfind('.') + 1)));
      known->second = name;
      add_struct(*schema, name);
      shape.name = name;
    } else {
      shape.name = known->second;
    }
    return shape;
  }

  const Value* document_ = nullptr;
  Package& package_;
  std::set<std::string, std::less<>> names_;
  std::map<std::string, std::string, std::less<>> referenced_;  // The classes of named schemas.
  std::set<std::string> open_;
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

Result<Unit> Documents::add(Source source) {
  for (const Source& other : sources_) {
    if (other.group == source.group && other.version == source.version && other.kind == source.kind) {
      return bad_request(source.kind + " of " + api_version_of(source.group, source.version) + " is defined twice");
    }
  }
  sources_.push_back(std::move(source));
  return Unit{};
}

Result<Unit> Documents::add_crd(const Value& definition) {
  if (definition.text_at("kind") != "CustomResourceDefinition") {
    return bad_request("not a CustomResourceDefinition: kind is \"" + std::string(definition.text_at("kind")) + "\"");
  }
  const Value& own = values_.emplace_back(deep_copy(arena_, definition));
  const std::string_view group = own.text_at("spec", "group"), kind = own.text_at("spec", "names", "kind");
  if (group.empty() || kind.empty()) return bad_request("spec.group and spec.names.kind are required");
  bool any = false;
  for (const Value& version : own.items_at("spec", "versions")) {
    const Value* served = version.find("served");
    if (served != nullptr && served->is_bool() && !served->as_bool()) continue;
    any = true;
    static const Value kAnything = Value::empty_map();
    const Value* schema = version.get("schema", "openAPIV3Schema");
    Result<Unit> added =
        add({std::string(group), std::string(version.text_at("name")), std::string(kind),
             std::string(own.text_at("spec", "names", "plural")), own.text_at("spec", "scope") == "Namespaced",
             schema == nullptr ? &kAnything : schema, nullptr});
    if (!added) return added;
  }
  return any ? Result<Unit>(Unit{}) : bad_request("no version is served");
}

Result<Unit> Documents::add_openapi(const Value& document) {
  const Value& own = values_.emplace_back(deep_copy(arena_, document));
  // Kinds and their resources are found in the paths.
  std::vector<Source> found;
  for (const Member& path : own.members_at("paths")) {
    const Value* patch = path.value.get("patch", "x-kubernetes-group-version-kind");
    if (patch == nullptr || !path.key.ends_with("/{name}")) continue;
    Source source{std::string(patch->text_at("group")),
                  std::string(patch->text_at("version")),
                  std::string(patch->text_at("kind")),
                  {},
                  path.key.find("/{namespace}/") != std::string_view::npos,
                  nullptr,
                  &own};
    const std::string_view collection = path.key.substr(0, path.key.size() - 7);
    source.plural = collection.substr(collection.rfind('/') + 1);
    found.push_back(std::move(source));
  }
  bool any = false;
  for (const Member& schema : own.members_at("components", "schemas")) {
    for (const Value& named : schema.value.items_at("x-kubernetes-group-version-kind")) {
      for (Source& source : found) {
        if (source.schema != nullptr || source.kind != named.text_at("kind") ||
            source.group != named.text_at("group") || source.version != named.text_at("version")) {
          continue;
        }
        source.schema = &schema.value;
        source.reference = schema.key;
        any = true;
        Result<Unit> added = add(source);
        if (!added) return added;
      }
    }
  }
  return any ? Result<Unit>(Unit{}) : bad_request("the OpenAPI document describes no kind that can be applied");
}

Result<std::vector<Package>> Documents::packages() const {
  std::map<std::string, std::set<std::string>> groups;  // By the first label, with a version.
  for (const Source& source : sources_) groups[short_name(source.group, source.version)].insert(source.group);
  std::map<std::pair<std::string, std::string>, std::vector<const Source*>> by_version;
  for (const Source& source : sources_) by_version[{source.group, source.version}].push_back(&source);
  std::vector<Package> all;
  std::set<std::string> names;
  for (const auto& [where, sources] : by_version) {
    const auto& [group, version] = where;
    Package& package = all.emplace_back();
    package.name = short_name(group, version);
    if (!is_builtin(group) && (has_builtin_label(group) || groups[package.name].size() > 1)) {
      package.name = identifier(group) + "_" + identifier(version);
    }
    if (!names.insert(package.name).second) {
      return bad_request("two groups have the package name " + package.name + "; generate them one at a time");
    }
    Reader reader(package);
    // Kinds have the first choice of names.
    std::vector<std::string> classes;
    for (const Source* source : sources) classes.push_back(reader.kind_name(capitalized(source->kind)));
    for (size_t i = 0; i < sources.size(); ++i) {
      const Source& source = *sources[i];
      reader.resolve_in(source.document);
      for (size_t other = 0; other < sources.size(); ++other) {
        if (source.document == nullptr || sources[other]->document != source.document) continue;
        reader.refer(sources[other]->reference, classes[other]);
      }
      Struct& made = package.structs[reader.add_struct(*source.schema, classes[i])];
      made.is_kind = true;
      made.group = group;
      made.version = version;
      made.kind = source.kind;
      made.plural = source.plural;
      made.namespaced = source.namespaced;
      if (types::find_kind(group, version, source.kind) == nullptr) {
        made.crd_schema = codec::encode_json(*source.schema);
      }
      complete_kind(made);
    }
  }
  return all;
}

}  // namespace holdfast::applygen
