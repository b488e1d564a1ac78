#include "cel/lexer.h"

#include <array>

#include "base/ascii.h"
#include "base/text.h"

namespace holdfast::cel {
namespace {

constexpr std::string_view kNames[] = {
    "<EOF>",   "'=='",   "'!='",      "'in'",    "'<'",      "'<='",   "'>='",  "'>'",        "'&&'",
    "'||'",    "'['",    "']'",       "'{'",     "'}'",      "'('",    "')'",   "'.'",        "','",
    "'-'",     "'!'",    "'?'",       "':'",     "'+'",      "'*'",    "'/'",   "'%'",        "'true'",
    "'false'", "'null'", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER", "ESC_IDENTIFIER"};
static_assert(std::size(kNames) == static_cast<size_t>(Token::Count));

bool is_name_start(char c) { return is_letter(c) || c == '_'; }
bool is_name(char c) { return is_name_start(c) || is_digit(c); }

class Lexer {
 public:
  Lexer(const Source& source, Issues& issues) : text_(source.text()), issues_(issues) {}

  std::vector<Lexeme> run() {
    std::vector<Lexeme> out;
    out.reserve(text_.size() / 3 + 8);
    while (true) {
      skip_hidden();
      if (at_ >= text_.size()) break;
      died_ = at_;
      Token token = Token::Eof;
      const size_t end = match(token);
      if (end == 0) {
        report();
        continue;
      }
      out.push_back({token, offset_, static_cast<uint32_t>(at_), static_cast<uint32_t>(end)});
      advance_to(end);
    }
    out.push_back({Token::Eof, offset_, static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(text_.size())});
    return out;
  }

 private:
  char peek(size_t at) const { return at < text_.size() ? text_[at] : '\0'; }

  void advance_to(size_t end) {
    for (; at_ < end; ++offset_) {
      at_ += static_cast<unsigned char>(text_[at_]) < 0x80 ? 1 : decode_rune(text_, at_).length;
    }
  }

  void skip_hidden() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f') {
        ++at_;
        ++offset_;
      } else if (c == '/' && peek(at_ + 1) == '/') {
        size_t end = text_.find('\n', at_);
        if (end == std::string_view::npos) end = text_.size();
        advance_to(end);
      } else {
        return;
      }
    }
  }

  // Reports the text up to and including the unrecognized character.
  void report() {
    size_t end = died_;
    if (end < text_.size()) end += decode_rune(text_, end).length;
    std::string shown;
    for (size_t i = at_; i < end;) {
      const Rune rune = decode_rune(text_, i);
      append_utf8(shown, rune.value);
      i += rune.length;
    }
    issues_.add(offset_, "Syntax error: token recognition error at: '" + shown + "'");
    advance_to(end);
  }

  // The end of the longest token at this position; 0 if there is none, with died_ at the offending character.
  size_t match(Token& token) {
    const char c = text_[at_];
    if (is_digit(c) || (c == '.' && is_digit(peek(at_ + 1)))) return number(token);
    if (c == '"' || c == '\'') {
      token = Token::String;
      return string(at_, false);
    }
    if (is_name_start(c)) return word(token);
    if (c == '`') return escaped(token);
    const char next = peek(at_ + 1);
    const auto two = [&](char second, Token both, Token single) -> size_t {
      if (next == second) {
        token = both;
        return at_ + 2;
      }
      died_ = at_ + 1;
      token = single;
      return single == Token::Eof ? 0 : at_ + 1;
    };
    const auto one = [&](Token t) {
      token = t;
      return at_ + 1;
    };
    switch (c) {
      case '=':
        return two('=', Token::Equals, Token::Eof);
      case '!':
        return two('=', Token::NotEquals, Token::Not);
      case '<':
        return two('=', Token::LessEquals, Token::Less);
      case '>':
        return two('=', Token::GreaterEquals, Token::Greater);
      case '&':
        return two('&', Token::And, Token::Eof);
      case '|':
        return two('|', Token::Or, Token::Eof);
      case '[':
        return one(Token::LeftBracket);
      case ']':
        return one(Token::RightBracket);
      case '{':
        return one(Token::LeftBrace);
      case '}':
        return one(Token::RightBrace);
      case '(':
        return one(Token::LeftParen);
      case ')':
        return one(Token::RightParen);
      case '.':
        return one(Token::Dot);
      case ',':
        return one(Token::Comma);
      case '-':
        return one(Token::Minus);
      case '?':
        return one(Token::Question);
      case ':':
        return one(Token::Colon);
      case '+':
        return one(Token::Plus);
      case '*':
        return one(Token::Star);
      case '/':
        return one(Token::Slash);
      case '%':
        return one(Token::Percent);
      default:
        return 0;
    }
  }

  size_t digits(size_t at) const {
    while (is_digit(peek(at))) ++at;
    return at;
  }
  // The end of the exponent at `at`; `at` if there is none.
  size_t exponent(size_t at) const {
    if (peek(at) != 'e' && peek(at) != 'E') return at;
    size_t from = at + 1;
    if (peek(from) == '+' || peek(from) == '-') ++from;
    const size_t end = digits(from);
    return end > from ? end : at;
  }

