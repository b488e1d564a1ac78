#include "codec/yaml_scalar.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "base/ascii.h"
#include "codec/text.h"

namespace holdfast::codec {
namespace {

using Kind = YamlScalar::Kind;

template <class... Words>
bool is_one_of(std::string_view text, const Words&... words) {
  return ((text == std::string_view(words, sizeof(words) - 1)) || ...);
}

// Words that have a fixed meaning regardless of the tag.
bool resolve_word(std::string_view text, YamlScalar& scalar) {
  constexpr size_t kLongestWord = 5;
  if (text.size() > kLongestWord) return false;
  if (is_one_of(text, "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")) {
    scalar = {.kind = Kind::Bool, .boolean = true};
  } else if (is_one_of(text, "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")) {
    scalar = {.kind = Kind::Bool, .boolean = false};
  } else if (is_one_of(text, "", "~", "null", "Null", "NULL")) {
    scalar = {.kind = Kind::Null};
  } else if (is_one_of(text, ".nan", ".NaN", ".NAN")) {
    scalar = {.kind = Kind::Float, .number = NAN};
  } else if (is_one_of(text, ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF")) {
    scalar = {.kind = Kind::Float, .number = INFINITY};
  } else if (is_one_of(text, "-.inf", "-.Inf", "-.INF")) {
    scalar = {.kind = Kind::Float, .number = -INFINITY};
  } else {
    return false;
  }
  return true;
}

// strconv.ParseInt and ParseUint: the whole text must be digits of the base.
bool parse_magnitude(std::string_view digits, int base, uint64_t& magnitude) {
  if (digits.empty()) return false;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  return error == std::errc() && end == digits.data() + digits.size();
}

bool make_integer(bool negative, bool has_sign, uint64_t magnitude, YamlScalar& scalar) {
  constexpr auto kMost = static_cast<uint64_t>(INT64_MAX);
  if (negative ? magnitude <= kMost + 1 : magnitude <= kMost) {
    scalar = {.kind = Kind::Int, .integer = static_cast<int64_t>(negative ? 0 - magnitude : magnitude)};
    return true;
  }
  if (has_sign) return false;
  scalar = {.kind = Kind::Uint, .unsigned_integer = magnitude};
  return true;
}

bool resolve_integer(std::string_view text, YamlScalar& scalar) {
  std::string_view digits = text;
  const bool has_sign = !digits.empty() && (digits[0] == '-' || digits[0] == '+');
  const bool negative = has_sign && digits[0] == '-';
  if (has_sign) digits.remove_prefix(1);
  int base = 10;
  if (digits.size() > 1 && digits[0] == '0') {
    const char mark = static_cast<char>(digits[1] | 0x20);
    base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
    digits.remove_prefix(base != 8 || mark == 'o' ? 2 : 1);
  }
  uint64_t magnitude = 0;
  if (parse_magnitude(digits, base, magnitude) && make_integer(negative, has_sign, magnitude, scalar)) return true;
  return false;
}

// go-yaml parses the digits after 0b a second time on their own, where they may have a sign.
bool resolve_binary(std::string_view text, YamlScalar& scalar) {
  if (!text.starts_with("0b")) return false;
  text.remove_prefix(2);
  const bool has_sign = !text.empty() && (text[0] == '-' || text[0] == '+');
  const bool negative = has_sign && text[0] == '-';
  if (has_sign) text.remove_prefix(1);
  uint64_t magnitude = 0;
  return parse_magnitude(text, 2, magnitude) && make_integer(negative, has_sign, magnitude, scalar);
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool is_float_text(std::string_view text) {
  size_t at = 0;
  const auto digits = [&] {
    const size_t start = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at - start;
  };
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  const size_t whole = digits();
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (digits() == 0 && whole == 0) return false;
  } else if (whole == 0) {
    return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

bool resolve_float(std::string_view text, YamlScalar& scalar) {
  if (!is_float_text(text)) return false;
  const std::optional<double> number = parse_float(text);
  if (!number) return false;
  scalar = {.kind = Kind::Float, .number = *number};
  return true;
}

// One or two digits within a range.
bool take_number(std::string_view text, size_t& at, int least, int most, int& number) {
  const size_t start = at;
  number = 0;
  while (at < text.size() && is_digit(text[at]) && at - start < 2) number = number * 10 + (text[at++] - '0');
  return at > start && number >= least && number <= most;
}

// The date formats supported by go-yaml: y-m-d, y-m-dTh:m:s with a zone, y-m-d h:m:s without.
bool is_timestamp(std::string_view text) {
  if (text.size() < 5 || text[4] != '-') return false;
  int year = 0;
  for (size_t i = 0; i < 4; ++i) {
    if (!is_digit(text[i])) return false;
    year = year * 10 + (text[i] - '0');
  }
  size_t at = 5;
  int month = 0;
  int day = 0;
  if (!take_number(text, at, 1, 12, month) || at >= text.size() || text[at++] != '-') return false;
  if (!take_number(text, at, 1, 31, day)) return false;
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  if (day > kDays[month - 1] + (month == 2 && leap ? 1 : 0)) return false;
  if (at == text.size()) return true;
  const char separator = text[at++];
  if (separator != 'T' && separator != 't' && separator != ' ') return false;
  int ignored = 0;
  // Hours may have one or two digits; Go reads a single digit only if the next character is not a digit.
  if (!take_number(text, at, 0, 23, ignored) || at >= text.size() || text[at++] != ':') return false;
  if (!take_number(text, at, 0, 59, ignored) || at >= text.size() || text[at++] != ':') return false;
  if (!take_number(text, at, 0, 59, ignored)) return false;
  if (at + 1 < text.size() && (text[at] == '.' || text[at] == ',') && is_digit(text[at + 1])) {
    ++at;
    while (at < text.size() && is_digit(text[at])) ++at;
  }
  if (separator == ' ') return at == text.size();
  if (at < text.size() && text[at] == 'Z') return at + 1 == text.size();
  if (text.size() - at != 6 || (text[at] != '+' && text[at] != '-') || text[at + 3] != ':') return false;
  ++at;
  if (!take_number(text, at, 0, 24, ignored) || at != text.size() - 3) return false;
  ++at;
  return take_number(text, at, 0, 60, ignored) && at == text.size();
}

std::string without_underscores(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c != '_') plain += c;
  }
  return plain;
}

YamlScalar resolve(std::string_view text, bool timestamps) {
  YamlScalar scalar;
  if (resolve_word(text, scalar)) return scalar;
  const char first = text[0];
  if (first == '.') {
    resolve_float(text, scalar);
    return scalar;
  }
  if (!is_digit(first) && first != '+' && first != '-') return scalar;
  if (timestamps && is_timestamp(text)) return {.kind = Kind::Timestamp};
  std::string plain_text;
  std::string_view plain = text;
  if (text.find('_') != std::string_view::npos) plain = plain_text = without_underscores(text);
  if (resolve_integer(plain, scalar) || resolve_float(plain, scalar) || resolve_binary(plain, scalar)) return scalar;
  return {};
}

std::string_view tag_of(Kind kind) {
  switch (kind) {
    case Kind::Null:
      return "!!null";
    case Kind::Bool:
      return "!!bool";
    case Kind::Int:
    case Kind::Uint:
      return "!!int";
    case Kind::Float:
      return "!!float";
    case Kind::Timestamp:
      return "!!timestamp";
    case Kind::Merge:
      return "!!merge";
    case Kind::String:
      return "!!str";
  }
  return "";
}

}  // namespace

YamlScalar resolve_yaml(std::string_view text) { return resolve(text, true); }

bool resolve_yaml(std::string_view tag, std::string_view text, YamlScalar& scalar, std::string& message) {
  const std::string wanted = short_yaml_tag(tag);
  if (!is_one_of(wanted, "!!bool", "!!int", "!!float", "!!null", "!!timestamp")) {
    scalar = {.kind = Kind::String};
    return true;
  }
  scalar = resolve(text, wanted == "!!timestamp");
  if (tag_of(scalar.kind) == wanted) return true;
  if (wanted == "!!float" && scalar.kind == Kind::Int) {
    scalar = {.kind = Kind::Float, .number = static_cast<double>(scalar.integer)};
    return true;
  }
  message = "cannot decode " + std::string(tag_of(scalar.kind)) + " `" + std::string(text) + "` as a " + wanted;
  return false;
}

std::string short_yaml_tag(std::string_view tag) {
  if (!tag.starts_with(kYamlTagPrefix)) return std::string(tag);
  return "!!" + std::string(tag.substr(kYamlTagPrefix.size()));
}

bool is_yaml_base60(std::string_view text) {
  size_t at = 0;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  if (at >= text.size() || !is_digit(text[at])) return false;
  while (at < text.size() && (is_digit(text[at]) || text[at] == '_')) ++at;
  if (at >= text.size() || text[at] != ':') return false;
  while (at < text.size() && text[at] == ':') {
    ++at;
    if (at + 1 < text.size() && text[at] >= '0' && text[at] <= '5' && is_digit(text[at + 1])) {
      at += 2;
    } else if (at < text.size() && is_digit(text[at])) {
      ++at;
    } else {
      return false;
    }
  }
  if (at < text.size() && text[at] == '.') {
    ++at;
    while (at < text.size() && (is_digit(text[at]) || text[at] == '_')) ++at;
  }
  return at == text.size();
}

}  // namespace holdfast::codec
