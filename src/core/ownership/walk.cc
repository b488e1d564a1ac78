// Walks of a value or a set along with its type.
#include "codec/json.h"
#include "ownership/typed.h"

namespace holdfast::ownership {
namespace {

class SetWalk {
 public:
  explicit SetWalk(Arena& arena) : arena_(arena), builder_(arena) {}

  // The paths owned below `v`; `leaf` is set if `v` itself is owned.
  FieldSet node(const MergeType& type, const Value& v, bool& leaf) {
    leaf = false;
    switch (handled(pick(type, v))) {
      case MergeType::kScalar:
        leaf = true;
        return {};
      case MergeType::kList:
        leaf = type.atomic_list;
        if (leaf || !v.is_list()) return {};
        return items(type, v);
      default:
        leaf = type.atomic_map;
        if (leaf || !v.is_map()) return {};
        return members(type, v);
    }
  }

 private:
  FieldSet members(const MergeType& type, const Value& v) {
    const size_t level = builder_.open();
    for (const Member& m : v.members()) {
      bool declared = false;
      const MergeType* child = type.member(m.key, declared);
      if (child == nullptr) child = &MergeTypes::deduced();
      bool leaf = false;
      const FieldSet below = node(*child, m.value, leaf);
      const bool empty = m.value.is_null() || (m.value.is_map() && m.value.count() == 0);
      builder_.add(PathElement::field(m.key), leaf || empty || !declared, below);
    }
    return builder_.close(level);
  }

  FieldSet items(const MergeType& type, const Value& v) {
    const size_t level = builder_.open();
    for (const Value& item : v.items()) {
      // Only pruning creates items without an element (null, where everything in an item was removed). They count as
      // content, which keeps the list itself, like in Go's engine.
      PathElement element = PathElement::index(INT64_MIN);
      item_element(arena_, type, item, element);
      bool leaf = false;
      const FieldSet below = node(*type.item, item, leaf);
      builder_.add(element, true, below);
    }
    return builder_.close_items(level);
  }

  Arena& arena_;
  SetBuilder builder_;
};

// A level of a set that is copied only when something in it changes.
class LevelEdit {
 public:
  LevelEdit(Arena& arena, FieldSet set) : arena_(arena), from_(set.entries()) {}
  void replace(size_t i, bool member, FieldSet children) {
    if (edited_ == nullptr) edited_ = arena_.copy(from_).data();
    edited_[i] = SetEntry(from_[i].element, member, children);
  }
  FieldSet set() const {
    return FieldSet(edited_ == nullptr ? from_ : std::span<const SetEntry>(edited_, from_.size()));
  }

 private:
  Arena& arena_;
  std::span<const SetEntry> from_;
  SetEntry* edited_ = nullptr;
};

FieldSet reconcile_level(Arena& arena, const MergeType& type, FieldSet set) {
  const uint8_t kind = handled(type.offers);
  if (kind == MergeType::kScalar || (kind == MergeType::kMap && type.is_deduced_map())) return set;
  LevelEdit edit(arena, set);
  const std::span<const SetEntry> entries = set.entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    const SetEntry& entry = entries[i];
    if (entry.child_count == 0) continue;
    const MergeType* child = type.item;
    if (kind == MergeType::kMap) {
      bool declared = false;
      child = entry.element.is_field() ? type.member(entry.element.name(), declared) : type.element;
    }
    if (child == nullptr) continue;
    const uint8_t child_kind = handled(child->offers);
    const bool atomic = (child_kind == MergeType::kList && child->atomic_list) ||
                        (child_kind == MergeType::kMap && child->atomic_map && !child->is_deduced_map());
    if (atomic) {
      edit.replace(i, true, {});
    } else if (const FieldSet below = reconcile_level(arena, *child, entry.children()); !below.same(entry.children())) {
      edit.replace(i, entry.member, below);
    }
  }
  return edit.set();
}

// The type below an element; null if the type has none there. `declared`: whether it is a field named by the schema.
const MergeType* child_type(const MergeType& type, const PathElement& element, bool& declared) {
  declared = false;
  if (element.is_field() && (type.offers & MergeType::kMap) != 0) return type.member(element.name(), declared);
  const bool item = element.kind() == PathElement::Kind::Key && (type.offers & MergeType::kList) != 0;
  return item ? type.item : nullptr;
}

}  // namespace

FieldSet to_set(Arena& arena, const MergeType& type, const Value& value) {
  bool leaf = false;
  return SetWalk(arena).node(type, value, leaf);
}

