#include "value/value.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>

#include "base/hash.h"
#include "base/same_text.h"
#include "value/map_edit.h"

namespace holdfast {
namespace {

// Precedes a member or item array whose Value has kHasHeader.
struct Header {
  uint64_t draft_id = 0;            // Of the draft that may still modify the array, or 0.
  const uint32_t* index = nullptr;  // Open-addressing table of member positions + 1, `index_mask + 1` long.
  uint32_t index_mask = 0;
  uint32_t capacity = 0;
};

constexpr uint32_t kIndexedFrom = 24;  // Below this a linear scan over 32-byte members is faster than hashing the key.

const Header& header_of(const void* array) { return *(static_cast<const Header*>(array) - 1); }
Header& header_of(void* array) { return *(static_cast<Header*>(array) - 1); }

template <class T>
T* allocate_with_header(Arena& arena, size_t count) {
  auto* memory = static_cast<char*>(arena.allocate(sizeof(Header) + count * sizeof(T), alignof(std::max_align_t)));
  new (memory) Header();
  return reinterpret_cast<T*>(memory + sizeof(Header));
}
static_assert(sizeof(Header) % alignof(Member) == 0);

const uint32_t* build_index(Arena& arena, std::span<const Member> members, uint32_t& mask) {
  const uint32_t slots = std::bit_ceil(static_cast<uint32_t>(members.size() * 2));
  auto* index = arena.allocate_array<uint32_t>(slots);
  std::memset(index, 0, slots * sizeof(uint32_t));
  mask = slots - 1;
  for (uint32_t i = 0; i < members.size(); ++i) {
    uint32_t slot = static_cast<uint32_t>(hash_key(members[i].key)) & mask;
    while (index[slot] != 0) slot = (slot + 1) & mask;
    index[slot] = i + 1;
  }
  return index;
}

// Not inlined, so that find() itself makes no calls.
[[gnu::noinline]] const Value* find_indexed(const Member* members, std::string_view key) {
  const Header& header = header_of(members);
  uint32_t slot = static_cast<uint32_t>(hash_key(key)) & header.index_mask;
  for (; header.index[slot] != 0; slot = (slot + 1) & header.index_mask) {
    const Member& member = members[header.index[slot] - 1];
    if (same_text(member.key, key)) return &member.value;
  }
  return nullptr;
}

std::atomic<uint64_t> next_draft_id{1};

}  // namespace

Value Value::map(Arena& arena, std::span<const Member> members) {
  Value v(Kind::Map);
  v.count_ = static_cast<uint32_t>(members.size());
  if (members.size() < kIndexedFrom) {
    v.members_ = arena.copy(members).data();
    return v;
  }
  Member* copy = allocate_with_header<Member>(arena, members.size());
  std::memcpy(static_cast<void*>(copy), members.data(), members.size_bytes());
  Header& header = header_of(copy);
  header.index = build_index(arena, members, header.index_mask);
  v.members_ = copy;
  v.flags_ = kHasHeader;
  return v;
}

const Value* Value::find(std::string_view key) const {
  if (kind_ != Kind::Map) return nullptr;
  if ((flags_ & kHasHeader) && header_of(members_).index != nullptr) return find_indexed(members_, key);
  for (const Member *member = members_, *end = members_ + count_; member != end; ++member) {
    if (same_text(member->key, key)) return &member->value;
  }
  return nullptr;
}

bool equal(const Value& a, const Value& b, Numbers numbers) {
  if (a.kind() != b.kind()) {
    return numbers == Numbers::ByValue && a.is_number() && b.is_number() && a.number_value() == b.number_value();
  }
  if (a.same(b)) return !a.is_double() || a.as_double() == b.as_double();
  switch (a.kind()) {
    case Value::Kind::Null:
      return true;
    case Value::Kind::Bool:
      return a.as_bool() == b.as_bool();
    case Value::Kind::Int:
      return a.as_int() == b.as_int();
    case Value::Kind::Double:
      return a.as_double() == b.as_double();
    case Value::Kind::String:
      return a.as_string() == b.as_string();
    case Value::Kind::Raw:
      return a.raw_json() == b.raw_json();
    case Value::Kind::List: {
      if (a.count() != b.count()) return false;
      for (uint32_t i = 0; i < a.count(); ++i) {
        if (!equal(a.items()[i], b.items()[i], numbers)) return false;
      }
      return true;
    }
    case Value::Kind::Map: {
      if (a.count() != b.count()) return false;
      const auto other = b.members();
      for (uint32_t i = 0; i < a.count(); ++i) {
        const Member& member = a.members()[i];
        // Objects of one type mostly have their members in the same order.
        const Value* match = same_text(other[i].key, member.key) ? &other[i].value : b.find(member.key);
        if (match == nullptr || !equal(member.value, *match, numbers)) return false;
      }
      return true;
    }
  }
  return false;
}

bool is_zero(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::Null:
      return true;
    case Value::Kind::Bool:
      return !value.as_bool();
    case Value::Kind::Int:
      return value.as_int() == 0;
    case Value::Kind::Double:
      return value.as_double() == 0;
    default:
      return value.count() == 0;
  }
}

