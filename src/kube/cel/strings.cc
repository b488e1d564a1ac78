// The strings extension (version 2) and Kubernetes' regular expression functions.
#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <list>
#include <span>
#include <vector>

#include "base/ascii.h"
#include "base/go_regexp.h"
#include "base/text.h"
#include "cel/functions.h"
#include "codec/codec.h"

namespace holdfast::cel {
namespace {

using Args = std::span<const Val>;
using Runes = std::vector<uint32_t>;

Runes runes_of(std::string_view text) {
  Runes out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const Rune rune = decode_rune(text, i);
    out.push_back(rune.value);
    i += rune.length;
  }
  return out;
}
Val text_of(Context& c, std::string_view text) { return Val::string(c.arena.copy(text)); }
Val text_of(Context& c, std::span<const uint32_t> runes) {
  std::string out;
  for (const uint32_t rune : runes) append_utf8(out, rune);
  return text_of(c, out);
}
Val out_of_range(Context& c, int64_t index) { return error(c.arena, "index out of range: " + std::to_string(index)); }

// The first place of `part`, which is not empty, in linear time; text.size() if it is not there. Calls are priced by
// the text alone, and looking for a long part at each place of a long text takes minutes.
size_t find_runes(std::span<const uint32_t> text, std::span<const uint32_t> part) {
  // `part` continues after fallback[i] of its runes if that is how its first i end (Knuth, Morris and Pratt).
  std::vector<uint32_t> fallback(part.size() + 1);
  for (size_t i = 1, same = 0; i < part.size(); ++i) {
    while (same > 0 && part[same] != part[i]) same = fallback[same];
    if (part[same] == part[i]) ++same;
    fallback[i + 1] = static_cast<uint32_t>(same);
  }
  for (size_t i = 0, same = 0; i < text.size(); ++i) {
    while (same > 0 && part[same] != text[i]) same = fallback[same];
    if (part[same] == text[i]) ++same;
    if (same == part.size()) return i + 1 - same;
  }
  return text.size();
}

// The same for texts as bytes; npos if it is not there.
size_t find_text(std::string_view text, std::string_view part, size_t from) {
  if (text.size() - from < part.size()) return std::string_view::npos;
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found == nullptr ? std::string_view::npos : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

Val char_at(Context& c, Args a) {
  const Runes runes = runes_of(a[0].text());
  const int64_t i = a[1].as_int();
  if (i < 0 || i > static_cast<int64_t>(runes.size())) return out_of_range(c, i);
  if (i == static_cast<int64_t>(runes.size())) return Val::string("");
  return text_of(c, std::span(runes).subspan(static_cast<size_t>(i), 1));
}

Val index_of(Context& c, Args a) {
  const int64_t offset = a.size() == 3 ? a[2].as_int() : 0;
  if (a[1].text().empty()) return Val::integer(offset);
  if (offset < 0) return out_of_range(c, offset);
  const Runes text = runes_of(a[0].text()), part = runes_of(a[1].text());
  if (offset >= static_cast<int64_t>(text.size())) return Val::integer(-1);
  const std::span<const uint32_t> rest = std::span(text).subspan(static_cast<size_t>(offset));
  const size_t found = find_runes(rest, part);
  return Val::integer(found == rest.size() ? -1 : offset + static_cast<int64_t>(found));
}

Val last_index_of(Context& c, Args a) {
  const Runes text = runes_of(a[0].text()), part = runes_of(a[1].text());
  const auto length = static_cast<int64_t>(text.size());
  int64_t offset = length - 1;
  if (a.size() == 3) {
    offset = a[2].as_int();
    if (part.empty()) return Val::integer(offset);
  } else {
    if (part.empty()) return Val::integer(length);
    if (a[0].text().size() < a[1].text().size()) return Val::integer(-1);
  }
  if (offset < 0) return out_of_range(c, offset);
  if (offset >= length) return Val::integer(-1);
  offset = std::min(offset, length - static_cast<int64_t>(part.size()));
  if (offset < 0) return Val::integer(-1);
  // The last place is the first one from the end.
  const auto end = offset + static_cast<int64_t>(part.size());
  const Runes backwards(text.rend() - end, text.rend()), part_backwards(part.rbegin(), part.rend());
  const size_t found = find_runes(backwards, part_backwards);
  return Val::integer(found == backwards.size() ? -1 : offset - static_cast<int64_t>(found));
}

Val with_case(Context& c, Args a, char low, char high, int shift) {
  std::string out;
  for (const char ch :
       codec::is_valid_utf8(a[0].text()) ? std::string(a[0].text()) : codec::replace_invalid_utf8(a[0].text()))
    out += ch >= low && ch <= high ? static_cast<char>(ch + shift) : ch;
  return text_of(c, out);
}
Val lower_ascii(Context& c, Args a) { return with_case(c, a, 'A', 'Z', 32); }
Val upper_ascii(Context& c, Args a) { return with_case(c, a, 'a', 'z', -32); }

Val replace(Context& c, Args a) {
  const std::string_view text = a[0].text(), old = a[1].text(), with = a[2].text();
  int64_t left = a.size() == 4 ? a[3].as_int() : -1;
  if (left == 0 || old == with) return a[0];
  std::string out;
  size_t at = 0;
  if (old.empty()) {
    for (; left != 0; --left) {
      if (!c.admits(out.size() + with.size())) return a[0];
      out += with;
      if (at >= text.size()) break;
      const size_t length = decode_rune(text, at).length;
      out += text.substr(at, length);
      at += length;
    }
  } else {
    for (; left != 0; --left) {
      const size_t found = find_text(text, old, at);
      if (found == std::string_view::npos) break;
      out += text.substr(at, found - at);
      if (!c.admits(out.size() + with.size())) return a[0];
      out += with;
      at = found + old.size();
    }
  }
  out += text.substr(std::min(at, text.size()));
  return text_of(c, out);
}

Val split(Context& c, Args a) {
  const std::string_view text = a[0].text(), separator = a[1].text();
  int64_t limit = a.size() == 3 ? a[2].as_int() : -1;
  std::vector<Val> parts;
  if (limit == 0) return list_of(c.arena, parts);
  size_t at = 0;
  if (separator.empty()) {
    while (at < text.size()) {
      if (limit > 0 && static_cast<int64_t>(parts.size()) == limit - 1) {
        parts.push_back(Val::string(text.substr(at)));
        break;
      }
      const size_t length = decode_rune(text, at).length;
      parts.push_back(Val::string(text.substr(at, length)));
      at += length;
    }
    return list_of(c.arena, parts);
  }
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit - 1) {
    const size_t found = find_text(text, separator, at);
    if (found == std::string_view::npos) break;
    parts.push_back(Val::string(text.substr(at, found - at)));
    at = found + separator.size();
  }
  parts.push_back(Val::string(text.substr(at)));
  return list_of(c.arena, parts);
}

Val substring(Context& c, Args a) {
  const Runes runes = runes_of(a[0].text());
  const auto length = static_cast<int64_t>(runes.size());
  const int64_t start = a[1].as_int(), end = a.size() == 3 ? a[2].as_int() : length;
  if (a.size() == 3 && start > end)
    return error(c.arena, "invalid substring range. start: " + std::to_string(start) + ", end: " + std::to_string(end));
  if (start < 0 || start > length) return out_of_range(c, start);
  if (end < 0 || end > length) return out_of_range(c, end);
  return text_of(c, std::span(runes).subspan(static_cast<size_t>(start), static_cast<size_t>(end - start)));
}

bool is_space(uint32_t rune) {
  return (rune >= 9 && rune <= 13) || rune == ' ' || rune == 0x85 || rune == 0xa0 || rune == 0x1680 ||
         (rune >= 0x2000 && rune <= 0x200a) || rune == 0x2028 || rune == 0x2029 || rune == 0x202f || rune == 0x205f ||
         rune == 0x3000;
}

Val trim(Context&, Args a) {
  const std::string_view text = a[0].text();
  size_t start = 0, end = 0;
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    const Rune rune = decode_rune(text, i);
    if (!is_space(rune.value)) {
      if (!inside) start = i;
      inside = true;
      end = i + rune.length;
    }
    i += rune.length;
  }
  return Val::string(inside ? text.substr(start, end - start) : std::string_view{});
}

