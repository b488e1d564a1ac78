// The standard operators, conversions and functions of the language.
#include <charconv>
#include <cmath>
#include <limits>

#include "base/ascii.h"
#include "base/clock.h"
#include "base/go_regexp.h"
#include "base/strings.h"
#include "cel/functions.h"
#include "cel/times.h"
#include "codec/codec.h"

namespace holdfast::cel {
namespace {

using Args = std::span<const Val>;

Val int_overflow() { return Val::error("integer overflow"); }
Val uint_overflow() { return Val::error("unsigned integer overflow"); }

Val checked_int(bool overflowed, int64_t value) { return overflowed ? int_overflow() : Val::integer(value); }

constexpr int64_t kSecond = 1'000'000'000;

Val time_plus(const Val& t, int64_t nanoseconds) {
  int64_t seconds = 0;
  if (__builtin_add_overflow(Rep::seconds(t), nanoseconds / kSecond, &seconds)) return int_overflow();
  int64_t nanos = Rep::nanos(t) + nanoseconds % kSecond;
  if (nanos >= kSecond) {
    nanos -= kSecond;
    ++seconds;
  } else if (nanos < 0) {
    nanos += kSecond;
    --seconds;
  }
  if (seconds < kMinUnixTime || seconds > kMaxUnixTime) return Val::error("timestamp overflow");
  return Rep::timestamp(seconds, static_cast<int32_t>(nanos), Rep::zone(t));
}

Val add(Context& c, Args a) {
  const Val &x = a[0], &y = a[1];
  switch (x.kind()) {
    case Kind::Int: {
      if (y.kind() != Kind::Int) return no_such_overload();
      int64_t sum = 0;
      return checked_int(__builtin_add_overflow(x.as_int(), y.as_int(), &sum), sum);
    }
    case Kind::Uint: {
      if (y.kind() != Kind::Uint) return no_such_overload();
      uint64_t sum = 0;
      return __builtin_add_overflow(x.as_uint(), y.as_uint(), &sum) ? uint_overflow() : Val::unsigned_integer(sum);
    }
    case Kind::Double:
      return y.kind() == Kind::Double ? Val::number(x.as_double() + y.as_double()) : no_such_overload();
    case Kind::String:
    case Kind::Bytes: {
      if (y.kind() != x.kind()) return no_such_overload();
      const std::string_view left = x.text(), right = y.text();
      char* joined = c.arena.allocate_array<char>(left.size() + right.size());
      std::copy(left.begin(), left.end(), joined);
      std::copy(right.begin(), right.end(), joined + left.size());
      const std::string_view text(joined, left.size() + right.size());
      return x.kind() == Kind::String ? Val::string(text) : Val::bytes(text);
    }
    case Kind::Duration: {
      if (y.kind() == Kind::Timestamp) return time_plus(y, x.as_int());
      if (y.kind() != Kind::Duration) return no_such_overload();
      int64_t sum = 0;
      return __builtin_add_overflow(x.as_int(), y.as_int(), &sum) ? int_overflow() : Rep::duration(sum);
    }
    case Kind::Timestamp:
      return y.kind() == Kind::Duration ? time_plus(x, y.as_int()) : no_such_overload();
    case Kind::List:
      return y.kind() == Kind::List ? add_lists(c.arena, x, y) : no_such_overload();
    default:
      return no_such_overload();
  }
}

Val subtract(Context&, Args a) {
  const Val &x = a[0], &y = a[1];
  switch (x.kind()) {
    case Kind::Int: {
      if (y.kind() != Kind::Int) return no_such_overload();
      int64_t difference = 0;
      return checked_int(__builtin_sub_overflow(x.as_int(), y.as_int(), &difference), difference);
    }
    case Kind::Uint:
      if (y.kind() != Kind::Uint) return no_such_overload();
      return y.as_uint() > x.as_uint() ? uint_overflow() : Val::unsigned_integer(x.as_uint() - y.as_uint());
    case Kind::Double:
      return y.kind() == Kind::Double ? Val::number(x.as_double() - y.as_double()) : no_such_overload();
    case Kind::Duration: {
      if (y.kind() != Kind::Duration) return no_such_overload();
      int64_t difference = 0;
      return __builtin_sub_overflow(x.as_int(), y.as_int(), &difference) ? int_overflow() : Rep::duration(difference);
    }
    case Kind::Timestamp: {
      if (y.kind() == Kind::Duration) {
        return y.as_int() == INT64_MIN ? int_overflow() : time_plus(x, -y.as_int());
      }
      if (y.kind() != Kind::Timestamp) return no_such_overload();
      int64_t seconds = Rep::seconds(x) - Rep::seconds(y), nanos = 0;
      if (__builtin_mul_overflow(seconds, kSecond, &seconds)) return int_overflow();
      if (__builtin_add_overflow(seconds, int64_t{Rep::nanos(x)} - Rep::nanos(y), &nanos)) return int_overflow();
      return Rep::duration(nanos);
    }
    default:
      return no_such_overload();
  }
}

Val multiply(Context&, Args a) {
  const Val &x = a[0], &y = a[1];
  if (x.kind() != y.kind()) return no_such_overload();
  if (x.kind() == Kind::Double) return Val::number(x.as_double() * y.as_double());
  if (x.kind() == Kind::Int) {
    int64_t product = 0;
    return checked_int(__builtin_mul_overflow(x.as_int(), y.as_int(), &product), product);
  }
  uint64_t product = 0;
  return __builtin_mul_overflow(x.as_uint(), y.as_uint(), &product) ? uint_overflow() : Val::unsigned_integer(product);
}

Val divide(Context&, Args a) {
  const Val &x = a[0], &y = a[1];
  if (x.kind() != y.kind()) return no_such_overload();
  if (x.kind() == Kind::Double) return Val::number(x.as_double() / y.as_double());
  if (y.as_int() == 0) return Val::error("division by zero");
  if (x.kind() == Kind::Uint) return Val::unsigned_integer(x.as_uint() / y.as_uint());
  if (x.as_int() == INT64_MIN && y.as_int() == -1) return int_overflow();
  return Val::integer(x.as_int() / y.as_int());
}

Val modulo(Context&, Args a) {
  const Val &x = a[0], &y = a[1];
  if (x.kind() != y.kind()) return no_such_overload();
  if (y.as_int() == 0) return Val::error("modulus by zero");
  if (x.kind() == Kind::Uint) return Val::unsigned_integer(x.as_uint() % y.as_uint());
  if (x.as_int() == INT64_MIN && y.as_int() == -1) return int_overflow();
  return Val::integer(x.as_int() % y.as_int());
}

Val negate(Context&, Args a) {
  switch (a[0].kind()) {
    case Kind::Int:
      return a[0].as_int() == INT64_MIN ? int_overflow() : Val::integer(-a[0].as_int());
    case Kind::Double:
      return Val::number(-a[0].as_double());
    case Kind::Duration:
      return a[0].as_int() == INT64_MIN ? int_overflow() : Rep::duration(-a[0].as_int());
    default:
      return no_such_overload();
  }
}

Val logical_not(Context&, Args a) { return a[0].is_bool() ? Val::boolean(!a[0].as_bool()) : no_such_overload(); }
Val not_strictly_false(Context&, Args a) { return a[0].is_bool() ? a[0] : Val::boolean(true); }

template <class Holds>
Val ordered(Context& c, Args a, Holds holds) {
  const Val order = compare(c.arena, a[0], a[1]);
  return order.is_error() ? order : Val::boolean(holds(order.as_int()));
}
Val less(Context& c, Args a) {
  return ordered(c, a, [](int64_t o) { return o < 0; });
}
Val less_equals(Context& c, Args a) {
  return ordered(c, a, [](int64_t o) { return o <= 0; });
}
Val greater(Context& c, Args a) {
  return ordered(c, a, [](int64_t o) { return o > 0; });
}
Val greater_equals(Context& c, Args a) {
  return ordered(c, a, [](int64_t o) { return o >= 0; });
}

Val in(Context& c, Args a) {
  if (a[1].kind() == Kind::List) {
    Val failed;
    if (list_contains(c.arena, a[1], a[0], failed)) return Val::boolean(true);
    return failed.is_error() ? failed : Val::boolean(false);
  }
  if (a[1].kind() == Kind::Map) {
    Val found;
    const bool there = map_find(c.arena, a[1], a[0], found);
    return there && found.is_error() && Rep::decl(a[1]) != nullptr ? found : Val::boolean(there);
  }
  return no_such_overload();
}

Val size(Context&, Args a) {
  return Val::integer(static_cast<int64_t>(std::min<uint64_t>(cost_size(a[0]), INT64_MAX)));
}

Val identity(Context&, Args a) { return a[0]; }
Val type_of(Context& c, Args a) {
  if (a[0].kind() == Kind::Preserved)
    return Val::error(
        "type conversion to 'type' not supported for values preserved by x-kubernetes-preserve-unknown-fields");
  (void)c;
  // Mutation values return the type of their type.
  if (a[0].kind() == Kind::Object || a[0].kind() == Kind::JsonPatch) return Rep::type("type");
  return Rep::type(a[0].type_name());
}

Val conversion_error(Context& c, const Val& from, std::string_view to) {
  return error(c.arena,
               "type conversion error from '" + std::string(from.type_name()) + "' to '" + std::string(to) + "'");
}

// strconv.ParseInt with base 10: no underscores.
std::optional<int64_t> parse_int(std::string_view text) {
  const bool plus = text.starts_with('+');
  if (plus) text.remove_prefix(1);
  if (plus && text.starts_with('-')) return std::nullopt;
  return parse_number<int64_t>(text);
}

// Removes the underscores that strconv.ParseFloat allows between digits. nullopt if one is misplaced.
std::optional<std::string> without_underscores(std::string_view text) {
  const bool hex = text.find_first_of("xX") != std::string_view::npos;
  const auto is_part = [&](char c) { return hex ? is_hex(c) : is_digit(c); };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    // Also allowed after the base prefix.
    const bool after = i > 0 && (is_part(text[i - 1]) || text[i - 1] == 'x' || text[i - 1] == 'X');
    if (!after || i + 1 == text.size() || !is_part(text[i + 1])) return std::nullopt;
  }
  return out;
}

// strconv.ParseFloat: decimal and hexadecimal notation.
std::optional<double> parse_double(std::string_view given) {
  const std::optional<std::string> text = without_underscores(given);
  if (!text) return std::nullopt;
  std::string_view digits = *text;
  bool negative = false;
  if (digits.starts_with('+') || digits.starts_with('-')) {
    negative = digits[0] == '-';
    digits.remove_prefix(1);
  }
  if (equals_ignoring_case(digits, "inf") || equals_ignoring_case(digits, "infinity"))
    return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  if (equals_ignoring_case(*text, "nan")) return std::numeric_limits<double>::quiet_NaN();
  if (digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
    const std::string_view hex = digits.substr(2);
    if (hex.find_first_of("pP") == std::string_view::npos) return std::nullopt;  // The exponent is required.
    double value = 0;
    const auto [end, problem] = std::from_chars(hex.data(), hex.data() + hex.size(), value, std::chars_format::hex);
    if (problem != std::errc() || end != hex.data() + hex.size()) return std::nullopt;
    return negative ? -value : value;
  }
  if (digits.find_first_of("0123456789") == std::string_view::npos ||
      digits.find_first_of("0123456789") > digits.find_first_of("eE"))
    return std::nullopt;
  const std::optional<double> value =
      codec::parse_float(digits.starts_with('.') ? "0" + std::string(digits) : std::string(digits));
  if (!value || std::isinf(*value) || digits.starts_with('+') || digits.starts_with('-')) return std::nullopt;
  return negative ? -*value : *value;
}

Val to_int(Context& c, Args a) {
  const Val& v = a[0];
  switch (v.kind()) {
    case Kind::Double: {
      const double d = v.as_double();
      if (!(d > -9223372036854775808.0 && d < 9223372036854775808.0)) return int_overflow();
      return Val::integer(static_cast<int64_t>(d));
    }
    case Kind::Uint:
      return v.as_uint() > static_cast<uint64_t>(INT64_MAX) ? int_overflow() : Val::integer(v.as_int());
    case Kind::String:
      if (const auto value = parse_int(v.text())) return Val::integer(*value);
      return conversion_error(c, v, "int");
    case Kind::Duration:
      return Val::integer(v.as_int());
    case Kind::Timestamp:
      return Val::integer(Rep::seconds(v));
    default:
      return v;
  }
}

Val to_uint(Context& c, Args a) {
  const Val& v = a[0];
  switch (v.kind()) {
    case Kind::Double: {
      const double d = v.as_double();
      if (!(d >= 0 && d < 18446744073709551616.0)) return uint_overflow();
      return Val::unsigned_integer(static_cast<uint64_t>(d));
    }
    case Kind::Int:
      return v.as_int() < 0 ? uint_overflow() : Val::unsigned_integer(v.as_uint());
    case Kind::String:
      if (const auto value = parse_number<uint64_t>(v.text())) return Val::unsigned_integer(*value);
      return conversion_error(c, v, "uint");
    default:
      return v;
  }
}

Val to_double(Context& c, Args a) {
  const Val& v = a[0];
  switch (v.kind()) {
    case Kind::Int:
      return Val::number(static_cast<double>(v.as_int()));
    case Kind::Uint:
      return Val::number(static_cast<double>(v.as_uint()));
    case Kind::String:
      if (const auto value = parse_double(v.text())) return Val::number(*value);
      return conversion_error(c, v, "double");
    default:
      return v;
  }
}

Val to_string(Context& c, Args a) {
  const Val& v = a[0];
  const auto text = [&](const std::string& s) { return Val::string(c.arena.copy(s)); };
  switch (v.kind()) {
    case Kind::Bool:
      return Val::string(v.as_bool() ? "true" : "false");
    case Kind::Int:
      return text(std::to_string(v.as_int()));
    case Kind::Uint:
      return text(std::to_string(v.as_uint()));
    case Kind::Double:
      return text(codec::go_float_text(v.as_double()));
    case Kind::Bytes:
      if (!codec::is_valid_utf8(v.text())) return Val::error("invalid UTF-8 in bytes, cannot convert to string");
      return Val::string(v.text());
    case Kind::Timestamp:
      return text(timestamp_text(Rep::seconds(v), Rep::nanos(v), Rep::zone(v)));
    case Kind::Duration:
      return text(duration_seconds_text(v.as_int()));
    case Kind::Opaque:
      return text(opaque_text(Rep::opaque(v)));
    default:
      return v;
  }
}

Val to_bytes(Context&, Args a) { return a[0].kind() == Kind::String ? Val::bytes(a[0].text()) : a[0]; }

Val to_bool(Context& c, Args a) {
  if (a[0].kind() != Kind::String) return a[0];
  const std::optional<bool> parsed = parse_bool(a[0].text());
  return parsed ? Val::boolean(*parsed) : conversion_error(c, a[0], "bool");
}

Val to_duration(Context& c, Args a) { return convert_to_duration(c.arena, a[0]); }
Val to_timestamp(Context& c, Args a) { return convert_to_timestamp(c.arena, a[0]); }

template <class Test>
Val text_test(Args a, Test test) {
  if (!a[0].is_string() || !a[1].is_string()) return no_such_overload();
  return Val::boolean(test(a[0].text(), a[1].text()));
}
Val contains(Context&, Args a) {
  return text_test(a, [](std::string_view s, std::string_view t) { return s.find(t) != std::string_view::npos; });
}
Val starts_with(Context&, Args a) {
  return text_test(a, [](std::string_view s, std::string_view t) { return s.starts_with(t); });
}
Val ends_with(Context&, Args a) {
  return text_test(a, [](std::string_view s, std::string_view t) { return s.ends_with(t); });
}
Val match(Context& c, Args a) {
  if (!a[1].is_string()) return no_such_overload();
  const re2::RE2* pattern = compiled_regex(a[1].text());
  if (pattern == nullptr) return error(c.arena, go_regexp_error(a[1].text()));
  return Val::boolean(matches(a[0].text(), *pattern));
}

}  // namespace

