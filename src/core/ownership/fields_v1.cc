// Converts between FieldsV1 text and sets, hand-written on bytes: every read and write of an object passes through
// here.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/ascii.h"
#include "base/limits.h"
#include "base/strings.h"
#include "base/text.h"
#include "codec/codec.h"
#include "ownership/deep.h"
#include "ownership/field_set.h"

namespace holdfast::ownership {
namespace {

constexpr int kMaxDepth = limits::kFieldSetDepth;
// At this depth, recursion moves to a larger stack.
constexpr int kDeep = 500;
// Larger integers lose digits when read, since Kubernetes reads every number as a double.
constexpr double kExactIntegers = 9007199254740992.0;

// Parses JSON, as far as FieldsV1 and the payloads of its elements need it.
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
  // The next non-space byte, or 0 at the end; not consumed.
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

  // The rest of a string after its opening quote. Points into the text if there are no escapes.
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
    while (at_ < end_ && (*at_ == '-' || *at_ == '+' || *at_ == '.' || *at_ == 'e' || *at_ == 'E' || is_digit(*at_))) {
      ++at_;
    }
    double d = 0;
    const char* digits = begin < at_ && *begin == '-' ? begin + 1 : begin;
    const bool starts_well =
        digits < at_ && is_digit(*digits) && !(*digits == '0' && digits + 1 < at_ && is_digit(digits[1]));
    const char* dot = static_cast<const char*>(std::memchr(begin, '.', static_cast<size_t>(at_ - begin)));
    const bool dot_last = dot != nullptr && (dot + 1 == at_ || !is_digit(dot[1]));
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
    // Unescaping never makes a text longer (\uXXXX becomes at most three bytes), so the length of the rest of the
    // string suffices.
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
              count = static_cast<size_t>(write_utf8(0xfffd, out + count) - out);
              rune = low;
            }
          }
          if (rune >= 0xd800 && rune < 0xe000) rune = 0xfffd;
          count = static_cast<size_t>(write_utf8(rune, out + count) - out);
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
      const int digit = at_ < limit ? hex_value(*at_) : -1;
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

// `text` is the unescaped member name; it must outlive the set.
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
        // There are few keys, mostly sorted already.
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
      const std::optional<int64_t> index = parse_number<int64_t>(digits);
      if (!index) return bad(std::string(text) + ": an index must be an integer");
      return {ElementText::Element, PathElement::index(*index)};
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
    if (!run_with_large_stack([&] { set = level_here(depth, member); })) reader_.fail("nesting is too deep");
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
    if (!run_with_large_stack([&] { set = level_here(node, depth, member); })) problem_ = "nesting is too deep";
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

// How a byte of text must be written inside a JSON string.
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

// Writes `text` as the content of a JSON string; bytes above 0x7f are copied as they are. `to` must have room for
// kLongestEscape times its length.
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

// Appends a JSON string with quotes; `html` also escapes <, >, &, U+2028 and U+2029, and replaces invalid UTF-8 by
// \ufffd.
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
        const Rune rune = decode_rune(text, i);
        length = rune.valid ? rune.length : 0;
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
  if (!std::isfinite(d)) {
    // JSON cannot express such a number, and no decoder produces one.
    out += "null";
    return;
  }
  char text[codec::kMaxNumberText];
  out.append(text, codec::write_float(d, codec::FloatText::Fields, text));
}

void append_integer(std::string& out, int64_t i) {
  char digits[codec::kMaxNumberText];
  out.append(digits, codec::write_int(i, digits));
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

// The text of an element, before escaping it as a member name.
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
