// An object as a tree: null, bool, int64, double, string, list, map, and raw JSON kept verbatim.
//
// A Value is 16 bytes, trivially copyable, and immutable: it points to items, members and text stored in an Arena (or
// in the bytes it was decoded from), so a copy shares the whole subtree. What a Value points to never changes; to
// modify a tree, build a new one that shares the unchanged parts (Draft, with_member, ListBuilder, MapBuilder).
//
//   Value (16 bytes)                     Member[count]               Value
//   +------+-------+-------+---------+   +------------+----------+
//   | kind | flags | count | pointer |-->| key (view) | Value    |--> ...
//   +------+-------+-------+---------+   +------------+----------+
//
// Map members keep their order. Lookup is linear in small maps; large ones have an index. 1 and 1.0 are different
// values, as in Kubernetes' decoders.
//
// Lifetime: as long as the Arena(s) and source bytes it points into. Threading: immutable; may be shared freely.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"

namespace holdfast {

struct Member;

class Value {
 public:
  enum class Kind : uint8_t { Null, Bool, Int, Double, String, Raw, List, Map };

  constexpr Value() : kind_(Kind::Null), flags_(0), count_(0), int_(0) {}
  static constexpr Value null() { return Value(); }
  static constexpr Value boolean(bool b) {
    Value v(Kind::Bool);
    v.int_ = b ? 1 : 0;
    return v;
  }
  static constexpr Value integer(int64_t i) {
    Value v(Kind::Int);
    v.int_ = i;
    return v;
  }
  static constexpr Value number(double d) {
    Value v(Kind::Double);
    v.double_ = d;
    return v;
  }
  // The text is not copied; it must outlive the Value. Use string(arena, text) for a copy.
  static constexpr Value string(std::string_view text) {
    assert(text.size() <= UINT32_MAX);
    Value v(Kind::String);
    v.count_ = static_cast<uint32_t>(text.size());
    v.text_ = text.data();
    return v;
  }
  static Value string(Arena& arena, std::string_view text) { return string(arena.copy(text)); }
  // Compact JSON text of a RawExtension, kept unparsed. It is compared as text: decode it first (codec) if its content
  // matters.
  static Value raw(std::string_view json) {
    Value v = string(json);
    v.kind_ = Kind::Raw;
    return v;
  }
  // The arrays are not copied; build them in an arena. See ListBuilder and MapBuilder.
  static Value list(std::span<const Value> items) {
    Value v(Kind::List);
    v.count_ = static_cast<uint32_t>(items.size());
    v.items_ = items.data();
    return v;
  }
  static Value empty_list() { return list({}); }
  static constexpr Value empty_map() { return Value(Kind::Map); }
  // Keeps the order of the members; keys must be distinct. Builds an index in `arena` for large maps.
  static Value map(Arena& arena, std::span<const Member> members);

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::Null; }
  bool is_bool() const { return kind_ == Kind::Bool; }
  bool is_int() const { return kind_ == Kind::Int; }
  bool is_double() const { return kind_ == Kind::Double; }
  bool is_number() const { return is_int() || is_double(); }
  bool is_string() const { return kind_ == Kind::String; }
  bool is_raw() const { return kind_ == Kind::Raw; }
  bool is_list() const { return kind_ == Kind::List; }
  bool is_map() const { return kind_ == Kind::Map; }
  bool is_scalar() const { return kind_ >= Kind::Bool && kind_ <= Kind::String; }

  // Each asserts the kind.
  bool as_bool() const {
    assert(is_bool());
    return int_ != 0;
  }
  int64_t as_int() const {
    assert(is_int());
    return int_;
  }
  double as_double() const {
    assert(is_double());
    return double_;
  }
  // An integer or double as a double.
  double number_value() const {
    assert(is_number());
    return is_int() ? static_cast<double>(int_) : double_;
  }
  std::string_view as_string() const {
    assert(is_string());
    return {text_, count_};
  }
  std::string_view raw_json() const {
    assert(is_raw());
    return {text_, count_};
  }
  std::span<const Value> items() const {
    assert(is_list());
    return {items_, count_};
  }
  inline std::span<const Member> members() const;

