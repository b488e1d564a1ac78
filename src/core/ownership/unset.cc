#include "ownership/unset.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "ownership/typed.h"
#include "ownership/unions.h"
#include "value/map_edit.h"

namespace holdfast::ownership {
namespace {

// The current position of a walk: a linked list through its stack frames. Formatted as text only in error messages.
struct Place {
  const Place* above;
  std::string_view member;          // A member's key; for an item,
  size_t index = 0;                 // its index in
  const MergeType* list = nullptr;  // a list of this type,
  const Value* item = nullptr;      // and, if it is named by its keys, the item itself.

  static Place of_member(const Place* above, std::string_view key) { return {above, key}; }
  static Place of_item(const Place* above, size_t index) { return {above, {}, index}; }

  void append_to(std::string& out) const {
    if (above != nullptr) above->append_to(out);
    if (member.data() != nullptr) {
      out += '.';
      out += member;
      return;
    }
    Arena arena;
    PathElement element = PathElement::index(static_cast<int64_t>(index));
    const bool keyed = item != nullptr && item_element(arena, *list, *item, element);
    out += keyed ? to_string(element) : '[' + std::to_string(index) + ']';
  }
};

std::string to_text(const Place* place) {
  if (place == nullptr) return ".";
  std::string out;
  place->append_to(out);
  return out;
}

Error refuse(const Place* place, std::string_view why) {
  return bad_request("invalid unset marker at " + to_text(place) + ": " + std::string(why));
}

// Most maps are small and have no such key: comparing lengths is faster than a lookup.
const Value* marker_value(const Value& map) {
  for (const Member& m : map.members()) {
    if (m.key == kUnsetKey) return &m.value;
  }
  return nullptr;
}

// If the map has the key itself, doubled: its value. Else null.
const Value* escaped(const Value& map) {
  const Value* outer = marker_value(map);
  if (outer == nullptr || !outer->is_map() || outer->count() != 1) return nullptr;
  return marker_value(*outer);
}
// Only where the type allows such a key; elsewhere it is a marker with a wrong value.
const Value* escaped(const MergeType& type, const Value& map) {
  bool declared = false;
  const Value* literal = escaped(map);
  return literal != nullptr && type.member(kUnsetKey, declared) != nullptr ? literal : nullptr;
}

bool is_marker(const MergeType& type, const Value& map) {
  return marker_value(map) != nullptr && escaped(type, map) == nullptr;
}

class MarkerWalk {
 public:
  explicit MarkerWalk(Arena& arena) : arena_(arena), paths_(arena) {}

  // What is left of a value, and the markers below it.
  struct Taken {
    std::optional<Value> value;  // Empty if the value is a marker, or a container with nothing but markers.
    FieldSet paths;              // Those below the value.
    bool unset = false;          // The value is a marker.
  };

  // After a failure, error() says why and the result is meaningless.
  Taken node(const MergeType& type, const Value& v, const Place* place) {
    if (v.is_map()) {
      if (is_marker(type, v)) return marker(v, place);
      if ((type.offers & MergeType::kMap) == 0) return plain(v);
      if (type.atomic_map) return untouched(v, place, "a marker cannot stand inside an atomic map or struct");
      return members(type, v, place);
    }
    if (v.is_list()) {
      if ((type.offers & MergeType::kList) == 0) return plain(v);
      if (type.atomic_list) return untouched(v, place, "a marker cannot stand inside an atomic list");
      return items(type, v, place);
    }
    return plain(v);
  }

  std::optional<Error>& error() { return error_; }

 private:
  Taken failed(Error error) {
    error_ = std::move(error);
    return {};
  }

  static Taken plain(const Value& v) { return {v, {}}; }