Val join(Context& c, Args a) {
  std::string out;
  const uint64_t count = list_size(a[0]);
  for (uint64_t i = 0; i < count; ++i) {
    const Val item = list_at(c.arena, a[0], i);
    if (!item.is_string()) return error(c.arena, "join: invalid input: " + go_text(item));
    if (i > 0 && a.size() == 2) out += a[1].text();
    out += item.text();
    if (out.size() / 10 > c.limit) break;  // The cost already exceeds the limit.
  }
  return text_of(c, out);
}

Val quote(Context& c, Args a) {
  std::string out = "\"";
  const std::string_view text = a[0].text();
  for (size_t i = 0; i < text.size();) {
    const Rune rune = decode_rune(text, i);
    i += rune.length;
    switch (rune.value) {
      case '\a':
        out += "\\a";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\v':
        out += "\\v";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '"':
        out += "\\\"";
        break;
      default:
        append_utf8(out, rune.value);
    }
  }
  return text_of(c, out + "\"");
}

Val format(Context& c, Args a) {
  std::string problem;
  const std::string text = format_text(c, a[0].text(), a[1], problem);
  return problem.empty() ? text_of(c, text) : error(c.arena, problem);
}

// --- Regular expressions ---

struct CachedRegex {
  std::string pattern;
  std::unique_ptr<const RE2> compiled;
};

}  // namespace

