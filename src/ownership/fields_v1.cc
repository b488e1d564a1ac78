// FieldsV1 text <-> sets, by hand on bytes: every write and every read of an object passes here.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/limits.h"
#include "codec/codec.h"
#include "ownership/deep.h"
#include "ownership/field_set.h"

namespace holdfast::ownership {
namespace {

constexpr int kMaxDepth = limits::kFieldSetDepth;
// From here on, recursion continues on a larger stack.
constexpr int kDeep = 500;
// Integers beyond this lose digits when they are read, since Kubernetes reads every number as a double.
constexpr double kExactIntegers = 9007199254740992.0;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

size_t put_rune(char* to, uint32_t rune) {
  if (rune < 0x80) {
    to[0] = static_cast<char>(rune);
    return 1;
  }
  if (rune < 0x800) {
    to[0] = static_cast<char>(0xc0 | (rune >> 6));
    to[1] = static_cast<char>(0x80 | (rune & 0x3f));
    return 2;
  }
  if (rune < 0x10000) {
    to[0] = static_cast<char>(0xe0 | (rune >> 12));
    to[1] = static_cast<char>(0x80 | ((rune >> 6) & 0x3f));
    to[2] = static_cast<char>(0x80 | (rune & 0x3f));
    return 3;
  }
  to[0] = static_cast<char>(0xf0 | (rune >> 18));
  to[1] = static_cast<char>(0x80 | ((rune >> 12) & 0x3f));
  to[2] = static_cast<char>(0x80 | ((rune >> 6) & 0x3f));
  to[3] = static_cast<char>(0x80 | (rune & 0x3f));
  return 4;
}

// Reads JSON from bytes: as much of it as FieldsV1 and the payloads of its elements need.
class Reader {
 public:
  Reader(Arena& arena, std::string_view text)
      : arena_(arena), start_(text.data()), at_(text.data()), end_(text.data() + text.size()) {}

  bool failed() const { return !error_.empty(); }
  Error take_error() { return bad_request(std::move(error_)); }
  void fail(std::string_view what) {
    if (failed()) return;
    error_ = std::string(what) + " at byte " + std::to_string(at_ - start_);
  }
  void fail_with(std::string message) {
    if (!failed()) error_ = std::move(message);
  }

  void skip_space() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  // The next byte that is not a space, 0 at the end; not consumed.
  char peek() {
    if (at_ < end_ && static_cast<unsigned char>(*at_) > ' ') return *at_;
    skip_space();
    return at_ < end_ ? *at_ : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (static_cast<size_t>(end_ - at_) < word.size() || std::memcmp(at_, word.data(), word.size()) != 0) {
      fail("a JSON value is malformed");
      return false;
    }
    at_ += word.size();
    return true;
  }

  // A string whose opening quote has been taken. Points into the text when there is no escape in it.
  std::string_view string_rest() {
    const char* begin = at_;
    for (; at_ < end_; ++at_) {
      if (*at_ == '"') {
        const std::string_view text(begin, static_cast<size_t>(at_ - begin));
        ++at_;
        return text;
      }
      if (*at_ == '\\') return string_with_escapes(begin);
      if (static_cast<unsigned char>(*at_) < ' ') {
        fail("a control character in a JSON string");
        return {};
      }
    }
    fail("a JSON string does not end");
    return {};
  }

  void skip_value(int depth) {
    if (depth > kMaxDepth) return fail("nesting is too deep");
    switch (peek()) {
      case '"':
        ++at_;
        string_rest();
        return;
      case '{':
      case '[': {
        const char close = *at_ == '{' ? '}' : ']';
        const bool object = close == '}';
        ++at_;
        if (take(close)) return;
        do {
          if (object) {
            if (peek() != '"') return fail("a member name was expected");
            skip_value(depth + 1);
            if (failed()) return;
            if (!take(':')) return fail("':' was expected");
          }
          skip_value(depth + 1);
          if (failed()) return;
        } while (take(','));
        if (!take(close)) fail(object ? "'}' was expected" : "']' was expected");
        return;
      }
      case 't':
        take_word("true");
        return;
      case 'f':
        take_word("false");
        return;
      case 'n':
        take_word("null");
        return;
      default:
        number();
    }
  }

