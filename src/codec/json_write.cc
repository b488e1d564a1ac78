#include "codec/json_write.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "codec/json.h"
#include "codec/json_parse.h"

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

// Writes the raw leaf without the spaces between its tokens.
class Compactor : public JsonIgnore {
 public:
  Compactor(Sink& sink) : sink_(sink) {}

  JsonTake key(const JsonText& text) {
    separate();
    string_text(text);
    sink_.put(':');
    first_ = true;
    return JsonTake::Value;
  }
  void string(const JsonText& text) {
    separate();
    string_text(text);
  }
  void integer(int64_t, std::string_view text) { plain(text); }
  bool number(std::string_view text) {
    plain(text);
    return true;
  }
  void boolean(bool b) { plain(b ? "true" : "false"); }
  void null() { plain("null"); }
  void begin_map() { open('{'); }
  void end_map() { close('}'); }
  void begin_list() { open('['); }
  void end_list() { close(']'); }

 private:
  void separate() {
    if (!first_) sink_.put(',');
    first_ = false;
  }
  void plain(std::string_view text) {
    separate();
    sink_.put(text);
  }
  void open(char c) {
    separate();
    sink_.put(c);
    first_ = true;
  }
  void close(char c) {
    sink_.put(c);
    first_ = false;
  }
  // The sender's own escapes stay; only what HTML would misread is changed.
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

  Sink& sink_;
  bool first_ = true;
};

// Does not recurse: a tree may be ten thousand levels deep, and a thread's stack is small.
template <Layout layout>
class Writer {
 public:
  explicit Writer(Sink& sink) : sink_(sink) {}

  void write(const Value& root) {
    begin(root);
    while (!open_.empty()) {
      Open& top = open_.back();
      if (top.at == top.count) {
        const char bracket = top.members != nullptr ? '}' : ']';
        open_.pop_back();
        if (layout == Layout::Pretty) write_json_indent(open_.size(), sink_);
        sink_.put(bracket);
        continue;
      }
      if (top.at > 0) sink_.put(',');
      if (layout == Layout::Pretty) write_json_indent(open_.size(), sink_);
      const size_t at = top.at++;
      if (top.members != nullptr) {
        const Member& member = top.members[at];
        write_json_text(member.key, sink_);
        sink_.put(layout == Layout::Pretty ? std::string_view(": ") : std::string_view(":"));
        begin(member.value);
      } else {
        begin(top.items[at]);
      }
    }
  }

 private:
  // A container with something in it, and how much of that is written.
  struct Open {
    const Member* members;  // Null: a list.
    const Value* items;
    size_t count;
    size_t at = 0;
  };

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
        open_.push_back({nullptr, value.items().data(), value.count()});
        return;
      case Value::Kind::Map:
        if (value.count() == 0) return sink_.put("{}");
        sink_.put('{');
        open_.push_back({in_order(value.members()), nullptr, value.count()});
        return;
    }
  }

  const Member* in_order(std::span<const Member> members) {
    if constexpr (layout == Layout::Sorted) {
      const auto by_key = [](const Member& a, const Member& b) { return a.key < b.key; };
      if (!std::is_sorted(members.begin(), members.end(), by_key)) {
        const std::span<Member> sorted = arena_.copy(members);
        std::sort(sorted.begin(), sorted.end(), by_key);
        return sorted.data();
      }
    }
    return members.data();
  }

  void write_raw(std::string_view json) {
    if constexpr (layout == Layout::Pretty) {
      // Number texts of the sender would not survive a tree.
      std::string compact;
      compact_json(json, compact);
      write_pretty_raw(compact);
    } else {
      write_json_raw(json, sink_);
    }
  }

  void write_pretty_raw(std::string_view compact);

  Sink& sink_;
  std::vector<Open> open_;
  Arena arena_;  // Of sorted members.
};

// Compact JSON, indented: only brackets, commas and colons outside of texts matter.
template <Layout layout>
void Writer<layout>::write_pretty_raw(std::string_view compact) {
  size_t depth = open_.size();
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
  // Most raw JSON was written by a machine: nothing in it could be a space between tokens or needs an escape.
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
