#include "cel/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/base64.h"
#include "base/text.h"
#include "codec/codec.h"

namespace holdfast::cel {

// --- Making ---------------------------------------------------------------------------------------------------------

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
      return std::hash<std::string_view>{}(key.text());
    // Numbers that are equal have equal hashes.
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

// Keys of one map are told apart by type and value; a look-up takes numbers by value.
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

// Exactly this key before one that is equal by value (1 before 1u).
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
  // A double finds ints before uints, and never a double that is written otherwise.
  return by_value;
}

// Fields of an object are those that the schema names and that are not null; `escaped` is the name for expressions.
bool visible_member(const Decl& decl, const Member& member) {
  return decl.kind == Decl::Kind::Object ? decl.find(member.key) != nullptr : decl.element != nullptr;
}

}  // namespace

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
    // The name is the escaped one, or one that needs no escaping.
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
    // The open one may still grow, into the same index.
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

const Value* key_of(const Value& item, std::string_view key) { return item.find(key); }

// The item of a keyed list under the same keys; keys that are absent are equal. -1: none.
int64_t find_keyed(const Decl& decl, std::span<const Value> items, const Value& like) {
  for (size_t i = 0; i < items.size(); ++i) {
    bool same = true;
    for (const std::string_view key : decl.list_keys) {
      const Value* a = key_of(items[i], key);
      const Value* b = key_of(like, key);
      same = same && ((a == nullptr || a->is_null()) == (b == nullptr || b->is_null())) &&
             (a == nullptr || b == nullptr || holdfast::equal(*a, *b));
    }
    if (same) return static_cast<int64_t>(i);
  }
  return -1;
}

// Lists of schemas keep their schema: what is added becomes plain data again.
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
    // Lists of schemas ask their items, others ask what is looked for.
    const Val same = typed ? equal_to(arena, there, item) : equal_to(arena, item, there);
    if (same.is_true()) return true;
    if (typed && !same.is_bool() && !any_error) {
      any_error = true;
      failed = same;
    }
  }
  return false;
}

// --- Looking in -----------------------------------------------------------------------------------------------------

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

// --- Comparing ------------------------------------------------------------------------------------------------------

