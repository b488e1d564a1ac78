#include "cel/values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/hash.h"
#include "base/text.h"
#include "codec/codec.h"

namespace holdfast::cel {

// --- Construction ---------------------------------------------------------------------------------------------------

Val Val::number(double d) {
  Val v;
  v.kind_ = Kind::Double;
  std::memcpy(&v.int_, &d, sizeof d);
  return v;
}
double Val::as_double() const {
  double d;
  std::memcpy(&d, &int_, sizeof d);
  return d;
}
Val Val::optional_of(Arena& arena, Val value) { return Rep::optional(arena.make<Val>(value)); }
Val Val::lazy(LazyObject& object) {
  Val v = make(Kind::Lazy, 0);
  v.lazy_ = &object;
  return v;
}
Val Val::authorizer(Arena& arena, Authorizer& authorizer) {
  auto* opaque = arena.make<CheckOpaque>();
  opaque->kind = OpaqueKind::Authorizer;
  opaque->authorizer = &authorizer;
  return Rep::opaque(opaque);
}
Val Val::resource_check(Arena& arena, Authorizer& authorizer, const RequestResource& about) {
  auto* opaque = arena.make<CheckOpaque>();
  opaque->kind = OpaqueKind::ResourceCheck;
  opaque->authorizer = &authorizer;
  opaque->check.about_resource = true;
  opaque->check.group = about.group;
  opaque->check.resource = about.resource;
  opaque->check.subresource = about.subresource;
  opaque->check.namespace_name = about.namespace_name;
  opaque->check.name = about.name;
  return Rep::opaque(opaque);
}

Val error(Arena& arena, std::string_view message) { return Val::error(arena.copy(message)); }

Val list_of(Arena& arena, std::span<const Val> items) {
  auto* rep = arena.make<ListRep>();
  rep->items = arena.copy(items).data();
  rep->count = rep->capacity = items.size();
  return Rep::list(rep);
}

Val string_list(Arena& arena, std::span<const std::string> items) {
  Val* vals = arena.allocate_array<Val>(items.size());
  for (size_t i = 0; i < items.size(); ++i) new (&vals[i]) Val(Val::string(arena.copy(items[i])));
  auto* rep = arena.make<ListRep>();
  rep->items = vals;
  rep->count = rep->capacity = items.size();
  return Rep::list(rep);
}

Val Val::data(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::Null:
      return null();
    case Value::Kind::Bool:
      return boolean(value.as_bool());
    case Value::Kind::Int:
      return integer(value.as_int());
    case Value::Kind::Double:
      return number(value.as_double());
    case Value::Kind::String:
      return string(value.as_string());
    case Value::Kind::List:
      return Rep::data(Kind::List, value, nullptr);
    case Value::Kind::Map:
      return Rep::data(Kind::Map, value, nullptr);
    case Value::Kind::Raw:
      break;
  }
  return error("verbatim JSON cannot be a variable");
}

Val from_data(Arena& arena, const Value& value) {
  if (!value.is_raw()) return Val::data(value);
  const Result<Value> read = codec::decode_json(arena, value.raw_json());
  if (!read) return error(arena, read.error().message);
  return Val::data(*arena.make<Value>(*read));
}

Val Val::data(Arena& arena, const Value& value, const Decl* decl) { return from_data(arena, value, decl); }

// --- Maps -----------------------------------------------------------------------------------------------------------

