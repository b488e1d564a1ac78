#include "codec/yaml_scanner.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/ascii.h"
#include "base/text.h"
#include "codec/json.h"
#include "codec/text.h"

namespace holdfast::codec {
namespace {

using Type = YamlToken::Type;

constexpr size_t kReadAhead = 512;  // go-yaml reads its input in chunks of this size and rejects whole chunks.
constexpr size_t kLookAhead = 8;    // Zeros after the text.
constexpr size_t kLongestKey = 1024;

bool is_word(char c) { return is_alnum(c) || c == '_' || c == '-'; }

bool is_allowed(uint32_t rune) {
  return rune == '\t' || rune == '\n' || rune == '\r' || (rune >= 0x20 && rune <= 0x7e) || rune == 0x85 ||
         (rune >= 0xa0 && rune <= 0xfffd) || rune >= 0x10000;
}

// The reader's error for the bytes at `at` if they are not an accepted character; otherwise empty.
std::string_view refusal(std::string_view text, size_t at, size_t& length) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char first = byte(0);
  length = first < 0x80 ? 1 : (first & 0xe0) == 0xc0 ? 2 : (first & 0xf0) == 0xe0 ? 3 : (first & 0xf8) == 0xf0 ? 4 : 0;
  if (length == 0) return "invalid leading UTF-8 octet";
  if (length > text.size() - at) return "incomplete UTF-8 octet sequence";
  uint32_t rune = length == 1 ? first : first & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return "invalid trailing UTF-8 octet";
    rune = rune << 6 | (byte(i) & 0x3f);
  }
  if ((length == 2 && rune < 0x80) || (length == 3 && rune < 0x800) || (length == 4 && rune < 0x10000)) {
    return "invalid length of a UTF-8 sequence";
  }
  if ((rune >= 0xd800 && rune < 0xe000) || rune > 0x10ffff) return "invalid Unicode character";
  if (!is_allowed(rune)) return "control characters are not allowed";
  return {};
}

// Characters that are part of a plain scalar wherever they occur in it.
constexpr auto kPlainRun = [] {
  std::array<bool, 256> safe{};
  for (int c = 0x21; c < 0x7f; ++c) safe[static_cast<size_t>(c)] = true;
  for (const unsigned char c : {':', '#', ',', '?', '[', ']', '{', '}'}) safe[c] = false;
  return safe;
}();

// Joins lines: a single break becomes a space, further ones are kept.
void fold(std::string& text, std::string& leading_break, std::string& trailing_breaks) {
  if (leading_break.starts_with('\n')) {
    if (trailing_breaks.empty()) {
      text += ' ';
    } else {
      text += trailing_breaks;
    }
  } else {
    text += leading_break;
    text += trailing_breaks;
  }
  leading_break.clear();
  trailing_breaks.clear();
}

}  // namespace

YamlScanner::YamlScanner(Arena& arena, std::string_view source) : arena_(arena) {
  // go-yaml reads empty input as an empty line.
  if (source.empty()) source = "\n";
  if (source.starts_with("\xff\xfe")) {
    load_utf16(source.substr(2), true);
  } else if (source.starts_with("\xfe\xff")) {
    load_utf16(source.substr(2), false);
  } else {
    if (source.starts_with("\xef\xbb\xbf")) source.remove_prefix(3);
    load(source);
  }
}

bool YamlScanner::load(std::string_view source) {
  char* const copy = arena_.allocate_array<char>(source.size() + kLookAhead);
  std::memcpy(copy, source.data(), source.size());
  std::memset(copy + source.size(), 0, kLookAhead);
  p_ = copy;
  for (size_t at = 0; at < source.size();) {
    const auto c = static_cast<unsigned char>(source[at]);
    if ((c >= 0x20 && c < 0x7f) || c == '\n') {
      ++at;
      continue;
    }
    size_t length = 0;
    const std::string_view problem = refusal(source, at, length);
    if (!problem.empty()) {
      reader_problem_ = problem;
      // Everything before the rejected chunk is read, or, if the input ends within a character, everything before that
      // character.
      limit_ = copy + (length > source.size() - at ? at : at / kReadAhead * kReadAhead);
      while (limit_ > copy && (*limit_ & '\xc0') == '\x80' && limit_ < copy + at) --limit_;
      break;
    }
    at += length;
  }
  return true;
}