uint64_t hash(const Value& value) {
  const auto kind = static_cast<uint64_t>(value.kind());
  switch (value.kind()) {
    case Value::Kind::Null:
      return hash_combine(1, kind);
    case Value::Kind::Bool:
      return hash_combine(value.as_bool() ? 3 : 2, kind);
    case Value::Kind::Int:
    case Value::Kind::Double: {
      double number = value.number_value();
      if (number == 0) number = 0;  // -0.0 equals 0.
      return hash_combine(std::bit_cast<uint64_t>(number), 4);
    }
    case Value::Kind::String:
      return hash_combine(5, hash_key(value.as_string()));
    case Value::Kind::Raw:
      return hash_combine(6, hash_key(value.raw_json()));
    case Value::Kind::List: {
      uint64_t result = 7;
      for (const Value& item : value.items()) result = hash_combine(result, hash(item));
      return result;
    }
    case Value::Kind::Map: {
      uint64_t sum = 0;  // A sum, so that member order does not matter.
      for (const Member& member : value.members()) sum += hash_combine(hash_key(member.key), hash(member.value));
      return hash_combine(sum, 8);
    }
  }
  return 0;
}

bool deeper_than(const Value& value, uint32_t levels) {
  if (!value.is_map() && !value.is_list()) return false;
  if (levels == 0) return true;
  if (value.is_list()) {
    for (const Value& item : value.items()) {
      if (deeper_than(item, levels - 1)) return true;
    }
  } else {
    for (const Member& m : value.members()) {
      if (deeper_than(m.value, levels - 1)) return true;
    }
  }
  return false;
}

Value deep_copy(Arena& arena, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::String:
      return Value::string(arena, value.as_string());
    case Value::Kind::Raw:
      return Value::raw(arena.copy(value.raw_json()));
    case Value::Kind::List: {
      Value* items = arena.allocate_array<Value>(value.count());
      for (uint32_t i = 0; i < value.count(); ++i) items[i] = deep_copy(arena, value.items()[i]);
      return Value::list({items, value.count()});
    }
    case Value::Kind::Map: {
      MapBuilder copy(arena);
      for (const Member& member : value.members()) copy.add_copy(member.key, deep_copy(arena, member.value));
      return copy.build();
    }
    default:
      return value;
  }
}

Value ListBuilder::build() {
  const Value list = Value::list(arena_->copy(std::span<const Value>(items_)));
  items_.clear();
  return list;
}

size_t MapBuilder::place_of(std::string_view key) const {
  if (members_.size() < kIndexedFrom) {
    for (size_t i = 0; i < members_.size(); ++i) {
      if (same_text(members_[i].key, key)) return i;
    }
    return kAbsent;
  }
  if (index_.size() < members_.size() * 2) {
    index_.assign(std::bit_ceil(members_.size() * 4), 0);
    indexed_ = 0;
  }
  const size_t mask = index_.size() - 1;
  for (; indexed_ < members_.size(); ++indexed_) {
    size_t slot = hash_key(members_[indexed_].key) & mask;
    while (index_[slot] != 0) slot = (slot + 1) & mask;
    index_[slot] = static_cast<uint32_t>(indexed_ + 1);
  }
  for (size_t slot = hash_key(key) & mask; index_[slot] != 0; slot = (slot + 1) & mask) {
    if (same_text(members_[index_[slot] - 1].key, key)) return index_[slot] - 1;
  }
  return kAbsent;
}