Val convert_to_duration(Arena& arena, const Val& v) {
  switch (v.kind()) {
    case Kind::String:
      if (const Result<int64_t> value = parse_go_duration(v.text())) return Rep::duration(*value);
      return error(arena, "type conversion error from 'string' to 'google.protobuf.Duration'");
    // Kubernetes' CEL declares duration(int) as well, and fails in the same way when it is evaluated.
    case Kind::Int:
      return error(arena, "type conversion error from 'int' to 'google.protobuf.Duration'");
    default:
      return v;
  }
}

Val convert_to_timestamp(Arena& arena, const Val& v) {
  switch (v.kind()) {
    case Kind::Int:
      if (v.as_int() < kMinUnixTime || v.as_int() > kMaxUnixTime) return Val::error("timestamp overflow");
      return Rep::timestamp(v.as_int(), 0);
    case Kind::String: {
      int64_t seconds = 0, zone = 0;
      int32_t nanos = 0;
      if (!parse_rfc3339(v.text(), seconds, nanos, zone))
        return error(arena, "type conversion error from 'string' to 'google.protobuf.Timestamp'");
      if (seconds < kMinUnixTime || seconds > kMaxUnixTime) return Val::error("timestamp overflow");
      return Rep::timestamp(seconds, nanos, zone);
    }
    default:
      return v;
  }
}