bool YamlScanner::load_utf16(std::string_view source, bool little_endian) {
  std::string text;
  const auto unit = [&](size_t at) {
    const auto a = static_cast<unsigned char>(source[at]);
    const auto b = static_cast<unsigned char>(source[at + 1]);
    return static_cast<uint32_t>(little_endian ? a | b << 8 : b | a << 8);
  };
  std::string_view problem;
  for (size_t at = 0; at < source.size() && problem.empty(); at += 2) {
    if (source.size() - at < 2) {
      problem = "incomplete UTF-16 character";
      break;
    }
    uint32_t rune = unit(at);
    if ((rune & 0xfc00) == 0xdc00) {
      problem = "unexpected low surrogate area";
    } else if ((rune & 0xfc00) == 0xd800) {
      if (source.size() - at < 4) {
        problem = "incomplete UTF-16 surrogate pair";
        break;
      }
      const uint32_t low = unit(at + 2);
      if ((low & 0xfc00) != 0xdc00) problem = "expected low surrogate area";
      rune = 0x10000 + ((rune & 0x3ff) << 10) + (low & 0x3ff);
      at += 2;
    }
    if (problem.empty() && !is_allowed(rune)) problem = "control characters are not allowed";
    if (problem.empty()) append_utf8(text, rune);
  }
  load(text);
  if (!problem.empty()) {
    reader_problem_ = problem;
    limit_ = p_ + text.size() / kReadAhead * kReadAhead;
  }
  return true;
}

bool YamlScanner::refuse_input() {
  problem_ = reader_problem_;
  return false;
}

// go-yaml counts lines from 0 in marks, adds one in the scanner's own errors, and does not name line 0.
bool YamlScanner::fail(const YamlMark& context, std::string_view problem) {
  const size_t line = mark_.line != 0 ? mark_.line + 1 : context.line;
  problem_ = (line == 0 ? "" : "line " + std::to_string(line) + ": ") + std::string(problem);
  return false;
}

void YamlScanner::append(Type type, const YamlMark& start, std::string_view value, std::string_view suffix) {
  tokens_.push_back({.type = type, .start = start, .end = mark_, .value = value, .suffix = suffix});
}

void YamlScanner::skip_line() {
  if (p_[0] == '\r' && p_[1] == '\n') {
    mark_.index += 2;
    p_ += 2;
  } else {
    ++mark_.index;
    p_ += width(at());
  }
  mark_.column = 0;
  ++mark_.line;
}

void YamlScanner::read_line(std::string& to) {
  if (!is_break()) return;
  // Unicode separators are kept; every other break becomes a newline.
  if (at() == 0xe2) {
    to.append(p_, 3);
  } else {
    to += '\n';
  }
  skip_line();
}

const YamlToken* YamlScanner::peek() {
  if (!enough_ && !fetch_enough()) return nullptr;
  return &tokens_[head_];
}

void YamlScanner::take() {
  enough_ = false;
  ++taken_;
  if (++head_ == tokens_.size()) {
    tokens_.clear();
    head_ = 0;
  }
}

bool YamlScanner::fetch_enough() {
  for (;;) {
    if (head_ != tokens_.size()) {
      const auto key = keys_by_token_.find(taken_);
      if (key == keys_by_token_.end() || key->second >= simple_keys_.size()) break;
      bool valid = false;
      if (!simple_key_valid(simple_keys_[key->second], valid)) return false;
      if (!valid) break;
    }
    if (!fetch()) return false;
  }
  enough_ = true;
  return true;
}

