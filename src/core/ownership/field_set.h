// Field paths and sets of them: the content of FieldsV1.
//
// A set is a trie of immutable entries in an arena. Each level is one array in canonical order, so two sets are
// combined by walking them in lockstep, and equal sets have the same shape:
//
//   {"f:spec":{"f:replicas":{},"f:template":{".":{},"f:x":{}}}}
//
//   FieldSet -> [ spec | not a member | 2 children ] -> [ replicas | member    | 0 ]
//                                                       [ template | member    | 1 ] -> [ x | member | 0 ]
//
// Every entry is a member or has children (or both); the root itself is never a member.
//
// Lifetime: as long as the arena(s) and the strings and values that its elements point to. copy() makes it depend on a
// single arena only. Threading: immutable; may be shared freely.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/error.h"
#include "value/value.h"

namespace holdfast::ownership {

// One step of a path. 16 bytes; points at its text, key or value.
class PathElement {
 public:
  // In canonical order.
  enum class Kind : uint8_t {
    Field,  // f: a struct's field or a map's key.
    Key,    // k: an item of a keyed list; names ascending, at least one in practice.
    Value,  // v: an item of a set.
    Index,  // i: a position; parsed and sorted, but never created by this module.
  };

  static PathElement field(std::string_view name) {
    PathElement e(Kind::Field, static_cast<uint32_t>(name.size()));
    e.text_ = name.data();
    return e;
  }
  // `sorted` by name without duplicates; must outlive the element.
  static PathElement key(std::span<const Member> sorted) {
    PathElement e(Kind::Key, static_cast<uint32_t>(sorted.size()));
    e.key_ = sorted.data();
    return e;
  }
  static PathElement value(const Value* value) {
    PathElement e(Kind::Value, 0);
    e.value_ = value;
    return e;
  }
  static PathElement index(int64_t index) {
    PathElement e(Kind::Index, 0);
    e.index_ = index;
    return e;
  }

  Kind kind() const { return kind_; }
  bool is_field() const { return kind_ == Kind::Field; }
  std::string_view name() const {
    assert(kind_ == Kind::Field);
    return {text_, count_};
  }
  std::span<const Member> key() const {
    assert(kind_ == Kind::Key);
    return {key_, count_};
  }
  const Value& value() const {
    assert(kind_ == Kind::Value);
    return *value_;
  }
  int64_t index() const {
    assert(kind_ == Kind::Index);
    return index_;
  }

 private:
  PathElement(Kind kind, uint32_t count) : count_(count), kind_(kind) {}
  union {
    const char* text_;
    const Member* key_;
    const Value* value_;
    int64_t index_;
  };
  uint32_t count_;
  Kind kind_;
};
static_assert(sizeof(PathElement) == 16);

// <0, 0, >0 in canonical order: fields bytewise, keys pair by pair, values numbers < strings < booleans < lists <
// maps < null, indices. Numbers compare by value, so 80 and 80.0 are one element.
int compare(const PathElement& a, const PathElement& b);
inline bool operator==(const PathElement& a, const PathElement& b) { return compare(a, b) == 0; }
uint64_t hash(const PathElement& element);
// The order of values within elements, as above.
int compare_values(const Value& a, const Value& b);

using Path = std::span<const PathElement>;
// How integers in elements are formatted.
enum class ShownNumbers : uint8_t {
  AsIs,
  AsRead,  // As after a round trip through FieldsV1, where every number becomes a double: 1500000 is 1.5e+06.
};
// As shown in error messages: .spec.parts[id="p1"].qty
std::string to_string(Path path, ShownNumbers numbers = ShownNumbers::AsIs);
std::string to_string(const PathElement& element, ShownNumbers numbers = ShownNumbers::AsIs);

struct SetEntry;

class FieldSet {
 public:
  FieldSet() = default;
  // `entries` as described above: sorted, distinct, each a member or with children.
  explicit FieldSet(std::span<const SetEntry> entries)
      : entries_(entries.data()), count_(static_cast<uint32_t>(entries.size())) {}

  bool empty() const { return count_ == 0; }
  inline std::span<const SetEntry> entries() const;
  // Number of paths.
  size_t size() const;

  // The entry of a child, or null.
  const SetEntry* find(const PathElement& element) const;
  const SetEntry* find_field(std::string_view name) const { return find(PathElement::field(name)); }
  bool has(Path path) const;
  // Whether every path of `other` is in this set.
  bool includes(FieldSet other) const;

  // Whether both are the same array, hence certainly equal; a cheap check without comparing entries.
  bool same(FieldSet other) const { return entries_ == other.entries_ && count_ == other.count_; }
  friend bool operator==(FieldSet a, FieldSet b);

  // Calls visit(Path) for each member, in element order: at each node first its members, then everything below each
  // child. This is the order in which Kubernetes lists conflicts.
  template <class Visit>
  void for_each(Visit&& visit) const;

 private:
  const SetEntry* entries_ = nullptr;
  uint32_t count_ = 0;
};

struct SetEntry {
  PathElement element;
  const SetEntry* child_entries = nullptr;
  uint32_t child_count = 0;
  bool member = false;

