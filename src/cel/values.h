// How values are made and looked into. Private to the module.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cel/types.h"

namespace holdfast::cel {

// A list made by an expression.
//
// `open`: the accumulator of a comprehension, to which `+` appends in place. cel-go makes any empty value that a
// comprehension binds such a list, so this is visible in optMap() too.
struct ListRep {
  const Val* items = nullptr;
  uint64_t count = 0;
  uint64_t capacity = 0;
  bool open = false;
  // Concat: the two halves, in place of items; adding lists copies nothing, whatever they hold.
  const Val* left = nullptr;
  const Val* right = nullptr;
};

struct MapEntry {
  Val key, value;
};

struct MapRep {
  const MapEntry* entries = nullptr;
  uint64_t count = 0;
  uint64_t capacity = 0;
  bool open = false;
  // Of large maps: positions plus one by hash; 0: free. A power of two, at least twice the count.
  uint32_t* index = nullptr;
  uint64_t index_size = 0;
};

// Object{...}: fields sorted by name.
struct ObjectRep {
  std::string_view type_name;
  std::span<const std::pair<std::string_view, Val>> fields;
};

enum class OpaqueKind : uint8_t {
  Quantity,
  Ip,
  Cidr,
  Url,
  Semver,
  Format,
  Authorizer,
  PathCheck,
  GroupCheck,
  ResourceCheck,
  Decision,
};

struct Opaque {
  OpaqueKind kind;
};
struct QuantityOpaque : Opaque {
  std::string_view text;  // As printed; parses to the same number.
  bool computed = false;  // By add() or sub().
  // Computed from something that is not a whole number: upstream keeps the fraction's scale, so it never is one again.
  bool fractional = false;
};
struct IpOpaque : Opaque {
  bool v6 = false;
  std::array<uint8_t, 16> bytes = {};  // IPv4 in the first four.
  int prefix = 0;                      // Of a Cidr.
};
struct UrlOpaque : Opaque {
  std::string_view scheme, user, host, path, raw_path, query, fragment, raw_fragment, opaque;
  bool has_user = false, has_password = false, force_query = false, omit_host = false;
  std::string_view password;
  std::string_view text;  // As Go's URL.String() prints it.
};
struct SemverOpaque : Opaque {
  uint64_t major = 0, minor = 0, patch = 0;
  std::span<const std::string_view> pre_release, build;
};
struct FormatOpaque : Opaque {
  std::string_view name;
  uint32_t index = 0;  // In the table of formats.
};
struct CheckOpaque : Opaque {
  Authorizer* authorizer = nullptr;
  Authorizer::Check check;
};
struct DecisionOpaque : Opaque {
  bool allowed = false, errored = false;
  std::string_view reason, error;
};

// Looks into Val's private parts, for this module.
struct Rep {
  using Form = Val::Form;

  static Form form(const Val& v) { return v.form_; }
  static bool is_data(const Val& v) { return v.form_ == Form::Data; }
  static const Value& value(const Val& v) { return *v.data_; }
  static const Decl* decl(const Val& v) { return v.form_ == Form::Data ? v.decl_ : nullptr; }
  static const ListRep* list(const Val& v) { return v.list_; }
  static const MapRep* map(const Val& v) { return v.map_; }
  static const ObjectRep& object(const Val& v) { return *v.object_; }
  static const Opaque& opaque(const Val& v) { return *v.opaque_; }
  template <class T>
  static const T& as(const Val& v) {
    return static_cast<const T&>(*v.opaque_);
  }
  static bool is(const Val& v, OpaqueKind kind) { return v.kind_ == Val::Kind::Opaque && v.opaque_->kind == kind; }
  static LazyObject& lazy(const Val& v) { return *v.lazy_; }
  static const Val& inner(const Val& v) { return *v.optional_; }

