// Construction and inspection of values. Private to the module.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cel/types.h"

namespace holdfast::cel {

// A list created by an expression.
//
// `open`: the accumulator of a comprehension, to which `+` appends in place. cel-go turns any empty value bound by a
// comprehension into such a list, so this is observable in optMap() too.
struct ListRep {
  const Val* items = nullptr;
  uint64_t count = 0;
  uint64_t capacity = 0;
  bool open = false;
  // Concatenation: the two halves, instead of items. Concatenating lists copies nothing.
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
  // Hash index of large maps: entry index plus one, 0 if free. The size is a power of two, at least twice the count.
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
  std::string_view text;  // As printed; parses to the same quantity.
  bool computed = false;  // Result of add() or sub().
  // Computed from a non-integer: upstream keeps the fraction's scale, so the result never becomes an integer again.
  bool fractional = false;
};
struct IpOpaque : Opaque {
  bool v6 = false;
  std::array<uint8_t, 16> bytes = {};  // IPv4 uses the first four.
  int prefix = 0;                      // For a Cidr.
};
struct UrlOpaque : Opaque {
  std::string_view scheme, user, host, path, raw_path, query, fragment, raw_fragment, opaque;
  bool has_user = false, has_password = false, force_query = false, omit_host = false;
  std::string_view password;
  std::string_view text;  // As formatted by Go's URL.String().
};
struct SemverOpaque : Opaque {
  uint64_t major = 0, minor = 0, patch = 0;
  std::span<const std::string_view> pre_release, build;
};
struct FormatOpaque : Opaque {
  std::string_view name;
  uint32_t index = 0;  // Index into the table of formats.
};
struct CheckOpaque : Opaque {
  Authorizer* authorizer = nullptr;
  Authorizer::Check check;
};
struct DecisionOpaque : Opaque {
  bool allowed = false, errored = false;
  std::string_view reason, error;
};

// Gives this module access to Val's private members.
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

Val error(Arena& arena, std::string_view message);  // Copies the message.
inline Val no_such_overload() { return Val::error("no such overload"); }

Val list_of(Arena& arena, std::span<const Val> items);
Val string_list(Arena& arena, std::span<const std::string> items);
// The keys must be distinct.
Val map_of(Arena& arena, std::span<const MapEntry> entries);

// Wraps a member of data, as dyn or typed by a schema. Decodes raw JSON.
Val from_data(Arena& arena, const Value& value);
Val from_data(Arena& arena, const Value& value, const Decl* decl);

uint64_t list_size(const Val& list);
Val list_at(Arena& arena, const Val& list, uint64_t index);
// Looks up a key using CEL's key equality; false if absent. An Error value counts as found.
bool map_find(Arena& arena, const Val& map, const Val& key, Val& found);
uint64_t map_size(const Val& map);

// Objects: fields declared by the schema. Maps: all members if they have a type.
bool visible_member(const Decl& decl, const Member& member);
// The index of the item with the same keys in a keyed list, or -1. Absent keys are equal.
int64_t find_keyed(const Decl& decl, std::span<const Value> items, const Value& like);

// list + list. May append in place to an open list.
Val add_lists(Arena& arena, const Val& left, const Val& right);
Val open_list(Arena& arena);
Val open_map(Arena& arena);
// A map with one more entry; an error if the key exists.
Val map_insert(Arena& arena, const Val& map, const Val& key, const Val& value);
// The result of a comprehension whose accumulator was open.
Val closed(Arena& arena, const Val& value);

// CEL's deep ==: True, False or an error (different opaque types cannot be compared).
Val equal(Arena& arena, const Val& a, const Val& b);
// Upstream's Equal method of the left value: like `equal`, but without special handling of null.
Val equal_to(Arena& arena, const Val& a, const Val& b);
// -1, 0 or 1 as Int, or an error. Only for ordered kinds.
Val compare(Arena& arena, const Val& a, const Val& b);
bool has_order(const Val& v);
bool list_contains(Arena& arena, const Val& list, const Val& item, Val& failed);

// The size used for costs: characters of a string, bytes, items, entries; bytes of an IP or CIDR; 1 for everything
// else.
uint64_t cost_size(const Val& v);
bool has_size(const Val& v);
uint64_t code_points(std::string_view text);

// A value after conversion to its native Go form and back: Objects become maps, types their names; an error if there is
// no way back.
Val from_native(Arena& arena, const Val& v);
// A field of an Object{...} after conversion to Kubernetes' native form: nested Objects become maps. False if absent.
bool object_field(Arena& arena, const ObjectRep& object, std::string_view name, Val& found);

bool is_zero_value(const Val& v);
// Go's %v.
std::string go_text(const Val& v);
// Go's %T.
std::string_view go_type_name(const Val& v);
std::string timestamp_text(int64_t seconds, int32_t nanos, int64_t zone);
std::string duration_seconds_text(int64_t nanoseconds);
std::string double_plain_text(double d);  // %f with as many digits as needed.
std::string ip_text(const IpOpaque& ip);
std::string semver_text(const SemverOpaque& version);
std::string opaque_text(const Opaque& opaque);
std::string_view opaque_type_name(OpaqueKind kind);

}  // namespace holdfast::cel