void add_standard_functions(LibraryBuilder& l) {
  // Declared for the checker; evaluated by their own nodes.
  l.global("_?_:_", "conditional", "bool, A, A -> A", nullptr);
  l.global("_&&_", "logical_and", "bool, bool -> bool", nullptr);
  l.global("_||_", "logical_or", "bool, bool -> bool", nullptr);
  l.global("_==_", "equals", "A, A -> bool", nullptr);
  l.global("_!=_", "not_equals", "A, A -> bool", nullptr);
  l.global("_[_]", "index_list", "list<A>, int -> A", nullptr);
  l.global("_[_]", "index_map", "map<A, B>, A -> B", nullptr);

  l.global("!_", "logical_not", "bool -> bool", nullptr);
  l.singleton("!_", Binding::Unary, Trait::None, logical_not);
  l.global("@not_strictly_false", "not_strictly_false", "bool -> bool", not_strictly_false);
  l.function("@not_strictly_false").overloads[0].non_strict = true;

  l.global("_+_", "add_bytes", "bytes, bytes -> bytes", nullptr);
  l.global("_+_", "add_double", "double, double -> double", nullptr);
  l.global("_+_", "add_duration_duration", "duration, duration -> duration", nullptr);
  l.global("_+_", "add_duration_timestamp", "duration, timestamp -> timestamp", nullptr);
  l.global("_+_", "add_timestamp_duration", "timestamp, duration -> timestamp", nullptr);
  l.global("_+_", "add_int64", "int, int -> int", nullptr);
  l.global("_+_", "add_list", "list<A>, list<A> -> list<A>", nullptr);
  l.global("_+_", "add_string", "string, string -> string", nullptr);
  l.global("_+_", "add_uint64", "uint, uint -> uint", nullptr);
  l.singleton("_+_", Binding::Binary, Trait::Add, add);
  l.global("_/_", "divide_double", "double, double -> double", nullptr);
  l.global("_/_", "divide_int64", "int, int -> int", nullptr);
  l.global("_/_", "divide_uint64", "uint, uint -> uint", nullptr);
  l.singleton("_/_", Binding::Binary, Trait::Divide, divide);
  l.global("_%_", "modulo_int64", "int, int -> int", nullptr);
  l.global("_%_", "modulo_uint64", "uint, uint -> uint", nullptr);
  l.singleton("_%_", Binding::Binary, Trait::Modulo, modulo);
  l.global("_*_", "multiply_double", "double, double -> double", nullptr);
  l.global("_*_", "multiply_int64", "int, int -> int", nullptr);
  l.global("_*_", "multiply_uint64", "uint, uint -> uint", nullptr);
  l.singleton("_*_", Binding::Binary, Trait::Multiply, multiply);
  l.global("-_", "negate_double", "double -> double", nullptr);
  l.global("-_", "negate_int64", "int -> int", nullptr);
  l.singleton("-_", Binding::Unary, Trait::Negate, negate);
  l.global("_-_", "subtract_double", "double, double -> double", nullptr);
  l.global("_-_", "subtract_duration_duration", "duration, duration -> duration", nullptr);
  l.global("_-_", "subtract_int64", "int, int -> int", nullptr);
  l.global("_-_", "subtract_timestamp_duration", "timestamp, duration -> timestamp", nullptr);
  l.global("_-_", "subtract_timestamp_timestamp", "timestamp, timestamp -> duration", nullptr);
  l.global("_-_", "subtract_uint64", "uint, uint -> uint", nullptr);
  l.singleton("_-_", Binding::Binary, Trait::Subtract, subtract);

  struct Relation {
    std::string_view function, prefix;
    Implementation run;
  };
  static constexpr std::pair<std::string_view, std::string_view> kOrdered[] = {
      {"bool", "bool, bool -> bool"},
      {"int64", "int, int -> bool"},
      {"int64_double", "int, double -> bool"},
      {"int64_uint64", "int, uint -> bool"},
      {"uint64", "uint, uint -> bool"},
      {"uint64_double", "uint, double -> bool"},
      {"uint64_int64", "uint, int -> bool"},
      {"double", "double, double -> bool"},
      {"double_int64", "double, int -> bool"},
      {"double_uint64", "double, uint -> bool"},
      {"string", "string, string -> bool"},
      {"bytes", "bytes, bytes -> bool"},
      {"timestamp", "timestamp, timestamp -> bool"},
      {"duration", "duration, duration -> bool"}};
  for (const Relation& relation :
       {Relation{"_<_", "less_", less}, Relation{"_<=_", "less_equals_", less_equals},
        Relation{"_>_", "greater_", greater}, Relation{"_>=_", "greater_equals_", greater_equals}}) {
    for (const auto& [suffix, signature] : kOrdered)
      l.global(relation.function, l.arena.copy(std::string(relation.prefix) + std::string(suffix)), signature, nullptr);
    l.singleton(relation.function, Binding::Binary, Trait::Compare, relation.run);
  }

  l.global("@in", "in_list", "A, list<A> -> bool", nullptr);
  l.global("@in", "in_map", "A, map<A, B> -> bool", nullptr);
  l.singleton("@in", Binding::Binary, Trait::None, in);

  for (const auto& [type, signature] : {std::pair<std::string_view, std::string_view>{"bytes", "bytes -> int"},
                                        {"list", "list<A> -> int"},
                                        {"map", "map<A, B> -> int"},
                                        {"string", "string -> int"}}) {
    l.global("size", l.arena.copy("size_" + std::string(type)), signature, nullptr);
    l.member("size", l.arena.copy(std::string(type) + "_size"), signature, nullptr);
  }
  l.singleton("size", Binding::Unary, Trait::Size, size);

  l.global("type", "type", "A -> typeof<A>", nullptr);
  l.singleton("type", Binding::Unary, Trait::None, type_of);
  l.global("dyn", "to_dyn", "A -> dyn", nullptr);
  l.singleton("dyn", Binding::Unary, Trait::None, identity);

  l.global("bool", "bool_to_bool", "bool -> bool", to_bool);
  l.global("bool", "string_to_bool", "string -> bool", to_bool);
  l.global("bytes", "bytes_to_bytes", "bytes -> bytes", to_bytes);
  l.global("bytes", "string_to_bytes", "string -> bytes", to_bytes);
  l.global("double", "double_to_double", "double -> double", to_double);
  l.global("double", "int64_to_double", "int -> double", to_double);
  l.global("double", "string_to_double", "string -> double", to_double);
  l.global("double", "uint64_to_double", "uint -> double", to_double);
  l.global("duration", "duration_to_duration", "duration -> duration", to_duration);
  l.global("duration", "int64_to_duration", "int -> duration", to_duration);
  l.global("duration", "string_to_duration", "string -> duration", to_duration);
  l.global("int", "int64_to_int64", "int -> int", to_int);
  l.global("int", "double_to_int64", "double -> int", to_int);
  l.global("int", "duration_to_int64", "duration -> int", to_int);
  l.global("int", "string_to_int64", "string -> int", to_int);
  l.global("int", "timestamp_to_int64", "timestamp -> int", to_int);
  l.global("int", "uint64_to_int64", "uint -> int", to_int);
  l.global("string", "string_to_string", "string -> string", to_string);
  l.global("string", "bool_to_string", "bool -> string", to_string);
  l.global("string", "bytes_to_string", "bytes -> string", to_string);
  l.global("string", "double_to_string", "double -> string", to_string);
  l.global("string", "duration_to_string", "duration -> string", to_string);
  l.global("string", "int64_to_string", "int -> string", to_string);
  l.global("string", "timestamp_to_string", "timestamp -> string", to_string);
  l.global("string", "uint64_to_string", "uint -> string", to_string);
  l.global("timestamp", "timestamp_to_timestamp", "timestamp -> timestamp", to_timestamp);
  l.global("timestamp", "int64_to_timestamp", "int -> timestamp", to_timestamp);
  l.global("timestamp", "string_to_timestamp", "string -> timestamp", to_timestamp);
  l.global("uint", "uint64_to_uint64", "uint -> uint", to_uint);
  l.global("uint", "double_to_uint64", "double -> uint", to_uint);
  l.global("uint", "int64_to_uint64", "int -> uint", to_uint);
  l.global("uint", "string_to_uint64", "string -> uint", to_uint);

  l.member("contains", "contains_string", "string, string -> bool", contains);
  l.member("endsWith", "ends_with_string", "string, string -> bool", ends_with);
  l.member("startsWith", "starts_with_string", "string, string -> bool", starts_with);
  for (const std::string_view name : {"contains", "endsWith", "startsWith"}) l.function(name).unguarded = true;
  l.global("matches", "matches", "string, string -> bool", nullptr);
  l.member("matches", "matches_string", "string, string -> bool", nullptr);
  l.singleton("matches", Binding::Binary, Trait::Match, match);
}

}  // namespace holdfast::cel
