// Schemas in the Go merge engine's own form (structured-merge-diff) as types of ours: for the benchmark and for the
// tests whose data that engine made.
#pragma once

#include <algorithm>
#include <map>
#include <string_view>

#include "base/arena.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::ownership {

// `root` must outlive what is made of it.
class SchemaLoader {
 public:
  SchemaLoader(Arena& arena, const Value& root) : arena_(arena) {
    for (const Value& type : root.items_at("types")) named_[type.text_at("name")] = {&type, nullptr};
  }

  const types::Type* named(std::string_view name) {
    Named& entry = named_.at(name);
    if (entry.made == nullptr) {
      entry.made = arena_.make<types::Type>();
      entry.made->openapi_name = name;
      fill(*entry.made, *entry.written, name);
    }
    return entry.made;
  }

 private:
  struct Named {
    const Value* written;
    types::Type* made;
  };

  const types::Type* reference(const Value& ref) {
    if (const std::string_view name = ref.text_at("namedType"); !name.empty()) {
      const std::string_view relation = ref.text_at("elementRelationship");
      if (relation.empty()) return named(name);
      types::Type* other = arena_.make<types::Type>(*named(name));
      other->map_kind = relation == "atomic" ? types::MapKind::Atomic : types::MapKind::Granular;
      return other;
    }
    types::Type* type = arena_.make<types::Type>();
    fill(*type, ref, "");
    return type;
  }

  void fill(types::Type& type, const Value& atom, std::string_view name) {
    const Value *list = atom.find("list"), *map = atom.find("map");
    if (list != nullptr && map != nullptr) {
      const bool atomic = map->text_at("elementRelationship") == "atomic";
      // Named types of this form are not the deduced type itself, which matters where they are a map's elements.
      const bool other = !name.empty() && !name.starts_with("__");
      type.shape = other && !atomic ? types::Shape::IntOrString : types::Shape::Any;
      type.any_kind = atomic ? types::AnyKind::Atomic : types::AnyKind::Deduced;
      return;
    }
    if (const std::string_view scalar = atom.text_at("scalar"); !scalar.empty()) {
      type.shape = scalar == "numeric"   ? types::Shape::Double
                   : scalar == "boolean" ? types::Shape::Bool
                   : scalar == "string"  ? types::Shape::String
                                         : types::Shape::Quantity;
      return;
    }
    if (list != nullptr) {
      type.shape = types::Shape::List;
      type.element = reference(*list->find("elementType"));
      const std::span<const Value> keys = list->items_at("keys");
      if (list->text_at("elementRelationship") == "associative") {
        type.list_kind = keys.empty() ? types::ListKind::Set : types::ListKind::Keyed;
      }
      std::string_view* names = arena_.allocate_array<std::string_view>(keys.size());
      for (size_t i = 0; i < keys.size(); ++i) new (&names[i]) std::string_view(keys[i].as_string());
      type.list_keys = {names, keys.size()};
      return;
    }
    type.map_kind = map->text_at("elementRelationship") == "atomic" ? types::MapKind::Atomic : types::MapKind::Granular;
    const Value* element = map->find("elementType");
    const std::span<const Value> written = map->items_at("fields");
    if (element != nullptr) type.element = reference(*element);
    type.shape = written.empty() ? types::Shape::Map : types::Shape::Struct;
    types::Field* fields = arena_.allocate_array<types::Field>(written.size());
    const types::Field** members = arena_.allocate_array<const types::Field*>(written.size());
    uint16_t* by_name = arena_.allocate_array<uint16_t>(written.size());
    for (size_t i = 0; i < written.size(); ++i) {
      types::Field field;
      field.name = written[i].text_at("name");
      const Value& ref = *written[i].find("type");
      field.type = reference(ref);
      field.pointer = field.omit_empty = true;
      if (const std::string_view relation = ref.text_at("elementRelationship"); !relation.empty()) {
        field.overrides_map_kind = true;
        field.map_kind = relation == "atomic" ? types::MapKind::Atomic : types::MapKind::Granular;
      }
      field.default_value = written[i].find("default");
      new (&fields[i]) types::Field(field);
      members[i] = &fields[i];
      by_name[i] = static_cast<uint16_t>(i);
    }
    std::sort(by_name, by_name + written.size(),
              [&](uint16_t a, uint16_t b) { return members[a]->name < members[b]->name; });
    type.members = {members, written.size()};
    type.members_by_name = {by_name, written.size()};
  }

  Arena& arena_;
  std::map<std::string_view, Named> named_;
};

}  // namespace holdfast::ownership