  SetEntry(PathElement e, bool is_member, FieldSet below)
      : element(e), child_entries(below.entries().data()), child_count(count_of(below)), member(is_member) {}
  FieldSet children() const { return FieldSet(std::span(child_entries, child_count)); }

 private:
  static uint32_t count_of(FieldSet set) { return static_cast<uint32_t>(set.entries().size()); }
};
static_assert(sizeof(SetEntry) == 32);

inline std::span<const SetEntry> FieldSet::entries() const { return {entries_, count_}; }

// Computed over the whole set; equal sets have equal hashes.
uint64_t hash(FieldSet set);

// These compare exact paths: {a.b} - {a} = {a.b}. Results share memory with their operands where possible.
FieldSet union_of(Arena& arena, FieldSet a, FieldSet b);
FieldSet intersection(Arena& arena, FieldSet a, FieldSet b);
FieldSet difference(Arena& arena, FieldSet a, FieldSet b);
// Also removes everything below b's paths: {a.b} - {a} = {}.
FieldSet recursive_difference(Arena& arena, FieldSet a, FieldSet b);
// The members of `set` at or below the paths of `roots`.
FieldSet at_or_below(Arena& arena, FieldSet set, FieldSet roots);
// Only the members with nothing below them.
FieldSet leaves(Arena& arena, FieldSet set);
// Deep copy: entries, texts, keys and values are all in `arena` afterwards.
FieldSet copy(Arena& arena, FieldSet set);
FieldSet single(Arena& arena, Path path);

// Collects the entries of one or more levels of a set under construction and moves each level to the arena in canonical
// order. Levels nest like calls: open(), add() the children (which may open() their own), close().
class SetBuilder {
 public:
  explicit SetBuilder(Arena& arena) : arena_(&arena) {}
  ~SetBuilder();
  SetBuilder(const SetBuilder&) = delete;
  SetBuilder& operator=(const SetBuilder&) = delete;

  size_t open() const { return count_; }
  // Skips an entry that is neither a member nor has children.
  void add(PathElement element, bool member, FieldSet children) {
    if (!member && children.empty()) return;
    if (count_ == capacity_) grow();
    new (&entries_[count_++]) SetEntry(element, member, children);
  }
  // If an element was added twice, it is a member if either was, and the later non-empty children win.
  FieldSet close(size_t level);
  // If an element was added twice, only the bare member is kept: this is how duplicate list items are owned.
  FieldSet close_items(size_t level);

 private:
  enum class DuplicateElements : uint8_t { LaterWins, MemberOnly };
  FieldSet close(size_t level, DuplicateElements twice);
  void grow();
  Arena* arena_;
  SetEntry* entries_ = nullptr;
  size_t count_ = 0, capacity_ = 0;
};

// Parses FieldsV1 text. Members may come in any order; elements of unknown kinds are dropped along with everything
// below them, and anything after the object is ignored, like Kubernetes' reader (structured-merge-diff v6.3.3). The
// error names the byte or the element. Names without escapes point into `json`, which must outlive the set.
Result<FieldSet> parse_fields_v1(Arena& arena, std::string_view json);
// The same from a decoded tree (a map or raw JSON).
Result<FieldSet> parse_fields_v1(Arena& arena, const Value& fields);
// One member name such as k:{"name":"web"}; for tests and tools. Unknown kinds are an error here.
Result<PathElement> parse_element(Arena& arena, std::string_view text);

enum class MemberOrder : uint8_t {
  Canonical,  // As the engine writes it: built-in kinds.
  Bytewise,   // Sorted by text: the order that results where a server holds the set as a plain JSON map.
};
void append_fields_v1(std::string& out, FieldSet set, MemberOrder order = MemberOrder::Canonical);
std::string to_fields_v1(FieldSet set, MemberOrder order = MemberOrder::Canonical);

namespace detail {
// A path that grows and shrinks while walking a tree.
class PathStack {
 public:
  void push(const PathElement& element);
  void pop() { --count_; }
  Path path() const { return {elements_, count_}; }
  PathStack() = default;
  PathStack(const PathStack&) = delete;
  PathStack& operator=(const PathStack&) = delete;
  ~PathStack();

 private:
  PathElement* elements_ = nullptr;
  size_t count_ = 0, capacity_ = 0;
};

template <class Visit>
void for_each(FieldSet set, PathStack& stack, Visit& visit) {
  for (const SetEntry& entry : set.entries()) {
    if (!entry.member) continue;
    stack.push(entry.element);
    visit(stack.path());
    stack.pop();
  }
  for (const SetEntry& entry : set.entries()) {
    if (entry.child_count == 0) continue;
    stack.push(entry.element);
    for_each(entry.children(), stack, visit);
    stack.pop();
  }
}
}  // namespace detail

template <class Visit>
void FieldSet::for_each(Visit&& visit) const {
  detail::PathStack stack;
  detail::for_each(*this, stack, visit);
}

}  // namespace holdfast::ownership