  size_t number(Token& token) {
    if (text_[at_] == '0' && peek(at_ + 1) == 'x' && is_hex(peek(at_ + 2))) {
      size_t end = at_ + 2;
      while (is_hex(peek(end))) ++end;
      token = Token::Int;
      if (peek(end) == 'u' || peek(end) == 'U') {
        token = Token::Uint;
        ++end;
      }
      return end;
    }
    size_t end = digits(at_);
    token = Token::Int;
    if (peek(end) == '.' && is_digit(peek(end + 1))) {
      token = Token::Float;
      return exponent(digits(end + 1));
    }
    if (const size_t after = exponent(end); after != end) {
      token = Token::Float;
      return after;
    }
    if (peek(end) == 'u' || peek(end) == 'U') {
      token = Token::Uint;
      ++end;
    }
    return end;
  }

  size_t word(Token& token) {
    // r"", b"", br"": literal prefixes, if a quote follows.
    const char c = text_[at_];
    if (c == 'r' || c == 'R' || c == 'b' || c == 'B') {
      size_t quote = at_ + 1;
      const bool is_bytes = c == 'b' || c == 'B';
      bool raw = !is_bytes;
      if (is_bytes && (peek(quote) == 'r' || peek(quote) == 'R')) {
        raw = true;
        ++quote;
      }
      if (peek(quote) == '"' || peek(quote) == '\'') {
        if (const size_t end = string(quote, raw)) {
          token = is_bytes ? Token::Bytes : Token::String;
          return end;
        }
      }
    }
    size_t end = at_ + 1;
    while (is_name(peek(end))) ++end;
    const std::string_view name = text_.substr(at_, end - at_);
    token = name == "in"      ? Token::In
            : name == "true"  ? Token::True
            : name == "false" ? Token::False
            : name == "null"  ? Token::Null
                              : Token::Identifier;
    return end;
  }

  size_t escaped(Token& token) {
    size_t end = at_ + 1;
    while (end < text_.size() &&
           (is_name(text_[end]) || text_[end] == '.' || text_[end] == '-' || text_[end] == '/' || text_[end] == ' '))
      ++end;
    if (peek(end) == '`' && end > at_ + 1) {
      token = Token::EscapedIdentifier;
      return end + 1;
    }
    died_ = end;
    return 0;
  }

  // The end of the escape sequence whose backslash is at `at`; 0 if invalid, with died_ at the offending character.
  size_t escape(size_t at) {
    const auto hex = [&](size_t from, int count) -> size_t {
      for (int i = 0; i < count; ++i) {
        if (!is_hex(peek(from + i))) {
          died_ = from + i;
          return 0;
        }
      }
      return from + count;
    };
    const char c = peek(at + 1);
    switch (c) {
      case 'a':
      case 'b':
      case 'f':
      case 'n':
      case 'r':
      case 't':
      case 'v':
      case '"':
      case '\'':
      case '\\':
      case '?':
      case '`':
        return at + 2;
      case 'x':
      case 'X':
        return hex(at + 2, 2);
      case 'u':
        return hex(at + 2, 4);
      case 'U':
        return hex(at + 2, 8);
      default:
        break;
    }
    if (c >= '0' && c <= '3' && at + 1 < text_.size()) {
      for (size_t i = at + 2; i < at + 4; ++i) {
        if (peek(i) < '0' || peek(i) > '7') {
          died_ = i;
          return 0;
        }
      }
      return at + 4;
    }
    died_ = at + 1;
    return 0;
  }

  // The end of the literal whose first quote is at `at`; 0 if it is unterminated.
  size_t string(size_t at, bool raw) {
    const char quote = text_[at];
    if (peek(at + 1) == quote && peek(at + 2) == quote) {
      for (size_t i = at + 3; i < text_.size();) {
        if (text_[i] == quote && peek(i + 1) == quote && peek(i + 2) == quote) return i + 3;
        if (!raw && text_[i] == '\\') {
          i = escape(i);
          if (i == 0) return at + 2;
        } else {
          ++i;
        }
      }
      return at + 2;  // The empty string is the longest match.
    }
    for (size_t i = at + 1;;) {
      if (i >= text_.size() || text_[i] == '\n' || text_[i] == '\r') {
        died_ = i;
        return 0;
      }
      if (text_[i] == quote) return i + 1;
      if (!raw && text_[i] == '\\') {
        i = escape(i);
        if (i == 0) return 0;
      } else {
        ++i;
      }
    }
  }

  const std::string_view text_;
  Issues& issues_;
  size_t at_ = 0;
  int32_t offset_ = 0;
  size_t died_ = 0;
};

}  // namespace

std::string_view token_name(Token token) { return kNames[static_cast<size_t>(token)]; }

std::vector<Lexeme> tokenize(const Source& source, Issues& issues) { return Lexer(source, issues).run(); }

}  // namespace holdfast::cel