const re2::RE2* compiled_regex(std::string_view pattern) {
  // Most patterns are literals, compiled with the program; this cache is for computed ones.
  constexpr size_t kKept = 32;
  thread_local std::list<CachedRegex> cache;
  for (auto it = cache.begin(); it != cache.end(); ++it) {
    if (it->pattern == pattern) {
      cache.splice(cache.begin(), cache, it);
      return cache.front().compiled->ok() ? cache.front().compiled.get() : nullptr;
    }
  }
  RE2::Options options(RE2::Quiet);
  cache.push_front(
      {std::string(pattern), std::make_unique<const RE2>(re2::StringPiece(pattern.data(), pattern.size()), options)});
  if (cache.size() > kKept) cache.pop_back();
  return cache.front().compiled->ok() ? cache.front().compiled.get() : nullptr;
}

bool matches(std::string_view text, const re2::RE2& pattern) {
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), pattern);
}

Val find_first(Context&, std::string_view text, const re2::RE2& pattern) {
  re2::StringPiece found;
  const re2::StringPiece input(text.data(), text.size());
  if (!pattern.Match(input, 0, input.size(), RE2::UNANCHORED, &found, 1)) return Val::string("");
  return Val::string({found.data(), found.size()});
}

Val find_all(Context& c, std::string_view text, const re2::RE2& pattern, int64_t limit) {
  std::vector<Val> found;
  const re2::StringPiece input(text.data(), text.size());
  size_t at = 0;
  size_t previous_end = std::string_view::npos;
  while (at <= text.size() && (limit < 0 || static_cast<int64_t>(found.size()) < limit)) {
    re2::StringPiece match;
    if (!pattern.Match(input, at, input.size(), RE2::UNANCHORED, &match, 1)) break;
    const size_t start = static_cast<size_t>(match.data() - text.data()), end = start + match.size();
    bool accept = true;
    if (end == at) {
      // An empty match directly after a match does not count.
      if (start == previous_end) accept = false;
      at += at < text.size() ? decode_rune(text, at).length : 1;
    } else {
      at = end;
    }
    previous_end = end;
    if (accept) found.push_back(Val::string(text.substr(start, end - start)));
  }
  return list_of(c.arena, found);
}

namespace {

Val find(Context& c, Args a) {
  const re2::RE2* pattern = compiled_regex(a[1].text());
  if (pattern == nullptr) return error(c.arena, "Illegal regex: " + go_regexp_error(a[1].text()));
  return find_first(c, a[0].text(), *pattern);
}
Val find_all_args(Context& c, Args a) {
  const re2::RE2* pattern = compiled_regex(a[1].text());
  if (pattern == nullptr) return error(c.arena, "Illegal regex: " + go_regexp_error(a[1].text()));
  return find_all(c, a[0].text(), *pattern, a.size() == 3 ? a[2].as_int() : -1);
}

}  // namespace

