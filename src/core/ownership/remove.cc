#include <vector>

#include "ownership/typed.h"
#include "value/map_edit.h"

namespace holdfast::ownership {
namespace {

const MergeType& member_type(const MergeType& type, std::string_view key) {
  bool declared = false;
  const MergeType* child = type.member(key, declared);
  return child == nullptr ? MergeTypes::untyped_atomic() : *child;
}

}  // namespace

const SetEntry* ItemEntries::find(const PathElement& element) {
  const std::span<const SetEntry> entries = set_.entries();
  for (int tries = 0; tries < 2 && next_ < entries.size(); ++tries, ++next_) {
    const int c = compare(entries[next_].element, element);
    if (c == 0) return &entries[next_++];
    if (c > 0) {
      if (next_ == 0 || compare(entries[next_ - 1].element, element) < 0) return nullptr;
      break;
    }
  }
  const SetEntry* found = set_.find(element);
  if (found != nullptr) next_ = static_cast<size_t>(found - entries.data()) + 1;
  return found;
}

namespace {

class RemoveWalk {
 public:
  RemoveWalk(Arena& arena, Emptied emptied) : arena_(arena), emptied_(emptied) {}

  // `set` holds the paths below this node.
  Value node(const MergeType& type, const Value& v, FieldSet set) {
    switch (handled(pick(type, v))) {
      case MergeType::kScalar:
        return v;
      case MergeType::kList:
        if (type.atomic_list || !v.is_list() || v.count() == 0) return emptied(v);
        return items(type, v, set);
      default:
        if (type.atomic_map || !v.is_map() || v.count() == 0) return emptied(v);
        return members(type, v, set);
    }
  }

 private:
  // `v` is empty, or atomic with something to remove below it (which does not occur with Emptied::Keep).
  Value emptied(const Value& v) const { return emptied_ == Emptied::Keep ? v : Value(); }

  Value members(const MergeType& type, const Value& v, FieldSet set) {
    const std::span<const Member> from = v.members();
    Member* out = nullptr;
    size_t count = 0;
    for (size_t i = 0; i < from.size(); ++i) {
      const SetEntry* entry = set.find_field(from[i].key);
      const bool drop = entry != nullptr && entry->member;
      Value kept = from[i].value;
      if (!drop && entry != nullptr) kept = node(member_type(type, from[i].key), kept, entry->children());
      if (out == nullptr) {
        if (!drop && kept.same(from[i].value)) continue;
        out = arena_.allocate_array<Member>(from.size());
        std::copy(from.begin(), from.begin() + static_cast<ptrdiff_t>(i), out);
        count = i;
      }
      if (!drop) out[count++] = {from[i].key, kept};
    }
    if (out == nullptr) return v;
    if (count == 0) return emptied_ == Emptied::Keep ? Value::empty_map() : Value();
    return Value::map(arena_, std::span<const Member>(out, count));
  }

  Value items(const MergeType& type, const Value& v, FieldSet set) {
    const std::span<const Value> from = v.items();
    ItemEntries entries(arena_, type, set);
    Value* out = nullptr;
    size_t count = 0;
    for (size_t i = 0; i < from.size(); ++i) {
      const SetEntry* entry = entries.of(from[i]);
      const bool drop = entry != nullptr && entry->member;
      Value kept = from[i];
      if (!drop && entry != nullptr) kept = node(*type.item, kept, entry->children());
      if (out == nullptr) {
        if (!drop && kept.same(from[i])) continue;
        out = arena_.allocate_array<Value>(from.size());
        std::copy(from.begin(), from.begin() + static_cast<ptrdiff_t>(i), out);
        count = i;
      }
      if (!drop) out[count++] = kept;
    }
    if (out == nullptr) return v;
    if (count == 0) return emptied_ == Emptied::Keep ? Value::empty_list() : Value();
    return Value::list(std::span<const Value>(out, count));
  }

  Arena& arena_;
  const Emptied emptied_;
};

class ExtractWalk {
 public:
  explicit ExtractWalk(Arena& arena) : arena_(arena) {}

  Value node(const MergeType& type, const Value& v, FieldSet set) {
    switch (handled(pick(type, v))) {
      case MergeType::kScalar:
        return v;
      case MergeType::kList:
        if (!v.is_list()) return Value();
        if (type.atomic_list || v.count() == 0) return v;
        return items(type, v, set);
      default:
        if (!v.is_map()) return Value();
        if (type.atomic_map || v.count() == 0) return v;
        return members(type, v, set);
    }
  }

 private:
  Value members(const MergeType& type, const Value& v, FieldSet set) {
    MapBuilder out(arena_);
    for (const Member& m : v.members()) {
      const SetEntry* entry = set.find_field(m.key);
      if (entry == nullptr) continue;
      // Below an exact match, upstream continues with the set of this level rather than the next (structured-merge-diff
      // remove.go, doMap). With sets of leaves, the difference shows only for a container that is owned as a whole but
      // not atomic.
      out.add(m.key, node(member_type(type, m.key), m.value, entry->member ? set : entry->children()));
    }
    return out.count() == 0 ? Value() : out.build();
  }

  Value items(const MergeType& type, const Value& v, FieldSet set) {
    ItemEntries entries(arena_, type, set);
    ListBuilder out(arena_);
    for (const Value& item : v.items()) {
      const SetEntry* entry = entries.of(item);
      if (entry == nullptr) continue;
      out.add(entry->child_count == 0 ? item : node(*type.item, item, entry->children()));
    }
    return out.count() == 0 ? Value() : out.build();
  }

  Arena& arena_;
};

}  // namespace

Value remove(Arena& arena, const MergeType& type, const Value& value, FieldSet set, Emptied emptied) {
  return set.empty() ? value : RemoveWalk(arena, emptied).node(type, value, set);
}

Value with_absent_values(Arena& arena, const MergeType& type, const Value& value, FieldSet set) {
  if (value.is_map() && (type.offers & MergeType::kMap) != 0) {
    MapEdit edit(arena, value);
    for (const SetEntry& entry : set.entries()) {
      if (!entry.element.is_field()) continue;
      const std::string_view name = entry.element.name();
      const Value* child = value.find(name);
      if (child == nullptr) {
        const MergeField* field = type.find(name);
        if (entry.member && field != nullptr && field->value_when_absent != nullptr) {
          edit.add(name, *field->value_when_absent);
        }
      } else if (entry.child_count != 0) {
        const Value filled = with_absent_values(arena, member_type(type, name), *child, entry.children());
        if (!filled.same(*child)) edit.replace(*child, filled);
      }
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
      const Value filled = with_absent_values(arena, *type.item, item, entry->children());
      if (filled.same(item)) continue;
      if (items == nullptr) items = arena.copy(value.items()).data();
      items[i] = filled;
    }
    if (items != nullptr) return Value::list(std::span<const Value>(items, value.count()));
  }
  return value;
}

Value extract(Arena& arena, const MergeType& type, const Value& value, FieldSet set) {
  return ExtractWalk(arena).node(type, value, set);
}

}  // namespace holdfast::ownership
