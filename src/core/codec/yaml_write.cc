#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "codec/codec.h"
#include "codec/letters.h"
#include "codec/visible.h"
#include "codec/yaml_scalar.h"

namespace holdfast::codec {
namespace {

constexpr size_t kWidth = 80;  // Longer lines are folded at the next space.
constexpr size_t kLongestSimpleKey = 128;
constexpr int kIndent = 2;

// --- How go-yaml reads the object's JSON text, before writing anything ---
//
// Where it cannot, because JSON leaves control characters raw that YAML rejects, or because a key is long or has a line
// break, Kubernetes fails, and so does encode_yaml(). encode_yaml_item() escapes the characters, and marks the keys.

constexpr size_t kLongestJsonKey = 1022;  // Maximum length in characters of a key's JSON text that go-yaml accepts.

// JSON leaves these raw, and YAML rejects them.
bool is_rejected_by_yaml(uint32_t rune) {
  return rune == 0x7f || (rune >= 0x80 && rune < 0xa0 && rune != 0x85) || rune == 0xfffe || rune == 0xffff;
}

// Length of the text in JSON in characters, without the quotes.
size_t json_length(std::string_view text) {
  const std::string json = encode_json_string(text);
  return static_cast<size_t>(std::count_if(json.begin(), json.end(), [](char c) { return (c & '\xc0') != '\x80'; })) -
         2;
}

// A raw NEL inside a quoted text is a line break: together with surrounding spaces it is folded into a space, and each
// further one becomes a newline.
std::string fold_next_lines(std::string_view text) {
  constexpr std::string_view kNel = "\xc2\x85";
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    const size_t nel = text.find(kNel, at);
    out += text.substr(at, nel - at);
    if (nel == std::string_view::npos) break;
    while (out.ends_with(' ')) out.pop_back();
    size_t breaks = 0;
    at = nel;
    for (;;) {
      if (text.substr(at).starts_with(kNel)) {
        ++breaks;
        at += kNel.size();
      } else if (at < text.size() && text[at] == ' ') {
        ++at;
      } else {
        break;
      }
    }
    out += breaks == 1 ? std::string(" ") : std::string(breaks - 1, '\n');
  }
  return out;
}

// --- go-yaml's natural order of keys ---

std::vector<uint32_t> runes_of(std::string_view text) {
  std::vector<uint32_t> runes;
  for (size_t at = 0; at < text.size();) {
    const Rune rune = decode_rune(text, at);
    runes.push_back(rune.value);
    at += rune.length;
  }
  return runes;
}

// Appends the digits from `at` on to `value`; wraps like Go's int64.
template <class Runes>
uint64_t digits_value(const Runes& runes, size_t at, uint64_t value, size_t& end) {
  for (end = at; end < runes.size() && is_decimal_digit(static_cast<uint32_t>(runes[end])); ++end) {
    value = value * 10 + (static_cast<uint32_t>(runes[end]) - '0');
  }
  return value;
}

// Nearly all keys are ASCII and need no decoding into runes.
bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) >= 0; });
}

template <class Runes>
bool natural_less(const Runes& a, const Runes& b) {
  const size_t common = std::min(a.size(), b.size());
  for (size_t i = 0; i < common; ++i) {
    if (a[i] == b[i]) continue;
    const bool a_letter = is_letter(static_cast<uint32_t>(a[i]));
    const bool b_letter = is_letter(static_cast<uint32_t>(b[i]));
    if (a_letter && b_letter) return a[i] < b[i];
    if (a_letter || b_letter) return b_letter;
    uint64_t leading = 0;
    if (a[i] == '0' || b[i] == '0') {
      for (size_t j = i; j-- > 0 && is_decimal_digit(static_cast<uint32_t>(a[j]));) {
        if (a[j] != '0') {
          leading = 1;
          break;
        }
      }
    }
    size_t a_end = 0;
    size_t b_end = 0;
    const auto a_value = static_cast<int64_t>(digits_value(a, i, leading, a_end));
    const auto b_value = static_cast<int64_t>(digits_value(b, i, leading, b_end));
    if (a_value != b_value) return a_value < b_value;
    if (a_end != b_end) return a_end < b_end;
    return a[i] < b[i];
  }
  return a.size() < b.size();
}

// --- Styles that a text allows ---

bool is_break(uint32_t rune) {
  return rune == '\r' || rune == '\n' || rune == 0x85 || rune == 0x2028 || rune == 0x2029;
}

