// Pieces of the JSON writer that the transcoders share. Private to the room.
#pragma once

#include <emmintrin.h>

#include <bit>
#include <cstring>
#include <string_view>

#include "codec/sink.h"
#include "codec/text.h"

namespace holdfast::codec {

// Text that holds something to escape, from `at` on. Out of line: most texts never come here.
void write_json_text_slow(std::string_view text, Sink& sink);

// The text with its quotes, escaped as encoding/json does it.
inline void write_json_text(std::string_view text, Sink& sink) {
  // Room for the common case; 16 bytes of slack let whole vectors be stored.
  char* to = sink.room(text.size() + 2 + 16);
  *to++ = '"';
  const char* p = text.data();
  const char* const end = p + text.size();
  while (end - p >= 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
    // Signed comparison: what is below 0x20 and what is above 0x7f, in one.
    __m128i special = _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20));
    special = _mm_or_si128(special, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')));
    special = _mm_or_si128(special, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
    special = _mm_or_si128(special, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('&')));
    // '<' and '>' differ in one bit.
    special = _mm_or_si128(special, _mm_cmpeq_epi8(_mm_or_si128(bytes, _mm_set1_epi8(2)), _mm_set1_epi8('>')));
    const auto stops = static_cast<unsigned>(_mm_movemask_epi8(special));
    if (stops != 0) {
      const auto run = std::countr_zero(stops);
      p += run;
      sink.wrote(to + run);
      write_json_text_slow({p, static_cast<size_t>(end - p)}, sink);
      return;
    }
    p += 16;
    to += 16;
  }
  for (; p != end; ++p) {
    const char c = *p;
    if (static_cast<signed char>(c) < 0x20 || c == '"' || c == '\\' || c == '&' || (c | 2) == '>') {
      sink.wrote(to);
      write_json_text_slow({p, static_cast<size_t>(end - p)}, sink);
      return;
    }
    *to++ = c;
  }
  *to++ = '"';
  sink.wrote(to);
}

inline void write_json_int(int64_t number, Sink& sink) { sink.wrote(write_int(number, sink.room(kMaxNumberText))); }
void write_json_double(double number, Sink& sink);

// Raw JSON, compacted. It must be valid.
void write_json_raw(std::string_view source, Sink& sink);

// A break and the indentation of pretty JSON.
inline void write_json_indent(size_t depth, Sink& sink) {
  char* to = sink.room(1 + depth * 2);
  *to++ = '\n';
  std::memset(to, ' ', depth * 2);
  sink.wrote(to + depth * 2);
}

}  // namespace holdfast::codec