void add_string_functions(LibraryBuilder& l) {
  l.member("charAt", "string_char_at_int", "string, int -> string", char_at);
  l.member("indexOf", "string_index_of_string", "string, string -> int", index_of);
  l.member("indexOf", "string_index_of_string_int", "string, string, int -> int", index_of);
  l.member("lastIndexOf", "string_last_index_of_string", "string, string -> int", last_index_of);
  l.member("lastIndexOf", "string_last_index_of_string_int", "string, string, int -> int", last_index_of);
  l.member("lowerAscii", "string_lower_ascii", "string -> string", lower_ascii);
  l.member("replace", "string_replace_string_string", "string, string, string -> string", replace);
  l.member("replace", "string_replace_string_string_int", "string, string, string, int -> string", replace);
  l.member("split", "string_split_string", "string, string -> list<string>", split);
  l.member("split", "string_split_string_int", "string, string, int -> list<string>", split);
  l.member("substring", "string_substring_int", "string, int -> string", substring);
  l.member("substring", "string_substring_int_int", "string, int, int -> string", substring);
  l.member("trim", "string_trim", "string -> string", trim);
  l.member("upperAscii", "string_upper_ascii", "string -> string", upper_ascii);
  l.member("format", "string_format", "string, list<dyn> -> string", format, true);
  l.global("strings.quote", "strings_quote", "string -> string", quote);
  l.member("join", "list_join", "list<string> -> string", join);
  l.member("join", "list_join_string", "list<string>, string -> string", join);
  l.member("find", "string_find_string", "string, string -> string", find);
  l.member("findAll", "string_find_all_string", "string, string -> list<string>", find_all_args);
  l.member("findAll", "string_find_all_string_int", "string, string, int -> list<string>", find_all_args);
}

// --- format() -------------------------------------------------------------------------------------------------------

