#include "codec/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/ascii.h"
#include "base/clock.h"
#include "base/text.h"

namespace holdfast::codec {
namespace {

// Shortest decimal digits of a positive finite number: 0.d1d2d3... times 10^point.
struct Digits {
  char text[20];
  int count = 0;
  int point = 0;
};

template <class Float>
Digits shortest_digits(Float number) {
  char buffer[32];
  const char* const end = std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::scientific).ptr;
  Digits digits;
  const char* p = buffer;
  for (; *p != 'e'; ++p) {
    if (*p != '.') digits.text[digits.count++] = *p;
  }
  int exponent = 0;
  const bool negative = p[1] == '-';
  std::from_chars(p + 2, end, exponent);
  digits.point = (negative ? -exponent : exponent) + 1;
  while (digits.count > 1 && digits.text[digits.count - 1] == '0') --digits.count;
  return digits;
}

char* copy_to(char* to, const char* from, int count) {
  std::memcpy(to, from, static_cast<size_t>(count));
  return to + count;
}

char* fill_zeros(char* to, int count) {
  std::memset(to, '0', static_cast<size_t>(count));
  return to + count;
}

char* write_digits(const Digits& digits, FloatText form, char* to) {
  const int exponent = digits.point - 1;
  const bool go = form == FloatText::Go;
  if (exponent < (go ? -4 : -6) || exponent >= (go ? 6 : 21)) {
    *to++ = digits.text[0];
    if (digits.count > 1) {
      *to++ = '.';
      to = copy_to(to, digits.text + 1, digits.count - 1);
    }
    *to++ = 'e';
    *to++ = exponent < 0 ? '-' : '+';
    const int magnitude = std::abs(exponent);
    // encoding/json removes the leading zero that strconv writes for one-digit exponents, but only from negative ones;
    // positive exponents start at 21.
    if (magnitude < 10 && form != FloatText::Json) *to++ = '0';
    return std::to_chars(to, to + 4, magnitude).ptr;
  }
  if (digits.point <= 0) {
    *to++ = '0';
    *to++ = '.';
    to = fill_zeros(to, -digits.point);
    return copy_to(to, digits.text, digits.count);
  }
  if (digits.count <= digits.point) {
    to = copy_to(to, digits.text, digits.count);
    return fill_zeros(to, digits.point - digits.count);
  }
  to = copy_to(to, digits.text, digits.point);
  *to++ = '.';
  return copy_to(to, digits.text + digits.point, digits.count - digits.point);
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    // Eight ASCII bytes at a time.
    while (text.size() >= 8) {
      uint64_t word;
      std::memcpy(&word, text.data(), 8);
      if ((word & 0x8080808080808080ull) != 0) break;
      text.remove_prefix(8);
    }
    if (text.empty()) return true;
    const Rune rune = decode_rune(text, 0);
    if (!rune.valid) return false;
    text.remove_prefix(rune.length);
  }
  return true;
}

char* encode_rune(uint32_t code, char* to) {
  return write_utf8(code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? kReplacementRune : code, to);
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  while (!text.empty()) {
    const Rune rune = decode_rune(text, 0);
    if (rune.valid) {
      out.append(text.substr(0, rune.length));
    } else {
      append_utf8(out, kReplacementRune);
    }
    text.remove_prefix(rune.length);
  }
  return out;
}

char* write_int(int64_t number, char* to) { return std::to_chars(to, to + kMaxNumberText, number).ptr; }

char* write_float(double number, FloatText form, char* to) {
  if (std::signbit(number)) *to++ = '-';
  if (number == 0) {
    *to++ = '0';
    return to;
  }
  return write_digits(shortest_digits(std::fabs(number)), form, to);
}

std::string float_text(double number, FloatText form) {
  char buffer[kMaxNumberText];
  return std::string(buffer, write_float(number, form, buffer));
}

std::string go_float_text(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "+Inf" : "-Inf";
  return float_text(number, FloatText::Go);
}

std::string float_text(float number) {
  char buffer[kMaxNumberText];
  char* to = buffer;
  if (std::signbit(number)) *to++ = '-';
  if (number == 0) {
    *to++ = '0';
  } else {
    to = write_digits(shortest_digits(std::fabs(number)), FloatText::Go, to);
  }
  return std::string(buffer, to);
}

std::optional<double> parse_float(std::string_view text) {
  const char* begin = text.data();
  const char* const end = begin + text.size();
  bool negative = false;
  if (begin != end && (*begin == '+' || *begin == '-')) {
    negative = *begin == '-';
    ++begin;
  }
  // from_chars would accept "inf", "nan" and "infinity".
  if (begin == end || !(is_digit(*begin) || *begin == '.')) return std::nullopt;
  double number = 0;
  const auto [stopped, error] = std::from_chars(begin, end, number);
  if (stopped != end) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // Either overflow or underflow: strtod tells which.
    const std::string terminated(begin, end);
    number = std::strtod(terminated.c_str(), nullptr);
    if (std::isinf(number)) return std::nullopt;
  } else if (error != std::errc()) {
    return std::nullopt;
  }
  return negative ? -number : number;
}

}  // namespace holdfast::codec
