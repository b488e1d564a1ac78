#include "ownership/unset.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "ownership/typed.h"

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
bool is_marker(const Value& map) {
  return std::ranges::any_of(map.members(), [](const Member& m) { return m.key == kUnsetKey; });
}

class MarkerWalk {
 public:
  explicit MarkerWalk(Arena& arena) : arena_(arena), paths_(arena), vacated_(arena) {}

  // What is left of a value, and the markers below it.
  struct Taken {
    std::optional<Value> value;  // Empty if the value itself is a marker.
    FieldSet paths;
    FieldSet vacated;
    bool unset() const { return !value; }
  };

  // After a failure, error() says why and the result is meaningless.
  Taken node(const MergeType& type, const Value& v, const Place* place) {
    if (v.is_map()) {
      if (is_marker(v)) return marker(v, place);
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

  static Taken plain(const Value& v) { return {v, {}, {}}; }

  // The error includes the place of the first marker in `v`.
  Taken untouched(const Value& v, const Place* place, std::string_view why) {
    if (v.is_map()) {
      if (is_marker(v)) return failed(refuse(place, why));
      for (const Member& m : v.members()) {
        if (m.value.is_scalar()) continue;
        const Place here = Place::of_member(place, m.key);
        untouched(m.value, &here, why);
        if (error_) return {};
      }
    } else if (v.is_list()) {
      for (size_t i = 0; i < v.count(); ++i) {
        if (v.items()[i].is_scalar()) continue;
        const Place here = Place::of_item(place, i);
        untouched(v.items()[i], &here, why);
        if (error_) return {};
      }
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
    return Taken{std::nullopt, {}, {}};
  }

  Taken members(const MergeType& type, const Value& v, const Place* place) {
    const size_t level = paths_.open(), vacated_level = vacated_.open();
    const std::span<const Member> from = v.members();
    Member* left = nullptr;  // A copy, made when the first member changes.
    size_t count = 0;
    for (size_t i = 0; i < from.size(); ++i) {
      std::optional<Value> value = from[i].value;
      if (!value->is_scalar()) {
        bool declared = false;
        const MergeType* child = type.member(from[i].key, declared);
        // Undeclared members are reported by validation.
        if (child != nullptr) {
          const Place here = Place::of_member(place, from[i].key);
          const Taken below = node(*child, *value, &here);
          if (error_) return {};
          const PathElement element = PathElement::field(from[i].key);
          paths_.add(element, below.unset(), below.paths);
          if (below.value) {
            const bool vacated = declared && !below.paths.empty() && below.value->count() == 0;
            vacated_.add(element, vacated, below.vacated);
          }
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
    const FieldSet paths = paths_.close(level), vacated = vacated_.close(vacated_level);
    if (left == nullptr) return plain(v);
    if (count == 0) return Taken{Value::empty_map(), paths, vacated};
    return Taken{Value::map(arena_, std::span<const Member>(left, count)), paths, vacated};
  }

  Taken items(const MergeType& type, const Value& v, const Place* place) {
    if (type.keys.empty()) return elements(v, place);
    const size_t level = paths_.open(), vacated_level = vacated_.open();
    const std::span<const Value> from = v.items();
    Value* left = nullptr;  // A copy, made when the first item changes.
    size_t count = 0;
    std::vector<size_t> marked;
    for (size_t i = 0; i < from.size(); ++i) {
      const Value& item = from[i];
      std::optional<Value> value = item;
      // Items that are not maps are reported by validation.
      if (item.is_map()) {
        const bool unset = is_marker(item);
        Place here = Place::of_item(place, i);
        if (std::optional<Error> error = bad_keys(type, item, unset, &here)) return failed(*error);
        here.list = &type;
        here.item = &item;
        if (unset) {
          if (std::optional<Error> error = bad_item_marker(type, item, &here)) return failed(*error);
          paths_.add(element_of(type, item, i), true, {});
          marked.push_back(i);
          value.reset();
        } else {
          const Taken below = node(*type.item, item, &here);
          if (error_) return {};
          if (!below.paths.empty()) {
            const PathElement element = element_of(type, item, i);
            paths_.add(element, false, below.paths);
            vacated_.add(element, false, below.vacated);
          }
          value = below.value;
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
    const FieldSet paths = paths_.close(level), vacated = vacated_.close(vacated_level);
    if (left == nullptr) return plain(v);
    if (count == 0) return Taken{Value::empty_list(), paths, vacated};
    return Taken{Value::list(std::span<const Value>(left, count)), paths, vacated};
  }

  PathElement element_of(const MergeType& list, const Value& item, size_t index) {
    PathElement element = PathElement::index(static_cast<int64_t>(index));
    item_element(arena_, list, item, element);
    return element;
  }

  // The items of a set.
  Taken elements(const Value& v, const Place* place) {
    for (size_t i = 0; i < v.count(); ++i) {
      const Value& item = v.items()[i];
      if (!item.is_map() || !is_marker(item)) continue;
      const Place here = Place::of_item(place, i);
      return failed(refuse(&here, "an element of a set cannot be unset; leave it out, or unset the whole set"));
    }
    return plain(v);
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
    const ItemIndex index(arena_, type, list.items());
    for (const size_t i : marked) {
      if (index.copies(index.find(index.element(i), i)) == 1) continue;
      Place here = Place::of_item(place, i);
      here.list = &type;
      here.item = &list.items()[i];
      return refuse(&here, "the configuration names this item twice");
    }
    return std::nullopt;
  }

  Arena& arena_;
  SetBuilder paths_, vacated_;
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
  const bool lists = (type.offers & MergeType::kList) != 0 && !type.atomic_list && !type.keys.empty();
  const Value* map = value != nullptr && value->is_map() ? value : nullptr;
  std::optional<ItemIndex> items;
  if (lists && value != nullptr && value->is_list()) items.emplace(arena, type, value->items());
  for (const SetEntry& entry : set.entries()) {
    if (maps && entry.element.is_field()) {
      add_vacant_field(arena, type, map, entry, out);
    } else if (lists && entry.element.kind() == PathElement::Kind::Key) {
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
  Value out = config.is_map() ? config : Value::empty_map();
  for (const SetEntry& entry : paths.entries()) {
    const std::string_view name = entry.element.name();
    bool declared = false;
    const Value* old = out.find(name);
    const Value value = entry.member ? marker(arena)
                                     : with_markers(arena, *type.member(name, declared),
                                                    old == nullptr ? Value() : *old, entry.children());
    out = with_member(arena, out, name, value);
  }
  return out;
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
  return Unset{*taken.value, taken.paths, taken.vacated};
}

}  // namespace holdfast::ownership
