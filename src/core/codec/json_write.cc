#include "codec/json_write.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "codec/json.h"
#include "codec/json_parse.h"
#include "codec/tree_walk.h"

namespace holdfast::codec {
namespace {

enum class Layout { Compact, Pretty, Sorted };

char* write_escape(unsigned char c, char* to) {
  *to++ = '\\';
  switch (c) {
    case '"':
    case '\\':
      *to++ = static_cast<char>(c);
      return to;
    case '\b':
      *to++ = 'b';
      return to;
    case '\f':
      *to++ = 'f';
      return to;
    case '\n':
      *to++ = 'n';
      return to;
    case '\r':
      *to++ = 'r';
      return to;
    case '\t':
      *to++ = 't';
      return to;
    default:
      constexpr char kHex[] = "0123456789abcdef";
      *to++ = 'u';
      *to++ = '0';
      *to++ = '0';
      *to++ = kHex[c >> 4];
      *to++ = kHex[c & 15];
      return to;
  }
}

bool is_line_separator(std::string_view text) {  // U+2028, U+2029.
  return text.size() >= 3 && text[0] == '\xe2' && text[1] == '\x80' && (text[2] | 1) == '\xa9';
}

// Writes raw JSON without white space between tokens.
class Compactor : public JsonTokenWriter<false> {
 public:
  explicit Compactor(Sink& sink) : JsonTokenWriter(sink) {}

  JsonTake key(const JsonText& text) {
    string(text);
    colon();
    return JsonTake::Value;
  }
  void string(const JsonText& text) {
    separate();
    string_text(text);
  }

 private:
  // The sender's own escapes are kept; only HTML characters are escaped.
  void string_text(const JsonText& text) {
    sink_.put('"');
    std::string_view rest = text.raw;
    while (!rest.empty()) {
      size_t run = rest.find_first_of("<>&\xe2");
      run = std::min(run, rest.size());
      sink_.put(rest.substr(0, run));
      rest.remove_prefix(run);
      if (rest.empty()) break;
      if (is_line_separator(rest)) {
        sink_.put(rest[2] == '\xa8' ? "\\u2028" : "\\u2029");
        rest.remove_prefix(3);
      } else if (rest[0] == '\xe2') {
        sink_.put(rest[0]);
        rest.remove_prefix(1);
      } else {
        sink_.wrote(write_escape(static_cast<unsigned char>(rest[0]), sink_.room(6)));
        rest.remove_prefix(1);
      }
    }
    sink_.put('"');
  }
};

template <Layout layout>
class Writer : TreeWalk<Writer<layout>> {
  using Walk = TreeWalk<Writer<layout>>;
  friend Walk;

 public:
  explicit Writer(Sink& sink) : sink_(sink) {}

  void write(const Value& root) { Walk::walk(root); }

 private:
  void separate(size_t position) {
    if (position > 0) sink_.put(',');
    if (layout == Layout::Pretty) write_json_indent(Walk::depth(), sink_);
  }
  void key(std::string_view text) {
    write_json_text(text, sink_);
    sink_.put(layout == Layout::Pretty ? std::string_view(": ") : std::string_view(":"));
  }
  void end(bool is_map) {
    if (layout == Layout::Pretty) write_json_indent(Walk::depth(), sink_);
    sink_.put(is_map ? '}' : ']');
  }

  void begin(const Value& value) {
    switch (value.kind()) {
      case Value::Kind::Null:
        return sink_.put("null");
      case Value::Kind::Bool:
        return sink_.put(value.as_bool() ? "true" : "false");
      case Value::Kind::Int:
        return write_json_int(value.as_int(), sink_);
      case Value::Kind::Double:
        return write_json_double(value.as_double(), sink_);
      case Value::Kind::String:
        return write_json_text(value.as_string(), sink_);
      case Value::Kind::Raw:
        return write_raw(value.raw_json());
      case Value::Kind::List:
        if (value.count() == 0) return sink_.put("[]");
        sink_.put('[');
        Walk::enter(value.items());
        return;
      case Value::Kind::Map:
        if (value.count() == 0) return sink_.put("{}");
        sink_.put('{');
        Walk::enter(in_order(value.members()));
        return;
    }
  }

  std::span<const Member> in_order(std::span<const Member> members) {
    if constexpr (layout == Layout::Sorted) {
      const auto by_key = [](const Member& a, const Member& b) { return a.key < b.key; };
      if (!std::is_sorted(members.begin(), members.end(), by_key)) {
        const std::span<Member> sorted = arena_.copy(members);
        std::sort(sorted.begin(), sorted.end(), by_key);
        return sorted;
      }
    }
    return members;
  }

  void write_raw(std::string_view json) {
    if constexpr (layout == Layout::Pretty) {
      // The sender's number texts would be lost in a tree.
      std::string compact;
      compact_json(json, compact);
      write_pretty_raw(compact);
    } else {
      write_json_raw(json, sink_);
    }
  }

  void write_pretty_raw(std::string_view compact);