bool YamlScanner::fetch() {
  if (!readable()) return false;
  if (!started_) {
    started_ = true;
    key_allowed_ = true;
    simple_keys_.push_back({});
    append(Type::StreamStart, mark_);
    return true;
  }
  if (!skip_to_token()) return false;
  unroll_indent(static_cast<int64_t>(mark_.column));
  if (!readable()) return false;
  if (is_z()) return fetch_stream_end();
  const char c = *p_;
  const bool flow = flow_level_ > 0;
  if (mark_.column == 0 && c == '%') return fetch_directive();
  if (is_document_mark('-')) return fetch_document_mark(Type::DocumentStart);
  if (is_document_mark('.')) return fetch_document_mark(Type::DocumentEnd);
  switch (c) {
    case '[':
      return fetch_flow_start(Type::FlowListStart);
    case '{':
      return fetch_flow_start(Type::FlowMapStart);
    case ']':
      return fetch_flow_end(Type::FlowListEnd);
    case '}':
      return fetch_flow_end(Type::FlowMapEnd);
    case ',':
      return fetch_flow_entry();
    case '-':
      return is_blankz(1) ? fetch_block_entry() : fetch_plain();
    case '?':
      return flow || is_blankz(1) ? fetch_key() : fetch_plain();
    case ':':
      return flow || is_blankz(1) ? fetch_value() : fetch_plain();
    case '*':
      return fetch_anchor(Type::Alias);
    case '&':
      return fetch_anchor(Type::Anchor);
    case '!':
      return fetch_tag();
    case '|':
    case '>':
      if (!flow) return fetch_block_scalar(c == '|');
      break;
    case '\'':
    case '"':
      return fetch_quoted(c == '\'');
    case '#':
    case '%':
    case '@':
    case '`':
    case '\t':
      break;
    default:
      return fetch_plain();
  }
  return fail(mark_, "found character that cannot start any token");
}

bool YamlScanner::skip_to_token() {
  for (;;) {
    if (!readable()) return false;
    // Tabs may separate but not indent: where a key may start, they are not white space.
    while (*p_ == ' ' || (*p_ == '\t' && (flow_level_ > 0 || !key_allowed_))) {
      skip();
      if (!readable()) return false;
    }
    if (*p_ == '#') {
      while (!is_breakz()) {
        skip();
        if (!readable()) return false;
      }
    }
    if (!is_break()) return true;
    skip_line();
    if (flow_level_ == 0) key_allowed_ = true;
  }
}

// --- Simple keys and indentation ---

bool YamlScanner::simple_key_valid(SimpleKey& key, bool& valid) {
  valid = key.possible;
  if (!valid) return true;
  if (key.mark.line < mark_.line || key.mark.index + kLongestKey < mark_.index) {
    if (key.required) return fail(key.mark, "could not find expected ':'");
    key.possible = valid = false;
  }
  return true;
}

bool YamlScanner::save_simple_key() {
  if (!key_allowed_) return true;
  const bool required = flow_level_ == 0 && indent_ == static_cast<int64_t>(mark_.column);
  const SimpleKey key{.possible = true, .required = required, .token = next_number(), .mark = mark_};
  if (!remove_simple_key()) return false;
  simple_keys_.back() = key;
  keys_by_token_[key.token] = simple_keys_.size() - 1;
  return true;
}

bool YamlScanner::remove_simple_key() {
  SimpleKey& key = simple_keys_.back();
  if (!key.possible) return true;
  if (key.required) return fail(key.mark, "could not find expected ':'");
  key.possible = false;
  keys_by_token_.erase(key.token);
  return true;
}