// Which characters are written as themselves.
enum class Raw : uint8_t {
  Strict,   // Those that go-yaml writes raw; an object that it cannot read is refused.
  AsGo,     // The same; nothing is refused.
  Visible,  // All that are not hidden; nothing is refused.
};

bool is_printable(uint32_t rune, Raw raw) {
  if (rune == '\n' || (rune >= 0x20 && rune <= 0x7e)) return true;
  if (raw == Raw::Visible && is_hidden(rune)) return false;
  return rune >= 0xa0 && rune <= 0xfffd && rune != 0xfeff && !(rune >= 0xd800 && rune < 0xe000);
}

struct Allowed {
  bool multiline = false;
  bool plain = true;
  bool single_quoted = true;
  bool block = true;
};

Allowed analyse(std::string_view text, Raw raw) {
  Allowed allowed;
  if (text.empty()) {
    allowed.block = false;
    return allowed;
  }
  bool indicators = text.starts_with("---") || text.starts_with("...");
  bool special = false;
  bool space_before_break = false;
  bool space_after_break = false;
  bool previous_space = false;
  bool previous_break = false;
  bool after_white = true;
  const auto blank = [&](size_t at) { return at >= text.size() || text[at] == ' ' || text[at] == '\t'; };
  for (size_t at = 0; at < text.size();) {
    const Rune rune = decode_rune(text, at);
    const bool before_white = blank(at + rune.length);
    const char c = text[at];
    if (at == 0) {
      indicators |= std::string_view("#,[]{}&*!|>'\"%@`").find(c) != std::string_view::npos;
      indicators |= (c == '?' || c == ':' || c == '-') && before_white;
    } else {
      indicators |= (c == ':' && before_white) || (c == '#' && after_white);
    }
    special |= !is_printable(rune.value, raw);
    const bool space = c == ' ';
    const bool line_break = is_break(rune.value);
    if (space && previous_break) space_after_break = true;
    if (line_break) {
      allowed.multiline = true;
      if (previous_space) space_before_break = true;
    }
    previous_space = space;
    previous_break = line_break;
    after_white = space || c == '\t' || line_break || c == '\0';
    at += rune.length;
  }
  const Rune first = decode_rune(text, 0);
  const bool trailing_space = text.back() == ' ';
  const bool leading_or_trailing = first.value == ' ' || is_break(first.value) || trailing_space || previous_break;
  allowed.plain = !leading_or_trailing && !space_after_break && !space_before_break && !special && !allowed.multiline &&
                  !indicators;
  allowed.single_quoted = !space_after_break && !space_before_break && !special;
  allowed.block = !trailing_space && !space_before_break && !special;
  return allowed;
}

enum class Style : uint8_t { Plain, SingleQuoted, DoubleQuoted, Literal };

// Lays out nodes like libyaml's emitter. Four variables track the position on the line; write_indent starts a new line
// only if the current one is in use.
class Writer {
 public:
  Writer(std::string& out, Raw raw) : out_(out), raw_(raw) {}

  bool document(const Value& root) {
    node(root, false);
    while (!open_.empty()) step();
    indent_ = 0;
    write_indent();
    return problem_.empty();
  }
  const std::string& problem() const { return problem_; }

 private:
  // A non-empty map or list that is being written, and the position in it. There is no recursion: a tree may be ten
  // thousand levels deep.
  struct Open {
    std::span<const Member* const> members;
    std::span<const Value> items;
    int outer_indent;
    size_t at = 0;
  };

  void node(const Value& value, bool in_map);
  void step();
  void open_map(std::span<const Member> members);
  void open_list(std::span<const Value> items, bool in_map);
  void key(std::string_view text);
  void text(std::string_view text, bool simple_key);
  void word(std::string_view text);
  void number(double number);
  enum class LineBreaks : uint8_t { Folded, Kept };
  std::string_view checked(std::string_view text, std::string& changed, LineBreaks breaks = LineBreaks::Folded);

  Style style_of(std::string_view text, const Allowed& allowed, bool simple_key);
  void plain(std::string_view text, bool may_fold);
  void single_quoted(std::string_view text, bool may_fold);
  void double_quoted(std::string_view text, bool may_fold);
  void literal(std::string_view text);
  void escape(uint32_t rune);

