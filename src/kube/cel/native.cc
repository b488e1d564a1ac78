// Converts Object{...} and the value of JSONPatch{...} to data. Kubernetes converts them to native Go values in two
// different ways, each rejecting values it has no form for (k8s.io/apiserver/pkg/cel/mutation/dynamic).
#include <cstdio>

#include "base/base64.h"
#include "base/clock.h"
#include "base/text.h"
#include "cel/times.h"
#include "cel/values.h"
#include "codec/codec.h"

namespace holdfast::cel {
namespace {

std::string format(const char* pattern, auto... values) {
  char out[160];
  snprintf(out, sizeof out, pattern, values...);
  return out;
}

// Go's %q of a number: the quoted character.
std::string quoted_rune(uint64_t number) {
  if (number >= 0x80) {
    std::string out;
    append_utf8(out, number > 0x10FFFF ? 0xFFFD : static_cast<uint32_t>(number));
    return "'" + out + "'";
  }
  const char c = static_cast<char>(number);
  if (c == '\'') return "'\\''";
  if (c == '"') return "'\"'";
  std::string quoted = go_quote(std::string_view(&c, 1));
  quoted.front() = quoted.back() = '\'';
  return quoted;
}

std::string bad_key(const Val& key) {
  std::string shown;
  if (key.kind() == Kind::Int && key.as_int() >= 0) {
    shown = quoted_rune(static_cast<uint64_t>(key.as_int()));
  } else if (key.kind() == Kind::Int) {
    shown = quoted_rune(0xFFFD);
  } else if (key.kind() == Kind::Uint) {
    shown = quoted_rune(key.as_uint());
  } else if (key.is_null()) {
    shown = quoted_rune(0);
  } else if (key.is_bool() || key.kind() == Kind::Double) {  // The others have a String() method.
    shown = "%!q(" + std::string(go_type_name(key)) + "=" + go_text(key) + ")";
  } else {
    shown = go_quote(go_text(key));
  }
  return "map key " + shown + " is of type " + std::string(go_type_name(key)) + ", not string";
}

// --- Apply configurations ---

constexpr std::string_view kMonths[] = {"January", "February", "March",     "April",   "May",      "June",
                                        "July",    "August",   "September", "October", "November", "December"};

// Go's %#v for a value created by an expression inside a list or map, where only the outermost level is converted.
std::string go_syntax(const Val& v) {
  Arena arena;
  switch (v.kind()) {
    case Kind::String:
      return go_quote(v.text());
    case Kind::List: {
      std::string out;
      for (uint64_t i = 0; i < list_size(v); ++i) out += (i > 0 ? ", " : "") + go_syntax(list_at(arena, v, i));
      return "[]ref.Val{" + out + "}";
    }
    case Kind::Map: {
      std::string out;
      v.for_each_entry(arena, [&](const Val& key, const Val& value) {
        out += (out.empty() ? "" : ", ") + go_syntax(key) + ":" + go_syntax(value);
      });
      return "map[ref.Val]ref.Val{" + out + "}";
    }
    default:
      return go_text(v);
  }
}

std::string go_values(const Val& v) {
  Arena arena;
  std::string out;
  if (v.kind() == Kind::List) {
    for (uint64_t i = 0; i < list_size(v); ++i) out += (i > 0 ? " " : "") + go_text(list_at(arena, v, i));
    return "[" + out + "]";
  }
  v.for_each_entry(arena, [&](const Val& key, const Val& value) {
    out += (out.empty() ? "" : " ") + go_text(key) + ":" + go_text(value);
  });
  return "map[" + out + "]";
}

// The Go type of the wrapped value.
std::string_view native_type(const Val& v) {
  if (v.kind() == Kind::Opaque) {
    switch (Rep::opaque(v).kind) {
      case OpaqueKind::Quantity:
        return "*resource.Quantity";
      case OpaqueKind::Ip:
        return "netip.Addr";
      case OpaqueKind::Cidr:
        return "netip.Prefix";
      case OpaqueKind::Url:
        return "*url.URL";
      case OpaqueKind::Semver:
        return "semver.Version";
      default:
        break;
    }
  }
  return go_type_name(v);
}

const Val* non_string_key(const Val& v) {
  if (v.kind() != Kind::Map || Rep::is_data(v)) return nullptr;
  const MapRep& map = *Rep::map(v);
  for (uint64_t i = 0; i < map.count; ++i) {
    if (!map.entries[i].key.is_string()) return &map.entries[i].key;
  }
  return nullptr;
}

// Why an Object has no native form (a map among its fields has a non-string key); empty if it has one.
std::string no_native_form(const ObjectRep& object) {
  for (const auto& [name, field] : object.fields) {
    if (const Val* key = non_string_key(field)) return "fail to convert field " + go_quote(name) + ": " + bad_key(*key);
  }
  return {};
}

// The purpose of the native form: an apply configuration, or JSON, which has a form for more values.
enum class Use : uint8_t { Configuration, Json };

class Converter {
 public:
  Converter(Arena& arena, Use use, std::string_view marker_key, Configuration& out)
      : arena_(arena), use_(use), marker_key_(marker_key), out_(out) {}

