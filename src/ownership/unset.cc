#include "ownership/unset.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "ownership/typed.h"

namespace holdfast::ownership {
namespace {

class MarkerWalk {
 public:
  explicit MarkerWalk(Arena& arena) : arena_(arena), paths_(arena), vacated_(arena) {}

  // What is left of a value, and the markers below it.
  struct Taken {
    std::optional<Value> value;  // Nothing: the value itself is a marker.
    FieldSet paths;
    FieldSet vacated;
    bool unset() const { return !value; }
  };

  Result<Taken> node(const MergeType& type, const Value& v) {
    if (v.is_map()) {
      if (v.has(kUnsetKey)) return marker(v);
      if ((type.offers & MergeType::kMap) == 0) return plain(v);
      if (type.atomic_map) return untouched(v, "a marker cannot stand inside an atomic map or struct");
      return members(type, v);
    }
    if (v.is_list()) {
      if ((type.offers & MergeType::kList) == 0) return plain(v);
      if (type.atomic_list) return untouched(v, "a marker cannot stand inside an atomic list");
      return items(type, v);
    }
    return plain(v);
  }

  Error refuse(std::string_view why) const {
    return bad_request("invalid unset marker at " + (path_.empty() ? std::string(".") : to_text()) + ": " +
                       std::string(why));
  }

 private:
  static Taken plain(const Value& v) { return {v, {}, {}}; }

  std::string to_text() const {
    std::string out;
    for (const std::string& step : path_) out += step;
    return out;
  }

  // The place of the first marker in `v` is part of the error.
  Result<Taken> untouched(const Value& v, std::string_view why) {
    if (v.is_map()) {
      if (v.has(kUnsetKey)) return refuse(why);
      for (const Member& m : v.members()) {
        path_.push_back("." + std::string(m.key));
        Result<Taken> below = untouched(m.value, why);
        if (!below) return below;
        path_.pop_back();
      }
    } else if (v.is_list()) {
      for (size_t i = 0; i < v.count(); ++i) {
        path_.push_back("[" + std::to_string(i) + "]");
        Result<Taken> below = untouched(v.items()[i], why);
        if (!below) return below;
        path_.pop_back();
      }
    }
    return plain(v);
  }

  std::optional<Error> bad_value(const Value& v) const {
    const Value& said = *v.find(kUnsetKey);
    if (said.is_string() && said.as_string() == kUnsetValue) return std::nullopt;
    std::string shown = said.is_string() ? go_quote(said.as_string()) : "a value of another kind";
    return refuse("the only value of " + std::string(kUnsetKey) + " is \"unset\", not " + shown);
  }

  Result<Taken> marker(const Value& v) {
    if (path_.empty()) return refuse("an object cannot be unset as a whole");
    const std::string at = to_text();
    // As any other value is rejected there.
    if (at == ".metadata.managedFields") return bad_request("metadata.managedFields must be nil");
    for (const std::string_view fixed :
         {".apiVersion", ".kind", ".metadata", ".metadata.name", ".metadata.namespace", ".metadata.uid",
          ".metadata.resourceVersion", ".metadata.generation", ".metadata.creationTimestamp",
          ".metadata.deletionTimestamp", ".metadata.deletionGracePeriodSeconds", ".metadata.selfLink"}) {
      if (at == fixed) return refuse("this field cannot be unset");
    }
    if (std::optional<Error> error = bad_value(v)) return *error;
    for (const Member& m : v.members()) {
      if (m.key != kUnsetKey) {
        return refuse("nothing may stand beside " + std::string(kUnsetKey) + ", but " + go_quote(m.key) + " does");
      }
    }
    return Taken{std::nullopt, {}, {}};
  }

  Result<Taken> members(const MergeType& type, const Value& v) {
    const size_t level = paths_.open(), vacated_level = vacated_.open();
    MapBuilder left(arena_);
    bool taken = false;
    for (const Member& m : v.members()) {
      bool declared = false;
      const MergeType* child = type.member(m.key, declared);
      if (child == nullptr) {
        // Not in the schema at all: validation says so.
        left.add(m.key, m.value);
        continue;
      }
      path_.push_back("." + std::string(m.key));
      Result<Taken> below = node(*child, m.value);
      if (!below) return below;
      path_.pop_back();
      paths_.add(PathElement::field(m.key), below->unset(), below->paths);
      taken |= below->unset() || !below->paths.empty();
      if (!below->value) continue;
      const bool vacated = declared && !below->paths.empty() && below->value->count() == 0;
      vacated_.add(PathElement::field(m.key), vacated, below->vacated);
      left.add(m.key, *below->value);
    }
    const FieldSet paths = paths_.close(level), vacated = vacated_.close(vacated_level);
    return taken ? Taken{left.build(), paths, vacated} : plain(v);
  }