void MapBuilder::set(std::string_view key, Value value) {
  if (const size_t place = place_of(key); place != kAbsent) {
    members_[place].value = value;
  } else {
    members_.push_back({key, value});
  }
}

const Value* MapBuilder::find(std::string_view key) const {
  const size_t place = place_of(key);
  return place == kAbsent ? nullptr : &members_[place].value;
}

Value MapBuilder::build() {
  const Value map = Value::map(*arena_, members_);
  members_.clear();
  index_.clear();
  indexed_ = 0;
  return map;
}

std::vector<std::string> texts_of(std::span<const Value> items) {
  std::vector<std::string> texts;
  for (const Value& item : items) {
    if (item.is_string()) texts.emplace_back(item.as_string());
  }
  return texts;
}

Value with_member(Arena& arena, const Value& map, std::string_view key, Value value) {
  if (map.count() + 1 < kIndexedFrom) {
    Draft draft(arena, map.is_map() ? map : Value::empty_map());
    draft.root().set(key, value);
    return draft.value();
  }
  MapBuilder result(arena);
  bool replaced = false;
  if (map.is_map()) {
    for (const Member& member : map.members()) {
      const bool here = same_text(member.key, key);
      result.add(member.key, here ? value : member.value);
      replaced |= here;
    }
  }
  if (!replaced) result.add(key, value);
  return result.build();
}

Value MapEdit::build() {
  if (members_.empty() && removed_.empty()) return map_;
  std::vector<Member>& all = changed();
  if (!removed_.empty()) {
    size_t kept = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i >= removed_.size() || !removed_[i]) all[kept++] = all[i];
    }
    all.resize(kept);
  }
  return Value::map(arena_, all);
}

Value without_member(Arena& arena, const Value& map, std::string_view key) {
  if (!map.has(key)) return map;
  MapBuilder result(arena);
  for (const Member& member : map.members()) {
    if (member.key != key) result.add(member.key, member.value);
  }
  return result.build();
}

Value with_path(Arena& arena, const Value& root, std::span<const std::string_view> path, Value value) {
  if (path.empty()) return value;
  const Value* child = root.find(path.front());
  return with_member(arena, root, path.front(), with_path(arena, child ? *child : Value(), path.subspan(1), value));
}

Value without_path(Arena& arena, const Value& root, std::span<const std::string_view> path) {
  assert(!path.empty());
  if (path.size() == 1) return without_member(arena, root, path.front());
  const Value* child = root.find(path.front());
  if (child == nullptr) return root;
  const Value changed = without_path(arena, *child, path.subspan(1));
  return changed.same(*child) ? root : with_member(arena, root, path.front(), changed);
}

Draft::Draft(Arena& arena, const Value& root)
    : arena_(&arena), id_(next_draft_id.fetch_add(1, std::memory_order_relaxed)), root_(root) {}

Member* Draft::own_members(Value& map, uint32_t room_for) {
  assert(map.is_map() || map.is_null());
  const bool ours = (map.flags_ & Value::kHasHeader) && header_of(map.members_).draft_id == id_;
  if (ours && header_of(map.members_).capacity >= room_for) {
    auto* members = const_cast<Member*>(map.members_);  // Created by this draft, hence mutable.
    header_of(members).index = nullptr;
    return members;
  }
  // A map that grows gets room in proportion.
  const uint32_t more = room_for > map.count_ ? std::max<uint32_t>(4, map.count_ / 2) : 4;
  const uint32_t capacity = std::max<uint32_t>(room_for, map.count_ + more);
  Member* members = allocate_with_header<Member>(*arena_, capacity);
  if (map.count_ > 0) std::memcpy(static_cast<void*>(members), map.members_, map.count_ * sizeof(Member));
  header_of(members).draft_id = id_;
  header_of(members).capacity = capacity;
  map.kind_ = Value::Kind::Map;
  map.flags_ = Value::kHasHeader;
  map.members_ = members;
  return members;
}