  Value object(const ObjectRep& object) {
    // A non-string key invalidates the whole enclosing object.
    if (std::string why = no_native_form(object); !why.empty()) {
      return refuse({.path = {}, .type = "*types.Err", .syntax = "(*types.Err)", .text = std::move(why)});
    }
    MapBuilder members(arena_);
    for (const auto& [name, field] : object.fields) {
      path_.emplace_back(name);
      members.add(name, this->field(field));
      path_.pop_back();
    }
    return members.build();
  }

 private:
  // Lists and maps created by an expression are converted as fields of an Object, but not inside each other.
  Value field(const Val& v) {
    if (Rep::is_data(v)) return Rep::value(v);
    if (v.kind() == Kind::List) {
      ListBuilder items(arena_);
      for (uint64_t i = 0; i < list_size(v); ++i) {
        path_.emplace_back(static_cast<size_t>(i));
        items.add(plain(list_at(arena_, v, i)));
        path_.pop_back();
      }
      return items.build();
    }
    if (v.kind() == Kind::Map) return map(v);
    return plain(v);
  }

  Value map(const Val& v) {
    MapBuilder members(arena_);
    v.for_each_entry(arena_, [&](const Val& key, const Val& value) {
      path_.emplace_back(key.text());
      members.add(key.text(), plain(value));
      path_.pop_back();
    });
    return members.build();
  }

  bool is_marker(const Val& v) {
    Val found;
    return !marker_key_.empty() && non_string_key(v) == nullptr && map_find(arena_, v, Val::string(marker_key_), found);
  }

  Value plain(const Val& v) {
    switch (v.kind()) {
      case Kind::Bool:
        return Value::boolean(v.as_bool());
      case Kind::Int:
        return Value::integer(v.as_int());
      case Kind::Double:
        return Value::number(v.as_double());
      case Kind::String:
      case Kind::Type:
        return Value::string(v.text());
      case Kind::Optional:
        return v.has_value() ? plain(Rep::inner(v)) : Value::null();
      case Kind::Preserved:
        return Rep::value(v);
      case Kind::Object:
        return object(Rep::object(v));
      case Kind::List:
        if (Rep::is_data(v)) return Rep::value(v);
        return refuse({.path = {}, .type = "[]ref.Val", .syntax = go_syntax(v), .text = go_values(v)});
      case Kind::Map:
        if (Rep::is_data(v)) return Rep::value(v);
        if (is_marker(v)) return map(v);
        return refuse({.path = {}, .type = "map[ref.Val]ref.Val", .syntax = go_syntax(v), .text = go_values(v)});
      case Kind::Null:
        return refuse({.path = {}, .type = "structpb.NullValue", .syntax = "0", .text = "NULL_VALUE"});
      case Kind::Uint:
        if (use_ == Use::Json) return Value::number(static_cast<double>(v.as_uint()));
        return refuse({.path = {},
                       .type = "uint64",
                       .syntax = format("0x%llx", static_cast<unsigned long long>(v.as_uint())),
                       .text = std::to_string(v.as_uint())});
      case Kind::Duration:
        return refuse({.path = {},
                       .type = "time.Duration",
                       .syntax = std::to_string(v.as_int()),
                       .text = format_go_duration(std::chrono::nanoseconds(v.as_int()))});
      case Kind::Timestamp:
        return refuse(time(v));
      case Kind::Bytes: {
        if (use_ == Use::Json) return Value::string(arena_, base64_encode(v.text()));
        std::string bytes;
        for (const char c : v.text()) bytes += format(bytes.empty() ? "0x%x" : ", 0x%x", static_cast<unsigned char>(c));
        return refuse({.path = {}, .type = "[]uint8", .syntax = "[]uint8{" + bytes + "}", .text = go_text(v)});
      }
      default: {
        const std::string type(native_type(v));
        return refuse({.path = {}, .type = type, .syntax = "(" + type + ")", .text = go_text(v)});
      }
    }
  }