namespace {

constexpr uint64_t kIndexedEntries = 8;

std::optional<int64_t> whole_int(double d) {
  if (!(d > -9223372036854775808.0 && d < 9223372036854775808.0)) return std::nullopt;
  const auto i = static_cast<int64_t>(d);
  return static_cast<double>(i) == d ? std::optional(i) : std::nullopt;
}
std::optional<uint64_t> whole_uint(double d) {
  if (!(d >= 0 && d < 18446744073709551616.0)) return std::nullopt;
  const auto u = static_cast<uint64_t>(d);
  return static_cast<double>(u) == d ? std::optional(u) : std::nullopt;
}

uint64_t mixed(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  return x;
}

uint64_t key_hash(const Val& key) {
  switch (key.kind()) {
    case Kind::String:
    case Kind::Bytes:
      return hash_key(key.text());
    // Equal numbers must have equal hashes.
    case Kind::Int:
    case Kind::Uint:
      return mixed(static_cast<uint64_t>(key.as_int()));
    case Kind::Double:
      if (const auto i = whole_int(key.as_double())) return mixed(static_cast<uint64_t>(*i));
      if (const auto u = whole_uint(key.as_double())) return mixed(*u);
      return mixed(static_cast<uint64_t>(key.as_int()));
    default:
      return static_cast<uint64_t>(key.kind());
  }
}

// Keys of one map differ by type and value; lookups compare numbers by value.
bool same_key(const Val& a, const Val& b) {
  if (a.kind() != b.kind()) {
    const auto number = [](const Val& v) {
      return v.kind() == Kind::Int || v.kind() == Kind::Uint || v.kind() == Kind::Double;
    };
    if (!number(a) || !number(b)) return false;
    if (a.kind() == Kind::Double || b.kind() == Kind::Double) {
      const Val& d = a.kind() == Kind::Double ? a : b;
      const Val& other = a.kind() == Kind::Double ? b : a;
      if (other.kind() == Kind::Int) return whole_int(d.as_double()) == other.as_int();
      return whole_uint(d.as_double()) == other.as_uint();
    }
    return a.as_int() == b.as_int() && a.as_int() >= 0;
  }
  switch (a.kind()) {
    case Kind::Bool:
    case Kind::Int:
    case Kind::Uint:
    case Kind::Duration:
      return a.as_int() == b.as_int();
    case Kind::Double:
      return a.as_double() == b.as_double();
    case Kind::String:
    case Kind::Bytes:
    case Kind::Type:
      return a.text() == b.text();
    case Kind::Null:
      return true;
    case Kind::Timestamp:
      return Rep::seconds(a) == Rep::seconds(b) && Rep::nanos(a) == Rep::nanos(b);
    default:
      return false;
  }
}

void index_entry(MapRep& rep, uint64_t position) {
  const uint64_t mask = rep.index_size - 1;
  uint64_t slot = key_hash(rep.entries[position].key) & mask;
  while (rep.index[slot] != 0) slot = (slot + 1) & mask;
  rep.index[slot] = static_cast<uint32_t>(position + 1);
}

void build_index(Arena& arena, MapRep& rep) {
  rep.index_size = 32;
  while (rep.index_size < rep.capacity * 2) rep.index_size *= 2;
  rep.index = arena.allocate_array<uint32_t>(rep.index_size);
  std::memset(rep.index, 0, rep.index_size * sizeof(uint32_t));
  for (uint64_t i = 0; i < rep.count; ++i) index_entry(rep, i);
}

// Prefers the exact key to one that is equal by value (1 to 1u).
const Val* find_entry(const MapRep& rep, const Val& key) {
  const Val* by_value = nullptr;
  const auto try_entry = [&](const MapEntry& entry) -> const Val* {
    if (!same_key(entry.key, key)) return nullptr;
    if (entry.key.kind() == key.kind()) return &entry.value;
    if (by_value == nullptr || entry.key.kind() == Kind::Int) by_value = &entry.value;
    return nullptr;
  };
  if (rep.index != nullptr) {
    const uint64_t mask = rep.index_size - 1;
    for (uint64_t slot = key_hash(key) & mask; rep.index[slot] != 0; slot = (slot + 1) & mask) {
      if (const Val* found = try_entry(rep.entries[rep.index[slot] - 1])) return found;
    }
    return by_value;
  }
  for (uint64_t i = 0; i < rep.count; ++i) {
    if (const Val* found = try_entry(rep.entries[i])) return found;
  }
  // Equal by value only; ints are preferred to uints.
  return by_value;
}

}  // namespace