// Opens a block collection at `column` if that is deeper than the enclosing one. Its token is inserted before token
// number `number`, or appended if that is -1.
bool YamlScanner::roll_indent(int64_t column, int64_t number, Type type, const YamlMark& mark) {
  if (flow_level_ > 0 || indent_ >= column) return true;
  indents_.push_back(indent_);
  indent_ = column;
  if (indents_.size() > kMaxDepth) {
    return fail(simple_keys_.back().mark, "exceeded max depth of " + std::to_string(kMaxDepth));
  }
  const YamlToken token{.type = type, .start = mark, .end = mark, .value = {}, .suffix = {}};
  const int64_t before = number < 0 ? -1 : number - static_cast<int64_t>(taken_);
  if (before < 0) {
    tokens_.push_back(token);
  } else {
    tokens_.insert(tokens_.begin() + static_cast<int64_t>(head_) + before, token);
  }
  return true;
}

void YamlScanner::unroll_indent(int64_t column) {
  if (flow_level_ > 0) return;
  while (indent_ > column) {
    append(Type::BlockEnd, mark_);
    indent_ = indents_.back();
    indents_.pop_back();
  }
}

// --- Tokens ---

bool YamlScanner::fetch_stream_end() {
  if (mark_.column != 0) {
    mark_.column = 0;
    ++mark_.line;
  }
  unroll_indent(-1);
  if (!remove_simple_key()) return false;
  key_allowed_ = false;
  append(Type::StreamEnd, mark_);
  return true;
}

bool YamlScanner::fetch_directive() {
  unroll_indent(-1);
  if (!remove_simple_key()) return false;
  key_allowed_ = false;
  const YamlMark start = mark_;
  skip();
  std::string name;
  while (is_word(at())) read(name);
  if (!readable()) return false;
  if (name.empty()) return fail(start, "could not find expected directive name");
  if (!is_blankz()) return fail(start, "found unexpected non-alphabetical character");
  YamlToken token;
  token.start = start;
  if (name == "YAML") {
    token.type = Type::Version;
    skip_blanks();
    if (!scan_version_number(start, token.major)) return false;
    if (*p_ != '.') return fail(start, "did not find expected digit or '.' character");
    skip();
    if (!scan_version_number(start, token.minor)) return false;
  } else if (name == "TAG") {
    token.type = Type::TagDirective;
    skip_blanks();
    std::string handle;
    std::string prefix;
    if (!scan_tag_handle(true, start, handle)) return false;
    if (!is_blank()) return fail(start, "did not find expected whitespace");
    skip_blanks();
    if (!scan_tag_uri(true, {}, start, prefix)) return false;
    if (!is_blankz()) return fail(start, "did not find expected whitespace or line break");
    token.value = arena_.copy(handle);
    token.suffix = arena_.copy(prefix);
  } else {
    return fail(start, "found unknown directive name");
  }
  token.end = mark_;
  skip_blanks();
  skip_comment();
  if (!readable()) return false;
  if (!is_breakz()) return fail(start, "did not find expected comment or line break");
  if (is_break()) skip_line();
  append(token);
  return true;
}

bool YamlScanner::scan_version_number(const YamlMark& start, uint8_t& number) {
  size_t digits = 0;
  for (number = 0; is_digit(at()); skip()) {
    if (++digits > 2) return fail(start, "found extremely long version number");
    number = static_cast<uint8_t>(number * 10 + (at() - '0'));
  }
  return digits > 0 || fail(start, "did not find expected version number");
}

bool YamlScanner::fetch_document_mark(Type type) {
  unroll_indent(-1);
  if (!remove_simple_key()) return false;
  key_allowed_ = false;
  const YamlMark start = mark_;
  skip();
  skip();
  skip();
  append(type, start);
  return true;
}

// Appends the token of a single character.
bool YamlScanner::append_indicator(Type type) {
  const YamlMark start = mark_;
  skip();
  append(type, start);
  return true;
}

// What begins here may begin a block collection, unless this is inside a flow collection.
bool YamlScanner::begin_block(Type start, std::string_view refusal) {
  if (flow_level_ > 0) return true;
  if (!key_allowed_) return fail(mark_, refusal);
  return roll_indent(static_cast<int64_t>(mark_.column), -1, start, mark_);
}