FieldSet with_named_fields(Arena& arena, const MergeType& type, FieldSet set) {
  LevelEdit edit(arena, set);
  const std::span<const SetEntry> entries = set.entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    const SetEntry& entry = entries[i];
    if (entry.child_count == 0) continue;
    bool named = false;
    const MergeType* child = child_type(type, entry.element, named);
    const FieldSet below = child == nullptr ? entry.children() : with_named_fields(arena, *child, entry.children());
    if ((named && !entry.member) || !below.same(entry.children())) edit.replace(i, entry.member || named, below);
  }
  return edit.set();
}

FieldSet declared_containers(Arena& arena, const MergeType& type, FieldSet set) {
  SetBuilder out(arena);
  for (const SetEntry& entry : set.entries()) {
    if (entry.child_count == 0) continue;
    bool declared = false;
    const MergeType* child = child_type(type, entry.element, declared);
    if (child == nullptr) continue;
    const bool whole = declared && entry.member;
    out.add(entry.element, whole, whole ? FieldSet() : declared_containers(arena, *child, entry.children()));
  }
  return out.close(0);
}

namespace {

FieldSet without_containers(Arena& arena, const MergeType& type, FieldSet set, bool below) {
  LevelEdit edit(arena, set);
  const std::span<const SetEntry> entries = set.entries();
  bool none_left = true;
  for (size_t i = 0; i < entries.size(); ++i) {
    const SetEntry& entry = entries[i];
    bool declared = false;
    const MergeType* child = child_type(type, entry.element, declared);
    bool member = entry.member;
    FieldSet children = entry.children();
    if (child != nullptr && declared) {
      const uint8_t kind = handled(child->offers);
      const bool granular =
          (kind == MergeType::kMap && !child->atomic_map) || (kind == MergeType::kList && !child->atomic_list);
      const bool whole = member && granular && (below || !children.empty());
      if (whole) member = false;
      if (!children.empty()) children = without_containers(arena, *child, children, below || whole);
    } else if (child != nullptr && !children.empty()) {
      children = without_containers(arena, *child, children, below);
    }
    none_left &= !member && children.empty();
    if (member != entry.member || !children.same(entry.children())) edit.replace(i, member, children);
  }
  if (none_left) return {};
  // Entries that are neither members nor have children are not allowed in a set.
  SetBuilder out(arena);
  const FieldSet edited = edit.set();
  if (edited.same(set)) return set;
  for (const SetEntry& entry : edited.entries()) out.add(entry.element, entry.member, entry.children());
  return out.close(0);
}

}  // namespace

FieldSet without_containers(Arena& arena, const MergeType& type, FieldSet set) {
  return without_containers(arena, type, set, false);
}

FieldSet reconcile(Arena& arena, const MergeType& type, FieldSet set) { return reconcile_level(arena, type, set); }

Value unfold_raw(Arena& arena, const MergeType& type, const Value& value) {
  // Untyped values below a type with raw values may contain raw values too: the schemas in a schema's `items`.
  const auto below = [&](const MergeType* child) -> const MergeType& {
    return child == &MergeTypes::deduced() || child == &MergeTypes::untyped_atomic() ? type : *child;
  };
  if (value.is_raw()) {
    const Result<Value> tree = codec::decode_json(arena, value.raw_json());
    return tree.ok() ? *tree : value;
  }
  if (!type.holds_raw) return value;
  if (value.is_list() && type.item != nullptr) {
    Value* items = nullptr;
    for (size_t i = 0; i < value.count(); ++i) {
      const Value& old = value.items()[i];
      const Value item = unfold_raw(arena, below(type.item), old);
      if (item.same(old)) continue;
      if (items == nullptr) items = arena.copy(value.items()).data();
      items[i] = item;
    }
    return items == nullptr ? value : Value::list(std::span<const Value>(items, value.count()));
  }
  if (value.is_map()) {
    Member* members = nullptr;
    for (size_t i = 0; i < value.count(); ++i) {
      const Member& old = value.members()[i];
      bool declared = false;
      const MergeType* child = type.member(old.key, declared);
      if (child == nullptr) continue;
      const Value member = unfold_raw(arena, below(child), old.value);
      if (member.same(old.value)) continue;
      if (members == nullptr) members = arena.copy(value.members()).data();
      members[i].value = member;
    }
    return members == nullptr ? value : Value::map(arena, std::span<const Member>(members, value.count()));
  }
  return value;
}

}  // namespace holdfast::ownership