bool visible_member(const Decl& decl, const Member& member) {
  return decl.kind == Decl::Kind::Object ? decl.find(member.key) != nullptr : decl.element != nullptr;
}

Val map_of(Arena& arena, std::span<const MapEntry> entries) {
  auto* rep = arena.make<MapRep>();
  rep->entries = arena.copy(entries).data();
  rep->count = rep->capacity = entries.size();
  if (rep->count > kIndexedEntries) build_index(arena, *rep);
  return Rep::map(rep);
}

uint64_t map_size(const Val& map) { return Rep::is_data(map) ? Rep::value(map).count() : Rep::map(map)->count; }

bool map_find(Arena& arena, const Val& map, const Val& key, Val& found) {
  if (!Rep::is_data(map)) {
    const Val* value = find_entry(*Rep::map(map), key);
    if (value != nullptr) found = *value;
    return value != nullptr;
  }
  const Decl* decl = Rep::decl(map);
  if (decl == nullptr) {
    if (!key.is_string()) return false;
    const Value* value = Rep::value(map).find(key.text());
    if (value != nullptr) found = from_data(arena, *value);
    return value != nullptr;
  }
  if (!key.is_string()) {
    found = no_such_overload();
    return true;
  }
  if (decl->has_properties) {
    // The name is escaped, or needs no escaping.
    const std::optional<std::string> property = unescape_name(key.text());
    if (!property) return false;
    const Value* value = Rep::value(map).find(*property);
    const Decl* child = decl->find(*property);
    if (value == nullptr || value->is_null() || child == nullptr) return false;
    found = from_data(arena, *value, child);
    return true;
  }
  const Value* value = Rep::value(map).find(key.text());
  if (value == nullptr || decl->element == nullptr) return false;
  found = from_data(arena, *value, decl->element);
  return true;
}

Val map_insert(Arena& arena, const Val& map, const Val& key, const Val& value) {
  Val there;
  if (map_find(arena, map, key, there)) {
    return error(arena, "insert failed: key " + go_text(key) + " already exists");
  }
  if (Rep::form(map) == Rep::Form::Items && Rep::map(map)->open) {
    auto* rep = const_cast<MapRep*>(Rep::map(map));
    if (rep->count == rep->capacity) {
      const uint64_t capacity = std::max<uint64_t>(8, rep->capacity * 2);
      auto* entries = arena.allocate_array<MapEntry>(capacity);
      std::copy(rep->entries, rep->entries + rep->count, entries);
      rep->entries = entries;
      rep->capacity = capacity;
      rep->index = nullptr;
    }
    new (const_cast<MapEntry*>(&rep->entries[rep->count++])) MapEntry{key, value};
    if (rep->index != nullptr) {
      index_entry(*rep, rep->count - 1);
    } else if (rep->count > kIndexedEntries) {
      build_index(arena, *rep);
    }
    return map;
  }
  std::vector<MapEntry> entries;
  map.for_each_entry(arena, [&](const Val& k, const Val& v) { entries.push_back({k, v}); });
  entries.push_back({key, value});
  return map_of(arena, entries);
}

// --- Lists ----------------------------------------------------------------------------------------------------------

int64_t find_keyed(const Decl& decl, std::span<const Value> items, const Value& like) {
  for (size_t i = 0; i < items.size(); ++i) {
    bool same = true;
    for (const std::string_view key : decl.list_keys) {
      const Value* a = items[i].find(key);
      const Value* b = like.find(key);
      same = same && ((a == nullptr || a->is_null()) == (b == nullptr || b->is_null())) &&
             (a == nullptr || b == nullptr || holdfast::equal(*a, *b));
    }
    if (same) return static_cast<int64_t>(i);
  }
  return -1;
}