  Result<Taken> items(const MergeType& type, const Value& v) {
    if (type.keys.empty()) return elements(v);
    const size_t level = paths_.open(), vacated_level = vacated_.open();
    ListBuilder left(arena_);
    std::vector<size_t> marked;
    bool taken = false;
    for (size_t i = 0; i < v.count(); ++i) {
      const Value& item = v.items()[i];
      if (!item.is_map()) {
        // Does not belong in the list: validation says so.
        left.add(item);
        continue;
      }
      const bool is_marker = item.has(kUnsetKey);
      path_.push_back("[" + std::to_string(i) + "]");
      if (std::optional<Error> error = bad_keys(type, item, is_marker)) return *error;
      PathElement element = PathElement::index(static_cast<int64_t>(i));
      if (item_element(arena_, type, item, element)) path_.back() = to_string(element);
      if (is_marker) {
        if (std::optional<Error> error = bad_item_marker(type, item)) return *error;
        paths_.add(element, true, {});
        marked.push_back(i);
      } else {
        Result<Taken> below = node(*type.item, item);
        if (!below) return below;
        paths_.add(element, false, below->paths);
        vacated_.add(element, false, below->vacated);
        taken |= !below->paths.empty();
        left.add(*below->value);
      }
      path_.pop_back();
    }
    if (!marked.empty()) {
      if (std::optional<Error> error = named_twice(type, v, marked)) return *error;
    }
    const FieldSet paths = paths_.close(level), vacated = vacated_.close(vacated_level);
    return taken || !marked.empty() ? Taken{left.build(), paths, vacated} : plain(v);
  }

  // Of a set.
  Result<Taken> elements(const Value& v) {
    for (size_t i = 0; i < v.count(); ++i) {
      const Value& item = v.items()[i];
      if (!item.is_map() || !item.has(kUnsetKey)) continue;
      path_.push_back("[" + std::to_string(i) + "]");
      return refuse("an element of a set cannot be unset; leave it out, or unset the whole set");
    }
    return plain(v);
  }

  // Keys name the item: they cannot be markers, and a marker item must have all of them.
  std::optional<Error> bad_keys(const MergeType& type, const Value& item, bool is_marker) {
    for (size_t k = 0; k < type.keys.size(); ++k) {
      const std::string_view key = type.keys[k];
      const Value* value = item.find(key);
      if (value != nullptr && has_marker(*value)) {
        path_.push_back("." + std::string(key));
        return refuse("a key of a list cannot be unset");
      }
      if (!is_marker) continue;
      if (value == nullptr) {
        if (type.has_declared_key_default(k)) continue;
        return refuse("an item is unset by its keys, but " + go_quote(key) + " is missing and has no default");
      }
      if (value->is_null()) return refuse("the key " + go_quote(key) + " cannot be null");
      const MergeField* field = type.item->find(key);
      if (field == nullptr) continue;
      if (const std::string why = validate(*field->type, *value, Duplicates::Refused); !why.empty()) {
        return refuse("the key " + go_quote(key) + " does not fit: " + why);
      }
    }
    return std::nullopt;
  }

  std::optional<Error> bad_item_marker(const MergeType& type, const Value& item) const {
    if (std::optional<Error> error = bad_value(item)) return error;
    for (const Member& m : item.members()) {
      const bool is_key = std::find(type.keys.begin(), type.keys.end(), m.key) != type.keys.end();
      if (m.key != kUnsetKey && !is_key) {
        return refuse("only the keys of the list may stand beside " + std::string(kUnsetKey) + ", but " +
                      go_quote(m.key) + " does");
      }
    }
    return std::nullopt;
  }

  // Set and unset, or unset twice. (Set twice is found by validation.)
  std::optional<Error> named_twice(const MergeType& type, const Value& list, const std::vector<size_t>& marked) {
    const ItemIndex index(arena_, type, list.items());
    for (const size_t i : marked) {
      if (index.copies(index.find(index.element(i), i)) == 1) continue;
      path_.push_back(to_string(index.element(i)));
      return refuse("the configuration names this item twice");
    }
    return std::nullopt;
  }

  Arena& arena_;
  SetBuilder paths_, vacated_;
  std::vector<std::string> path_;
};

FieldSet vacant_members(Arena& arena, const MergeType& type, const Value* value, FieldSet set);

// Of an item that may be absent.
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
    // Absent, as Go writes it.
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
      // Lists hold items of one kind: texts and numbers need no look.
      if (!item.is_map() && !item.is_list()) continue;
      if (has_marker(item)) return true;
    }
  }
  return false;
}

Result<Unset> take_markers(Arena& arena, const MergeType& type, const Value& config) {
  Result<MarkerWalk::Taken> taken = MarkerWalk(arena).node(type, config);
  if (!taken) return taken.take_error();
  return Unset{*taken->value, taken->paths, taken->vacated};
}

}  // namespace holdfast::ownership