  Value number() {
    peek();
    const char* begin = at_;
    while (at_ < end_ &&
           (*at_ == '-' || *at_ == '+' || *at_ == '.' || *at_ == 'e' || *at_ == 'E' || (*at_ >= '0' && *at_ <= '9'))) {
      ++at_;
    }
    double d = 0;
    const char* digits = begin < at_ && *begin == '-' ? begin + 1 : begin;
    const bool starts_well = digits < at_ && *digits >= '0' && *digits <= '9' &&
                             !(*digits == '0' && digits + 1 < at_ && digits[1] >= '0' && digits[1] <= '9');
    const char* dot = static_cast<const char*>(std::memchr(begin, '.', static_cast<size_t>(at_ - begin)));
    const bool dot_last = dot != nullptr && (dot + 1 == at_ || dot[1] < '0' || dot[1] > '9');
    const auto result = std::from_chars(begin, at_, d);
    if (!starts_well || dot_last || result.ec != std::errc() || result.ptr != at_) {
      at_ = begin;
      fail("a JSON value is malformed");
      return Value();
    }
    if (std::fabs(d) <= kExactIntegers && d == std::trunc(d) && !(d == 0 && std::signbit(d))) {
      return Value::integer(static_cast<int64_t>(d));
    }
    return Value::number(d);
  }

  Value value(int depth) {
    if (depth > kMaxDepth) {
      fail("nesting is too deep");
      return Value();
    }
    switch (peek()) {
      case '"':
        ++at_;
        return Value::string(string_rest());
      case 't':
        return take_word("true") ? Value::boolean(true) : Value();
      case 'f':
        return take_word("false") ? Value::boolean(false) : Value();
      case 'n':
        take_word("null");
        return Value();
      case '[': {
        ++at_;
        ListBuilder items(arena_);
        if (take(']')) return items.build();
        do {
          items.add(value(depth + 1));
          if (failed()) return Value();
        } while (take(','));
        if (!take(']')) fail("']' was expected");
        return items.build();
      }
      case '{': {
        ++at_;
        MapBuilder members(arena_);
        if (take('}')) return members.build();
        do {
          if (!take('"')) {
            fail("a member name was expected");
            return Value();
          }
          const std::string_view key = string_rest();
          if (failed()) return Value();
          if (!take(':')) {
            fail("':' was expected");
            return Value();
          }
          members.set(key, value(depth + 1));
          if (failed()) return Value();
        } while (take(','));
        if (!take('}')) fail("'}' was expected");
        return members.build();
      }
      default:
        return number();
    }
  }

 private:
  std::string_view string_with_escapes(const char* begin) {
    // Unescaping never makes a text longer (\uXXXX becomes at most three bytes), so the rest of the string is room
    // enough.
    const char* close = at_;
    while (close < end_ && *close != '"') close += *close == '\\' ? 2 : 1;
    if (close >= end_) {
      at_ = end_;
      fail("a JSON string does not end");
      return {};
    }
    char* const out = arena_.allocate_array<char>(static_cast<size_t>(close - begin));
    size_t count = static_cast<size_t>(at_ - begin);
    std::memcpy(out, begin, count);
    while (at_ < close) {
      if (*at_ != '\\') {
        out[count++] = *at_++;
        continue;
      }
      ++at_;
      switch (*at_++) {
        case '"':
          out[count++] = '"';
          break;
        case '\\':
          out[count++] = '\\';
          break;
        case '/':
          out[count++] = '/';
          break;
        case 'b':
          out[count++] = '\b';
          break;
        case 'f':
          out[count++] = '\f';
          break;
        case 'n':
          out[count++] = '\n';
          break;
        case 'r':
          out[count++] = '\r';
          break;
        case 't':
          out[count++] = '\t';
          break;
        case 'u': {
          uint32_t rune = hex4(close);
          if (failed()) return {};
          if (rune >= 0xd800 && rune < 0xdc00 && close - at_ >= 6 && at_[0] == '\\' && at_[1] == 'u') {
            at_ += 2;
            const uint32_t low = hex4(close);
            if (failed()) return {};
            if (low >= 0xdc00 && low < 0xe000) {
              rune = 0x10000 + ((rune - 0xd800) << 10) + (low - 0xdc00);
            } else {
              count += put_rune(out + count, 0xfffd);
              rune = low;
            }
          }
          if (rune >= 0xd800 && rune < 0xe000) rune = 0xfffd;
          count += put_rune(out + count, rune);
          break;
        }
        default:
          --at_;
          fail("an unknown escape in a JSON string");
          return {};
      }
    }
    at_ = close + 1;
    return {out, count};
  }

