#include <algorithm>
#include <map>
#include <set>

#include "applygen/applygen.h"
#include "applygen/literal.h"
#include "base/ascii.h"
#include "types/descriptions.h"
#include "types/types.h"

namespace holdfast::applygen {

namespace {

// "core/v1.Pod" -> {"core_v1", "Pod"}
std::pair<std::string, std::string> split_name(std::string_view name) {
  const size_t dot = name.rfind('.');
  std::string package(name.substr(0, dot));
  for (char& c : package) c = is_lower_alnum(c) ? c : '_';
  return {package, std::string(name.substr(dot + 1))};
}

Shape shape_of(const types::Type& type);

Shape::Key key_of(const types::Type& item, std::string_view name) {
  Shape::Key key{std::string(name), Shape::Kind::Text, ""};
  for (const types::Field* member : item.members) {
    if (member->name != name) continue;
    key.kind = shape_of(*member->type).kind;
    if (member->default_value != nullptr) key.default_text = literal_of(*member->default_value);
  }
  return key;
}

Shape shape_of(const types::Type& type) {
  using From = types::Shape;
  Shape shape;
  switch (type.shape) {
    case From::Bool:
      shape.kind = Shape::Kind::Bool;
      break;
    case From::Int32:
      shape.kind = Shape::Kind::Int32;
      break;
    case From::Int64:
      shape.kind = Shape::Kind::Int64;
      break;
    case From::Double:
      shape.kind = Shape::Kind::Double;
      break;
    case From::String:
    case From::Time:
    case From::MicroTime:
    case From::Duration:
    case From::Quantity:
      shape.kind = Shape::Kind::Text;
      break;
    case From::Bytes:
      shape.kind = Shape::Kind::Bytes;
      break;
    case From::IntOrString:
      shape.kind = Shape::Kind::IntOrString;
      break;
    case From::List:
      shape.kind = Shape::Kind::List;
      shape.element.push_back(shape_of(*type.element));
      if (type.list_kind == types::ListKind::Keyed) {
        for (const std::string_view key : type.list_keys) shape.list_keys.push_back(key_of(*type.element, key));
      }
      break;
    case From::Map:
      shape.kind = Shape::Kind::Map;
      shape.element.push_back(shape_of(*type.element));
      break;
    case From::Struct:
      if (type.members.empty()) break;  // Any JSON.
      shape.kind = Shape::Kind::Struct;
      std::tie(shape.package, shape.name) = split_name(type.name);
      break;
    default:
      break;
  }
  return shape;
}

Struct struct_of(const types::Type& type, const types::Descriptions& descriptions) {
  Struct made;
  made.name = split_name(type.name).second;
  made.description = descriptions.of(type);
  for (const types::Field* member : type.members) {
    // Fields behind a feature gate are left out, as is the field that only the server writes.
    if (member->gate != Gate::kCount || member->name == "managedFields") continue;
    made.fields.push_back({std::string(member->name), shape_of(*member->type), std::string(descriptions.of(*member))});
  }
  return made;
}

}  // namespace

std::vector<Package> packages_of_catalog() {
  std::map<std::string, Package> packages;
  std::set<const types::Type*> done;
  const std::shared_ptr<const types::Descriptions> descriptions = types::Descriptions::get();
  // Adds everything reachable from a kind that can be applied.
  auto add = [&](const auto& self, const types::Type& type) -> void {
    if (type.element != nullptr) self(self, *type.element);
    if (type.shape != types::Shape::Struct || type.members.empty() || !done.insert(&type).second) return;
    for (const types::Field* member : type.members) self(self, *member->type);
    const std::string package = split_name(type.name).first;
    packages[package].name = package;
    packages[package].structs.push_back(struct_of(type, *descriptions));
  };
  for (const types::Resource& resource : types::builtin_resources()) {
    const types::Type* type = resource.type;
    const bool applied = std::find(resource.verbs.begin(), resource.verbs.end(), "patch") != resource.verbs.end();
    if (type == nullptr || !applied) continue;
    add(add, *type);
    const auto [package, name] = split_name(type->name);
    for (Struct& made : packages[package].structs) {
      if (made.name != name) continue;
      made.is_kind = true;
      made.kind = name;
      made.group = resource.group;
      made.version = resource.version;
      made.plural = resource.plural;
      made.namespaced = resource.namespaced;
    }
  }
  std::vector<Package> all;
  all.reserve(packages.size());
  for (auto& [name, package] : packages) all.push_back(std::move(package));
  return all;
}

}  // namespace holdfast::applygen