  // The value without escapes. The error includes the place of the first marker in `v`.
  Taken untouched(const Value& v, const Place* place, std::string_view why) {
    if (v.is_map()) {
      const Value* literal = escaped(v);
      if (literal == nullptr && marker_value(v) != nullptr) return failed(refuse(place, why));
      Member* out = nullptr;
      for (size_t i = 0; i < v.count(); ++i) {
        const Member& m = v.members()[i];
        const Value& written = literal != nullptr && m.key == kUnsetKey ? *literal : m.value;
        Value value = written;
        if (!written.is_scalar()) {
          const Place here = Place::of_member(place, m.key);
          const Taken below = untouched(written, &here, why);
          if (error_) return {};
          value = *below.value;
        }
        if (value.same(m.value)) continue;
        if (out == nullptr) out = arena_.copy(v.members()).data();
        out[i].value = value;
      }
      return out == nullptr ? plain(v) : plain(Value::map(arena_, std::span<const Member>(out, v.count())));
    }
    if (v.is_list()) {
      Value* out = nullptr;
      for (size_t i = 0; i < v.count(); ++i) {
        if (v.items()[i].is_scalar()) continue;
        const Place here = Place::of_item(place, i);
        const Taken below = untouched(v.items()[i], &here, why);
        if (error_) return {};
        if (below.value->same(v.items()[i])) continue;
        if (out == nullptr) out = arena_.copy(v.items()).data();
        out[i] = *below.value;
      }
      return out == nullptr ? plain(v) : plain(Value::list(std::span<const Value>(out, v.count())));
    }
    return plain(v);
  }

  static std::optional<Error> bad_value(const Value& v, const Place* place) {
    const Value& said = *v.find(kUnsetKey);
    if (said.is_string() && said.as_string() == kUnsetValue) return std::nullopt;
    std::string shown = said.is_string() ? go_quote(said.as_string()) : "a value of another kind";
    return refuse(place, "the only value of " + std::string(kUnsetKey) + " is \"unset\", not " + shown);
  }

  // Fields of every object that only the server sets, or that identify the object.
  static std::optional<Error> bad_field(const Place& place) {
    if (place.above != nullptr && place.above->above != nullptr) return std::nullopt;
    // Not of any length: the name of the map above would be copied for each of its members.
    if (place.above != nullptr && place.above->member != "metadata") return std::nullopt;
    const std::string at = to_text(&place);
    // The same message as for any other value.
    if (at == ".metadata.managedFields") return bad_request("metadata.managedFields must be nil");
    for (const std::string_view fixed :
         {".apiVersion", ".kind", ".metadata", ".metadata.name", ".metadata.namespace", ".metadata.uid",
          ".metadata.resourceVersion", ".metadata.generation", ".metadata.creationTimestamp",
          ".metadata.deletionTimestamp", ".metadata.deletionGracePeriodSeconds", ".metadata.selfLink"}) {
      if (at == fixed) return refuse(&place, "this field cannot be unset");
    }
    return std::nullopt;
  }

  Taken marker(const Value& v, const Place* place) {
    if (place == nullptr) return failed(refuse(place, "an object cannot be unset as a whole"));
    if (std::optional<Error> error = bad_field(*place)) return failed(*error);
    if (std::optional<Error> error = bad_value(v, place)) return failed(*error);
    for (const Member& m : v.members()) {
      if (m.key != kUnsetKey) {
        return failed(
            refuse(place, "nothing may stand beside " + std::string(kUnsetKey) + ", but " + go_quote(m.key) + " does"));
      }
    }
    return Taken{std::nullopt, {}, true};
  }

  Taken members(const MergeType& type, const Value& v, const Place* place) {
    const size_t level = paths_.open();
    const std::span<const Member> from = v.members();
    Member* left = nullptr;  // A copy, made when the first member changes.
    size_t count = 0;
    const Value* literal = escaped(type, v);
    for (size_t i = 0; i < from.size(); ++i) {
      std::optional<Value> value = literal != nullptr && from[i].key == kUnsetKey ? *literal : from[i].value;
      if (!value->is_scalar()) {
        bool declared = false;
        const MergeType* child = type.member(from[i].key, declared);
        // Undeclared members are reported by validation.
        if (child != nullptr) {
          const Place here = Place::of_member(place, from[i].key);
          const Taken below = node(*child, *value, &here);
          if (error_) return {};
          paths_.add(PathElement::field(from[i].key), below.unset, below.paths);
          value = below.value;
        }
      }
      if (left == nullptr) {
        if (value && value->same(from[i].value)) continue;
        left = arena_.allocate_array<Member>(from.size());
        std::copy(from.begin(), from.begin() + static_cast<ptrdiff_t>(i), left);
        count = i;
      }
      if (value) left[count++] = {from[i].key, *value};
    }
    const FieldSet paths = with_aliases(type, v, paths_.close(level));
    if (left == nullptr) return plain(v);
    if (count == 0) return Taken{std::nullopt, paths};
    return Taken{Value::map(arena_, std::span<const Member>(left, count)), paths};
  }