  // Number of items of a list or members of a map, bytes of a text; 0 otherwise.
  uint32_t count() const { return count_; }

  // The value of a map's member; null if it is absent or if this is not a map.
  const Value* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  // find() along several keys: get("metadata", "name").
  template <class... Keys>
  const Value* get(std::string_view key, Keys... rest) const {
    const Value* child = find(key);
    if constexpr (sizeof...(rest) == 0) {
      return child;
    } else {
      return child == nullptr ? nullptr : child->get(rest...);
    }
  }
  // The string at a path of keys; empty if it is absent or not a string.
  template <class... Keys>
  std::string_view text_at(Keys... keys) const {
    const Value* found = get(keys...);
    return found != nullptr && found->is_string() ? found->as_string() : std::string_view{};
  }
  // The integer at a path of keys; `otherwise` if it is absent or not an integer.
  template <class... Keys>
  int64_t int_at_or(int64_t otherwise, Keys... keys) const {
    const Value* found = get(keys...);
    return found != nullptr && found->is_int() ? found->as_int() : otherwise;
  }
  // The list's items or map's members at a path of keys; empty if absent or of another kind.
  template <class... Keys>
  std::span<const Value> items_at(Keys... keys) const {
    const Value* found = get(keys...);
    return found != nullptr && found->is_list() ? found->items() : std::span<const Value>{};
  }
  template <class... Keys>
  std::span<const Member> members_at(Keys... keys) const;

  // Same kind, pointer and count, hence certainly equal. If false, they may still be equal.
  bool same(const Value& other) const { return kind_ == other.kind_ && count_ == other.count_ && int_ == other.int_; }

 private:
  friend class Draft;
  static constexpr uint8_t kHasHeader = 1;  // The member or item array is preceded by a detail header.

  constexpr explicit Value(Kind kind) : kind_(kind), flags_(0), count_(0), int_(0) {}

  Kind kind_;
  uint8_t flags_;
  uint32_t count_;
  union {
    int64_t int_;
    double double_;
    const char* text_;
    const Value* items_;
    const Member* members_;
  };
};
static_assert(sizeof(Value) == 16);

struct Member {
  std::string_view key;
  Value value;
};
static_assert(sizeof(Member) == 32);

inline std::span<const Member> Value::members() const {
  assert(is_map());
  return {members_, count_};
}

template <class... Keys>
std::span<const Member> Value::members_at(Keys... keys) const {
  const Value* found = get(keys...);
  return found != nullptr && found->is_map() ? found->members() : std::span<const Member>{};
}

// Deep comparison. List order matters, map order does not; null equals only null.
enum class Numbers : uint8_t {
  Exact,    // 1 and 1.0 differ.
  ByValue,  // 1 and 1.0 are equal, as in the apply engine.
};
bool equal(const Value& a, const Value& b, Numbers numbers = Numbers::Exact);
// Equal values (ByValue) have equal hashes, regardless of map order.
uint64_t hash(const Value& value);

// Whether the value is Go's zero value of its kind: null, false, 0, or an empty string, list or map.
bool is_zero(const Value& value);

// Whether maps and lists are nested more than `levels` deep. Does not descend any deeper.
bool deeper_than(const Value& value, uint32_t levels);

// A deep copy whose strings, arrays and maps are all allocated in `arena`.
Value deep_copy(Arena& arena, const Value& value);

// Collects items and builds a list in the arena. Reusable after build().
class ListBuilder {
 public:
  explicit ListBuilder(Arena& arena) : arena_(&arena) {}
  void add(Value value) { items_.push_back(value); }
  size_t count() const { return items_.size(); }
  Value build();

 private:
  Arena* arena_;
  std::vector<Value> items_;
};

// Collects members in order and builds a map in the arena. Keys are not copied unless add_copy is used.
class MapBuilder {
 public:
  explicit MapBuilder(Arena& arena) : arena_(&arena) {}
  // The key must not exist yet (set() replaces).
  void add(std::string_view key, Value value) { members_.push_back({key, value}); }
  void add_copy(std::string_view key, Value value) { members_.push_back({arena_->copy(key), value}); }
  // Adds, or replaces in place.
  void set(std::string_view key, Value value);
  const Value* find(std::string_view key) const;
  size_t count() const { return members_.size(); }
  Value build();