  static ForeignValue time(const Val& v) {
    const Civil at = civil_time(Rep::seconds(v) + Rep::zone(v));
    std::string syntax =
        format("time.Date(%lld, time.%s, %d, %d, %d, %d, %d, time.UTC)", static_cast<long long>(at.year),
               std::string(kMonths[at.month - 1]).c_str(), at.day, at.hour, at.minute, at.second, Rep::nanos(v));
    std::string text = format("%04lld-%02d-%02d %02d:%02d:%02d", static_cast<long long>(at.year), at.month, at.day,
                              at.hour, at.minute, at.second);
    if (Rep::nanos(v) != 0) {
      std::string fraction = format(".%09d", Rep::nanos(v));
      fraction.erase(fraction.find_last_not_of('0') + 1);
      text += fraction;
    }
    return {.path = {}, .type = "time.Time", .syntax = std::move(syntax), .text = text + " +0000 UTC"};
  }

  Value refuse(ForeignValue value) {
    value.path = path_;
    out_.foreign.push_back(std::move(value));
    return Value::null();
  }

  Arena& arena_;
  const Use use_;
  const std::string_view marker_key_;
  Configuration& out_;
  std::vector<ForeignValue::Step> path_;
};

// --- JSON patches ---

constexpr int64_t kLargestJsonInteger = (int64_t{1} << 53) - 1;

class JsonForm {
 public:
  JsonForm(Arena& arena, std::string& problem) : arena_(arena), problem_(problem) {}

  std::optional<Value> value(const Val& v) {
    switch (v.kind()) {
      case Kind::Null:
        return Value::null();
      case Kind::Bool:
        return Value::boolean(v.as_bool());
      case Kind::Int:
        if (v.as_int() > kLargestJsonInteger || v.as_int() < -kLargestJsonInteger) {
          return Value::string(arena_, std::to_string(v.as_int()));
        }
        return Value::integer(v.as_int());
      case Kind::Uint:
        if (v.as_uint() > static_cast<uint64_t>(kLargestJsonInteger)) {
          return Value::string(arena_, std::to_string(v.as_uint()));
        }
        return Value::integer(v.as_int());
      case Kind::Double:
        return number(v.as_double());
      case Kind::String:
        return Value::string(v.text());
      case Kind::Bytes:
        return Value::string(arena_, base64_encode(v.text()));
      case Kind::Timestamp:
        return Value::string(arena_, timestamp_text(Rep::seconds(v), Rep::nanos(v), Rep::zone(v)));
      case Kind::Duration:
        return Value::string(arena_, duration_seconds_text(v.as_int()));
      case Kind::Preserved:
        return Rep::value(v);
      case Kind::Optional:
        if (!v.has_value()) return fail("optional.none() dereference");
        return value(Rep::inner(v));
      case Kind::List:
        return Rep::is_data(v) ? Rep::value(v) : list(v);
      case Kind::Map:
        return Rep::is_data(v) ? Rep::value(v) : map(v);
      case Kind::Object:
        return object(v);
      case Kind::Type:
        return fail("type conversion not supported for 'type'");
      case Kind::JsonPatch:
        return fail("cannot convert to native type: *structpb.Value");
      case Kind::Opaque:
        return fail("type conversion error from '" + std::string(opaque_name(v)) + "' to '*structpb.Value'");
      default:
        return fail("type conversion error from '" + std::string(v.type_name()) + "' to '*structpb.Value'");
    }
  }

 private:
  std::optional<Value> fail(std::string problem) {
    problem_ = std::move(problem);
    return std::nullopt;
  }

  std::optional<Value> number(double d) {
    constexpr std::string_view kNotANumber =
        "json: error calling MarshalJSON for type *structpb.Value: proto: google.protobuf.Value.number_value: invalid ";
    if (d != d) return fail(std::string(kNotANumber) + "NaN value");
    if (d - d != 0) return fail(std::string(kNotANumber) + (d > 0 ? "+Inf value" : "-Inf value"));
    // Printed without a fraction, so it is read back as an integer.
    if (d < 1e18 && d > -1e18 && d == static_cast<double>(static_cast<int64_t>(d))) {
      return Value::integer(static_cast<int64_t>(d));
    }
    return Value::number(d);
  }