  static bool is_marked(const Value& v) { return v.is_map() && marker_value(v) != nullptr && escaped(v) == nullptr; }

  // Two fields that the server keeps in step are unset together; otherwise one would restore the other. What the
  // configuration sets is left to it.
  FieldSet with_aliases(const MergeType& type, const Value& v, FieldSet paths) {
    if (!type.has_aliases) return paths;
    SetBuilder more(arena_);
    for (const SetEntry& entry : paths.entries()) {
      const MergeField* field = entry.element.is_field() ? type.find(entry.element.name()) : nullptr;
      if (field == nullptr || field->alias.empty()) continue;
      const Value* other = v.find(field->alias);
      const bool free = other == nullptr || is_marked(*other);
      SetBuilder below(arena_);
      for (const SetEntry& child : entry.children().entries()) {
        if (!child.element.is_field() || type.find(field->alias)->type->offers != MergeType::kMap) continue;
        const Value* value = other != nullptr && other->is_map() ? other->find(child.element.name()) : nullptr;
        if (value == nullptr || is_marked(*value)) below.add(child.element, child.member, {});
      }
      more.add(PathElement::field(field->alias), entry.member && free, below.close(0));
    }
    return union_of(arena_, paths, more.close(0));
  }

  Taken items(const MergeType& type, const Value& v, const Place* place) {
    const bool set = type.keys.empty();
    const size_t level = paths_.open();
    const std::span<const Value> from = v.items();
    Value* left = nullptr;  // A copy, made when the first item changes.
    size_t count = 0;
    std::vector<size_t> marked;
    for (size_t i = 0; i < from.size(); ++i) {
      const Value& item = from[i];
      std::optional<Value> value = item;
      // Items of a keyed list that are not maps are reported by validation.
      if (item.is_map()) {
        const bool unset = set ? marker_value(item) != nullptr : is_marker(*type.item, item);
        Place here = Place::of_item(place, i);
        if (set) {
          if (unset) {
            if (std::optional<Error> error = bad_element_marker(type, item, &here)) return failed(*error);
          }
        } else if (std::optional<Error> error = bad_keys(type, item, unset, &here)) {
          return failed(*error);
        }
        here.list = &type;
        here.item = &item;
        if (unset) {
          if (!set) {
            if (std::optional<Error> error = bad_item_marker(type, item, &here)) return failed(*error);
          }
          paths_.add(element_of(type, unset_item(type, item), i), true, {});
          marked.push_back(i);
          value.reset();
        } else if (!set) {
          const Taken below = node(*type.item, item, &here);
          if (error_) return {};
          if (!below.paths.empty()) paths_.add(element_of(type, item, i), false, below.paths);
          // An item whose keys all have their defaults is named by the configuration even if only markers are in it.
          value = below.value ? below.value : Value::empty_map();
        }
      }
      if (left == nullptr) {
        if (value && value->same(item)) continue;
        left = arena_.allocate_array<Value>(from.size());
        std::copy(from.begin(), from.begin() + static_cast<ptrdiff_t>(i), left);
        count = i;
      }
      if (value) left[count++] = *value;
    }
    if (!marked.empty()) {
      if (std::optional<Error> error = named_twice(type, v, marked, place)) return failed(*error);
    }
    const FieldSet paths = paths_.close(level);
    if (left == nullptr) return plain(v);
    if (count == 0) return Taken{std::nullopt, paths};
    return Taken{Value::list(std::span<const Value>(left, count)), paths};
  }

