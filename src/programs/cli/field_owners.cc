#include "cli/field_owners.h"

#include <algorithm>
#include <optional>

#include "base/api_version.h"
#include "base/base64.h"
#include "codec/codec.h"
#include "types/types.h"

namespace holdfast::cli {

namespace {

using ownership::FieldSet;
using ownership::MergeType;
using ownership::PathElement;
using ownership::SetEntry;

// The set entry of one field for each manager; null if a manager has none.
using Below = std::vector<const SetEntry*>;
struct Level {
  std::vector<FieldSet> sets;       // By manager.
  std::vector<uint32_t> whole;      // Managers that own everything here because they own an enclosing atomic value.
  const MergeType* type = nullptr;  // Null if unknown.
};

// Fields that no manager ever owns, as in stripMeta of the apply engine.
bool server_managed(ownership::Path path) {
  static constexpr std::string_view kRoot[] = {"apiVersion", "kind"};
  static constexpr std::string_view kMetadata[] = {"name", "namespace",  "creationTimestamp", "selfLink",
                                                   "uid",  "generation", "resourceVersion"};
  if (path.empty() || !path[0].is_field()) return false;
  if (path.size() == 1) return std::find(std::begin(kRoot), std::end(kRoot), path[0].name()) != std::end(kRoot);
  return path.size() == 2 && path[0].name() == "metadata" && path[1].is_field() &&
         std::find(std::begin(kMetadata), std::end(kMetadata), path[1].name()) != std::end(kMetadata);
}

bool has_key(const Value& item, std::span<const Member> key) {
  return std::all_of(key.begin(), key.end(), [&](const Member& member) {
    const Value* found = item.find(member.key);
    return found != nullptr && equal(*found, member.value, Numbers::ByValue);
  });
}

bool is_item(const PathElement& element, const Value& item, size_t position) {
  switch (element.kind()) {
    case PathElement::Kind::Field:
      return false;
    case PathElement::Kind::Key:
      return item.is_map() && has_key(item, element.key());
    case PathElement::Kind::Value:
      return equal(item, element.value(), Numbers::ByValue);
    case PathElement::Kind::Index:
      return element.index() == static_cast<int64_t>(position);
  }
  return false;
}

class Builder {
 public:
  Builder(Arena& arena, size_t managers) : arena_(arena), managers_(managers) {}

  void build(const Value& value, const Level& level, OwnedField& field) {
    if (value.is_map()) {
      build_members(value, level, field);
    } else if (value.is_list()) {
      build_items(value, level, field);
    } else {
      add_missing(level, field, [](const PathElement&) { return false; });
    }
  }

 private:
  // The field with its owners, and the level below it.
  OwnedField open(const PathElement& element, const Value* value, const Level& level, const Below& below,
                  const MergeType* type, Level& inner) {
    OwnedField field{element, value, level.whole, false, {}, false};
    inner.sets.resize(managers_);
    inner.type = type;
    bool anybody_below = false;
    for (uint32_t i = 0; i < managers_; ++i) {
      if (below[i] == nullptr) continue;
      inner.sets[i] = below[i]->children();
      anybody_below = anybody_below || below[i]->child_count > 0;
      if (below[i]->member && std::find(field.owners.begin(), field.owners.end(), i) == field.owners.end()) {
        field.owners.push_back(i);
      }
    }
    std::sort(field.owners.begin(), field.owners.end());
    if (!level.whole.empty() || (value != nullptr && is_atomic(*value, type, anybody_below))) {
      inner.whole = field.owners;
    }
    return field;
  }

  // Without a schema, a value without owned children is treated as atomic.
  static bool is_atomic(const Value& value, const MergeType* type, bool anybody_below) {
    if (type == nullptr) return !anybody_below;
    if (value.is_list()) return type->atomic_list;
    if (value.is_map()) return type->atomic_map;
    return false;
  }

  void build_members(const Value& map, const Level& level, OwnedField& field) {
    for (const Member& member : map.members()) {
      const PathElement element = PathElement::field(member.key);
      Below below(managers_, nullptr);
      for (size_t i = 0; i < managers_; ++i) below[i] = level.sets[i].find(element);
      bool declared = false;
      const MergeType* type = level.type == nullptr ? nullptr : level.type->member(member.key, declared);
      add_child(element, member.value, level, below, type, field);
    }
    add_missing(level, field,
                [&](const PathElement& element) { return element.is_field() && map.has(element.name()); });
  }