 private:
  static constexpr size_t kAbsent = SIZE_MAX;
  size_t place_of(std::string_view key) const;

  Arena* arena_;
  std::vector<Member> members_;
  // Open-addressing table of positions + 1 of the first `indexed_` members; built when keys are looked up among many.
  mutable std::vector<uint32_t> index_;
  mutable size_t indexed_ = 0;
};

// The strings among the items; others are skipped.
std::vector<std::string> texts_of(std::span<const Value> items);

// New trees that share everything but the changed path.
Value with_member(Arena& arena, const Value& map, std::string_view key,
                  Value value);  // Adds or replaces; null is treated as {}.
Value without_member(Arena& arena, const Value& map, std::string_view key);
Value with_path(Arena& arena, const Value& root, std::span<const std::string_view> path, Value value);
Value without_path(Arena& arena, const Value& root, std::span<const std::string_view> path);
// The list with change(item) for each item; the list itself if nothing changed.
template <class Change>
Value with_each_item(Arena& arena, const Value& list, Change change) {
  ListBuilder result(arena);
  bool changed = false;
  for (const Value& item : list.items()) {
    const Value next = change(item);
    changed |= !next.same(item);
    result.add(next);
  }
  return changed ? result.build() : list;
}
// The map with the value change(member) for each member, or without the member if that is nullopt; the map itself if
// nothing changed.
template <class Change>
Value with_each_member(Arena& arena, const Value& map, Change change) {
  MapBuilder result(arena);
  bool changed = false;
  for (const Member& member : map.members()) {
    const std::optional<Value> next = change(member);
    changed |= !next || !next->same(member.value);
    if (next) result.add(member.key, *next);
  }
  return changed ? result.build() : map;
}

// For making many changes to one tree: nodes are copied when first touched and modified in place after that. The
// original value never changes. Keys and values that are added must be in the arena or outlive it.
//
//   Draft draft(arena, object);
//   Draft::Node spec = draft.root().child("spec");     // created as {} if absent or null
//   spec.set_default("replicas", Value::integer(1));
//   for (Draft::Node container : spec.list("containers")) container.set_default("imagePullPolicy", ...);
//   Value result = draft.value();
//
// A Node is valid until something is added to or removed from its parent container.
class Draft {
 public:
  class Node {
   public:
    const Value& value() const { return *slot_; }
    // Reads without copying.
    const Value* find(std::string_view key) const { return slot_->find(key); }
    bool has(std::string_view key) const { return slot_->has(key); }

    void assign(Value value) { *slot_ = value; }
    // The member as a node; created as {} if it is absent or null. Asserts that this is a map or null.
    Node child(std::string_view key);
    // The member as a node if it is a map; otherwise a node that converts to false.
    Node existing(std::string_view key);
    explicit operator bool() const { return slot_ != nullptr; }
    void set(std::string_view key, Value value);
    // Sets the member if it is absent or null.
    void set_default(std::string_view key, Value value);
    // Sets the member if it is absent, null, "", 0, false, [] or {}: Go's zero value, for fields that are not pointers.
    void set_if_zero(std::string_view key, Value value);
    void remove(std::string_view key);
    // The items of a list member as nodes; empty if it is absent or not a list.
    std::vector<Node> list(std::string_view key);
    // The items of this list as nodes.
    std::vector<Node> items();
    // The members of this map as nodes, with their keys.
    std::vector<std::pair<std::string_view, Node>> entries();
    void append(std::string_view list_key, Value item);

   private:
    friend class Draft;
    Node(Draft* draft, Value* slot) : draft_(draft), slot_(slot) {}
    Draft* draft_;
    Value* slot_;
  };

  Draft(Arena& arena, const Value& root);
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  Node root() { return Node(this, &root_); }
  Value value() const { return root_; }
  Arena& arena() { return *arena_; }

 private:
  Member* own_members(Value& map, uint32_t room_for);
  Value* own_items(Value& list, uint32_t room_for);

  Arena* arena_;
  uint64_t id_;  // Marks arrays that this draft created and may modify.
  Value root_;
};

}  // namespace holdfast