Value* Draft::own_items(Value& list, uint32_t room_for) {
  assert(list.is_list());
  const bool ours = (list.flags_ & Value::kHasHeader) && header_of(list.items_).draft_id == id_;
  if (ours && header_of(list.items_).capacity >= room_for) return const_cast<Value*>(list.items_);
  // A list that grows gets room in proportion.
  const uint32_t more = room_for > list.count_ ? list.count_ / 2 : 0;
  const uint32_t capacity = std::max<uint32_t>(room_for, list.count_ + more);
  Value* items = allocate_with_header<Value>(*arena_, capacity);
  if (list.count_ > 0) std::memcpy(static_cast<void*>(items), list.items_, list.count_ * sizeof(Value));
  header_of(items).draft_id = id_;
  header_of(items).capacity = capacity;
  list.flags_ = Value::kHasHeader;
  list.items_ = items;
  return items;
}

Draft::Node Draft::Node::child(std::string_view key) {
  const Value* found = find(key);
  if (found == nullptr) {
    set(key, Value::empty_map());
    Member* members = const_cast<Member*>(slot_->members_);
    return Node(draft_, &members[slot_->count_ - 1].value);
  }
  const size_t position =
      reinterpret_cast<const Member*>(reinterpret_cast<const char*>(found) - offsetof(Member, value)) - slot_->members_;
  Member* members = draft_->own_members(*slot_, slot_->count_);
  Value& value = members[position].value;
  if (value.is_null()) value = Value::empty_map();
  return Node(draft_, &value);
}

Draft::Node Draft::Node::existing(std::string_view key) {
  const Value* found = find(key);
  if (found == nullptr || !found->is_map()) return Node(draft_, nullptr);
  return child(key);
}

void Draft::Node::set(std::string_view key, Value value) {
  if (slot_->is_null()) *slot_ = Value::empty_map();
  for (uint32_t i = 0; i < slot_->count_; ++i) {
    if (same_text(slot_->members_[i].key, key)) {
      draft_->own_members(*slot_, slot_->count_)[i].value = value;
      return;
    }
  }
  Member* members = draft_->own_members(*slot_, slot_->count_ + 1);
  new (&members[slot_->count_]) Member{key, value};
  ++slot_->count_;
}

void Draft::Node::set_default(std::string_view key, Value value) {
  const Value* found = find(key);
  if (found == nullptr || found->is_null()) set(key, value);
}

void Draft::Node::set_if_zero(std::string_view key, Value value) {
  const Value* found = find(key);
  if (found == nullptr || is_zero(*found)) set(key, value);
}

void Draft::Node::remove(std::string_view key) {
  if (!has(key)) return;
  Member* members = draft_->own_members(*slot_, slot_->count_);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < slot_->count_; ++i) {
    if (members[i].key != key) members[kept++] = members[i];
  }
  slot_->count_ = kept;
}

std::vector<Draft::Node> Draft::Node::list(std::string_view key) {
  const Value* found = find(key);
  if (found == nullptr || !found->is_list() || found->count() == 0) return {};
  return child(key).items();
}

std::vector<Draft::Node> Draft::Node::items() {
  assert(slot_->is_list());
  Value* items = draft_->own_items(*slot_, slot_->count_);
  std::vector<Node> nodes;
  nodes.reserve(slot_->count_);
  for (uint32_t i = 0; i < slot_->count_; ++i) nodes.push_back(Node(draft_, &items[i]));
  return nodes;
}

std::vector<std::pair<std::string_view, Draft::Node>> Draft::Node::entries() {
  assert(slot_->is_map());
  Member* members = draft_->own_members(*slot_, slot_->count_);
  std::vector<std::pair<std::string_view, Node>> nodes;
  nodes.reserve(slot_->count_);
  for (uint32_t i = 0; i < slot_->count_; ++i) nodes.emplace_back(members[i].key, Node(draft_, &members[i].value));
  return nodes;
}

void Draft::Node::append(std::string_view list_key, Value item) {
  const Value* found = find(list_key);
  if (found == nullptr || found->is_null()) {
    set(list_key, Value::list(draft_->arena_->copy(std::span<const Value>(&item, 1))));
    return;
  }
  Value& list = *child(list_key).slot_;
  Value* items = draft_->own_items(list, list.count_ + 1);
  new (&items[list.count_]) Value(item);
  ++list.count_;
}

}  // namespace holdfast