  uint32_t hex4(const char* limit) {
    uint32_t rune = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const int digit = at_ < limit ? hex_digit(*at_) : -1;
      if (digit < 0) {
        fail("a \\u escape without four hexadecimal digits");
        return 0;
      }
      rune = rune * 16 + static_cast<uint32_t>(digit);
    }
    return rune;
  }

  Arena& arena_;
  const char* start_;
  const char* at_;
  const char* end_;
  std::string error_;
};

enum class ElementText : uint8_t { Element, Unknown, Bad };

struct ReadElement {
  ElementText outcome;
  PathElement element;
};

PathElement no_element() { return PathElement::index(0); }

// `text` is the member name, unescaped; it must live as long as the set.
ReadElement read_element(Arena& arena, std::string_view text, std::string& problem) {
  auto bad = [&](std::string what) {
    problem = std::move(what);
    return ReadElement{ElementText::Bad, no_element()};
  };
  if (text.size() < 2)
    return bad("\"" + std::string(text) + "\" is not a path element: it needs at least 2 characters");
  if (text[1] != ':') return bad("missing colon: " + std::string(text));
  const std::string_view payload = text.substr(2);
  switch (text[0]) {
    case 'f':
      return {ElementText::Element, PathElement::field(payload)};
    case 'v': {
      Reader reader(arena, payload);
      const Value value = reader.value(0);
      if (reader.failed()) return bad(std::string(text) + ": " + reader.take_error().message);
      return {ElementText::Element, PathElement::value(arena.make<Value>(value))};
    }
    case 'k': {
      Reader reader(arena, payload);
      constexpr size_t kUsual = 8;
      Member few[kUsual];
      std::vector<Member> many;
      size_t count = 0;
      auto finish = [&] {
        std::span<Member> key =
            arena.copy(many.empty() ? std::span<const Member>(few, count) : std::span<const Member>(many));
        // Few, mostly in order already.
        if (key.size() > kUsual) {
          std::sort(key.begin(), key.end(), [](const Member& a, const Member& b) { return a.key < b.key; });
        }
        for (size_t i = 1; i < key.size(); ++i) {
          for (size_t j = i; j > 0 && key[j].key < key[j - 1].key; --j) std::swap(key[j], key[j - 1]);
        }
        return ReadElement{ElementText::Element, PathElement::key(key)};
      };
      if (reader.peek() == 'n') {
        reader.take_word("null");
        if (reader.failed()) return bad(std::string(text) + ": " + reader.take_error().message);
        return finish();
      }
      if (!reader.take('{')) return bad(std::string(text) + ": a key must be a JSON object");
      if (!reader.take('}')) {
        do {
          if (!reader.take('"')) reader.fail("a member name was expected");
          const std::string_view name = reader.failed() ? std::string_view{} : reader.string_rest();
          if (!reader.failed() && !reader.take(':')) reader.fail("':' was expected");
          const Value value = reader.failed() ? Value() : reader.value(0);
          if (reader.failed()) return bad(std::string(text) + ": " + reader.take_error().message);
          if (count < kUsual) {
            few[count++] = {name, value};
          } else {
            if (many.empty()) many.assign(few, few + count);
            many.push_back({name, value});
          }
        } while (reader.take(','));
        if (!reader.take('}')) return bad(std::string(text) + ": '}' was expected");
      }
      return finish();
    }
    case 'i': {
      std::string_view digits = payload;
      if (!digits.empty() && digits[0] == '+') digits.remove_prefix(1);
      int64_t index = 0;
      const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), index);
      if (digits.empty() || result.ec != std::errc() || result.ptr != digits.data() + digits.size()) {
        return bad(std::string(text) + ": an index must be an integer");
      }
      return {ElementText::Element, PathElement::index(index)};
    }
    default:
      return {ElementText::Unknown, no_element()};
  }
}

class Parser {
 public:
  Parser(Arena& arena, std::string_view json) : arena_(arena), reader_(arena, json), builder_(arena) {}

  Result<FieldSet> parse() {
    bool member = false;
    const FieldSet set = level(0, member);
    if (reader_.failed()) return reader_.take_error();
    return set;
  }

 private:
  FieldSet level(int depth, bool& member) {
    if (depth != kDeep) return level_here(depth, member);
    FieldSet set;
    if (!run_with_room([&] { set = level_here(depth, member); })) reader_.fail("nesting is too deep");
    return set;
  }