  void indicator(std::string_view text, bool needs_white, bool is_white, bool keeps_indention) {
    if (needs_white && !white_) put(' ');
    for (const char c : text) put(c);
    white_ = is_white;
    indention_ = indention_ && keeps_indention;
  }
  void write_indent() {
    const size_t indent = indent_ < 0 ? 0 : static_cast<size_t>(indent_);
    if (!indention_ || column_ > indent || (column_ == indent && !white_)) put_break();
    if (column_ < indent) {
      out_.append(indent - column_, ' ');
      column_ = indent;
    }
    white_ = true;
    indention_ = true;
  }
  void put(char c) {
    out_ += c;
    ++column_;
  }
  void put_rune(std::string_view text, size_t& at) {
    const Rune rune = decode_rune(text, at);
    out_ += text.substr(at, rune.length);
    at += rune.length;
    ++column_;
  }
  void put_break() {
    out_ += '\n';
    column_ = 0;
  }
  // A line break in the text itself: only newlines are written as such.
  void copy_break(std::string_view text, size_t& at) {
    put_rune(text, at);
    column_ = 0;
  }

  void fail(std::string problem) {
    if (problem_.empty()) problem_ = "yaml: " + std::move(problem);
  }

  std::string& out_;
  const Raw raw_;
  Arena arena_;  // For sorted members and decoded raw leaves.
  std::vector<Open> open_;
  int indent_ = -1;
  size_t column_ = 0;
  bool white_ = true;      // The last character written was white space or equivalent.
  bool indention_ = true;  // The line contains only indentation and dashes so far.
  std::string problem_;
};

void Writer::node(const Value& value, bool in_map) {
  switch (value.kind()) {
    case Value::Kind::Null:
      return word("null");
    case Value::Kind::Bool:
      return word(value.as_bool() ? "true" : "false");
    case Value::Kind::Int:
      return word(std::to_string(value.as_int()));
    case Value::Kind::Double:
      return number(value.as_double());
    case Value::Kind::String: {
      std::string changed;
      return text(checked(value.as_string(), changed), false);
    }
    case Value::Kind::Raw: {
      // The raw text is part of the JSON response, and read as YAML along with it.
      Result<Value> read =
          raw_ == Raw::Visible ? decode_json(arena_, value.raw_json()) : decode_yaml(arena_, value.raw_json());
      if (!read && raw_ != Raw::Strict) read = decode_json(arena_, value.raw_json());  // With control characters.
      if (read) return node(*read, in_map);
      if (problem_.empty()) problem_ = read.error().message;
      return word("null");
    }
    case Value::Kind::List:
      return open_list(value.items(), in_map);
    case Value::Kind::Map:
      return open_map(value.members());
  }
}

// Writes the next member or item of the innermost open container.
void Writer::step() {
  Open& top = open_.back();
  if (top.at == top.members.size() + top.items.size()) {
    indent_ = top.outer_indent;
    open_.pop_back();
    return;
  }
  const size_t at = top.at++;
  write_indent();
  if (top.items.empty()) {
    const Member* member = top.members[at];
    key(member->key);
    node(member->value, true);
  } else {
    const Value& item = top.items[at];
    indicator("-", true, false, true);
    node(item, false);
  }
}

// The text as read by go-yaml from the JSON.
std::string_view Writer::checked(std::string_view text, std::string& changed, LineBreaks breaks) {
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) > 0 && c != 0x7f; }))
    return text;
  bool has_nel = false;
  bool invalid = false;
  for (size_t at = 0; at < text.size();) {
    const Rune rune = decode_rune(text, at);
    invalid |= !rune.valid;
    has_nel |= rune.valid && rune.value == 0x85;
    if (raw_ == Raw::Strict && rune.valid && is_rejected_by_yaml(rune.value)) {
      fail("control characters are not allowed");
    }
    at += rune.length;
  }
  if (invalid) text = changed = replace_invalid_utf8(text);
  if (has_nel && raw_ != Raw::Visible && breaks == LineBreaks::Folded) text = changed = fold_next_lines(text);
  return text;
}

