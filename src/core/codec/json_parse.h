// The JSON grammar: a single pass over the bytes with callbacks to a handler. The tree builder, the transcoders and the
// checkers for error messages are handlers. Private to the module.
//
// A handler has
//   JsonTake key(JsonText)      what to do with the member's value
//   void string(JsonText), integer(int64_t, text), boolean(bool), null()
//   bool number(text)           false if out of range, which ends the parse
//   void begin_map(), end_map(), begin_list(), end_list()
//   void raw(text)              for JsonTake::Raw
// Error positions are not reported: on failure, json_error.cc parses again and produces Go's message.
#pragma once

#include <emmintrin.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/ascii.h"
#include "codec/json.h"

namespace holdfast::codec {

// The text between the quotes.
struct JsonText {
  std::string_view raw;
  bool escaped;  // Contains a backslash.
  bool ascii;    // Contains nothing above 0x7f.
};

enum class JsonTake : uint8_t {
  Value,  // Report it.
  Skip,   // Omit it. Only its brackets and quotes are checked.
  Raw,    // Validate it and pass its text.
};

// The decoded text: a view of the source if nothing had to change, otherwise in `arena`. Escapes must be well-formed
// (checked by the parser).
std::string_view unescape_json(const JsonText& text, Arena& arena);
// The same in reused memory: valid until the next call with the same `scratch`.
std::string_view unescape_json(const JsonText& text, std::string& scratch);

inline bool is_json_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Accepts everything; for validation only.
struct JsonIgnore {
  JsonTake key(const JsonText&) { return JsonTake::Value; }
  void string(const JsonText&) {}
  void integer(int64_t, std::string_view) {}
  bool number(std::string_view) { return true; }
  void boolean(bool) {}
  void null() {}
  void begin_map() {}
  void end_map() {}
  void begin_list() {}
  void end_list() {}
  void raw(std::string_view) {}
};

template <class Handler>
class JsonParser {
 public:
  JsonParser(std::string_view source, Handler& handler, size_t depth = 0)
      : p_(source.data()), end_(source.data() + source.size()), handler_(handler), base_depth_(depth) {}

  // The whole source is one value surrounded by optional white space.
  bool parse_document() {
    if (!parse_value()) return false;
    skip_space();
    return p_ == end_;
  }

  // Parses one value; position() is then after it.
  bool parse_value();
  const char* position() const { return p_; }

 private:
  void skip_space() {
    while (p_ != end_ && static_cast<unsigned char>(*p_) <= ' ' && is_json_space(*p_)) ++p_;
  }

  bool scan_string(JsonText& text);
  bool scan_number();
  bool skip_value();
  bool literal(const char* word, size_t length) {
    if (static_cast<size_t>(end_ - p_) < length || std::memcmp(p_, word, length) != 0) return false;
    p_ += length;
    return true;
  }