  FieldSet level_here(int depth, bool& member) {
    member = true;
    if (depth > kMaxDepth) {
      reader_.fail("nesting is too deep");
      return {};
    }
    if (reader_.peek() == 'n') {
      reader_.take_word("null");
      return {};
    }
    if (!reader_.take('{')) {
      reader_.fail("an object was expected");
      return {};
    }
    if (reader_.take('}')) return {};
    bool dot = false;
    const size_t mark = builder_.open();
    do {
      if (!reader_.take('"')) {
        reader_.fail("a member name was expected");
        return {};
      }
      const std::string_view name = reader_.string_rest();
      if (!reader_.failed() && !reader_.take(':')) reader_.fail("':' was expected");
      if (reader_.failed()) return {};
      if (name == ".") {
        dot = true;
        reader_.skip_value(depth + 1);
      } else {
        std::string problem;
        const ReadElement read = read_element(arena_, name, problem);
        if (read.outcome == ElementText::Bad) {
          reader_.fail_with(std::move(problem));
          return {};
        }
        if (read.outcome == ElementText::Unknown) {
          reader_.skip_value(depth + 1);
        } else {
          bool child_member = false;
          const FieldSet below = level(depth + 1, child_member);
          builder_.add(read.element, child_member, below);
        }
      }
      if (reader_.failed()) return {};
    } while (reader_.take(','));
    if (!reader_.take('}')) {
      reader_.fail("',' or '}' was expected");
      return {};
    }
    const FieldSet set = builder_.close(mark);
    member = dot || set.empty();
    return set;
  }

  Arena& arena_;
  Reader reader_;
  SetBuilder builder_;
};

class TreeParser {
 public:
  explicit TreeParser(Arena& arena) : arena_(arena), builder_(arena) {}

  Result<FieldSet> parse(const Value& root) {
    bool member = false;
    const FieldSet set = level(root, 0, member);
    if (!problem_.empty()) return bad_request(std::move(problem_));
    return set;
  }

 private:
  FieldSet level(const Value& node, int depth, bool& member) {
    if (depth != kDeep) return level_here(node, depth, member);
    FieldSet set;
    if (!run_with_room([&] { set = level_here(node, depth, member); })) problem_ = "nesting is too deep";
    return set;
  }

  FieldSet level_here(const Value& node, int depth, bool& member) {
    member = true;
    if (node.is_null()) return {};
    if (!node.is_map() || depth > kMaxDepth) {
      problem_ = depth > kMaxDepth ? "nesting is too deep" : "an object was expected";
      return {};
    }
    bool dot = false;
    const size_t mark = builder_.open();
    for (const Member& m : node.members()) {
      if (m.key == ".") {
        dot = true;
        continue;
      }
      const ReadElement read = read_element(arena_, m.key, problem_);
      if (read.outcome == ElementText::Bad) return {};
      if (read.outcome == ElementText::Unknown) continue;
      bool child_member = false;
      const FieldSet below = level(m.value, depth + 1, child_member);
      if (!problem_.empty()) return {};
      builder_.add(read.element, child_member, below);
    }
    const FieldSet set = builder_.close(mark);
    member = dot || set.empty();
    return set;
  }

  Arena& arena_;
  SetBuilder builder_;
  std::string problem_;
};

// ---- Writing ----

// What a byte of text needs when it is written inside a JSON string.
enum Escape : uint8_t { kPlain, kEscape, kHtml, kHigh };

constexpr auto make_escapes() {
  struct Table {
    uint8_t of[256];
  } table{};
  for (int c = 0; c < 256; ++c) table.of[c] = c < 0x20 || c == '"' || c == '\\' ? kEscape : c >= 0x80 ? kHigh : kPlain;
  table.of[static_cast<int>('<')] = table.of[static_cast<int>('>')] = table.of[static_cast<int>('&')] = kHtml;
  return table;
}
constexpr auto kEscapes = make_escapes();
constexpr char kHex[] = "0123456789abcdef";

constexpr size_t kLongestEscape = 6;

// `text` as the content of a JSON string; its bytes above 0x7f pass as they are. There is room for kLongestEscape times
// its length.
char* write_escaped(std::string_view text, char* to) {
  for (const char letter : text) {
    const unsigned char c = static_cast<unsigned char>(letter);
    if (kEscapes.of[c] != kEscape) [[likely]] {
      *to++ = letter;
      continue;
    }
    *to++ = '\\';
    switch (c) {
      case '"':
      case '\\':
        *to++ = letter;
        break;
      case '\n':
        *to++ = 'n';
        break;
      case '\r':
        *to++ = 'r';
        break;
      case '\t':
        *to++ = 't';
        break;
      default:
        for (const char digit : {'u', '0', '0', kHex[c >> 4], kHex[c & 15]}) *to++ = digit;
    }
  }
  return to;
}

