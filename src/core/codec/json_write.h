// Parts of the JSON writer shared with the transcoders. Private to the module.
#pragma once

#include <emmintrin.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "codec/sink.h"
#include "codec/text.h"

namespace holdfast::codec {

// Text that contains characters to escape. Out of line, since this is rare.
void write_json_text_slow(std::string_view text, Sink& sink);

// A bitmask of the bytes that JSON cannot contain as they are, or that might be part of such a rune.
inline unsigned json_specials(__m128i bytes) {
  // Signed comparison: matches bytes below 0x20 and above 0x7f at once.
  __m128i special = _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20));
  special = _mm_or_si128(special, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')));
  special = _mm_or_si128(special, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
  special = _mm_or_si128(special, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('&')));
  // '<' and '>' differ in one bit.
  special = _mm_or_si128(special, _mm_cmpeq_epi8(_mm_or_si128(bytes, _mm_set1_epi8(2)), _mm_set1_epi8('>')));
  return static_cast<unsigned>(_mm_movemask_epi8(special));
}

// The text with quotes, escaped like encoding/json.
inline void write_json_text(std::string_view text, Sink& sink) {
  // Room for the common case, plus 16 bytes of slack so that whole vectors can be stored.
  char* to = sink.room(text.size() + 2 + 16);
  *to++ = '"';
  const char* p = text.data();
  size_t left = text.size();
  for (; left >= 16; left -= 16, p += 16, to += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
    if (const unsigned stops = json_specials(bytes); stops != 0) {
      const auto run = static_cast<size_t>(std::countr_zero(stops));
      sink.wrote(to + run);
      write_json_text_slow({p + run, left - run}, sink);
      return;
    }
  }
  // Most strings are short: their ends are checked and copied as two overlapping words.
  unsigned stops = 0;
  if (left >= 8) {
    uint64_t first, last;
    std::memcpy(&first, p, 8);
    std::memcpy(&last, p + left - 8, 8);
    stops = json_specials(_mm_set_epi64x(static_cast<int64_t>(last), static_cast<int64_t>(first)));
    std::memcpy(to, &first, 8);
    std::memcpy(to + left - 8, &last, 8);
  } else if (left >= 4) {
    uint32_t first, last;
    std::memcpy(&first, p, 4);
    std::memcpy(&last, p + left - 4, 4);
    stops = json_specials(_mm_set1_epi64x(static_cast<int64_t>(uint64_t{last} << 32 | first)));
    std::memcpy(to, &first, 4);
    std::memcpy(to + left - 4, &last, 4);
  } else {
    for (size_t i = 0; i < left; ++i) {
      const char c = p[i];
      stops |= static_cast<signed char>(c) < 0x20 || c == '"' || c == '\\' || c == '&' || (c | 2) == '>';
      to[i] = c;
    }
  }
  if (stops != 0) {
    sink.wrote(to);
    write_json_text_slow({p, left}, sink);
    return;
  }
  to[left] = '"';
  sink.wrote(to + left + 1);
}

inline void write_json_int(int64_t number, Sink& sink) { sink.wrote(write_int(number, sink.room(kMaxNumberText))); }
void write_json_double(double number, Sink& sink);

// Writes raw JSON, compacted. It must be valid.
void write_json_raw(std::string_view source, Sink& sink);

// A line break and the indentation of pretty JSON.
inline void write_json_indent(size_t depth, Sink& sink) {
  char* to = sink.room(1 + depth * 2);
  *to++ = '\n';
  std::memset(to, ' ', depth * 2);
  sink.wrote(to + depth * 2);
}

// Writes the tokens of a document as the parser finds them, with separators and, if pretty, line breaks. A handler
// derives from it and adds how keys and strings are written.
template <bool pretty>
class JsonTokenWriter {
 public:
  void integer(int64_t, std::string_view text) { plain(text); }
  bool number(std::string_view text) {
    plain(text);
    return true;
  }
  void boolean(bool b) { plain(b ? "true" : "false"); }
  void null() { plain("null"); }
  void raw(std::string_view) {}
  void begin_map() { open('{'); }
  void end_map() { close('}'); }
  void begin_list() { open('['); }
  void end_list() { close(']'); }

 protected:
  explicit JsonTokenWriter(Sink& sink) : sink_(sink) {}

  // Writes what precedes a key or a list item.
  void separate() {
    if (after_colon_) {
      after_colon_ = false;
      return;
    }
    if (!first_) sink_.put(',');
    first_ = false;
    if (pretty && depth_ > 0) write_json_indent(depth_, sink_);
  }
  // After a key.
  void colon() {
    sink_.put(pretty ? std::string_view(": ") : std::string_view(":"));
    after_colon_ = true;
  }
  void plain(std::string_view text) {
    separate();
    sink_.put(text);
  }
  void open(char c) {
    separate();
    sink_.put(c);
    first_ = true;
    if constexpr (pretty) ++depth_;
  }
  void close(char c) {
    if constexpr (pretty) {
      --depth_;
      if (!first_) write_json_indent(depth_, sink_);
    }
    sink_.put(c);
    first_ = false;
  }

  Sink& sink_;

 private:
  bool first_ = true;  // The innermost container is still empty.
  bool after_colon_ = false;
  size_t depth_ = 0;  // Counted only if pretty.
};

}  // namespace holdfast::codec