  const char* p_;
  const char* end_;
  Handler& handler_;
  size_t base_depth_;
  std::string open_;  // '{' or '[' for each open container.
};

template <class Handler>
bool JsonParser<Handler>::parse_value() {
  // Locals, so that the compiler can keep them in registers across handler calls.
  JsonText text;
value:
  skip_space();
  if (p_ == end_) return false;
  switch (*p_) {
    case '"':
      if (!scan_string(text)) return false;
      handler_.string(text);
      break;
    case '{':
      ++p_;
      if (base_depth_ + open_.size() >= kMaxDepth) return false;
      handler_.begin_map();
      skip_space();
      if (p_ != end_ && *p_ == '}') {
        ++p_;
        handler_.end_map();
        break;
      }
      open_.push_back('{');
      goto key;
    case '[':
      ++p_;
      if (base_depth_ + open_.size() >= kMaxDepth) return false;
      handler_.begin_list();
      skip_space();
      if (p_ != end_ && *p_ == ']') {
        ++p_;
        handler_.end_list();
        break;
      }
      open_.push_back('[');
      goto value;
    case 't':
      if (!literal("true", 4)) return false;
      handler_.boolean(true);
      break;
    case 'f':
      if (!literal("false", 5)) return false;
      handler_.boolean(false);
      break;
    case 'n':
      if (!literal("null", 4)) return false;
      handler_.null();
      break;
    default:
      if (!scan_number()) return false;
      break;
  }

after_value:
  if (open_.empty()) return true;
  skip_space();
  if (p_ == end_) return false;
  if (open_.back() == '{') {
    if (*p_ == ',') {
      ++p_;
      goto key;
    }
    if (*p_ != '}') return false;
    ++p_;
    open_.pop_back();
    handler_.end_map();
    goto after_value;
  }
  if (*p_ == ',') {
    ++p_;
    goto value;
  }
  if (*p_ != ']') return false;
  ++p_;
  open_.pop_back();
  handler_.end_list();
  goto after_value;

key:
  skip_space();
  if (p_ == end_ || *p_ != '"' || !scan_string(text)) return false;
  skip_space();
  if (p_ == end_ || *p_ != ':') return false;
  ++p_;
  switch (handler_.key(text)) {
    case JsonTake::Value:
      goto value;
    case JsonTake::Skip:
      if (!skip_value()) return false;
      goto after_value;
    case JsonTake::Raw: {
      skip_space();
      JsonIgnore ignore;
      const std::string_view rest(p_, static_cast<size_t>(end_ - p_));
      JsonParser<JsonIgnore> inner(rest, ignore, base_depth_ + open_.size());
      if (!inner.parse_value()) return false;
      const auto length = static_cast<size_t>(inner.position() - p_);
      handler_.raw(rest.substr(0, length));
      p_ += length;
      goto after_value;
    }
  }
  return false;
}

template <class Handler>
bool JsonParser<Handler>::scan_string(JsonText& text) {
  const char* const begin = ++p_;
  const char* p = begin;
  bool escaped = false;
  unsigned above_ascii = 0;
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i control = _mm_set1_epi8(0x1f);
  for (;;) {
    if (end_ - p >= 16) [[likely]] {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
      const __m128i special = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)),
                                           _mm_cmpeq_epi8(_mm_max_epu8(bytes, control), control));
      const auto stops = static_cast<unsigned>(_mm_movemask_epi8(special));
      const auto high = static_cast<unsigned>(_mm_movemask_epi8(bytes));
      if (stops == 0) {
        above_ascii |= high;
        p += 16;
        continue;
      }
      const unsigned first = static_cast<unsigned>(std::countr_zero(stops));
      above_ascii |= high & ((1u << first) - 1);
      p += first;
    } else {
      while (p != end_ && *p != '"' && *p != '\\' && static_cast<unsigned char>(*p) > 0x1f) {
        above_ascii |= static_cast<unsigned char>(*p) & 0x80u;
        ++p;
      }
      if (p == end_) return false;
    }
    if (*p == '"') {
      text = {{begin, static_cast<size_t>(p - begin)}, escaped, above_ascii == 0};
      p_ = p + 1;
      return true;
    }
    if (*p != '\\') return false;
    escaped = true;
    if (end_ - p < 2) return false;
    switch (p[1]) {
      case '"':
      case '\\':
      case '/':
      case 'b':
      case 'f':
      case 'n':
      case 'r':
      case 't':
        p += 2;
        break;
      case 'u':
        if (end_ - p < 6 || !is_hex(p[2]) || !is_hex(p[3]) || !is_hex(p[4]) || !is_hex(p[5])) return false;
        p += 6;
        break;
      default:
        return false;
    }
  }
}

template <class Handler>
bool JsonParser<Handler>::scan_number() {
  const char* const begin = p_;
  const char* p = p_;
  const bool negative = *p == '-';
  if (negative) ++p;
  const char* const digits = p;
  uint64_t magnitude = 0;
  while (p != end_ && is_digit(*p)) {
    magnitude = magnitude * 10 + static_cast<uint64_t>(*p - '0');
    ++p;
  }
  const auto count = p - digits;
  if (count == 0 || (*digits == '0' && count > 1)) return false;
  bool whole = true;
  if (p != end_ && *p == '.') {
    whole = false;
    ++p;
    if (p == end_ || !is_digit(*p)) return false;
    while (p != end_ && is_digit(*p)) ++p;
  }
  if (p != end_ && (*p == 'e' || *p == 'E')) {
    whole = false;
    ++p;
    if (p != end_ && (*p == '+' || *p == '-')) ++p;
    if (p == end_ || !is_digit(*p)) return false;
    while (p != end_ && is_digit(*p)) ++p;
  }
  p_ = p;
  const std::string_view text(begin, static_cast<size_t>(p - begin));
  // Nineteen digits cannot overflow uint64 but can exceed int64.
  const uint64_t limit = static_cast<uint64_t>(INT64_MAX) + (negative ? 1 : 0);
  if (whole && count <= 19 && magnitude <= limit) {
    handler_.integer(static_cast<int64_t>(negative ? 0 - magnitude : magnitude), text);
    return true;
  }
  return handler_.number(text);
}

template <class Handler>
bool JsonParser<Handler>::skip_value() {
  skip_space();
  size_t depth = 0;
  JsonText ignored;
  while (p_ != end_) {
    switch (*p_) {
      case '"':
        if (!scan_string(ignored)) return false;
        if (depth == 0) return true;
        continue;
      case '{':
      case '[':
        ++depth;
        break;
      case '}':
      case ']':
        if (depth == 0) return false;
        if (--depth == 0) {
          ++p_;
          return true;
        }
        break;
      case ',':
      case ':':
      case ' ':
      case '\t':
      case '\r':
      case '\n':
        break;
      default:
        // A number or a literal: extends to the next delimiter.
        do {
          ++p_;
        } while (p_ != end_ && *p_ != ',' && *p_ != '}' && *p_ != ']' && !is_json_space(*p_));
        if (depth == 0) return true;
        continue;
    }
    ++p_;
  }
  return false;
}

}  // namespace holdfast::codec