void Writer::open_map(std::span<const Member> members) {
  if (members.empty()) return indicator("{}", true, false, false);
  const Member** const sorted = arena_.allocate_array<const Member*>(members.size());
  for (size_t i = 0; i < members.size(); ++i) sorted[i] = &members[i];
  // The order is not transitive for mixes of letters and digits. A merge sort stays within bounds nevertheless.
  std::stable_sort(sorted, sorted + members.size(), [](const Member* a, const Member* b) {
    if (is_ascii(a->key) && is_ascii(b->key)) return natural_less(a->key, b->key);
    return natural_less(runes_of(a->key), runes_of(b->key));
  });
  open_.push_back({.members = {sorted, members.size()}, .items = {}, .outer_indent = indent_});
  indent_ = indent_ < 0 ? 0 : indent_ + kIndent;
}

void Writer::key(std::string_view key_text) {
  // A key must be on one line, and a raw NEL ends the line.
  if (raw_ == Raw::Strict && ((key_text.size() > kLongestJsonKey / 6 && json_length(key_text) > kLongestJsonKey) ||
                              key_text.find("\xc2\x85") != std::string_view::npos)) {
    fail("did not find expected ',' or '}'");
  }
  std::string changed;
  const std::string_view name = checked(key_text, changed, LineBreaks::Kept);
  if (name.size() <= kLongestSimpleKey && !analyse(name, raw_).multiline) {
    text(name, true);
    return indicator(":", false, false, false);
  }
  indicator("?", true, false, true);
  text(name, false);
  write_indent();
  indicator(":", true, false, true);
}

void Writer::open_list(std::span<const Value> items, bool in_map) {
  if (items.empty()) return indicator("[]", true, false, false);
  open_.push_back({.members = {}, .items = items, .outer_indent = indent_});
  // A list that is a member's value has the same indentation as the member's key.
  const bool flush = in_map && !indention_;
  if (indent_ < 0) {
    indent_ = 0;
  } else if (!flush) {
    indent_ += kIndent;
  }
}

void Writer::word(std::string_view text) {
  if (!white_) put(' ');
  for (const char c : text) put(c);
  white_ = false;
  indention_ = false;
}

// go-yaml reads the JSON text: integers there are written as integers.
void Writer::number(double number) {
  if (!std::isfinite(number)) return word("null");
  const std::string json = float_text(number, FloatText::Json);
  const YamlScalar scalar = resolve_yaml(json);
  if (scalar.kind == YamlScalar::Kind::Int) return word(std::to_string(scalar.integer));
  if (scalar.kind == YamlScalar::Kind::Uint) return word(std::to_string(scalar.unsigned_integer));
  word(float_text(number, FloatText::Go));
}

Style Writer::style_of(std::string_view text, const Allowed& allowed, bool simple_key) {
  if (text.find('\n') != std::string_view::npos) {
    return allowed.block && !simple_key ? Style::Literal : Style::DoubleQuoted;
  }
  const YamlScalar::Kind kind = resolve_yaml(text).kind;
  if (kind != YamlScalar::Kind::String || is_yaml_base60(text)) return Style::DoubleQuoted;
  if (simple_key && allowed.multiline) return Style::DoubleQuoted;
  if (allowed.plain) return Style::Plain;
  return allowed.single_quoted ? Style::SingleQuoted : Style::DoubleQuoted;
}

void Writer::text(std::string_view text, bool simple_key) {
  const Allowed allowed = analyse(text, raw_);
  const Style style = style_of(text, allowed, simple_key);
  const int outer = indent_;
  indent_ = indent_ < 0 ? kIndent : indent_ + kIndent;
  switch (style) {
    case Style::Plain:
      plain(text, !simple_key);
      break;
    case Style::SingleQuoted:
      single_quoted(text, !simple_key);
      break;
    case Style::DoubleQuoted:
      double_quoted(text, !simple_key);
      break;
    case Style::Literal:
      literal(text);
      break;
  }
  indent_ = outer;
}

void Writer::plain(std::string_view text, bool may_fold) {
  if (!white_) put(' ');
  bool after_space = false;
  for (size_t at = 0; at < text.size();) {
    const bool space = text[at] == ' ';
    if (space && may_fold && !after_space && column_ > kWidth && text[at + 1] != ' ') {
      write_indent();
      ++at;
    } else {
      put_rune(text, at);
    }
    if (!space) indention_ = false;
    after_space = space;
  }
  white_ = false;
  indention_ = false;
}