uint64_t list_size(const Val& list) { return Rep::is_data(list) ? Rep::value(list).count() : Rep::list(list)->count; }

Val list_at(Arena& arena, const Val& list, uint64_t index) {
  const Val* at = &list;
  while (Rep::form(*at) == Rep::Form::Concat) {
    const ListRep& rep = *Rep::list(*at);
    const uint64_t left = list_size(*rep.left);
    if (index < left) {
      at = rep.left;
    } else {
      index -= left;
      at = rep.right;
    }
  }
  if (!Rep::is_data(*at)) return Rep::list(*at)->items[index];
  const Decl* decl = Rep::decl(*at);
  const Value& item = Rep::value(*at).items()[index];
  return decl == nullptr ? from_data(arena, item) : from_data(arena, item, decl->element);
}

Val open_list(Arena& arena) {
  auto* rep = arena.make<ListRep>();
  rep->open = true;
  return Rep::list(rep);
}
Val open_map(Arena& arena) {
  auto* rep = arena.make<MapRep>();
  rep->open = true;
  return Rep::map(rep);
}

Val closed(Arena& arena, const Val& value) {
  if (Rep::form(value) != Rep::Form::Items) return value;
  if (value.kind() == Kind::List && Rep::list(value)->open) {
    auto* rep = arena.make<ListRep>(*Rep::list(value));
    rep->open = false;
    return Rep::list(rep);
  }
  if (value.kind() == Kind::Map && Rep::map(value)->open) {
    auto* rep = arena.make<MapRep>(*Rep::map(value));
    rep->open = false;
    // The open map may still grow and would modify the shared index.
    if (rep->count > kIndexedEntries) build_index(arena, *rep);
    return Rep::map(rep);
  }
  return value;
}

namespace {

Val append(Arena& arena, const Val& open, const Val& other) {
  auto* rep = const_cast<ListRep*>(Rep::list(open));
  const uint64_t added = list_size(other);
  if (rep->count + added > rep->capacity) {
    const uint64_t capacity = std::max<uint64_t>({8, rep->capacity * 2, rep->count + added});
    Val* items = arena.allocate_array<Val>(capacity);
    std::copy(rep->items, rep->items + rep->count, items);
    rep->items = items;
    rep->capacity = capacity;
  }
  for (uint64_t i = 0; i < added; ++i) {
    const Val item = list_at(arena, other, i);
    new (const_cast<Val*>(&rep->items[rep->count])) Val(item);
    ++rep->count;
  }
  return open;
}

// Typed lists keep their schema: added items become plain data again.
Val add_typed(Arena& arena, const Val& left, const Val& right) {
  const Decl& decl = *Rep::decl(left);
  std::vector<Value> items(Rep::value(left).items().begin(), Rep::value(left).items().end());
  const uint64_t count = list_size(right);
  const Decl* other = Rep::decl(right);
  for (uint64_t i = 0; i < count; ++i) {
    Value item;
    if (other != nullptr) {
      item = Rep::value(right).items()[i];
    } else {
      std::string problem;
      const std::optional<Value> plain = list_at(arena, right, i).to_value(arena, &problem);
      if (!plain) return error(arena, problem);
      item = *plain;
    }
    if (decl.list_kind == Decl::ListKind::Keyed) {
      const int64_t at = find_keyed(decl, items, item);
      if (at >= 0) {
        items[static_cast<size_t>(at)] = item;
        continue;
      }
    } else if (decl.list_kind == Decl::ListKind::Set) {
      if (std::any_of(items.begin(), items.end(), [&](const Value& there) { return holdfast::equal(there, item); }))
        continue;
    }
    items.push_back(item);
  }
  const auto kept = arena.copy(std::span<const Value>(items));
  return Rep::data(Kind::List, *arena.make<Value>(Value::list(kept)), &decl);
}

}  // namespace