bool YamlScanner::fetch_flow_start(Type type) {
  if (!save_simple_key()) return false;
  simple_keys_.push_back({.token = next_number(), .mark = mark_});
  if (++flow_level_ > kMaxDepth) return fail(mark_, "exceeded max depth of " + std::to_string(kMaxDepth));
  key_allowed_ = true;
  return append_indicator(type);
}

bool YamlScanner::fetch_flow_end(Type type) {
  if (!remove_simple_key()) return false;
  if (flow_level_ > 0) {
    --flow_level_;
    // A level that never had a key has the number of its opening bracket: erasing it means that the bracket is no
    // longer held back as a possible key, which is why go-yaml rejects "[]: x" and the like.
    keys_by_token_.erase(simple_keys_.back().token);
    simple_keys_.pop_back();
  }
  key_allowed_ = false;
  return append_indicator(type);
}

bool YamlScanner::fetch_flow_entry() {
  if (!remove_simple_key()) return false;
  key_allowed_ = true;
  return append_indicator(Type::FlowEntry);
}

bool YamlScanner::fetch_block_entry() {
  if (!begin_block(Type::BlockListStart, "block sequence entries are not allowed in this context")) return false;
  if (!remove_simple_key()) return false;
  key_allowed_ = true;
  return append_indicator(Type::BlockEntry);
}

bool YamlScanner::fetch_key() {
  if (!begin_block(Type::BlockMapStart, "mapping keys are not allowed in this context")) return false;
  if (!remove_simple_key()) return false;
  key_allowed_ = flow_level_ == 0;
  return append_indicator(Type::Key);
}

bool YamlScanner::fetch_value() {
  SimpleKey& key = simple_keys_.back();
  bool valid = false;
  if (!simple_key_valid(key, valid)) return false;
  if (valid) {
    // The colon confirms that there is a key before it.
    const YamlToken token{.type = Type::Key, .start = key.mark, .end = key.mark, .value = {}, .suffix = {}};
    const auto before = static_cast<int64_t>(key.token) - static_cast<int64_t>(taken_);
    if (before < 0) {
      tokens_.push_back(token);
    } else {
      tokens_.insert(tokens_.begin() + static_cast<int64_t>(head_) + before, token);
    }
    if (!roll_indent(static_cast<int64_t>(key.mark.column), static_cast<int64_t>(key.token), Type::BlockMapStart,
                     key.mark)) {
      return false;
    }
    key.possible = false;
    keys_by_token_.erase(key.token);
    key_allowed_ = false;
  } else {
    if (!begin_block(Type::BlockMapStart, "mapping values are not allowed in this context")) return false;
    key_allowed_ = flow_level_ == 0;
  }
  return append_indicator(Type::Value);
}

bool YamlScanner::fetch_anchor(Type type) {
  if (!save_simple_key()) return false;
  key_allowed_ = false;
  const YamlMark start = mark_;
  skip();
  const char* const name = p_;
  while (is_word(at())) skip();
  if (!readable()) return false;
  const auto length = static_cast<size_t>(p_ - name);
  if (length == 0 || !(is_blankz() || std::strchr("?:,]}%@`", *p_) != nullptr)) {
    return fail(start, "did not find expected alphabetic or numeric character");
  }
  append(type, start, {name, length});
  return true;
}

bool YamlScanner::fetch_tag() {
  if (!save_simple_key()) return false;
  key_allowed_ = false;
  const YamlMark start = mark_;
  std::string handle;
  std::string suffix;
  if (p_[1] == '<') {
    skip();
    skip();
    if (!scan_tag_uri(false, {}, start, suffix)) return false;
    if (*p_ != '>') return fail(start, "did not find the expected '>'");
    skip();
  } else {
    if (!scan_tag_handle(false, start, handle)) return false;
    if (handle.size() > 1 && handle.ends_with('!')) {
      if (!scan_tag_uri(false, {}, start, suffix)) return false;
    } else {
      // "!name" is the handle "!" and the rest; "!" alone is a tag of its own.
      if (!scan_tag_uri(false, handle, start, suffix)) return false;
      handle = "!";
      if (suffix.empty()) std::swap(handle, suffix);
    }
  }
  if (!readable()) return false;
  if (!is_blankz()) return fail(start, "did not find expected whitespace or line break");
  append(Type::Tag, start, arena_.copy(handle), arena_.copy(suffix));
  return true;
}

