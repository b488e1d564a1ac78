// One object as a tree: null, bool, int64, double, string, list, map, and raw JSON kept verbatim.
//
// A Value is 16 bytes, trivially copyable, and immutable: it points at items, members and text that live in an
// Arena (or in the bytes it was decoded from), so copying one shares the whole subtree. Nobody changes what a Value
// points at; to change a tree, build a new one that shares what stays (Draft, with_member, ListBuilder, MapBuilder).
//
//   Value (16 bytes)                     Member[count]               Value
//   +------+-------+-------+---------+   +------------+----------+
//   | kind | flags | count | pointer |-->| key (view) | Value    |--> ...
//   +------+-------+-------+---------+   +------------+----------+
//
// Map members keep their order. Lookup is linear in small maps; large ones carry an index.
// Numbers keep the difference between 1 and 1.0, as Kubernetes' decoders do.
//
// Lifetime: as long as the Arena(s) and source bytes it points into. Threading: immutable, share freely.
#pragma once

#include <cassert>
#include <cstdint>
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
  // Compact JSON text of a RawExtension, kept without being parsed. It is compared by its text: decode it first (codec)
  // where its content matters.
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
  // Members in the order given, keys distinct. Builds an index in `arena` when there are many.
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
  // Either number as a double.
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

  // Items of a list, members of a map; bytes of a text; 0 otherwise.
  uint32_t count() const { return count_; }

  // The member's value in a map; null pointer when it is absent or this is not a map.
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
  // The string at a path of keys; empty when it is absent or not a string.
  template <class... Keys>
  std::string_view text_at(Keys... keys) const {
    const Value* found = get(keys...);
    return found != nullptr && found->is_string() ? found->as_string() : std::string_view{};
  }
  // The integer at a path of keys; `otherwise` when it is absent or not an integer.
  template <class... Keys>
  int64_t int_at_or(int64_t otherwise, Keys... keys) const {
    const Value* found = get(keys...);
    return found != nullptr && found->is_int() ? found->as_int() : otherwise;
  }
  // The list's items or map's members at a path of keys; empty when absent or of another kind.
  template <class... Keys>
  std::span<const Value> items_at(Keys... keys) const {
    const Value* found = get(keys...);
    return found != nullptr && found->is_list() ? found->items() : std::span<const Value>{};
  }
  template <class... Keys>
  std::span<const Member> members_at(Keys... keys) const;

  // Same pointer and count, so certainly equal. When false, they may still be equal.
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

// Deep comparison. Map order does not count, list order does; null equals only null.
enum class Numbers : uint8_t {
  Exact,    // 1 and 1.0 differ.
  ByValue,  // 1 and 1.0 are equal, as the apply engine sees them.
};
bool equal(const Value& a, const Value& b, Numbers numbers = Numbers::Exact);
// Equal values (ByValue) have equal hashes; map order does not count.
uint64_t hash(const Value& value);

// Whether maps and lists are nested more than `levels` deep. Looks no deeper than that.
bool deeper_than(const Value& value, uint32_t levels);

// A deep copy whose strings, arrays and maps are all allocated in `arena`.
Value deep_copy(Arena& arena, const Value& value);

// Collects items, then makes them a list in the arena. Reusable after build().
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

// Collects members in order, then makes them a map in the arena. Keys are not copied unless add_copy is used.
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
  // Places of the first `indexed_` members by key, plus one; built when keys are looked up among many members.
  mutable std::vector<uint32_t> index_;
  mutable size_t indexed_ = 0;
};

// New trees that share everything but the path that changed.
Value with_member(Arena& arena, const Value& map, std::string_view key,
                  Value value);  // Adds or replaces; null counts as {}.
Value without_member(Arena& arena, const Value& map, std::string_view key);
Value with_path(Arena& arena, const Value& root, std::span<const std::string_view> path, Value value);
Value without_path(Arena& arena, const Value& root, std::span<const std::string_view> path);

// Many changes to one tree: nodes are copied the first time they are touched and changed in place after that.
// The value that the draft was made from never changes. Keys and values put in must outlive the arena or be in it.
//
//   Draft draft(arena, object);
//   Draft::Node spec = draft.root().child("spec");     // created as {} when absent or null
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
    // Reading, without copying anything.
    const Value* find(std::string_view key) const { return slot_->find(key); }
    bool has(std::string_view key) const { return slot_->has(key); }

    void assign(Value value) { *slot_ = value; }
    // The member as a node; becomes {} when it is absent or null. Asserts that this is a map or null.
    Node child(std::string_view key);
    // The member as a node when it is there and a map; otherwise a node that reports false.
    Node existing(std::string_view key);
    explicit operator bool() const { return slot_ != nullptr; }
    void set(std::string_view key, Value value);
    // Sets it when it is absent or null.
    void set_default(std::string_view key, Value value);
    // Sets it when it is absent, null, "", 0, false, [] or {}: Go's zero value, for fields without a pointer.
    void set_if_zero(std::string_view key, Value value);
    void remove(std::string_view key);
    // Each item of the list member as a node; nothing when it is absent or not a list.
    std::vector<Node> list(std::string_view key);
    // Each item of this list as a node.
    std::vector<Node> items();
    // Each member of this map as a node, with its key.
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
  uint64_t id_;  // Marks arrays that this draft made and may change.
  Value root_;
};

}  // namespace holdfast