  // The item that a marker stands for, as far as it is named: a set's element, or the keys next to the marker.
  static const Value& unset_item(const MergeType& type, const Value& marker) {
    return type.keys.empty() ? *marker.find(kUnsetElement) : marker;
  }

  PathElement element_of(const MergeType& list, const Value& item, size_t index) {
    PathElement element = PathElement::index(static_cast<int64_t>(index));
    item_element(arena_, list, item, element);
    return element;
  }

  // A marker for an element of a set has the element next to it.
  static std::optional<Error> bad_element_marker(const MergeType& type, const Value& item, const Place* place) {
    const Value* element = item.find(kUnsetElement);
    if (element == nullptr) {
      return refuse(place, "an element of a set cannot be unset; leave it out, or unset the whole set");
    }
    if (std::optional<Error> error = bad_value(item, place)) return error;
    for (const Member& m : item.members()) {
      if (m.key == kUnsetKey || m.key == kUnsetElement) continue;
      return refuse(place, "only " + std::string(kUnsetElement) + " may stand beside " + std::string(kUnsetKey) +
                               ", but " + go_quote(m.key) + " does");
    }
    if (has_marker(*element)) return refuse(place, "an element of a set cannot contain a marker");
    if (const std::string why = validate(*type.item, *element, Duplicates::Refused);
        element->is_null() || !why.empty()) {
      return refuse(place, "the element does not fit: " + (why.empty() ? "null" : why));
    }
    return std::nullopt;
  }

  // Keys identify the item: they cannot be markers, and a marker item must have all of them.
  static std::optional<Error> bad_keys(const MergeType& type, const Value& item, bool is_marker, const Place* place) {
    for (size_t k = 0; k < type.keys.size(); ++k) {
      const std::string_view key = type.keys[k];
      const Value* value = item.find(key);
      if (value != nullptr && has_marker(*value)) {
        const Place here = Place::of_member(place, key);
        return refuse(&here, "a key of a list cannot be unset");
      }
      if (!is_marker) continue;
      if (value == nullptr) {
        if (type.has_declared_key_default(k)) continue;
        return refuse(place, "an item is unset by its keys, but " + go_quote(key) + " is missing and has no default");
      }
      if (value->is_null()) return refuse(place, "the key " + go_quote(key) + " cannot be null");
      const MergeField* field = type.item->find(key);
      if (field == nullptr) continue;
      if (const std::string why = validate(*field->type, *value, Duplicates::Refused); !why.empty()) {
        return refuse(place, "the key " + go_quote(key) + " does not fit: " + why);
      }
    }
    return std::nullopt;
  }

  static std::optional<Error> bad_item_marker(const MergeType& type, const Value& item, const Place* place) {
    if (std::optional<Error> error = bad_value(item, place)) return error;
    for (const Member& m : item.members()) {
      const bool is_key = std::find(type.keys.begin(), type.keys.end(), m.key) != type.keys.end();
      if (m.key != kUnsetKey && !is_key) {
        return refuse(place, "only the keys of the list may stand beside " + std::string(kUnsetKey) + ", but " +
                                 go_quote(m.key) + " does");
      }
    }
    return std::nullopt;
  }

  // An item that is both set and unset, or unset twice. (Validation finds items that are set twice.)
  std::optional<Error> named_twice(const MergeType& type, const Value& list, const std::vector<size_t>& marked,
                                   const Place* place) {
    std::vector<Value> named(list.items().begin(), list.items().end());
    for (const size_t i : marked) named[i] = unset_item(type, named[i]);
    const ItemIndex index(arena_, type, named);
    for (const size_t i : marked) {
      if (index.copies(index.find(index.element(i), i)) == 1) continue;
      Place here = Place::of_item(place, i);
      here.list = &type;
      here.item = &named[i];
      return refuse(&here, "the configuration names this item twice");
    }
    return std::nullopt;
  }