bool YamlScanner::scan_tag_handle(bool directive, const YamlMark& start, std::string& handle) {
  if (!readable()) return false;
  if (*p_ != '!') return fail(start, "did not find expected '!'");
  read(handle);
  while (is_word(at())) read(handle);
  if (!readable()) return false;
  if (*p_ == '!') {
    read(handle);
  } else if (directive && handle != "!") {
    return fail(start, "did not find expected '!'");
  }
  return true;
}

bool YamlScanner::scan_tag_uri(bool directive, std::string_view head, const YamlMark& start, std::string& uri) {
  static_cast<void>(directive);
  bool any = !head.empty();
  if (head.size() > 1) uri = head.substr(1);
  while (!is_z() && (is_word(at()) || std::strchr(";/?:@&=+$,.!~*'()[]%", *p_) != nullptr)) {
    if (!readable()) return false;
    any = true;
    if (*p_ != '%') {
      read(uri);
      continue;
    }
    // The octets of one UTF-8 character, each escaped.
    size_t left = 1;
    for (bool first = true; left > 0; first = false, --left) {
      if (*p_ != '%' || !is_hex(at(1)) || !is_hex(at(2))) return fail(start, "did not find URI escaped octet");
      const auto octet = static_cast<unsigned char>(hex_value(at(1)) << 4 | hex_value(at(2)));
      if (first) {
        left = octet < 0x80             ? 1
               : (octet & 0xe0) == 0xc0 ? 2
               : (octet & 0xf0) == 0xe0 ? 3
               : (octet & 0xf8) == 0xf0 ? 4
                                        : 0;
        if (left == 0) return fail(start, "found an incorrect leading UTF-8 octet");
      } else if ((octet & 0xc0) != 0x80) {
        return fail(start, "found an incorrect trailing UTF-8 octet");
      }
      uri += static_cast<char>(octet);
      skip();
      skip();
      skip();
    }
  }
  return any || fail(start, "did not find expected tag URI");
}

// --- Scalars ---

bool YamlScanner::fetch_block_scalar(bool literal) {
  if (!remove_simple_key()) return false;
  key_allowed_ = true;
  const YamlMark start = mark_;
  skip();
  int chomping = 0;
  size_t increment = 0;
  // A chomping and an indentation indicator, in either order.
  for (int i = 0; i < 2; ++i) {
    if (chomping == 0 && (*p_ == '+' || *p_ == '-')) {
      chomping = *p_ == '+' ? 1 : -1;
      skip();
    } else if (increment == 0 && is_digit(at())) {
      if (*p_ == '0') return fail(start, "found an indentation indicator equal to 0");
      increment = static_cast<size_t>(at() - '0');
      skip();
    }
  }
  skip_blanks();
  if (!readable()) return false;
  skip_comment();
  if (!readable()) return false;
  if (!is_breakz()) return fail(start, "did not find expected comment or line break");
  if (is_break()) skip_line();

  size_t indent = increment == 0 ? 0 : increment + static_cast<size_t>(std::max<int64_t>(indent_, 0));
  std::string text;
  std::string leading_break;
  std::string trailing_breaks;
  if (!scan_block_breaks(indent, trailing_breaks, start)) return false;
  bool after_blank = false;
  while (mark_.column == indent && !is_z()) {
    const bool blank = is_blank();
    if (!literal && leading_break.starts_with('\n') && !after_blank && !blank) {
      if (trailing_breaks.empty()) text += ' ';
    } else {
      text += leading_break;
    }
    leading_break.clear();
    text += trailing_breaks;
    trailing_breaks.clear();
    after_blank = blank;
    while (!is_breakz()) {
      read(text);
      if (!readable()) return false;
    }
    read_line(leading_break);
    if (!scan_block_breaks(indent, trailing_breaks, start)) return false;
  }
  if (chomping != -1) text += leading_break;
  if (chomping == 1) text += trailing_breaks;
  append(Type::Scalar, start, arena_.copy(text));
  return true;
}