  Sink& sink_;
  Arena arena_;  // For sorted members.
};

// Indents compact JSON: only brackets, commas and colons outside of strings matter.
template <Layout layout>
void Writer<layout>::write_pretty_raw(std::string_view compact) {
  size_t depth = Walk::depth();
  for (size_t i = 0; i < compact.size(); ++i) {
    const char c = compact[i];
    switch (c) {
      case '"': {
        size_t end = i + 1;
        while (compact[end] != '"') end += compact[end] == '\\' ? 2 : 1;
        sink_.put(compact.substr(i, end - i + 1));
        i = end;
        break;
      }
      case '{':
      case '[':
        sink_.put(c);
        if (compact[i + 1] == c + 2) {  // Brackets and braces close two code points after they open.
          sink_.put(compact[++i]);
        } else {
          write_json_indent(++depth, sink_);
        }
        break;
      case '}':
      case ']':
        write_json_indent(--depth, sink_);
        sink_.put(c);
        break;
      case ',':
        sink_.put(c);
        write_json_indent(depth, sink_);
        break;
      case ':':
        sink_.put(": ");
        break;
      default:
        sink_.put(c);
    }
  }
}

template <Layout layout>
void encode(const Value& value, std::string& out) {
  Sink sink(out);
  Writer<layout>(sink).write(value);
}

template <Layout layout>
std::string encoded(const Value& value) {
  std::string out;
  encode<layout>(value, out);
  return out;
}

}  // namespace

void write_json_text_slow(std::string_view text, Sink& sink) {
  while (!text.empty()) {
    char* to = sink.room(16);
    const auto c = static_cast<unsigned char>(text[0]);
    if (c >= 0x80) {
      const Rune rune = decode_rune(text, 0);
      if (!rune.valid) {
        sink.put("\\ufffd");
      } else if (is_line_separator(text)) {
        sink.put(text[2] == '\xa8' ? "\\u2028" : "\\u2029");
      } else {
        sink.put(text.substr(0, rune.length));
      }
      text.remove_prefix(rune.length);
      continue;
    }
    if (c < 0x20 || c == '"' || c == '\\' || c == '&' || (c | 2) == '>') {
      sink.wrote(write_escape(c, to));
    } else {
      *to = text[0];
      sink.wrote(to + 1);
    }
    text.remove_prefix(1);
  }
  sink.put('"');
}

void write_json_raw(std::string_view source, Sink& sink) {
  // Most raw JSON is machine-written: it contains no white space between tokens and nothing to escape.
  const auto special = [](char c) { return static_cast<signed char>(c) <= ' ' || c == '&' || (c | 2) == '>'; };
  const char* p = source.data();
  const char* const end = p + source.size();
  const auto specials = [](const char* at) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    __m128i found = _mm_cmplt_epi8(bytes, _mm_set1_epi8(' ' + 1));
    found = _mm_or_si128(found, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('&')));
    return _mm_or_si128(found, _mm_cmpeq_epi8(_mm_or_si128(bytes, _mm_set1_epi8(2)), _mm_set1_epi8('>')));
  };
  for (; end - p >= 64; p += 64) {
    const __m128i first = _mm_or_si128(specials(p), specials(p + 16));
    const __m128i second = _mm_or_si128(specials(p + 32), specials(p + 48));
    if (_mm_movemask_epi8(_mm_or_si128(first, second)) != 0) break;
  }
  for (; end - p >= 16; p += 16) {
    if (_mm_movemask_epi8(specials(p)) != 0) break;
  }
  if (end - p < 16 && std::none_of(p, end, special)) {
    sink.put(source);
    return;
  }
  Compactor compactor(sink);
  JsonParser(source, compactor).parse_document();
}

void write_json_double(double number, Sink& sink) {
  if (!std::isfinite(number)) {
    sink.put("null");
    return;
  }
  sink.wrote(write_float(number, FloatText::Json, sink.room(kMaxNumberText)));
}

void encode_json(const Value& value, std::string& out) { encode<Layout::Compact>(value, out); }
std::string encode_json(const Value& value) { return encoded<Layout::Compact>(value); }
void encode_json_pretty(const Value& value, std::string& out) { encode<Layout::Pretty>(value, out); }
std::string encode_json_pretty(const Value& value) { return encoded<Layout::Pretty>(value); }
void encode_json_sorted(const Value& value, std::string& out) { encode<Layout::Sorted>(value, out); }
std::string encode_json_sorted(const Value& value) { return encoded<Layout::Sorted>(value); }

void encode_json_string(std::string_view text, Sink& out) { write_json_text(text, out); }

void encode_json_string(std::string_view text, std::string& out) {
  Sink sink(out);
  write_json_text(text, sink);
}

std::string encode_json_string(std::string_view text) {
  std::string out;
  encode_json_string(text, out);
  return out;
}

void compact_json(std::string_view source, Sink& out) { write_json_raw(source, out); }

void compact_json(std::string_view source, std::string& out) {
  Sink sink(out);
  write_json_raw(source, sink);
}

}  // namespace holdfast::codec