  void build_items(const Value& list, const Level& level, OwnedField& field) {
    const std::span<const Value> items = list.items();
    const MergeType* type = level.type == nullptr ? nullptr : level.type->item;
    for (size_t position = 0; position < items.size(); ++position) {
      const Value& item = items[position];
      Below below(managers_, nullptr);
      PathElement element = element_of(level.type, item, PathElement::index(static_cast<int64_t>(position)));
      for (size_t i = 0; i < managers_; ++i) below[i] = level.sets[i].find(element);
      if (level.type == nullptr) {
        // Without a schema, only the field sets tell how items are identified.
        for (size_t i = 0; i < managers_; ++i) {
          const auto entries = level.sets[i].entries();
          const auto found = std::find_if(entries.begin(), entries.end(), [&](const SetEntry& entry) {
            return is_item(entry.element, item, position);
          });
          if (found == entries.end()) continue;
          below[i] = &*found;
          element = found->element;
        }
      }
      add_child(element, item, level, below, type, field);
    }
    add_missing(level, field, [&](const PathElement& element) {
      for (size_t position = 0; position < items.size(); ++position) {
        if (is_item(element, items[position], position)) return true;
      }
      return false;
    });
  }

  // The path element of an item: its keys or its value, depending on the list type.
  PathElement element_of(const MergeType* list, const Value& item, PathElement otherwise) {
    if (list == nullptr || list->atomic_list) return otherwise;
    if (list->keys.empty()) return PathElement::value(&item);
    if (!item.is_map()) return otherwise;
    std::vector<Member> key;
    for (size_t i = 0; i < list->keys.size(); ++i) {
      const Value* value = item.find(list->keys[i]);
      if (value == nullptr && i < list->key_defaults.size()) value = list->key_defaults[i];
      if (value == nullptr) return otherwise;
      key.push_back({list->keys[i], *value});
    }
    return PathElement::key(arena_.copy(std::span<const Member>(key)));
  }

  void add_child(const PathElement& element, const Value& value, const Level& level, const Below& below,
                 const MergeType* type, OwnedField& parent) {
    path_.push_back(element);
    if (path_.size() == 2 && path_[0].name() == "metadata" && element.is_field() && element.name() == "managedFields") {
      path_.pop_back();
      return;
    }
    Level inner;
    OwnedField child = open(element, &value, level, below, type, inner);
    child.server_managed = server_managed(path_);
    build(value, inner, child);
    parent.children.push_back(std::move(child));
    path_.pop_back();
  }

  // Adds fields that are owned here but do not exist.
  void add_missing(const Level& level, OwnedField& parent, const std::function<bool(const PathElement&)>& exists) {
    std::vector<PathElement> missing;
    for (size_t i = 0; i < managers_; ++i) {
      for (const SetEntry& entry : level.sets[i].entries()) {
        const bool known = std::any_of(missing.begin(), missing.end(),
                                       [&](const PathElement& other) { return other == entry.element; });
        if (!known && !exists(entry.element)) missing.push_back(entry.element);
      }
    }
    for (const PathElement& element : missing) {
      Below below(managers_, nullptr);
      for (size_t i = 0; i < managers_; ++i) below[i] = level.sets[i].find(element);
      Level inner, nobody;
      nobody.sets.resize(managers_);
      OwnedField child = open(element, nullptr, nobody, below, nullptr, inner);
      inner.whole.clear();
      add_missing(inner, child, [](const PathElement&) { return false; });
      parent.children.push_back(std::move(child));
    }
  }