// Skips empty lines before the next line of the text; determines the indentation if `indent` is 0.
bool YamlScanner::scan_block_breaks(size_t& indent, std::string& breaks, const YamlMark& start) {
  size_t deepest = 0;
  for (;;) {
    if (!readable()) return false;
    while ((indent == 0 || mark_.column < indent) && *p_ == ' ') {
      skip();
      if (!readable()) return false;
    }
    deepest = std::max(deepest, mark_.column);
    if ((indent == 0 || mark_.column < indent) && *p_ == '\t') {
      return fail(start, "found a tab character where an indentation space is expected");
    }
    if (!is_break()) break;
    read_line(breaks);
  }
  if (indent == 0) indent = std::max({deepest, static_cast<size_t>(indent_ + 1), size_t{1}});
  return true;
}

bool YamlScanner::scan_escape(const YamlMark& start, std::string& text) {
  size_t digits = 0;
  switch (p_[1]) {
    case '0':
      text += '\0';
      break;
    case 'a':
      text += '\a';
      break;
    case 'b':
      text += '\b';
      break;
    case 't':
    case '\t':
      text += '\t';
      break;
    case 'n':
      text += '\n';
      break;
    case 'v':
      text += '\v';
      break;
    case 'f':
      text += '\f';
      break;
    case 'r':
      text += '\r';
      break;
    case 'e':
      text += '\x1b';
      break;
    case ' ':
    case '"':
    case '\'':
    case '\\':
      text += p_[1];
      break;
    case 'N':
      append_utf8(text, 0x85);
      break;
    case '_':
      append_utf8(text, 0xa0);
      break;
    case 'L':
      append_utf8(text, 0x2028);
      break;
    case 'P':
      append_utf8(text, 0x2029);
      break;
    case 'x':
      digits = 2;
      break;
    case 'u':
      digits = 4;
      break;
    case 'U':
      digits = 8;
      break;
    default:
      return fail(start, "found unknown escape character");
  }
  skip();
  skip();
  if (digits == 0) return true;
  uint32_t code = 0;
  for (size_t i = 0; i < digits; ++i) {
    if (!is_hex(at(i))) return fail(start, "did not find expected hexdecimal number");
    code = code << 4 | static_cast<uint32_t>(hex_value(at(i)));
  }
  if ((code >= 0xd800 && code < 0xe000) || code > 0x10ffff) {
    return fail(start, "found invalid Unicode character escape code");
  }
  append_utf8(text, code);
  for (size_t i = 0; i < digits; ++i) skip();
  return true;
}