void Writer::single_quoted(std::string_view text, bool may_fold) {
  indicator("'", true, false, false);
  bool after_space = false;
  bool after_break = false;
  for (size_t at = 0; at < text.size();) {
    const Rune rune = decode_rune(text, at);
    if (text[at] == ' ') {
      if (may_fold && !after_space && column_ > kWidth && at > 0 && at < text.size() - 1 && text[at + 1] != ' ') {
        write_indent();
        ++at;
      } else {
        put_rune(text, at);
      }
      after_space = true;
    } else if (is_break(rune.value)) {
      copy_break(text, at);
      indention_ = true;
      after_break = true;
    } else {
      if (after_break) write_indent();
      if (text[at] == '\'') put('\'');
      put_rune(text, at);
      indention_ = false;
      after_space = false;
      after_break = false;
    }
  }
  indicator("'", false, false, false);
  indention_ = false;
}

void Writer::escape(uint32_t rune) {
  put('\\');
  constexpr struct {
    uint32_t rune;
    char letter;
  } kLetterEscapes[] = {{0x00, '0'},  {0x07, 'a'}, {0x08, 'b'}, {0x09, 't'},   {0x0a, 'n'},
                        {0x0b, 'v'},  {0x0c, 'f'}, {0x0d, 'r'}, {0x1b, 'e'},   {0x22, '"'},
                        {0x5c, '\\'}, {0x85, 'N'}, {0xa0, '_'}, {0x2028, 'L'}, {0x2029, 'P'}};
  for (const auto& known : kLetterEscapes) {
    if (known.rune == rune) return put(known.letter);
  }
  const int digits = rune <= 0xff ? 2 : rune <= 0xffff ? 4 : 8;
  put(digits == 2 ? 'x' : digits == 4 ? 'u' : 'U');
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) put("0123456789ABCDEF"[rune >> shift & 15]);
}

void Writer::double_quoted(std::string_view text, bool may_fold) {
  indicator("\"", true, false, false);
  // go-yaml checks for a byte order mark at the start of the text for every character.
  const bool escape_all = text.starts_with("\xef\xbb\xbf");
  bool after_space = false;
  for (size_t at = 0; at < text.size();) {
    const Rune rune = decode_rune(text, at);
    if (escape_all || !is_printable(rune.value, raw_) || is_break(rune.value) || rune.value == '"' ||
        rune.value == '\\') {
      escape(rune.value);
      at += rune.length;
      after_space = false;
    } else if (rune.value == ' ') {
      if (may_fold && !after_space && column_ > kWidth && at > 0 && at < text.size() - 1) {
        write_indent();
        if (text[at + 1] == ' ') put('\\');
        ++at;
      } else {
        put_rune(text, at);
      }
      after_space = true;
    } else {
      put_rune(text, at);
      after_space = false;
    }
  }
  indicator("\"", false, false, false);
  indention_ = false;
}

void Writer::literal(std::string_view text) {
  indicator("|", true, false, false);
  const Rune first = decode_rune(text, 0);
  if (first.value == ' ' || is_break(first.value)) indicator("2", false, false, false);
  // Chomping: the text ends without a break, with one (the default), or with more.
  size_t runes = 0;
  bool last_break = false;
  bool before_last_break = false;
  for (size_t at = 0; at < text.size(); ++runes) {
    const Rune rune = decode_rune(text, at);
    before_last_break = last_break;
    last_break = is_break(rune.value);
    at += rune.length;
  }
  if (!last_break) {
    indicator("-", false, false, false);
  } else if (runes == 1 || before_last_break) {
    indicator("+", false, false, false);
  }
  put_break();
  indention_ = true;
  white_ = true;
  bool after_break = true;
  for (size_t at = 0; at < text.size();) {
    const Rune rune = decode_rune(text, at);
    if (is_break(rune.value)) {
      copy_break(text, at);
      indention_ = true;
      after_break = true;
    } else {
      if (after_break) write_indent();
      put_rune(text, at);
      indention_ = false;
      after_break = false;
    }
  }
}

}  // namespace

namespace {

Result<Unit> encode(const Value& value, std::string& out, Raw raw) {
  const size_t before = out.size();
  Writer writer(out, raw);
  if (writer.document(value)) return Unit{};
  out.resize(before);
  return internal_error(writer.problem());
}

}  // namespace

Result<Unit> encode_yaml(const Value& value, std::string& out) { return encode(value, out, Raw::Strict); }

Result<Unit> encode_yaml_item(const Value& value, std::string& out) { return encode(value, out, Raw::AsGo); }

Result<Unit> encode_visible_yaml(const Value& value, std::string& out) { return encode(value, out, Raw::Visible); }

}  // namespace holdfast::codec
