// Equality and ordering of values.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/ascii.h"
#include "cel/values.h"
#include "codec/codec.h"

namespace holdfast::cel {

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

// Neither may be NaN.
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
      // Upstream, a computed quantity is a pointer, which the method does not accept as a quantity.
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

bool is_numeric(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_digit); }

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

}  // namespace holdfast::cel