bool YamlScanner::fetch_quoted(bool single) {
  if (!save_simple_key()) return false;
  key_allowed_ = false;
  const YamlMark start = mark_;
  const char quote = single ? '\'' : '"';
  skip();
  // Most are plain ASCII on one line, and need no copy.
  const char* const begin = p_;
  const char* simple_end = begin;
  while (*simple_end >= ' ' && *simple_end != quote && *simple_end != '\\' && *simple_end != 0x7f) ++simple_end;
  if (*simple_end == quote && !(single && simple_end[1] == quote) && limit_ == nullptr) {
    const auto length = static_cast<size_t>(simple_end - begin);
    mark_.index += length + 1;
    mark_.column += length + 1;
    p_ = simple_end + 1;
    append(Type::Scalar, start, {begin, length});
    return true;
  }
  std::string text;
  std::string leading_break;
  std::string trailing_breaks;
  std::string white;
  for (;;) {
    if (!readable()) return false;
    if (is_document_mark('-') || is_document_mark('.')) return fail(start, "found unexpected document indicator");
    if (is_z()) return fail(start, "found unexpected end of stream");
    bool after_break = false;
    while (!is_blankz()) {
      if (single && p_[0] == '\'' && p_[1] == '\'') {
        text += '\'';
        skip();
        skip();
      } else if (*p_ == quote) {
        break;
      } else if (!single && *p_ == '\\' && is_break(1)) {
        skip();
        skip_line();
        after_break = true;
        break;
      } else if (!single && *p_ == '\\') {
        if (!scan_escape(start, text)) return false;
      } else {
        read(text);
      }
      if (!readable()) return false;
    }
    if (*p_ == quote) break;
    while (is_blank() || is_break()) {
      if (is_blank()) {
        if (!after_break) {
          read(white);
        } else {
          skip();
        }
      } else if (!after_break) {
        white.clear();
        read_line(leading_break);
        after_break = true;
      } else {
        read_line(trailing_breaks);
      }
      if (!readable()) return false;
    }
    if (after_break) {
      fold(text, leading_break, trailing_breaks);
    } else {
      text += white;
      white.clear();
    }
  }
  skip();
  append(Type::Scalar, start, arena_.copy(text));
  return true;
}

bool YamlScanner::fetch_plain() {
  if (!save_simple_key()) return false;
  key_allowed_ = false;
  const YamlMark start = mark_;
  YamlMark end = mark_;
  const char* const begin = p_;
  const auto indent = static_cast<size_t>(indent_ + 1);
  const bool flow = flow_level_ > 0;
  // As long as the text is contiguous in the source, only its end is tracked.
  const char* view_end = p_;
  bool is_view = true;
  std::string text;
  std::string leading_break;
  std::string trailing_breaks;
  std::string white;
  bool after_break = false;
  for (;;) {
    if (!readable()) return false;
    if (is_document_mark('-') || is_document_mark('.') || *p_ == '#') break;
    while (!is_blankz()) {
      const char c = *p_;
      if ((c == ':' && is_blankz(1)) ||
          (flow && (c == ',' || c == '?' || c == '[' || c == ']' || c == '{' || c == '}')))
        break;
      if (after_break) {
        if (is_view) text.assign(begin, view_end);
        is_view = false;
        fold(text, leading_break, trailing_breaks);
        after_break = false;
      } else if (!is_view) {
        text += white;
      }
      white.clear();
      if (is_view) {
        skip();
        if (limit_ == nullptr) {
          const char* run = p_;
          while (kPlainRun[static_cast<unsigned char>(*run)]) ++run;
          mark_.index += static_cast<size_t>(run - p_);
          mark_.column += static_cast<size_t>(run - p_);
          p_ = run;
        }
        view_end = p_;
      } else {
        read(text);
      }
      end = mark_;
      if (!readable()) return false;
    }
    if (!is_blank() && !is_break()) break;
    while (is_blank() || is_break()) {
      if (is_blank()) {
        if (after_break && mark_.column < indent && *p_ == '\t') {
          return fail(start, "found a tab character that violates indentation");
        }
        if (after_break || is_view) {
          skip();
        } else {
          read(white);
        }
      } else if (!after_break) {
        white.clear();
        read_line(leading_break);
        after_break = true;
      } else {
        read_line(trailing_breaks);
      }
      if (!readable()) return false;
    }
    if (!flow && mark_.column < indent) break;
  }
  const std::string_view value =
      is_view ? std::string_view(begin, static_cast<size_t>(view_end - begin)) : arena_.copy(text);
  tokens_.push_back({.type = Type::Scalar, .plain = true, .start = start, .end = end, .value = value, .suffix = {}});
  if (after_break) key_allowed_ = true;
  return true;
}

}  // namespace holdfast::codec