namespace {

std::string printed(const char* format, int precision, double d) {
  char buffer[512];
  const int length = snprintf(buffer, sizeof buffer, format, precision, d);
  if (length < static_cast<int>(sizeof buffer)) return buffer;
  std::string out(static_cast<size_t>(length) + 1, '\0');
  snprintf(out.data(), out.size(), format, precision, d);
  out.pop_back();
  return out;
}

std::string grouped(std::string digits) {
  const size_t start = digits.starts_with('-') ? 1 : 0;
  size_t end = digits.find('.');
  if (end == std::string::npos) end = digits.size();
  for (size_t i = end; i > start + 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

// Formats numbers like golang.org/x/text in American English.
std::string fixed_text(double d, int precision) {
  if (d == 0) d = 0;  // Drops the sign of negative zero.
  if (std::isnan(d)) return "NaN";
  if (std::isinf(d)) return d < 0 ? "-∞" : "∞";
  return grouped(printed("%.*f", precision, d));
}
// Upstream uses the precision as a width.
std::string scientific_text(double d, int width) {
  if (d == 0) d = 0;
  std::string out;
  if (std::isnan(d)) {
    out = "NaN";
  } else if (std::isinf(d)) {
    out = d < 0 ? "-∞" : "∞";
  } else {
    const std::string plain = printed("%.*e", 6, d);
    const size_t e = plain.find('e');
    const int exponent = std::atoi(plain.c_str() + e + 1);
    static constexpr std::string_view kRaised[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    out = plain.substr(0, e) + "×10" + (exponent < 0 ? "⁻" : "");
    std::string digits = std::to_string(std::abs(exponent));
    if (digits.size() < 2) digits = "0" + digits;
    for (const char c : digits) out += kRaised[c - '0'];
  }
  const uint64_t length = code_points(out);
  return length < static_cast<uint64_t>(width) ? std::string(static_cast<size_t>(width) - length, ' ') + out : out;
}

class Formatter {
 public:
  Formatter(Context& context, std::string& problem) : context_(context), arena_(context.arena), problem_(problem) {}

  std::string run(std::string_view format, const Val& args) {
    std::string out;
    uint64_t next = 0;
    const uint64_t count = list_size(args);
    for (size_t i = 0; i < format.size();) {
      if (format[i] != '%') {
        out += format[i++];
        continue;
      }
      if (i + 1 < format.size() && format[i + 1] == '%') {
        out += '%';
        i += 2;
        continue;
      }
      if (next >= count) return fail("index " + std::to_string(next) + " out of range");
      if (i + 1 >= format.size()) return fail("unexpected end of string");
      out += clause(format, i, list_at(arena_, args, next++));
      if (!problem_.empty() || !context_.admits(out.size())) return {};
    }
    return out;
  }

 private:
  std::string fail(std::string message) {
    if (problem_.empty()) problem_ = std::move(message);
    return {};
  }
  std::string fail_format(std::string message) { return fail("error during formatting: " + std::move(message)); }

  std::string clause(std::string_view format, size_t& i, const Val& v) {
    ++i;
    std::optional<int> precision;
    if (format[i] == '.') {
      size_t end = ++i;
      while (end < format.size() && is_digit(format[end])) ++end;
      if (end >= format.size())
        return fail(
            "could not parse formatting clause: error while parsing precision: could not find end of precision "
            "specifier");
      const std::string digits(format.substr(i, end - i));
      if (digits.empty() || digits.size() > 9)
        return fail(
            "could not parse formatting clause: error while parsing precision: error while converting precision "
            "to integer: strconv.Atoi: parsing " +
            go_quote(digits) + (digits.empty() ? ": invalid syntax" : ": value out of range"));
      precision = std::stoi(digits);
      if (!context_.admits(static_cast<uint64_t>(*precision))) return {};
      i = end;
    }
    const char verb = format[i++];
    switch (verb) {
      case 's':
        return text(v);
      case 'd':
        return decimal(v);
      case 'f':
        return fixed(v, precision.value_or(6));
      case 'e':
        return scientific(v, precision.value_or(6));
      case 'b':
        return binary(v);
      case 'x':
      case 'X':
        return hex(v, verb == 'X');
      case 'o':
        return octal(v);
      default: {
        std::string shown;
        append_utf8(shown, static_cast<unsigned char>(verb));
        return fail("could not parse formatting clause: unrecognized formatting clause \"" + shown + "\"");
      }
    }
  }

  std::string text(const Val& v) {
    switch (v.kind()) {
      case Kind::List:
        return list(v);
      case Kind::Map:
        return map(v);
      case Kind::Null:
        return "null";
      case Kind::Int:
        return std::to_string(v.as_int());
      case Kind::Uint:
        return std::to_string(v.as_uint());
      case Kind::Double:
        return codec::go_float_text(v.as_double());
      case Kind::Bool:
        return v.as_bool() ? "true" : "false";
      case Kind::String:
      case Kind::Type:
        return std::string(v.text());
      case Kind::Timestamp:
        return timestamp_text(Rep::seconds(v), Rep::nanos(v), Rep::zone(v));
      case Kind::Duration:
        return duration_seconds_text(v.as_int());
      case Kind::Bytes:
        if (!codec::is_valid_utf8(v.text()))
          return fail_format(
              "could not convert argument \"invalid UTF-8 in bytes, cannot convert to string\" to string");
        return std::string(v.text());
      default:
        return fail_format(
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
            "and "
            "timestamps, was given " +
            std::string(v.type_name()));
    }
  }

  // An item of a list or a value of a map.
  std::string nested(const Val& v) {
    switch (v.kind()) {
      case Kind::String:
        return go_quote(v.text());
      case Kind::Bytes: {
        const std::string plain = text(v);
        return problem_.empty() ? "b" + go_quote(plain) : std::string();
      }
      case Kind::Timestamp:
        return "timestamp(" + go_quote(text(v)) + ")";
      case Kind::Duration:
        return "duration(" + go_quote(text(v)) + ")";
      case Kind::Double: {
        const double d = v.as_double();
        if (std::isnan(d)) return "\"NaN\"";
        if (std::isinf(d)) return d < 0 ? "\"-Inf\"" : "\"+Inf\"";
        return printed("%.*f", 6, d);
      }
      case Kind::Int:
      case Kind::Uint:
      case Kind::Bool:
      case Kind::Null:
      case Kind::Type:
      case Kind::List:
      case Kind::Map:
        return text(v);
      default:
        return fail_format("no formatting function for " + std::string(v.type_name()));
    }
  }
  std::string list(const Val& v) {
    std::string out = "[";
    const uint64_t count = list_size(v);
    for (uint64_t i = 0; i < count && problem_.empty(); ++i) out += (i > 0 ? ", " : "") + nested(list_at(arena_, v, i));
    return out + "]";
  }
  std::string map(const Val& v) {
    std::vector<std::pair<std::string, std::string>> pairs;
    v.for_each_entry(arena_, [&](const Val& key, const Val& value) {
      if (!problem_.empty()) return;
      switch (key.kind()) {
        case Kind::String:
        case Kind::Bool:
        case Kind::Int:
        case Kind::Uint:
          break;
        default:
          fail_format("no formatting function for map key of type " + std::string(key.type_name()));
          return;
      }
      std::string k = nested(key);
      pairs.emplace_back(std::move(k), nested(value));
    });
    std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::string out = "{";
    for (size_t i = 0; i < pairs.size(); ++i) out += (i > 0 ? ", " : "") + pairs[i].first + ":" + pairs[i].second;
    return out + "}";
  }

  std::string decimal(const Val& v) {
    if (v.kind() == Kind::Int || v.kind() == Kind::Uint) return text(v);
    return fail_format("decimal clause can only be used on integers, was given " + std::string(v.type_name()));
  }
  // Doubles, and the strings that represent non-finite numbers.
  std::optional<double> floating(const Val& v) {
    if (v.kind() == Kind::Double) return v.as_double();
    if (v.is_string() && v.text() == "NaN") return std::nan("");
    if (v.is_string() && v.text() == "Infinity") return HUGE_VAL;
    if (v.is_string() && v.text() == "-Infinity") return -HUGE_VAL;
    return std::nullopt;
  }
  std::string fixed(const Val& v, int precision) {
    if (const auto d = floating(v)) return fixed_text(*d, precision);
    return fail_format("fixed-point clause can only be used on doubles, was given " + std::string(v.type_name()));
  }
  std::string scientific(const Val& v, int precision) {
    if (const auto d = floating(v)) return scientific_text(*d, precision);
    return fail_format("scientific clause can only be used on doubles, was given " + std::string(v.type_name()));
  }
  static std::string in_base(const Val& v, unsigned base, bool upper = false) {
    const bool negative = v.kind() == Kind::Int && v.as_int() < 0;
    uint64_t rest = negative ? 0 - v.as_uint() : v.as_uint();
    std::string out;
    do {
      out += (upper ? "0123456789ABCDEF" : "0123456789abcdef")[rest % base];
      rest /= base;
    } while (rest != 0);
    if (negative) out += '-';
    std::reverse(out.begin(), out.end());
    return out;
  }
  std::string binary(const Val& v) {
    if (v.is_bool()) return v.as_bool() ? "1" : "0";
    if (v.kind() == Kind::Int || v.kind() == Kind::Uint) return in_base(v, 2);
    return fail_format("only integers and bools can be formatted as binary, was given " + std::string(v.type_name()));
  }
  std::string octal(const Val& v) {
    if (v.kind() == Kind::Int || v.kind() == Kind::Uint) return in_base(v, 8);
    return fail_format("octal clause can only be used on integers, was given " + std::string(v.type_name()));
  }
  std::string hex(const Val& v, bool upper) {
    if (v.kind() == Kind::Int || v.kind() == Kind::Uint) return in_base(v, 16, upper);
    if (v.kind() == Kind::String || v.kind() == Kind::Bytes) {
      std::string out;
      for (const char c : v.text()) {
        const std::string_view digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
        out += digits[static_cast<unsigned char>(c) >> 4];
        out += digits[c & 15];
      }
      return out;
    }
    return fail_format("only integers, byte buffers, and strings can be formatted as hex, was given " +
                       std::string(v.type_name()));
  }

  Context& context_;
  Arena& arena_;
  std::string& problem_;
};

}  // namespace

std::string format_text(Context& context, std::string_view format, const Val& args, std::string& problem) {
  return Formatter(context, problem).run(format, args);
}

}  // namespace holdfast::cel