void append_escaped(std::string& out, std::string_view text) {
  const size_t before = out.size();
  out.resize(before + text.size() * kLongestEscape);
  out.resize(static_cast<size_t>(write_escaped(text, out.data() + before) - out.data()));
}

// Length of the valid UTF-8 sequence at the start of `text`, 0 if there is none.
size_t utf8_length(std::string_view text) {
  auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  auto follows = [&](size_t i) { return i < text.size() && (at(i) & 0xc0) == 0x80; };
  const unsigned char c = at(0);
  if (c >= 0xc2 && c <= 0xdf) return follows(1) ? 2 : 0;
  if (c >= 0xe0 && c <= 0xef) {
    if (!follows(1) || !follows(2)) return 0;
    if ((c == 0xe0 && at(1) < 0xa0) || (c == 0xed && at(1) > 0x9f)) return 0;
    return 3;
  }
  if (c >= 0xf0 && c <= 0xf4) {
    if (!follows(1) || !follows(2) || !follows(3)) return 0;
    if ((c == 0xf0 && at(1) < 0x90) || (c == 0xf4 && at(1) > 0x8f)) return 0;
    return 4;
  }
  return 0;
}

// A JSON string, quotes included; `html` also writes <, >, &, U+2028, U+2029 as escapes and bad UTF-8 as \ufffd.
void append_json_string(std::string& out, std::string_view text, bool html) {
  out += '"';
  if (!html) {
    append_escaped(out, text);
  } else {
    size_t plain = 0;
    for (size_t i = 0; i < text.size();) {
      const unsigned char c = static_cast<unsigned char>(text[i]);
      const uint8_t kind = kEscapes.of[c];
      size_t length = 1;
      if (kind == kPlain) {
        ++i;
        continue;
      }
      if (kind == kHigh) {
        length = utf8_length(text.substr(i));
        const bool separator =
            length == 3 && (text.substr(i, 3) == "\xe2\x80\xa8" || text.substr(i, 3) == "\xe2\x80\xa9");
        if (length != 0 && !separator) {
          i += length;
          continue;
        }
        out.append(text, plain, i - plain);
        if (length == 0) {
          length = 1;
          out += "\\ufffd";
        } else {
          out += text[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
        }
      } else {
        out.append(text, plain, i - plain);
        if (kind == kHtml) {
          out += "\\u00";
          out += kHex[c >> 4];
          out += kHex[c & 15];
        } else {
          append_escaped(out, text.substr(i, 1));
        }
      }
      i += length;
      plain = i;
    }
    out.append(text, plain, text.size() - plain);
  }
  out += '"';
}

void append_number(std::string& out, double d) {
  if (std::isnan(d) || std::isinf(d)) {
    // JSON has no such number and no decoder makes one.
    out += "null";
    return;
  }
  char text[40];
  const double magnitude = std::fabs(d);
  const bool exponent = magnitude != 0 && (magnitude < 1e-6 || magnitude >= 1e21);
  const bool padded = magnitude > kExactIntegers && !exponent;
  const auto format = exponent || padded ? std::chars_format::scientific : std::chars_format::fixed;
  char* end = std::to_chars(text, text + sizeof text, d, format).ptr;
  if (!padded) {
    out.append(text, end);
    return;
  }
  // The shortest digits that read back as the same number, and zeros up to the point.
  char* e = std::find(text, end, 'e');
  int power = 0;
  std::from_chars(e + 2, end, power);
  const size_t start = out.size();
  std::copy_if(text, e, std::back_inserter(out), [](char c) { return c != '.'; });
  out.append(static_cast<size_t>(power) + 1 + (d < 0 ? 1 : 0) - (out.size() - start), '0');
}

void append_integer(std::string& out, int64_t i) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, i).ptr);
}