  Arena& arena_;
  const size_t managers_;
  std::vector<PathElement> path_;
};

const MergeType* type_of(const Value& object) {
  const std::string_view api_version = object.text_at("apiVersion");
  const auto [group, version] = split_api_version(api_version);
  const types::Resource* resource = types::find_kind(group, version, object.text_at("kind"));
  if (resource == nullptr) return nullptr;
  const types::Type* type = resource->type;
  return type == nullptr ? nullptr : &ownership::builtin_merge_types().of(*type);
}

void visit_all(const OwnedField& field, std::vector<PathElement>& path, const FieldOwners::Visit& visit) {
  for (const OwnedField& child : field.children) {
    path.push_back(child.element);
    visit(path, child);
    visit_all(child, path, visit);
    path.pop_back();
  }
}

}  // namespace

Result<FieldOwners> FieldOwners::of(const Value& object, const MergeType* custom_type) {
  FieldOwners owners;
  owners.arena_ = std::make_unique<Arena>();
  if (const Value* list = object.get("metadata", "managedFields")) {
    Result<ownership::Managed> managed = ownership::decode_managed(*owners.arena_, *list, {.fields_v2 = true});
    if (!managed) return managed.take_error();
    owners.managers_ = std::move(*managed);
  }
  Level level;
  for (const ownership::ManagerEntry& entry : owners.managers_) level.sets.push_back(entry.fields);
  level.type = type_of(object);
  if (level.type == nullptr) level.type = custom_type;
  owners.root_.value = &object;
  Builder(*owners.arena_, owners.managers_.size()).build(object, level, owners.root_);
  return owners;
}

void FieldOwners::for_each(const Visit& visit) const {
  std::vector<PathElement> path;
  visit_all(root_, path, visit);
}

std::vector<uint32_t> FieldOwners::owners_of(std::string_view wanted) const {
  std::vector<uint32_t> owners;
  for_each([&](ownership::Path path, const OwnedField& field) {
    if (field.owners.empty()) return;
    const std::string text = to_string(path);
    const bool part =
        wanted == text || (wanted.starts_with(text) && (wanted[text.size()] == '.' || wanted[text.size()] == '['));
    if (part) owners = field.owners;  // The deepest match wins.
  });
  return owners;
}

namespace {

// The owned part of a field; nullopt if neither it nor anything below it is owned.
std::optional<Value> owned_value(Arena& arena, const FieldOwners& owners, const OwnedField& field,
                                 std::string_view manager) {
  if (field.value == nullptr) return std::nullopt;
  const bool own = std::any_of(field.owners.begin(), field.owners.end(),
                               [&](uint32_t i) { return owners.managers()[i].manager == manager; });
  if (field.is_leaf()) return own ? std::optional<Value>(*field.value) : std::nullopt;
  if (field.value->is_list()) {
    ListBuilder items(arena);
    for (const OwnedField& child : field.children) {
      if (const std::optional<Value> kept = owned_value(arena, owners, child, manager)) items.add(*kept);
    }
    return own || items.count() > 0 ? std::optional<Value>(items.build()) : std::nullopt;
  }
  MapBuilder members(arena);
  for (const OwnedField& child : field.children) {
    if (!child.element.is_field()) continue;
    if (const std::optional<Value> kept = owned_value(arena, owners, child, manager)) {
      members.add(child.element.name(), *kept);
    }
  }
  return own || members.count() > 0 ? std::optional<Value>(members.build()) : std::nullopt;
}

}  // namespace

Result<Value> owned_part(Arena& arena, const Value& object, std::string_view manager) {
  Result<FieldOwners> owners = FieldOwners::of(object);
  if (!owners) return owners.take_error();
  Value part = owned_value(arena, *owners, owners->root(), manager).value_or(Value::empty_map());
  for (const std::string_view key : {"apiVersion", "kind"}) {
    if (const Value* value = object.find(key)) part = with_member(arena, part, key, *value);
  }
  for (const std::string_view key : {"name", "namespace"}) {
    const std::string_view path[] = {"metadata", key};
    if (const Value* value = object.get("metadata", key)) part = with_path(arena, part, path, *value);
  }
  return deep_copy(arena, part);
}

bool has_manager(const Value& object, std::string_view manager) {
  const std::span<const Value> entries = object.items_at("metadata", "managedFields");
  return std::any_of(entries.begin(), entries.end(),
                     [&](const Value& entry) { return entry.text_at("manager") == manager; });
}

Result<Value> with_fields_as(Arena& arena, const Value& object, FieldsForm form) {
  const Value* list = object.get("metadata", "managedFields");
  if (list == nullptr || !list->is_list()) return object;
  ListBuilder entries(arena);
  for (const Value& entry : list->items()) {
    FieldSet fields;
    if (entry.text_at("fieldsType") == "FieldsV2") {
      const std::optional<std::string> bytes = base64_decode(entry.text_at("fieldsV2"));
      if (!bytes) return bad_request("fieldsV2 of " + std::string(entry.text_at("manager")) + " is not base64");
      Result<FieldSet> set = ownership::parse_fields_v2(arena, arena.copy(*bytes));
      if (!set) return set.take_error();
      fields = *set;
    } else if (const Value* text = entry.find("fieldsV1")) {
      Result<FieldSet> set = ownership::parse_fields_v1(arena, *text);
      if (!set) return set.take_error();
      fields = *set;
    }
    Value converted = without_member(arena, without_member(arena, entry, "fieldsV1"), "fieldsV2");
    const bool v2 = form == FieldsForm::V2;
    converted = with_member(arena, converted, "fieldsType", Value::string(v2 ? "FieldsV2" : "FieldsV1"));
    if (v2) {
      converted = with_member(arena, converted, "fieldsV2",
                              Value::string(arena, base64_encode(ownership::to_fields_v2(fields))));
    } else {
      Result<Value> tree = codec::decode_json(arena, arena.copy(ownership::to_fields_v1(fields)));
      if (!tree) return tree.take_error();
      converted = with_member(arena, converted, "fieldsV1", *tree);
    }
    entries.add(converted);
  }
  constexpr std::string_view kPath[] = {"metadata", "managedFields"};
  return with_path(arena, object, kPath, entries.build());
}

}  // namespace holdfast::cli
