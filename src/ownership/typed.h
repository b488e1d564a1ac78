// Operations on a value of a known type: what the engine is built from. Private to the module.
//
// All of them take values that passed validate() (live objects may hold the same item of a list twice). Results share
// what they can with their operands: a merge that changes nothing returns the live value itself, which same() tells.
#pragma once

#include <string>

#include "base/arena.h"
#include "ownership/field_set.h"
#include "ownership/merge_type.h"
#include "value/value.h"

namespace holdfast::ownership {

enum class Duplicates : uint8_t { Refused, Tolerated };

// What does not fit the type, in Kubernetes' words (several problems: "errors:" and a line each); empty when it fits.
std::string validate(const MergeType& type, const Value& value, Duplicates duplicates);

// The element of an item of an associative list. `problem` says why there is none.
bool item_element(Arena& arena, const MergeType& list, const Value& item, PathElement& out,
                  std::string* problem = nullptr);

// What a configuration owns: every leaf, every list item, every undeclared member, everything null or {}.
FieldSet to_set(Arena& arena, const MergeType& type, const Value& value);

struct Comparison {
  FieldSet added, modified, removed;
  bool same() const { return added.empty() && modified.empty() && removed.empty(); }
};
// From `left` to `right`.
Comparison compare(Arena& arena, const MergeType& type, const Value& left, const Value& right);

// The configuration laid over the live value. Never removes anything.
Value merge(Arena& arena, const MergeType& type, const Value& live, const Value& config);

// What remains of a container that loses everything in it.
enum class Emptied : uint8_t { Null, Stays };
// Without the items and members of `set`.
Value remove(Arena& arena, const MergeType& type, const Value& value, FieldSet set, Emptied emptied = Emptied::Null);
// `after`, which is `before` without some of its members and items, with {} and [] instead of the null that remains of
// an emptied container if `vacant` has something below it.
Value keep_emptied(Arena& arena, const MergeType& type, const Value& before, const Value& after, FieldSet vacant);
// The fields in `set` that are absent as they read back (MergeField::value_when_absent), where their parent is there.
Value with_values_when_absent(Arena& arena, const MergeType& type, const Value& value, FieldSet set);
// Only what is in `set`, which should hold leaves alone.
Value extract(Arena& arena, const MergeType& type, const Value& value, FieldSet set);

// The set with every declared struct field that has members below it as a member too.
FieldSet with_named_fields(Arena& arena, const MergeType& type, FieldSet set);

// The members that are empty lists in the value.
FieldSet empty_lists(Arena& arena, const MergeType& type, const Value& value, FieldSet set);

// The members, topmost ones alone, that are declared fields and have members below them.
FieldSet declared_containers(Arena& arena, const MergeType& type, FieldSet set);

// The set as the type sees it now: paths below something atomic become the path of that.
FieldSet reconcile(Arena& arena, const MergeType& type, FieldSet set);

// Raw JSON where the type may hold some, as trees. Problems in raw JSON leave it raw.
Value unfold_raw(Arena& arena, const MergeType& type, const Value& value);

// The items of an associative list by their elements, for lockstep walks of two lists.
class ItemIndex {
 public:
  ItemIndex(Arena& arena, const MergeType& list, std::span<const Value> items);
  size_t count() const { return count_; }
  const PathElement& element(size_t i) const { return slots_[i].element; }
  bool is_first(size_t i) const { return slots_[i].first == i; }
  // How many items have this element; of the first of them.
  uint32_t copies(size_t first) const { return slots_[first].copies; }
  // The next item with the same element, or count().
  size_t next_copy(size_t i) const { return slots_[i].next; }
  // The first item with this element, or count(). `hint` is examined first.
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

// The member with this key; the one at `hint` is examined first.
inline const Value* find_near(const Value& map, std::string_view key, size_t hint) {
  const std::span<const Member> members = map.members();
  if (hint < members.size() && same_text(members[hint].key, key)) return &members[hint].value;
  return map.find(key);
}

// The entry of a list's items, asked for one after the other. Lists are mostly in the order of their keys, as sets are:
// then the place beside the last answer is the right one, or shows that there is none.
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