Val add_lists(Arena& arena, const Val& left, const Val& right) {
  if (Rep::decl(left) != nullptr) return add_typed(arena, left, right);
  if (Rep::form(left) == Rep::Form::Items && Rep::list(left)->open) return append(arena, left, right);
  const uint64_t a = list_size(left), b = list_size(right);
  if (a == 0) return right;
  if (b == 0) return left;
  auto* rep = arena.make<ListRep>();
  rep->count = a > UINT64_MAX - b ? UINT64_MAX : a + b;
  rep->left = arena.make<Val>(left);
  rep->right = arena.make<Val>(right);
  return Rep::list(rep, true);
}

bool list_contains(Arena& arena, const Val& list, const Val& item, Val& failed) {
  const uint64_t count = list_size(list);
  const bool typed = Rep::decl(list) != nullptr;
  bool any_error = false;
  for (uint64_t i = 0; i < count; ++i) {
    const Val there = list_at(arena, list, i);
    // Typed lists call Equal on their items, others on the item searched for.
    const Val same = typed ? equal_to(arena, there, item) : equal_to(arena, item, there);
    if (same.is_true()) return true;
    if (typed && !same.is_bool() && !any_error) {
      any_error = true;
      failed = same;
    }
  }
  return false;
}

// --- Access ---------------------------------------------------------------------------------------------------------

uint64_t Val::size() const {
  if (kind_ == Kind::List) return list_size(*this);
  if (kind_ == Kind::Map) return map_size(*this);
  return 0;
}
Val Val::at(Arena& arena, uint64_t index) const { return list_at(arena, *this, index); }
Val Val::inner(Arena&) const { return *optional_; }

Val Val::key_at(Arena& arena, uint64_t index) const {
  if (!Rep::is_data(*this)) return map_->entries[index].key;
  const Member& member = data_->members()[index];
  if (decl_ != nullptr && decl_->has_properties) {
    if (const std::optional<std::string> escaped = escape_name(member.key); escaped && *escaped != member.key)
      return string(arena.copy(*escaped));
  }
  return string(member.key);
}
Val Val::value_at(Arena& arena, uint64_t index) const {
  if (!Rep::is_data(*this)) return map_->entries[index].value;
  const Member& member = data_->members()[index];
  if (decl_ == nullptr) return from_data(arena, member.value);
  const Decl* child = decl_->has_properties ? decl_->find(member.key) : decl_->element;
  return child == nullptr ? null() : from_data(arena, member.value, child);
}
const Val::Patch& Val::json_patch() const { return *patch_; }

uint64_t code_points(std::string_view text) {
  uint64_t count = 0;
  for (size_t i = 0; i < text.size();) {
    i += static_cast<unsigned char>(text[i]) < 0x80 ? 1 : decode_rune(text, i).length;
    ++count;
  }
  return count;
}

bool has_size(const Val& v) {
  switch (v.kind()) {
    case Kind::String:
    case Kind::Bytes:
    case Kind::List:
    case Kind::Map:
      return true;
    case Kind::Opaque:
      return Rep::is(v, OpaqueKind::Ip) || Rep::is(v, OpaqueKind::Cidr);
    default:
      return false;
  }
}

uint64_t cost_size(const Val& v) {
  switch (v.kind()) {
    case Kind::String:
      return code_points(v.text());
    case Kind::Bytes:
      return v.text().size();
    case Kind::List:
      return list_size(v);
    case Kind::Map:
      return map_size(v);
    case Kind::Opaque:
      if (Rep::is(v, OpaqueKind::Ip)) return Rep::as<IpOpaque>(v).v6 ? 16 : 4;
      if (Rep::is(v, OpaqueKind::Cidr)) return static_cast<uint64_t>((Rep::as<IpOpaque>(v).prefix + 7) / 8);
      return 1;
    default:
      return 1;
  }
}

}  // namespace holdfast::cel