  static int64_t seconds(const Val& v) { return v.int_; }
  static int32_t nanos(const Val& v) { return static_cast<int32_t>(v.count_); }
  static int64_t zone(const Val& v) { return v.zone_; }
  static Val timestamp(int64_t seconds, int32_t nanos, int64_t zone = 0) {
    Val v = Val::make(Val::Kind::Timestamp, seconds);
    v.count_ = static_cast<uint32_t>(nanos);
    v.zone_ = zone;
    return v;
  }
  static Val duration(int64_t nanoseconds) { return Val::make(Val::Kind::Duration, nanoseconds); }
  static Val type(std::string_view name) { return Val::text_val(Val::Kind::Type, name); }
  static Val data(Val::Kind kind, const Value& value, const Decl* decl) {
    Val v;
    v.kind_ = kind;
    v.form_ = Form::Data;
    v.data_ = &value;
    v.decl_ = decl;
    return v;
  }
  static Val list(const ListRep* rep, bool concat = false) {
    Val v;
    v.kind_ = Val::Kind::List;
    v.form_ = concat ? Form::Concat : Form::Items;
    v.list_ = rep;
    return v;
  }
  static Val map(const MapRep* rep) {
    Val v;
    v.kind_ = Val::Kind::Map;
    v.form_ = Form::Items;
    v.map_ = rep;
    return v;
  }
  static Val optional(const Val* inner) {
    Val v = Val::make(Val::Kind::Optional, 0);
    v.optional_ = inner;
    return v;
  }
  static Val object(const ObjectRep* rep) {
    Val v = Val::make(Val::Kind::Object, 0);
    v.object_ = rep;
    return v;
  }
  static Val patch(const Val::Patch* patch) {
    Val v = Val::make(Val::Kind::JsonPatch, 0);
    v.patch_ = patch;
    return v;
  }
  static Val opaque(const Opaque* opaque) {
    Val v = Val::make(Val::Kind::Opaque, 0);
    v.opaque_ = opaque;
    return v;
  }
};

using Kind = Val::Kind;

Val error(Arena& arena, std::string_view message);  // With a copy of the message.
inline Val no_such_overload() { return Val::error("no such overload"); }

Val list_of(Arena& arena, std::span<const Val> items);
Val string_list(Arena& arena, std::span<const std::string> items);
// Entries with distinct keys.
Val map_of(Arena& arena, std::span<const MapEntry> entries);

// A member of data, as dyn or through a schema. Verbatim JSON is read.
Val from_data(Arena& arena, const Value& value);
Val from_data(Arena& arena, const Value& value, const Decl* decl);

uint64_t list_size(const Val& list);
Val list_at(Arena& arena, const Val& list, uint64_t index);
// The value at a key by CEL's equality of keys; false: there is none. An Error found counts as found.
bool map_find(Arena& arena, const Val& map, const Val& key, Val& found);
uint64_t map_size(const Val& map);

// Fields of an object are those that the schema names; of a map every member is visible if it has a type.
bool visible_member(const Decl& decl, const Member& member);
// The item of a keyed list under the same keys; keys that are absent are equal. -1: none.
int64_t find_keyed(const Decl& decl, std::span<const Value> items, const Value& like);

// list + list. May append in place to an open list.
Val add_lists(Arena& arena, const Val& left, const Val& right);
Val open_list(Arena& arena);
Val open_map(Arena& arena);
// A map with one entry more; an error when the key is there.
Val map_insert(Arena& arena, const Val& map, const Val& key, const Val& value);
// What a comprehension gives when its accumulator was open.
Val closed(Arena& arena, const Val& value);

// CEL's ==, deep; True, False or an error (values of different opaque types have no equality).
Val equal(Arena& arena, const Val& a, const Val& b);
// The method Equal of the left value upstream: as `equal`, but null is not a special case.
Val equal_to(Arena& arena, const Val& a, const Val& b);
// -1, 0, 1 as Int, or an error. Only for kinds with an order.
Val compare(Arena& arena, const Val& a, const Val& b);
bool has_order(const Val& v);
bool list_contains(Arena& arena, const Val& list, const Val& item, Val& failed);

// Characters of a string, bytes, items, entries; of an IP or CIDR its bytes; 1 of everything else. For costs.
uint64_t cost_size(const Val& v);
bool has_size(const Val& v);
uint64_t code_points(std::string_view text);

// A value that went through its native form in Go: Objects come out as maps, types as their names, and what has no way
// back as an error.
Val from_native(Arena& arena, const Val& v);
// A field of an Object{...}, by way of the native form that Kubernetes keeps: nested Objects come out as maps. False:
// there is none.
bool object_field(Arena& arena, const ObjectRep& object, std::string_view name, Val& found);

bool is_zero_value(const Val& v);
// How Go prints the value with %v.
std::string go_text(const Val& v);
// How Go names the value's type with %T.
std::string_view go_type_name(const Val& v);
std::string timestamp_text(int64_t seconds, int32_t nanos, int64_t zone);
std::string duration_seconds_text(int64_t nanoseconds);
std::string double_text(double d);        // %g
std::string double_plain_text(double d);  // %f with the digits needed
std::string ip_text(const IpOpaque& ip);
std::string semver_text(const SemverOpaque& version);
std::string opaque_text(const Opaque& opaque);
std::string_view opaque_type_name(OpaqueKind kind);

}  // namespace holdfast::cel
