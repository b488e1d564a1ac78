// Operations on a value of a known type, from which the engine is built. Private to the module.
//
// All of them take values that passed validate() (live objects may contain duplicate list items). Results share memory
// with their operands where possible: a merge that changes nothing returns the live value itself, which same() detects.
#pragma once

#include <string>

#include "base/arena.h"
#include "ownership/field_set.h"
#include "ownership/merge_type.h"
#include "value/value.h"

namespace holdfast::ownership {

enum class Duplicates : uint8_t { Refused, Tolerated };

// Describes how the value does not match the type, in Kubernetes' words (several problems: "errors:" and a line each).
// Empty if it matches.
std::string validate(const MergeType& type, const Value& value, Duplicates duplicates);

// The path element of an item of an associative list. If it has none, returns false and `problem` says why.
bool item_element(Arena& arena, const MergeType& list, const Value& item, PathElement& out,
                  std::string* problem = nullptr);

// The paths that a configuration owns: every leaf, list item, undeclared member, null and {}.
FieldSet to_set(Arena& arena, const MergeType& type, const Value& value);

struct Comparison {
  FieldSet added, modified, removed;
  bool same() const { return added.empty() && modified.empty() && removed.empty(); }
};
// From `left` to `right`.
Comparison compare(Arena& arena, const MergeType& type, const Value& left, const Value& right);

// Merges the configuration into the live value. Never removes anything.
Value merge(Arena& arena, const MergeType& type, const Value& live, const Value& config);

// What becomes of a container whose content is all removed.
enum class Emptied : uint8_t { Null, Keep };
// The value without the items and members in `set`.
Value remove(Arena& arena, const MergeType& type, const Value& value, FieldSet set, Emptied emptied = Emptied::Null);
// Adds the absent fields in `set` with the values they read back as (MergeField::value_when_absent), where the parent
// exists.
Value with_absent_values(Arena& arena, const MergeType& type, const Value& value, FieldSet set);
// Only the parts of the value in `set`, which should contain only leaves.
Value extract(Arena& arena, const MergeType& type, const Value& value, FieldSet set);

// The set, where every declared struct field with members below it is a member too.
FieldSet with_named_fields(Arena& arena, const MergeType& type, FieldSet set);

// The topmost members that are declared fields and have members below them.
FieldSet declared_containers(Arena& arena, const MergeType& type, FieldSet set);

// The set without declared_containers() and without the declared containers below them: what remains if their content
// is removed.
FieldSet without_containers(Arena& arena, const MergeType& type, FieldSet set);

// The set adapted to the current type: paths below an atomic node are replaced by the path of that node.
FieldSet reconcile(Arena& arena, const MergeType& type, FieldSet set);

// Expands raw JSON into trees where the type allows raw JSON. Malformed raw JSON stays raw.
Value unfold_raw(Arena& arena, const MergeType& type, const Value& value);

// Indexes the items of an associative list by their path elements, for walking two lists in lockstep.
class ItemIndex {
 public:
  ItemIndex(Arena& arena, const MergeType& list, std::span<const Value> items);
  size_t count() const { return count_; }
  const PathElement& element(size_t i) const { return slots_[i].element; }
  bool is_first(size_t i) const { return slots_[i].first == i; }
  // Number of items with the same element as the item at `first`, which must be the first of them.
  uint32_t copies(size_t first) const { return slots_[first].copies; }
  // The next item with the same element, or count().
  size_t next_copy(size_t i) const { return slots_[i].next; }
  // The first item with this element, or count(). `hint` is tried first.
  size_t find(const PathElement& element, size_t hint) const;

 private:
  struct Slot {
    PathElement element;
    uint64_t hash;
    uint32_t first, next, last, copies;
  };
  size_t lookup(const PathElement& element, uint64_t hash, size_t among) const;
  Slot* slots_;
  size_t count_ = 0;
  uint32_t* table_ = nullptr;
  size_t mask_ = 0;
};

// The member with this key; the one at `hint` is tried first.
inline const Value* find_near(const Value& map, std::string_view key, size_t hint) {
  const std::span<const Member> members = map.members();
  if (hint < members.size() && same_text(members[hint].key, key)) return &members[hint].value;
  return map.find(key);
}

// Looks up the entries of a list's items one after the other. Lists are mostly in the order of their keys, like sets:
// then the entry after the last one found is the right one, or shows that there is none.
class ItemEntries {
 public:
  ItemEntries(Arena& arena, const MergeType& list, FieldSet set) : arena_(arena), list_(list), set_(set) {}
  const SetEntry* of(const Value& item) {
    PathElement element = PathElement::index(0);
    return item_element(arena_, list_, item, element) ? find(element) : nullptr;
  }

 private:
  const SetEntry* find(const PathElement& element);
  Arena& arena_;
  const MergeType& list_;
  const FieldSet set_;
  size_t next_ = 0;
};

}  // namespace holdfast::ownership