  // Kubernetes' own names for some types.
  static std::string_view opaque_name(const Val& v) {
    switch (Rep::opaque(v).kind) {
      case OpaqueKind::Quantity:
        return "Quantity";
      case OpaqueKind::Ip:
        return "IP";
      case OpaqueKind::Cidr:
        return "CIDR";
      case OpaqueKind::Url:
        return "URL";
      case OpaqueKind::Semver:
        return "Semver";
      default:
        return v.type_name();
    }
  }

  std::optional<Value> list(const Val& v) {
    ListBuilder items(arena_);
    for (uint64_t i = 0; i < list_size(v); ++i) {
      const std::optional<Value> item = value(list_at(arena_, v, i));
      if (!item) return std::nullopt;
      items.add(*item);
    }
    return items.build();
  }

  std::optional<Value> map(const Val& v) {
    const MapRep& map = *Rep::map(v);
    MapBuilder members(arena_);
    for (uint64_t i = 0; i < map.count; ++i) {
      const auto& [key, held] = map.entries[i];
      if (key.kind() == Kind::Bool) return fail("type conversion error from bool to 'string'");
      if (!key.is_string()) {
        return fail("unsupported type conversion from '" + std::string(key.type_name()) + "' to string");
      }
      const std::optional<Value> member = value(held);
      if (!member) return std::nullopt;
      members.add(key.text(), *member);
    }
    return members.build();
  }

  std::optional<Value> object(const Val& v) {
    Configuration native;
    native.value = Converter(arena_, Use::Json, {}, native).object(Rep::object(v));
    if (native.foreign.empty()) return native.value;
    const ForeignValue& first = native.foreign.front();
    return fail(first.path.empty() ? first.text : "proto: invalid type: " + first.type);
  }

  Arena& arena_;
  std::string& problem_;
};

}  // namespace

Val from_native(Arena& arena, const Val& v) {
  switch (v.kind()) {
    case Kind::Object: {
      const ObjectRep& object = Rep::object(v);
      if (const std::string why = no_native_form(object); !why.empty()) return error(arena, why);
      std::vector<MapEntry> entries;
      for (const auto& [name, field] : object.fields) entries.push_back({Val::string(name), from_native(arena, field)});
      return map_of(arena, entries);
    }
    case Kind::List: {
      if (Rep::is_data(v)) return v;
      std::vector<Val> items;
      items.reserve(list_size(v));
      for (uint64_t i = 0; i < list_size(v); ++i) items.push_back(from_native(arena, list_at(arena, v, i)));
      return list_of(arena, items);
    }
    case Kind::Map: {
      if (Rep::is_data(v)) return v;
      std::vector<MapEntry> entries;
      v.for_each_entry(arena,
                       [&](const Val& key, const Val& value) { entries.push_back({key, from_native(arena, value)}); });
      return map_of(arena, entries);
    }
    case Kind::Optional:
      return v.has_value() ? from_native(arena, Rep::inner(v)) : Val::null();
    case Kind::Type:
      return Val::string(v.text());
    case Kind::Opaque: {
      const std::string_view type = native_type(v);
      if (type == go_type_name(v)) return v;
      return error(arena, "unsupported conversion to ref.Val: (" + std::string(type) + ")" + go_text(v));
    }
    default:
      return v;
  }
}

bool object_field(Arena& arena, const ObjectRep& object, std::string_view name, Val& found) {
  if (!no_native_form(object).empty()) {
    found = error(arena, "cannot get field " + go_quote(name));
    return true;
  }
  for (const auto& [held, field] : object.fields) {
    if (held != name) continue;
    found = from_native(arena, field);
    return true;
  }
  return false;
}

Configuration Val::to_configuration(Arena& arena, std::string_view marker_key) const {
  assert(kind_ == Kind::Object);
  Configuration out;
  out.value = Converter(arena, Use::Configuration, marker_key, out).object(*object_);
  return out;
}

std::optional<Value> Val::to_json(Arena& arena, std::string& problem) const {
  return JsonForm(arena, problem).value(*this);
}

}  // namespace holdfast::cel