  Arena& arena_;
  SetBuilder paths_;
  std::optional<Error> error_;
};

FieldSet vacant_members(Arena& arena, const MergeType& type, const Value* value, FieldSet set);

// `item` may be null if the item is absent.
void add_vacant_item(Arena& arena, const MergeType& type, const Value* item, const SetEntry& entry, SetBuilder& out) {
  if (item == nullptr) {
    out.add(entry.element, entry.member, {});
  } else if (entry.child_count != 0) {
    out.add(entry.element, false, vacant_members(arena, *type.item, item, entry.children()));
  }
}

void add_vacant_field(Arena& arena, const MergeType& type, const Value* map, const SetEntry& entry, SetBuilder& out) {
  const std::string_view name = entry.element.name();
  bool declared = false;
  const MergeType* child = type.member(name, declared);
  if (child == nullptr) return;
  const Value* value = map == nullptr ? nullptr : map->find(name);
  if (value != nullptr && value->is_null() && declared) {
    // Absent, in the form that Go writes.
    const Value* absent = type.find(name)->value_when_absent;
    if (absent != nullptr && absent->is_null()) value = nullptr;
  }
  if (value == nullptr && entry.member) {
    out.add(entry.element, true, {});
  } else if (entry.child_count != 0) {
    out.add(entry.element, false, vacant_members(arena, *child, value, entry.children()));
  }
}

FieldSet vacant_members(Arena& arena, const MergeType& type, const Value* value, FieldSet set) {
  SetBuilder out(arena);
  const bool maps = (type.offers & MergeType::kMap) != 0 && !type.atomic_map;
  const bool lists = (type.offers & MergeType::kList) != 0 && !type.atomic_list;
  const PathElement::Kind named_by = type.keys.empty() ? PathElement::Kind::Value : PathElement::Kind::Key;
  const Value* map = value != nullptr && value->is_map() ? value : nullptr;
  std::optional<ItemIndex> items;
  if (lists && value != nullptr && value->is_list()) items.emplace(arena, type, value->items());
  for (const SetEntry& entry : set.entries()) {
    if (maps && entry.element.is_field()) {
      add_vacant_field(arena, type, map, entry, out);
    } else if (lists && entry.element.kind() == named_by) {
      const size_t at = items ? items->find(entry.element, 0) : 0;
      const bool there = items && at != items->count();
      add_vacant_item(arena, type, there ? &value->items()[at] : nullptr, entry, out);
    }
  }
  return out.close(0);
}

Value marker(Arena& arena, std::span<const Member> keys = {}) {
  MapBuilder out(arena);
  for (const Member& key : keys) out.add(key.key, key.value);
  out.add(kUnsetKey, Value::string(kUnsetValue));
  return out.build();
}

Value with_marked_items(Arena& arena, const MergeType& type, const Value& config, FieldSet paths) {
  ListBuilder out(arena);
  const std::span<const Value> items = config.is_list() ? config.items() : std::span<const Value>();
  const ItemIndex index(arena, type, items);
  for (size_t i = 0; i < items.size(); ++i) {
    const SetEntry* entry = paths.find(index.element(i));
    out.add(entry == nullptr ? items[i] : with_markers(arena, *type.item, items[i], entry->children()));
  }
  for (const SetEntry& entry : paths.entries()) {
    if (index.find(entry.element, 0) != index.count()) continue;
    if (entry.element.kind() == PathElement::Kind::Value) {
      const Member element{kUnsetElement, entry.element.value()};
      out.add(marker(arena, {&element, 1}));
      continue;
    }
    const std::span<const Member> keys = entry.element.key();
    if (entry.member) {
      out.add(marker(arena, keys));
    } else {
      out.add(with_markers(arena, *type.item, Value::map(arena, keys), entry.children()));
    }
  }
  return out.build();
}

}  // namespace

FieldSet vacancies(Arena& arena, const MergeType& type, const Value& value, FieldSet set) {
  return vacant_members(arena, type, &value, set);
}

Value with_markers(Arena& arena, const MergeType& type, const Value& config, FieldSet paths) {
  if (paths.empty()) return config;
  if (!paths.entries().front().element.is_field()) return with_marked_items(arena, type, config, paths);
  const Value map = config.is_map() ? config : Value::empty_map();
  MapEdit edit(arena, map);
  for (const SetEntry& entry : paths.entries()) {
    const std::string_view name = entry.element.name();
    bool declared = false;
    const Value* old = map.find(name);
    const Value value = entry.member ? marker(arena)
                                     : with_markers(arena, *type.member(name, declared),
                                                    old == nullptr ? Value() : *old, entry.children());
    if (old == nullptr) {
      edit.add(name, value);
    } else {
      edit.replace(*old, value);
    }
  }
  return edit.build();
}

namespace {

// Whether defaults can be declared below a map or struct of this type.
bool declares_fields(const MergeType& type) {
  if ((type.offers & MergeType::kMap) == 0 || type.atomic_map) return false;
  return !type.fields.empty() || (type.element != nullptr && !type.is_deduced_map() && declares_fields(*type.element));
}

// The value with {} for the topmost absent map or struct above each path of `set`, if defaults may apply in it.
Value with_parents(Arena& arena, const MergeType& type, const Value& value, FieldSet set) {
  if (value.is_map() && (type.offers & MergeType::kMap) != 0) {
    MapEdit edit(arena, value);
    for (const SetEntry& entry : set.entries()) {
      if (entry.child_count == 0 || !entry.element.is_field()) continue;
      const std::string_view name = entry.element.name();
      bool declared = false;
      const MergeType* child_type = type.member(name, declared);
      if (child_type == nullptr) continue;
      const Value* child = value.find(name);
      if (child == nullptr) {
        if (declares_fields(*child_type)) edit.add(name, Value::empty_map());
        continue;
      }
      const Value whole = with_parents(arena, *child_type, *child, entry.children());
      if (!whole.same(*child)) edit.replace(*child, whole);
    }
    return edit.build();
  }
  if (value.is_list() && (type.offers & MergeType::kList) != 0 && !type.atomic_list) {
    ItemEntries entries(arena, type, set);
    Value* items = nullptr;
    for (size_t i = 0; i < value.count(); ++i) {
      const Value& item = value.items()[i];
      const SetEntry* entry = entries.of(item);
      if (entry == nullptr || entry->child_count == 0) continue;
      const Value whole = with_parents(arena, *type.item, item, entry->children());
      if (whole.same(item)) continue;
      if (items == nullptr) items = arena.copy(value.items()).data();
      items[i] = whole;
    }
    if (items != nullptr) return Value::list(std::span<const Value>(items, value.count()));
  }
  return value;
}

// Removes the containers above a path of `set` that are empty in the value and absent `before`.
Value without_empty_parents(Arena& arena, const MergeType& type, const Value& value, const Value& before,
                            FieldSet set) {
  if (value.is_map() && (type.offers & MergeType::kMap) != 0) {
    MapEdit edit(arena, value);
    for (const SetEntry& entry : set.entries()) {
      if (entry.child_count == 0 || !entry.element.is_field()) continue;
      const std::string_view name = entry.element.name();
      bool declared = false;
      const MergeType* child_type = type.member(name, declared);
      const Value *child = value.find(name), *was = before.is_map() ? before.find(name) : nullptr;
      if (child_type == nullptr || child == nullptr) continue;
      const Value left = without_empty_parents(arena, *child_type, *child, was == nullptr ? Value::empty_map() : *was,
                                               entry.children());
      if (was == nullptr && left.is_map() && left.count() == 0) {
        edit.remove(*child);
      } else if (!left.same(*child)) {
        edit.replace(*child, left);
      }
    }
    return edit.build();
  }
  if (value.is_list() && before.is_list() && (type.offers & MergeType::kList) != 0 && !type.atomic_list) {
    // Defaults neither add nor move items.
    if (value.count() != before.count()) return value;
    ItemEntries entries(arena, type, set);
    Value* items = nullptr;
    for (size_t i = 0; i < value.count(); ++i) {
      const Value& item = value.items()[i];
      const SetEntry* entry = entries.of(item);
      if (entry == nullptr || entry->child_count == 0) continue;
      const Value left = without_empty_parents(arena, *type.item, item, before.items()[i], entry->children());
      if (left.same(item)) continue;
      if (items == nullptr) items = arena.copy(value.items()).data();
      items[i] = left;
    }
    if (items != nullptr) return Value::list(std::span<const Value>(items, value.count()));
  }
  return value;
}

}  // namespace

namespace {

// Whether there is nothing in the value but maps on the way to a path of `set`.
bool is_hollow(const Value& value, FieldSet set) {
  return value.is_map() && std::all_of(value.members().begin(), value.members().end(), [&](const Member& m) {
           const SetEntry* entry = set.find_field(m.key);
           return entry != nullptr && entry->child_count != 0 && is_hollow(m.value, entry->children());
         });
}

// Removes the topmost containers above a path of `set` that are hollow in the value and absent `before`.
Value without_hollow_parents(Arena& arena, const MergeType& type, const Value& value, const Value& before,
                             FieldSet set) {
  if (value.is_map() && before.is_map() && (type.offers & MergeType::kMap) != 0) {
    MapEdit edit(arena, value);
    for (const SetEntry& entry : set.entries()) {
      if (entry.child_count == 0 || !entry.element.is_field()) continue;
      const std::string_view name = entry.element.name();
      bool declared = false;
      const MergeType* child_type = type.member(name, declared);
      const Value *child = value.find(name), *was = before.find(name);
      if (child_type == nullptr || child == nullptr) continue;
      if (was == nullptr) {
        if (is_hollow(*child, entry.children())) edit.remove(*child);
        continue;
      }
      const Value left = without_hollow_parents(arena, *child_type, *child, *was, entry.children());
      if (!left.same(*child)) edit.replace(*child, left);
    }
    return edit.build();
  }
  if (value.is_list() && before.is_list() && value.count() == before.count() && (type.offers & MergeType::kList) != 0 &&
      !type.atomic_list) {
    ItemEntries entries(arena, type, set);
    Value* items = nullptr;
    for (size_t i = 0; i < value.count(); ++i) {
      const Value& item = value.items()[i];
      const SetEntry* entry = entries.of(item);
      if (entry == nullptr || entry->child_count == 0) continue;
      const Value left = without_hollow_parents(arena, *type.item, item, before.items()[i], entry->children());
      if (left.same(item)) continue;
      if (items == nullptr) items = arena.copy(value.items()).data();
      items[i] = left;
    }
    if (items != nullptr) return Value::list(std::span<const Value>(items, value.count()));
  }
  return value;
}

}  // namespace

Value with_defaulted_parents(Arena& arena, const MergeType& type, const Value& object, FieldSet unset,
                             const std::function<Value(Arena&, const Value&)>& defaults) {
  if (!defaults || with_parents(arena, type, object, unset).same(object)) return object;
  // Defaults first, and level by level: a container with a default of its own is not created empty.
  const Value before = defaults(arena, object);
  Value out = before;
  for (Value whole = with_parents(arena, type, out, unset); !whole.same(out);
       whole = with_parents(arena, type, out, unset)) {
    out = defaults(arena, whole);
  }
  return without_empty_parents(arena, type, out, before, unset);
}

Value with_defaults_of_unset(Arena& arena, const MergeType& type, const Value& object, FieldSet unset,
                             const std::function<Value(Arena&, const Value&)>& defaults) {
  const Value filled = with_absent_values(arena, type, object, unset);
  if (!defaults) return filled;
  const Value usual = defaults(arena, filled);
  const Value once = with_defaulted_parents(arena, type, usual, unset, defaults);
  // The default of a container may have set a field in it that is unset. Remove it, so that the next apply, which finds
  // the container, has the same result; a default of the field itself comes back.
  const Value bare = remove(arena, type, once, unset, Emptied::Keep);
  if (bare.same(once)) return once;
  const Value again = defaults(arena, with_absent_values(arena, type, bare, unset));
  const Value twice = with_defaulted_parents(arena, type, again, unset, defaults);
  return without_hollow_parents(arena, type, twice, usual, unset);
}

FieldSet defaulted_containers(Arena& arena, const MergeType& type, const Value& object, FieldSet owned,
                              const std::function<Result<Value>(const Value&)>& with_defaults) {
  const FieldSet whole = declared_containers(arena, type, owned);
  if (whole.empty()) return {};
  const Result<Value> defaulted = with_defaults(remove(arena, type, object, whole, Emptied::Keep));
  if (!defaulted) return {};
  const Comparison change = compare(arena, type, object, *defaulted);
  const FieldSet differs = union_of(arena, union_of(arena, change.added, change.modified), change.removed);
  std::vector<FieldSet> same;
  whole.for_each([&](Path path) {
    const FieldSet one = single(arena, path);
    if (at_or_below(arena, differs, one).empty()) same.push_back(one);
  });
  return union_of(arena, std::move(same));
}

FieldSet default_valued(Arena& arena, const MergeType& type, const Value& value, FieldSet set) {
  SetBuilder out(arena);
  if (value.is_map() && (type.offers & MergeType::kMap) != 0 && !type.atomic_map) {
    for (const SetEntry& entry : set.entries()) {
      if (!entry.element.is_field()) continue;
      const std::string_view name = entry.element.name();
      bool declared = false;
      const MergeType* child_type = type.member(name, declared);
      const Value* child = value.find(name);
      if (child_type == nullptr || child == nullptr) continue;
      const Value* standard = declared ? type.find(name)->default_value : nullptr;
      const bool equals =
          entry.member && entry.child_count == 0 && standard != nullptr && equal(*child, *standard, Numbers::ByValue);
      out.add(entry.element, equals, default_valued(arena, *child_type, *child, entry.children()));
    }
  } else if (value.is_list() && (type.offers & MergeType::kList) != 0 && !type.atomic_list && !set.empty()) {
    ItemEntries entries(arena, type, set);
    for (const Value& item : value.items()) {
      const SetEntry* entry = entries.of(item);
      if (entry == nullptr || entry->child_count == 0) continue;
      out.add(entry->element, false, default_valued(arena, *type.item, item, entry->children()));
    }
  }
  return out.close(0);
}

Value with_escapes(Arena& arena, const Value& value) {
  if (value.is_map()) {
    MapEdit edit(arena, value);
    for (const Member& m : value.members()) {
      Value inner = m.value.is_scalar() ? m.value : with_escapes(arena, m.value);
      if (m.key == kUnsetKey) inner = with_member(arena, Value::empty_map(), kUnsetKey, inner);
      if (!inner.same(m.value)) edit.replace(m.value, inner);
    }
    return edit.build();
  }
  if (value.is_list()) {
    Value* items = nullptr;
    for (size_t i = 0; i < value.count(); ++i) {
      const Value& item = value.items()[i];
      if (item.is_scalar()) continue;
      const Value inner = with_escapes(arena, item);
      if (inner.same(item)) continue;
      if (items == nullptr) items = arena.copy(value.items()).data();
      items[i] = inner;
    }
    if (items != nullptr) return Value::list(std::span<const Value>(items, value.count()));
  }
  return value;
}

bool has_marker(const Value& value) {
  if (value.is_map()) {
    for (const Member& m : value.members()) {
      if (m.key == kUnsetKey || has_marker(m.value)) return true;
    }
  } else if (value.is_list()) {
    for (const Value& item : value.items()) {
      // The items of a list are of one kind: scalars need not be searched.
      if (!item.is_map() && !item.is_list()) continue;
      if (has_marker(item)) return true;
    }
  }
  return false;
}

Result<Unset> take_markers(Arena& arena, const MergeType& type, const Value& config) {
  MarkerWalk walk(arena);
  const MarkerWalk::Taken taken = walk.node(type, config, nullptr);
  if (walk.error()) return *std::move(walk.error());
  return Unset{taken.value ? *taken.value : Value::empty_map(), taken.paths};
}

}  // namespace holdfast::ownership
