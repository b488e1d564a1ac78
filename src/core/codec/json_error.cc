#include "codec/json_error.h"

#include "base/text.h"
#include "codec/json_parse.h"

namespace holdfast::codec {
namespace {

// 'x' as Go's JSON errors show a byte, treating it as a code point.
std::string quote_byte(char c) {
  if (c == '\'') return "'\\''";
  if (c == '"') return "'\"'";
  std::string rune;
  append_utf8(rune, static_cast<unsigned char>(c));
  std::string quoted = go_quote(rune);
  quoted.front() = quoted.back() = '\'';
  return quoted;
}

// A slow parser that exists only to produce the message: like Go's scanner, it goes byte by byte and knows what was
// expected at each.
class Explainer {
 public:
  explicit Explainer(std::string_view source) : source_(source) {}

  JsonError find() {
    if (value() && trailing()) return {};
    return {std::move(message_), at_};
  }

 private:
  bool value();
  bool text();
  bool number();
  bool word(std::string_view word);
  bool trailing() {
    space();
    return at_ == source_.size() || wrong("after top-level value");
  }

  void space() {
    while (at_ < source_.size() && is_json_space(source_[at_])) ++at_;
  }
  bool more() {
    if (at_ < source_.size()) return true;
    message_ = "unexpected end of JSON input";
    return false;
  }
  // The byte at the cursor. Go feeds its scanner a space at the end of the input, so that is what it reports for a
  // truncated number, literal or escape.
  char peek() const { return at_ < source_.size() ? source_[at_] : ' '; }
  // Reports the byte at the cursor.
  bool wrong(std::string_view context) {
    message_ = "invalid character " + quote_byte(peek()) + " " + std::string(context);
    if (at_ < source_.size()) ++at_;
    return false;
  }

  std::string_view source_;
  size_t at_ = 0;
  std::string message_;
};

bool Explainer::value() {
  std::string open;
  for (;;) {
    space();
    if (!more()) return false;
    const char c = source_[at_];
    bool complete = false;
    if (c == '{' || c == '[') {
      if (open.size() >= kMaxDepth) return wrong("exceeded max depth");
      ++at_;
      open.push_back(c);
      space();
      if (!more()) return false;
      if (source_[at_] == (c == '{' ? '}' : ']')) {
        ++at_;
        open.pop_back();
        complete = true;
      }
    } else if (c == '"') {
      if (!text()) return false;
      complete = true;
    } else if (c == '-' || is_digit(c)) {
      if (!number()) return false;
      complete = true;
    } else if (c == 't' || c == 'f' || c == 'n') {
      if (!word(c == 't' ? "true" : c == 'f' ? "false" : "null")) return false;
      complete = true;
    } else {
      return wrong("looking for beginning of value");
    }
    bool key_next = !complete && open.back() == '{';
    while (complete) {
      if (open.empty()) return true;
      space();
      if (!more()) return false;
      const bool map = open.back() == '{';
      if (source_[at_] == ',') {
        ++at_;
        key_next = map;
        break;
      }
      if (source_[at_] != (map ? '}' : ']')) return wrong(map ? "after object key:value pair" : "after array element");
      ++at_;
      open.pop_back();
    }
    if (key_next) {
      space();
      if (!more()) return false;
      if (source_[at_] != '"') return wrong("looking for beginning of object key string");
      if (!text()) return false;
      space();
      if (!more()) return false;
      if (source_[at_] != ':') return wrong("after object key");
      ++at_;
    }
  }
}

bool Explainer::text() {
  ++at_;
  for (;;) {
    if (!more()) return false;
    const char c = source_[at_];
    if (c == '"') {
      ++at_;
      return true;
    }
    if (static_cast<unsigned char>(c) < 0x20) return wrong("in string literal");
    ++at_;
    if (c != '\\') continue;
    if (peek() == 'u') {
      ++at_;
      for (int i = 0; i < 4; ++i, ++at_) {
        if (!is_hex(peek())) return wrong("in \\u hexadecimal character escape");
      }
    } else if (std::string_view("\"\\/bfnrt").find(peek()) != std::string_view::npos) {
      ++at_;
    } else {
      return wrong("in string escape code");
    }
  }
}

bool Explainer::number() {
  const auto digits = [this] {
    while (at_ < source_.size() && is_digit(source_[at_])) ++at_;
  };
  if (source_[at_] == '-') {
    ++at_;
    if (!is_digit(peek())) return wrong("in numeric literal");
  }
  if (source_[at_] == '0') {
    ++at_;
  } else {
    digits();
  }
  if (at_ < source_.size() && source_[at_] == '.') {
    ++at_;
    if (!is_digit(peek())) return wrong("after decimal point in numeric literal");
    digits();
  }
  if (at_ < source_.size() && (source_[at_] | 0x20) == 'e') {
    ++at_;
    if (peek() == '+' || peek() == '-') ++at_;
    if (!is_digit(peek())) return wrong("in exponent of numeric literal");
    digits();
  }
  return true;
}

bool Explainer::word(std::string_view word) {
  for (size_t i = 1; i < word.size(); ++i) {
    ++at_;
    if (peek() != word[i]) {
      return wrong("in literal " + std::string(word) + " (expecting '" + word[i] + "')");
    }
  }
  ++at_;
  return true;
}

}  // namespace

JsonError find_json_error(std::string_view source) { return Explainer(source).find(); }

}  // namespace holdfast::codec