namespace {

int order(double a, double b) { return a < b ? -1 : a > b ? 1 : 0; }
int compare_double_int(double d, int64_t i) {
  if (d < -9223372036854775808.0) return -1;
  if (d > 9223372036854775807.0) return 1;
  return order(d, static_cast<double>(i));
}
int compare_double_uint(double d, uint64_t u) {
  if (d < 0) return -1;
  if (d > 18446744073709551615.0) return 1;
  return order(d, static_cast<double>(u));
}
int compare_int_uint(int64_t i, uint64_t u) {
  if (i < 0 || u > static_cast<uint64_t>(INT64_MAX)) return -1;
  const auto v = static_cast<int64_t>(u);
  return i < v ? -1 : i > v ? 1 : 0;
}

bool is_number(const Val& v) { return v.kind() == Kind::Int || v.kind() == Kind::Uint || v.kind() == Kind::Double; }

// Of numbers that are not NaN.
int compare_numbers(const Val& a, const Val& b) {
  switch (a.kind()) {
    case Kind::Double:
      if (b.kind() == Kind::Double) return order(a.as_double(), b.as_double());
      return b.kind() == Kind::Int ? compare_double_int(a.as_double(), b.as_int())
                                   : compare_double_uint(a.as_double(), b.as_uint());
    case Kind::Int:
      if (b.kind() == Kind::Int) return a.as_int() < b.as_int() ? -1 : a.as_int() > b.as_int() ? 1 : 0;
      return b.kind() == Kind::Uint ? compare_int_uint(a.as_int(), b.as_uint())
                                    : -compare_double_int(b.as_double(), a.as_int());
    default:
      if (b.kind() == Kind::Uint) return a.as_uint() < b.as_uint() ? -1 : a.as_uint() > b.as_uint() ? 1 : 0;
      return b.kind() == Kind::Int ? -compare_int_uint(b.as_int(), a.as_uint())
                                   : -compare_double_uint(b.as_double(), a.as_uint());
  }
}
bool is_nan(const Val& v) { return v.kind() == Kind::Double && std::isnan(v.as_double()); }

Val equal_lists(Arena& arena, const Val& a, const Val& b) {
  const Decl* decl = Rep::decl(a);
  if (b.kind() != Kind::List) return decl != nullptr ? no_such_overload() : Val::boolean(false);
  const uint64_t count = list_size(a);
  if (count != list_size(b)) return Val::boolean(false);
  if (decl != nullptr && decl->list_kind == Decl::ListKind::Set) {
    for (uint64_t i = 0; i < count; ++i) {
      const std::optional<Value> item = list_at(arena, b, i).to_value(arena);
      const auto items = Rep::value(a).items();
      if (!item || std::none_of(items.begin(), items.end(), [&](const Value& v) { return holdfast::equal(v, *item); }))
        return Val::boolean(false);
    }
    return Val::boolean(true);
  }
  if (decl != nullptr && decl->list_kind == Decl::ListKind::Keyed) {
    for (uint64_t i = 0; i < count; ++i) {
      const Val item = list_at(arena, b, i);
      const std::optional<Value> plain = item.to_value(arena);
      const int64_t at = plain && plain->is_map() ? find_keyed(*decl, Rep::value(a).items(), *plain) : -1;
      if (at < 0) return Val::boolean(false);
      const Val same = equal_to(arena, list_at(arena, a, static_cast<uint64_t>(at)), item);
      if (!same.is_true()) return same;
    }
    return Val::boolean(true);
  }
  for (uint64_t i = 0; i < count; ++i) {
    const Val x = list_at(arena, a, i), y = list_at(arena, b, i);
    const Val same = decl != nullptr ? equal_to(arena, x, y) : equal(arena, x, y);
    if (decl != nullptr ? !same.is_true() : same.is_bool() && !same.is_true()) return same;
    if (Rep::form(a) == Rep::Form::Concat && same.is_error()) return same;
  }
  return Val::boolean(true);
}

Val equal_maps(Arena& arena, const Val& a, const Val& b) {
  const Decl* decl = Rep::decl(a);
  if (b.kind() != Kind::Map) return decl != nullptr ? no_such_overload() : Val::boolean(false);
  const uint64_t count = map_size(a);
  if (count != map_size(b)) return Val::boolean(false);
  for (uint64_t i = 0; i < count; ++i) {
    if (decl != nullptr) {
      const Member& member = Rep::value(a).members()[i];
      if (!visible_member(*decl, member)) {
        if (Rep::decl(b) == nullptr) return no_such_overload();
        const Value* other = Rep::value(b).find(member.key);
        if (other != nullptr && !holdfast::equal(member.value, *other)) return Val::boolean(false);
        continue;
      }
      const Val key = Val::string(member.key);
      Val x, y;
      const bool in_a = map_find(arena, a, key, x), in_b = map_find(arena, b, key, y);
      if (in_a != in_b) return Val::boolean(false);
      if (!in_a) continue;
      const Val same = equal_to(arena, x, y);
      if (!same.is_true()) return same;
      continue;
    }
    const Val key = a.key_at(arena, i);
    Val y;
    if (!map_find(arena, b, key, y)) return Val::boolean(false);
    const Val same = equal(arena, a.value_at(arena, i), y);
    if (same.is_bool() && !same.is_true()) return same;
  }
  return Val::boolean(true);
}

int compare_semver(const SemverOpaque& a, const SemverOpaque& b);

Val equal_opaque(const Val& a, const Val& b) {
  if (b.kind() != Kind::Opaque || Rep::opaque(a).kind != Rep::opaque(b).kind) return no_such_overload();
  switch (Rep::opaque(a).kind) {
    case OpaqueKind::Quantity: {
      const auto &x = Rep::as<QuantityOpaque>(a), &y = Rep::as<QuantityOpaque>(b);
      // A computed quantity is a pointer upstream, which the method does not take for a quantity.
      if (y.computed) return no_such_overload();
      const Result<codec::Quantity> p = codec::Quantity::parse(x.text), q = codec::Quantity::parse(y.text);
      return Val::boolean(p && q && *p == *q);
    }
    case OpaqueKind::Ip: {
      const auto &x = Rep::as<IpOpaque>(a), &y = Rep::as<IpOpaque>(b);
      return Val::boolean(x.v6 == y.v6 && x.bytes == y.bytes);
    }
    case OpaqueKind::Cidr: {
      const auto &x = Rep::as<IpOpaque>(a), &y = Rep::as<IpOpaque>(b);
      return Val::boolean(x.v6 == y.v6 && x.bytes == y.bytes && x.prefix == y.prefix);
    }
    case OpaqueKind::Url:
      return Val::boolean(Rep::as<UrlOpaque>(a).text == Rep::as<UrlOpaque>(b).text);
    case OpaqueKind::Semver:
      return Val::boolean(compare_semver(Rep::as<SemverOpaque>(a), Rep::as<SemverOpaque>(b)) == 0);
    case OpaqueKind::Format:
      return Val::boolean(Rep::as<FormatOpaque>(a).index == Rep::as<FormatOpaque>(b).index);
    default:
      return Val::boolean(&Rep::opaque(a) == &Rep::opaque(b));
  }
}

bool is_numeric(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

int compare_pre_release(std::string_view a, std::string_view b) {
  const bool x = is_numeric(a), y = is_numeric(b);
  if (x && !y) return -1;
  if (!x && y) return 1;
  if (x && y) {
    uint64_t m = 0, n = 0;
    std::from_chars(a.data(), a.data() + a.size(), m);
    std::from_chars(b.data(), b.data() + b.size(), n);
    return m < n ? -1 : m > n ? 1 : 0;
  }
  return a < b ? -1 : a > b ? 1 : 0;
}

int compare_semver(const SemverOpaque& a, const SemverOpaque& b) {
  if (a.major != b.major) return a.major < b.major ? -1 : 1;
  if (a.minor != b.minor) return a.minor < b.minor ? -1 : 1;
  if (a.patch != b.patch) return a.patch < b.patch ? -1 : 1;
  if (a.pre_release.empty() || b.pre_release.empty()) {
    return a.pre_release.empty() == b.pre_release.empty() ? 0 : a.pre_release.empty() ? 1 : -1;
  }
  for (size_t i = 0; i < a.pre_release.size() && i < b.pre_release.size(); ++i) {
    const int c = compare_pre_release(a.pre_release[i], b.pre_release[i]);
    if (c != 0) return c;
  }
  return a.pre_release.size() < b.pre_release.size() ? -1 : a.pre_release.size() > b.pre_release.size() ? 1 : 0;
}

}  // namespace

int compare_versions(const SemverOpaque& a, const SemverOpaque& b) { return compare_semver(a, b); }

Val equal(Arena& arena, const Val& a, const Val& b) {
  if (a.is_null() || b.is_null()) return Val::boolean(a.is_null() == b.is_null());
  return equal_to(arena, a, b);
}

Val equal_to(Arena& arena, const Val& a, const Val& b) {
  switch (a.kind()) {
    case Kind::Error:
      return a;
    case Kind::Null:
      return Val::boolean(b.is_null());
    case Kind::Int:
    case Kind::Uint:
    case Kind::Double:
      if (!is_number(b) || is_nan(a) || is_nan(b)) return Val::boolean(false);
      return Val::boolean(compare_numbers(a, b) == 0);
    case Kind::Bool:
    case Kind::Duration:
      return Val::boolean(a.kind() == b.kind() && a.as_int() == b.as_int());
    case Kind::String:
    case Kind::Bytes:
    case Kind::Type:
      return Val::boolean(a.kind() == b.kind() && a.text() == b.text());
    case Kind::Timestamp:
      return Val::boolean(b.kind() == Kind::Timestamp && Rep::seconds(a) == Rep::seconds(b) &&
                          Rep::nanos(a) == Rep::nanos(b));
    case Kind::List:
      return equal_lists(arena, a, b);
    case Kind::Map:
      return equal_maps(arena, a, b);
    case Kind::Optional:
      if (b.kind() != Kind::Optional || a.has_value() != b.has_value()) return Val::boolean(false);
      return a.has_value() ? equal_to(arena, Rep::inner(a), Rep::inner(b)) : Val::boolean(true);
    case Kind::Object: {
      if (b.kind() != Kind::Object) return Val::boolean(false);
      const ObjectRep &x = Rep::object(a), &y = Rep::object(b);
      if (x.type_name != y.type_name || x.fields.size() != y.fields.size()) return Val::boolean(false);
      for (size_t i = 0; i < x.fields.size(); ++i) {
        if (x.fields[i].first != y.fields[i].first || !equal(arena, x.fields[i].second, y.fields[i].second).is_true())
          return Val::boolean(false);
      }
      return Val::boolean(true);
    }
    case Kind::JsonPatch: {
      if (b.kind() != Kind::JsonPatch) return Val::boolean(false);
      const Val::Patch &x = a.json_patch(), &y = b.json_patch();
      if (x.op != y.op || x.path != y.path || x.from != y.from || (x.value == nullptr) != (y.value == nullptr))
        return Val::boolean(false);
      return x.value == nullptr ? Val::boolean(true) : equal_to(arena, *x.value, *y.value);
    }
    case Kind::Opaque:
      return equal_opaque(a, b);
    case Kind::Preserved: {
      const std::optional<Value> other = b.to_value(arena);
      return Val::boolean(other && holdfast::equal(Rep::value(a), *other));
    }
    case Kind::Lazy:
      return Val::boolean(b.kind() == Kind::Lazy && &Rep::lazy(a) == &Rep::lazy(b));
  }
  return Val::boolean(false);
}

bool has_order(const Val& v) {
  switch (v.kind()) {
    case Kind::Bool:
    case Kind::Int:
    case Kind::Uint:
    case Kind::Double:
    case Kind::String:
    case Kind::Bytes:
    case Kind::Timestamp:
    case Kind::Duration:
      return true;
    default:
      return false;
  }
}

Val compare(Arena&, const Val& a, const Val& b) {
  const auto ordered = [](auto x, auto y) { return Val::integer(x < y ? -1 : y < x ? 1 : 0); };
  if (is_number(a)) {
    if (!is_number(b))
      return is_nan(a) ? Val::error("NaN values cannot be ordered") : b.is_error() ? b : no_such_overload();
    if (is_nan(a) || is_nan(b)) return Val::error("NaN values cannot be ordered");
    return Val::integer(compare_numbers(a, b));
  }
  if (a.kind() != b.kind()) return b.is_error() ? b : no_such_overload();
  switch (a.kind()) {
    case Kind::Bool:
    case Kind::Duration:
      return ordered(a.as_int(), b.as_int());
    case Kind::String:
    case Kind::Bytes:
      return ordered(a.text(), b.text());
    case Kind::Timestamp:
      return ordered(std::pair(Rep::seconds(a), Rep::nanos(a)), std::pair(Rep::seconds(b), Rep::nanos(b)));
    default:
      return no_such_overload();
  }
}

bool is_zero_value(const Val& v) {
  switch (v.kind()) {
    case Kind::Null:
      return true;
    case Kind::Bool:
    case Kind::Int:
    case Kind::Uint:
    case Kind::Duration:
      return v.as_int() == 0;
    case Kind::Double:
      return v.as_double() == 0;
    case Kind::String:
    case Kind::Bytes:
      return v.text().empty();
    case Kind::List:
      return Rep::decl(v) == nullptr && list_size(v) == 0;
    case Kind::Map:
      return Rep::decl(v) == nullptr && map_size(v) == 0;
    case Kind::Timestamp:
      return Rep::seconds(v) == -62135596800 && Rep::nanos(v) == 0;
    case Kind::Object:
      return Rep::object(v).fields.empty();
    default:
      return false;
  }
}

// --- Texts ----------------------------------------------------------------------------------------------------------

std::string_view opaque_type_name(OpaqueKind kind) {
  constexpr std::string_view kNames[] = {"kubernetes.Quantity",
                                         "net.IP",
                                         "net.CIDR",
                                         "kubernetes.URL",
                                         "kubernetes.Semver",
                                         "kubernetes.NamedFormat",
                                         "kubernetes.authorization.Authorizer",
                                         "kubernetes.authorization.PathCheck",
                                         "kubernetes.authorization.GroupCheck",
                                         "kubernetes.authorization.ResourceCheck",
                                         "kubernetes.authorization.Decision"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view Val::type_name() const {
  switch (kind_) {
    case Kind::Error:
      return "error";
    case Kind::Null:
      return "null_type";
    case Kind::Bool:
      return "bool";
    case Kind::Int:
      return "int";
    case Kind::Uint:
      return "uint";
    case Kind::Double:
      return "double";
    case Kind::String:
      return "string";
    case Kind::Bytes:
      return "bytes";
    case Kind::Timestamp:
      return "google.protobuf.Timestamp";
    case Kind::Duration:
      return "google.protobuf.Duration";
    case Kind::Type:
      return "type";
    case Kind::List:
      return "list";
    case Kind::Map:
      return "map";
    case Kind::Optional:
      return "optional_type";
    case Kind::Object:
      return object_->type_name;
    case Kind::JsonPatch:
      return "JSONPatch";
    case Kind::Opaque:
      return opaque_type_name(opaque_->kind);
    case Kind::Lazy:
      return lazy_->type_name();
    case Kind::Preserved:
      return "unknown";
  }
  return {};
}

std::string_view go_type_name(const Val& v) {
  switch (v.kind()) {
    case Kind::Error:
      return "*types.Err";
    case Kind::Null:
      return "types.Null";
    case Kind::Bool:
      return "types.Bool";
    case Kind::Int:
      return "types.Int";
    case Kind::Uint:
      return "types.Uint";
    case Kind::Double:
      return "types.Double";
    case Kind::String:
      return "types.String";
    case Kind::Bytes:
      return "types.Bytes";
    case Kind::Timestamp:
      return "types.Timestamp";
    case Kind::Duration:
      return "types.Duration";
    case Kind::Type:
      return "*types.Type";
    case Kind::List:
      return Rep::form(v) == Rep::Form::Concat ? "*types.concatList" : "*types.baseList";
    case Kind::Map:
      return "*types.baseMap";
    case Kind::Optional:
      return "*types.Optional";
    case Kind::Object:
      return "*dynamic.ObjectVal";
    case Kind::JsonPatch:
      return "*mutation.JSONPatchVal";
    case Kind::Lazy:
      return "*lazy.MapValue";
    case Kind::Preserved:
      return "*common.unknownPreserved";
    case Kind::Opaque:
      break;
  }
  switch (Rep::opaque(v).kind) {
    case OpaqueKind::Quantity:
      return Rep::as<QuantityOpaque>(v).computed ? "*cel.Quantity" : "cel.Quantity";
    case OpaqueKind::Ip:
      return "cel.IP";
    case OpaqueKind::Cidr:
      return "cel.CIDR";
    case OpaqueKind::Url:
      return "cel.URL";
    case OpaqueKind::Semver:
      return "cel.Semver";
    case OpaqueKind::Format:
      return "cel.Format";
    case OpaqueKind::Authorizer:
      return "library.authorizerVal";
    case OpaqueKind::PathCheck:
      return "library.pathCheckVal";
    case OpaqueKind::GroupCheck:
      return "library.groupCheckVal";
    case OpaqueKind::ResourceCheck:
      return "library.resourceCheckVal";
    case OpaqueKind::Decision:
      return "library.decisionVal";
  }
  return {};
}

std::string double_text(double d) {
  if (std::isnan(d)) return "NaN";
  if (std::isinf(d)) return d > 0 ? "+Inf" : "-Inf";
  return codec::float_text(d, codec::FloatText::Go);
}

std::string double_plain_text(double d) {
  if (std::isnan(d)) return "NaN";
  if (std::isinf(d)) return d > 0 ? "+Inf" : "-Inf";
  char buffer[400];
  const auto [end, problem] = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::fixed);
  return {buffer, end};
}

std::string duration_seconds_text(int64_t nanoseconds) {
  const double seconds =
      static_cast<double>(nanoseconds / 1'000'000'000) + static_cast<double>(nanoseconds % 1'000'000'000) / 1e9;
  return double_plain_text(seconds) + "s";
}

namespace {

// Howard Hinnant's civil calendar, proleptic Gregorian.
void civil_from_days(int64_t days, int64_t& year, unsigned& month, unsigned& day) {
  days += 719468;
  const int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const auto of_era = static_cast<unsigned>(days - era * 146097);
  const unsigned year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  year = static_cast<int64_t>(year_of_era) + era * 400;
  const unsigned day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const unsigned m = (5 * day_of_year + 2) / 153;
  day = day_of_year - (153 * m + 2) / 5 + 1;
  month = m < 10 ? m + 3 : m - 9;
  if (month <= 2) ++year;
}

}  // namespace

std::string timestamp_text(int64_t seconds, int32_t nanos, int64_t zone) {
  const int64_t local = seconds + zone;
  int64_t days = local / 86400, rest = local % 86400;
  if (rest < 0) {
    rest += 86400;
    --days;
  }
  int64_t year;
  unsigned month, day;
  civil_from_days(days, year, month, day);
  char buffer[64];
  snprintf(buffer, sizeof buffer, "%04lld-%02u-%02uT%02d:%02d:%02d", static_cast<long long>(year), month, day,
           static_cast<int>(rest / 3600), static_cast<int>(rest / 60 % 60), static_cast<int>(rest % 60));
  std::string out = buffer;
  if (nanos != 0) {
    snprintf(buffer, sizeof buffer, ".%09d", nanos);
    std::string fraction = buffer;
    while (fraction.back() == '0') fraction.pop_back();
    out += fraction;
  }
  if (zone == 0) return out + "Z";
  const int64_t minutes = std::abs(zone) / 60;
  snprintf(buffer, sizeof buffer, "%c%02d:%02d", zone < 0 ? '-' : '+', static_cast<int>(minutes / 60),
           static_cast<int>(minutes % 60));
  return out + buffer;
}

std::string ip_text(const IpOpaque& ip) {
  if (!ip.v6) {
    std::string out;
    for (int i = 0; i < 4; ++i) out += (i > 0 ? "." : "") + std::to_string(ip.bytes[i]);
    return out;
  }
  // RFC 5952: the longest run of zeros, of at least two groups, becomes "::".
  uint16_t groups[8];
  for (int i = 0; i < 8; ++i) groups[i] = static_cast<uint16_t>(ip.bytes[2 * i] << 8 | ip.bytes[2 * i + 1]);
  int best = -1, best_length = 1;
  for (int i = 0; i < 8;) {
    int end = i;
    while (end < 8 && groups[end] == 0) ++end;
    if (end - i > best_length) {
      best = i;
      best_length = end - i;
    }
    i = end > i ? end : i + 1;
  }
  std::string out;
  for (int i = 0; i < 8; ++i) {
    if (i == best) {
      out += "::";
      i += best_length - 1;
      continue;
    }
    if (!out.empty() && out.back() != ':') out += ':';
    char buffer[8];
    snprintf(buffer, sizeof buffer, "%x", groups[i]);
    out += buffer;
  }
  return out;
}

std::string semver_text(const SemverOpaque& version) {
  std::string out =
      std::to_string(version.major) + "." + std::to_string(version.minor) + "." + std::to_string(version.patch);
  for (size_t i = 0; i < version.pre_release.size(); ++i)
    out += (i == 0 ? "-" : ".") + std::string(version.pre_release[i]);
  for (size_t i = 0; i < version.build.size(); ++i) out += (i == 0 ? "+" : ".") + std::string(version.build[i]);
  return out;
}

std::string opaque_text(const Opaque& opaque) {
  switch (opaque.kind) {
    case OpaqueKind::Quantity:
      return std::string(static_cast<const QuantityOpaque&>(opaque).text);
    case OpaqueKind::Ip:
      return ip_text(static_cast<const IpOpaque&>(opaque));
    case OpaqueKind::Cidr: {
      const auto& cidr = static_cast<const IpOpaque&>(opaque);
      return ip_text(cidr) + "/" + std::to_string(cidr.prefix);
    }
    case OpaqueKind::Url:
      return std::string(static_cast<const UrlOpaque&>(opaque).text);
    case OpaqueKind::Semver:
      return semver_text(static_cast<const SemverOpaque&>(opaque));
    default:
      return "";
  }
}

std::string go_text(const Val& v) {
  Arena arena;
  switch (v.kind()) {
    case Kind::Error:
    case Kind::String:
    case Kind::Type:
      return std::string(v.text());
    case Kind::Null:
      return "0";
    case Kind::Bool:
      return v.as_bool() ? "true" : "false";
    case Kind::Int:
      return std::to_string(v.as_int());
    case Kind::Uint:
      return std::to_string(v.as_uint());
    case Kind::Double:
      return double_text(v.as_double());
    case Kind::Bytes: {
      std::string out = "[";
      for (const char c : v.text()) out += (out.size() > 1 ? " " : "") + std::to_string(static_cast<unsigned char>(c));
      return out + "]";
    }
    case Kind::Timestamp: {
      std::string text = timestamp_text(Rep::seconds(v), Rep::nanos(v), Rep::zone(v));
      return text;
    }
    case Kind::Duration:
      return codec::duration_text(v.as_int());
    case Kind::List: {
      std::string out = "[";
      const uint64_t count = std::min<uint64_t>(list_size(v), 100'000);
      for (uint64_t i = 0; i < count; ++i) out += (i > 0 ? ", " : "") + go_text(list_at(arena, v, i));
      return out + "]";
    }
    case Kind::Map: {
      std::string out = "{";
      v.for_each_entry(arena, [&](const Val& key, const Val& value) {
        out += (out.size() > 1 ? ", " : "") + go_text(key) + ": " + go_text(value);
      });
      return out + "}";
    }
    case Kind::Optional:
      return v.has_value() ? "optional(" + go_text(Rep::inner(v)) + ")" : "optional.none()";
    case Kind::Opaque:
      return opaque_text(Rep::opaque(v));
    default:
      return std::string(v.type_name());
  }
}

// --- As data --------------------------------------------------------------------------------------------------------

namespace {

void quote(std::string_view text, std::string& out) { codec::encode_json_string(text, out); }

void show(const Val& v, std::string& out) {
  Arena arena;
  const auto tagged = [&](std::string_view tag, const std::string& value) {
    out += "{\"" + std::string(tag) + "\":" + value + "}";
  };
  const auto text = [&](std::string_view tag, std::string_view value) {
    std::string quoted;
    quote(value, quoted);
    tagged(tag, quoted);
  };
  switch (v.kind()) {
    case Kind::Null:
      tagged("null", "null");
      return;
    case Kind::Bool:
      tagged("bool", v.as_bool() ? "true" : "false");
      return;
    case Kind::Int:
      tagged("int", std::to_string(v.as_int()));
      return;
    case Kind::Uint:
      tagged("uint", std::to_string(v.as_uint()));
      return;
    case Kind::Double: {
      const double d = v.as_double();
      if (std::isnan(d) || std::isinf(d)) {
        text("double", double_text(d));
      } else {
        tagged("double", codec::float_text(d, codec::FloatText::Json));
      }
      return;
    }
    case Kind::String:
      text("string", v.text());
      return;
    case Kind::Bytes:
      text("bytes", base64_encode(v.text()));
      return;
    case Kind::Timestamp:
      text("timestamp", timestamp_text(Rep::seconds(v), Rep::nanos(v), Rep::zone(v)));
      return;
    case Kind::Duration:
      text("duration", duration_seconds_text(v.as_int()));
      return;
    case Kind::Type:
      text("type", v.text());
      return;
    case Kind::Optional:
      if (!v.has_value()) {
        tagged("none", "true");
      } else {
        std::string inner;
        show(Rep::inner(v), inner);
        tagged("some", inner);
      }
      return;
    case Kind::List: {
      out += "{\"list\":[";
      const uint64_t count = list_size(v);
      for (uint64_t i = 0; i < count; ++i) {
        if (i > 0) out += ',';
        show(list_at(arena, v, i), out);
      }
      out += "]}";
      return;
    }
    case Kind::Map: {
      std::vector<std::pair<std::string, std::string>> pairs;
      v.for_each_entry(arena, [&](const Val& key, const Val& value) {
        std::string k, x;
        show(key, k);
        show(value, x);
        pairs.emplace_back(std::move(k), std::move(x));
      });
      std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      out += "{\"map\":[";
      for (size_t i = 0; i < pairs.size(); ++i) {
        out += (i > 0 ? ",[" : "[") + pairs[i].first + "," + pairs[i].second + "]";
      }
      out += "]}";
      return;
    }
    case Kind::Object: {
      if (const std::string problems = v.object_type_errors(); !problems.empty()) {
        text("object", "type mismatch: " + problems);
        return;
      }
      std::string problem;
      const std::optional<Value> value = v.to_value(arena, &problem);
      if (!value) {
        text("object", problem);
      } else {
        std::string json;
        codec::encode_json_sorted(*value, json);
        tagged("object", json);
      }
      return;
    }
    case Kind::JsonPatch: {
      const Val::Patch& patch = v.json_patch();
      std::string inner = "{\"from\":";
      quote(patch.from, inner);
      inner += ",\"op\":";
      quote(patch.op, inner);
      inner += ",\"path\":";
      quote(patch.path, inner);
      if (patch.value != nullptr) {
        inner += ",\"value\":";
        show(*patch.value, inner);
      }
      tagged("jsonpatch", inner + "}");
      return;
    }
    default: {
      std::string name, value;
      quote(v.type_name(), name);
      // A computed quantity has no text in the oracle's answers.
      const bool computed = Rep::is(v, OpaqueKind::Quantity) && Rep::as<QuantityOpaque>(v).computed;
      quote(v.kind() == Kind::Opaque && !computed ? opaque_text(Rep::opaque(v)) : "", value);
      tagged("opaque", "[" + name + "," + value + "]");
    }
  }
}

void type_errors(const Val& v, const std::string& path, std::string& out) {
  Arena arena;
  if (v.kind() == Kind::Object) {
    const ObjectRep& object = Rep::object(v);
    if (object.type_name != path) {
      if (!out.empty()) out += '\n';
      out += "unexpected type name " + go_quote(object.type_name) + ", expected " + go_quote(path) +
             ", which matches field name path from root Object type";
    }
    for (const auto& [name, field] : object.fields) type_errors(field, path + "." + std::string(name), out);
  } else if (v.kind() == Kind::List && !Rep::is_data(v)) {
    const uint64_t count = list_size(v);
    for (uint64_t i = 0; i < count; ++i) type_errors(list_at(arena, v, i), path, out);
  } else if (v.kind() == Kind::Map && !Rep::is_data(v)) {
    v.for_each_entry(arena, [&](const Val&, const Val& value) { type_errors(value, path, out); });
  }
}

}  // namespace

std::string Val::shown() const {
  std::string out;
  show(*this, out);
  return out;
}

std::string Val::object_type_errors() const {
  std::string out;
  type_errors(*this, std::string(type_name()), out);
  return out;
}

std::optional<Value> Val::to_value(Arena& arena, std::string* problem) const {
  const auto fail = [&](std::string message) -> std::optional<Value> {
    if (problem != nullptr) *problem = std::move(message);
    return std::nullopt;
  };
  switch (kind_) {
    case Kind::Null:
      return Value::null();
    case Kind::Bool:
      return Value::boolean(as_bool());
    case Kind::Int:
      return Value::integer(int_);
    case Kind::Uint:
      if (as_uint() > static_cast<uint64_t>(INT64_MAX)) return Value::number(static_cast<double>(as_uint()));
      return Value::integer(int_);
    case Kind::Double:
      return Value::number(as_double());
    case Kind::String:
      return Value::string(text());
    case Kind::Bytes:
      return Value::string(arena, base64_encode(text()));
    case Kind::Timestamp:
      return Value::string(arena, timestamp_text(int_, Rep::nanos(*this), zone_));
    case Kind::Duration:
      return Value::string(arena, duration_seconds_text(int_));
    case Kind::Preserved:
      return *data_;
    case Kind::List: {
      if (form_ == Form::Data) return *data_;
      const uint64_t count = list_size(*this);
      ListBuilder items(arena);
      for (uint64_t i = 0; i < count; ++i) {
        const std::optional<Value> item = list_at(arena, *this, i).to_value(arena, problem);
        if (!item) return std::nullopt;
        items.add(*item);
      }
      return items.build();
    }
    case Kind::Map: {
      if (form_ == Form::Data) return *data_;
      MapBuilder members(arena);
      for (uint64_t i = 0; i < map_->count; ++i) {
        const MapEntry& entry = map_->entries[i];
        if (!entry.key.is_string())
          return fail("map key " + go_quote(go_text(entry.key)) + " is of type " +
                      std::string(go_type_name(entry.key)) + ", not string");
        const std::optional<Value> value = entry.value.to_value(arena, problem);
        if (!value) return std::nullopt;
        members.add(entry.key.text(), *value);
      }
      return members.build();
    }
    case Kind::Object: {
      std::string why;
      std::optional<Value> value = to_json(arena, why);
      return value ? value : fail(std::move(why));
    }
    case Kind::Opaque:
      switch (opaque_->kind) {
        case OpaqueKind::Quantity:
        case OpaqueKind::Ip:
        case OpaqueKind::Cidr:
        case OpaqueKind::Url:
        case OpaqueKind::Semver:
          return Value::string(arena, opaque_text(*opaque_));
        default:
          break;
      }
      [[fallthrough]];
    default:
      return fail("a value of type " + std::string(type_name()) + " has no JSON form");
  }
}

}  // namespace holdfast::cel