void append_json(std::string& out, const Value& v) {
  switch (v.kind()) {
    case Value::Kind::Null:
      out += "null";
      return;
    case Value::Kind::Bool:
      out += v.as_bool() ? "true" : "false";
      return;
    case Value::Kind::Int:
      append_integer(out, v.as_int());
      return;
    case Value::Kind::Double:
      append_number(out, v.as_double());
      return;
    case Value::Kind::String:
      append_json_string(out, v.as_string(), true);
      return;
    case Value::Kind::Raw:
      out += v.raw_json();
      return;
    case Value::Kind::List: {
      out += '[';
      bool first = true;
      for (const Value& item : v.items()) {
        if (!first) out += ',';
        first = false;
        append_json(out, item);
      }
      out += ']';
      return;
    }
    case Value::Kind::Map: {
      std::vector<const Member*> members;
      for (const Member& m : v.members()) members.push_back(&m);
      std::sort(members.begin(), members.end(), [](const Member* a, const Member* b) { return a->key < b->key; });
      out += '{';
      bool first = true;
      for (const Member* m : members) {
        if (!first) out += ',';
        first = false;
        append_json_string(out, m->key, true);
        out += ':';
        append_json(out, m->value);
      }
      out += '}';
      return;
    }
  }
}

// The text of an element, not yet escaped as a member name.
void append_element_text(std::string& out, const PathElement& e) {
  switch (e.kind()) {
    case PathElement::Kind::Field:
      out += "f:";
      out += e.name();
      return;
    case PathElement::Kind::Key: {
      out += "k:{";
      bool first = true;
      for (const Member& field : e.key()) {
        if (!first) out += ',';
        first = false;
        append_json_string(out, field.key, false);
        out += ':';
        append_json(out, field.value);
      }
      out += '}';
      return;
    }
    case PathElement::Kind::Value:
      out += "v:";
      append_json(out, e.value());
      return;
    case PathElement::Kind::Index:
      out += "i:";
      append_integer(out, e.index());
      return;
  }
}

class Writer {
 public:
  Writer(std::string& out, MemberOrder order) : out_(out), order_(order) {}

  void level(FieldSet set, bool self) {
    out_.put('{');
    bool first = true;
    if (self && !set.empty()) {
      out_.put("\".\":{}");
      first = false;
    }
    const std::span<const SetEntry> entries = set.entries();
    if (order_ == MemberOrder::Bytewise && !entries.empty() && !entries.back().element.is_field()) {
      std::vector<std::pair<std::string, const SetEntry*>> sorted;
      for (const SetEntry& entry : entries) {
        append_element_text(sorted.emplace_back(std::string(), &entry).first, entry.element);
      }
      std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      for (const auto& [text, entry] : sorted) {
        key("", text, first);
        child(*entry);
      }
    } else {
      for (const SetEntry& entry : entries) {
        if (entry.element.is_field()) {
          key("f:", entry.element.name(), first);
        } else {
          text_.clear();
          append_element_text(text_, entry.element);
          key("", text_, first);
        }
        child(entry);
      }
    }
    out_.put('}');
  }

 private:
  void key(std::string_view before, std::string_view text, bool& first) {
    char* to = out_.room(before.size() + text.size() * kLongestEscape + std::string_view(",\"\":").size());
    if (!std::exchange(first, false)) *to++ = ',';
    *to++ = '"';
    to = std::copy(before.begin(), before.end(), to);
    to = write_escaped(text, to);
    *to++ = '"';
    *to++ = ':';
    out_.wrote(to);
  }
  void child(const SetEntry& entry) {
    if (entry.child_count == 0) {
      out_.put("{}");
    } else {
      level(entry.children(), entry.member);
    }
  }

  codec::Sink out_;
  const MemberOrder order_;
  std::string text_;
};

}  // namespace

Result<FieldSet> parse_fields_v1(Arena& arena, std::string_view json) { return Parser(arena, json).parse(); }

Result<FieldSet> parse_fields_v1(Arena& arena, const Value& fields) {
  if (fields.is_raw()) return parse_fields_v1(arena, fields.raw_json());
  return TreeParser(arena).parse(fields);
}

Result<PathElement> parse_element(Arena& arena, std::string_view text) {
  std::string problem;
  const ReadElement read = read_element(arena, text, problem);
  if (read.outcome == ElementText::Bad) return bad_request(std::move(problem));
  if (read.outcome == ElementText::Unknown) return bad_request("unknown path element type: " + std::string(text));
  return read.element;
}

void append_fields_v1(std::string& out, FieldSet set, MemberOrder order) { Writer(out, order).level(set, false); }

std::string to_fields_v1(FieldSet set, MemberOrder order) {
  std::string out;
  append_fields_v1(out, set, order);
  return out;
}

}  // namespace holdfast::ownership
