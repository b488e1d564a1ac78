// A recursive descent parser for CEL; macros are expanded as calls are parsed (macros.cc).
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/ascii.h"
#include "base/strings.h"
#include "base/text.h"
#include "cel/ast.h"
#include "cel/lexer.h"
#include "cel/macros.h"
#include "cel/syntax.h"
#include "codec/codec.h"

namespace holdfast::cel {
namespace {

constexpr int32_t kMaxCodePoints = 100'000;
constexpr int kMaxDepth = 250;

constexpr std::string_view kReserved[] = {"as",        "break",  "const",  "continue", "else", "for",
                                          "function",  "if",     "import", "let",      "loop", "package",
                                          "namespace", "return", "var",    "void",     "while"};

bool is_reserved(std::string_view name) {
  for (const std::string_view reserved : kReserved) {
    if (name == reserved) return true;
  }
  return false;
}

// Thrown at the first syntax error, or when a limit is reached.
struct Abort {};

class Parser {
 public:
  Parser(Arena& arena, const Source& source, Issues& issues, std::span<const Lexeme> tokens, bool binds)
      : arena_(arena), text_(source.text()), issues_(issues), tokens_(tokens), factory_(arena, binds) {}

  Expr* run() {
    try {
      Expr* e = expression();
      take(Token::Eof);
      return e;
    } catch (const Abort&) {
      return nullptr;
    }
  }
  bool is_malformed() const { return is_malformed_; }  // There is a syntax error, not reported yet.

 private:
  // --- Tokens ---

  Token peek(size_t ahead = 0) const { return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead].token : Token::Eof; }
  const Lexeme& current() const { return tokens_[at_]; }
  std::string_view text_of(const Lexeme& lexeme) const { return text_.substr(lexeme.start, lexeme.end - lexeme.start); }
  // report_syntax_errors() later finds all errors and their messages.
  [[noreturn]] void syntax_error() {
    is_malformed_ = true;
    throw Abort{};
  }
  const Lexeme& take(Token token) {
    if (peek() != token) syntax_error();
    return tokens_[at_++];
  }
  bool accept(Token token) {
    if (peek() != token) return false;
    ++at_;
    return true;
  }

  // Called after an element of a literal: whether another one follows. Consumes the closing token.
  bool another(Token close) {
    if (accept(close)) return false;
    take(Token::Comma);
    return !accept(close);
  }

  // --- Depth ---

  class Depth {
   public:
    Depth(Parser& parser, int& counter) : parser_(parser), counter_(counter), before_(counter) { deeper(); }
    ~Depth() { counter_ = before_; }
    void deeper() {
      if (++counter_ > kMaxDepth) {
        parser_.issues_.add_without_location("expression recursion limit exceeded: " + std::to_string(kMaxDepth));
        throw Abort{};
      }
    }

   private:
    Parser& parser_;
    int& counter_;
    const int before_;
  };

  // --- Grammar ---

  Expr* expression() {
    Depth depth(*this, expression_depth_);
    Expr* condition = disjunction();
    if (peek() != Token::Question) return condition;
    const int32_t offset = current().offset;
    ++at_;
    Expr* yes = disjunction();
    take(Token::Colon);
    Expr* no = expression();
    return global_call(offset, op::kConditional, {condition, yes, no});
  }

  template <class Next>
  Expr* logic(Token token, std::string_view function, Next next) {
    Expr* first = next();
    if (peek() != token) return first;
    std::vector<Expr*> terms{first};
    std::vector<int32_t> offsets;
    while (peek() == token) {
      offsets.push_back(current().offset);
      ++at_;
      terms.push_back(next());
    }
    return balanced(function, terms, offsets, 0, offsets.size() - 1);
  }
  Expr* balanced(std::string_view function, const std::vector<Expr*>& terms, const std::vector<int32_t>& offsets,
                 size_t low, size_t high) {
    const size_t middle = (low + high + 1) / 2;
    Expr* left = middle == low ? terms[middle] : balanced(function, terms, offsets, low, middle - 1);
    Expr* right = middle == high ? terms[middle + 1] : balanced(function, terms, offsets, middle + 1, high);
    return factory_.call(offsets[middle], function, {left, right});
  }
  Expr* disjunction() {
    return logic(Token::Or, op::kOr, [this] { return conjunction(); });
  }
  Expr* conjunction() {
    return logic(Token::And, op::kAnd, [this] { return relation(); });
  }

  static std::string_view relation_operator(Token token) {
    switch (token) {
      case Token::Less:
        return op::kLess;
      case Token::LessEquals:
        return op::kLessEquals;
      case Token::Greater:
        return op::kGreater;
      case Token::GreaterEquals:
        return op::kGreaterEquals;
      case Token::Equals:
        return op::kEquals;
      case Token::NotEquals:
        return op::kNotEquals;
      case Token::In:
        return op::kIn;
      default:
        return {};
    }
  }
  Expr* relation() {
    Depth depth(*this, relation_depth_);
    Expr* left = sum();
    for (std::string_view function; !(function = relation_operator(peek())).empty();) {
      const int32_t offset = current().offset;
      ++at_;
      depth.deeper();
      left = global_call(offset, function, {left, sum()});
    }
    return left;
  }
  Expr* sum() {
    Depth depth(*this, sum_depth_);
    Expr* left = product(depth);
    while (peek() == Token::Plus || peek() == Token::Minus) {
      const std::string_view function = peek() == Token::Plus ? op::kAdd : op::kSubtract;
      const int32_t offset = current().offset;
      ++at_;
      depth.deeper();
      left = global_call(offset, function, {left, product(depth)});
    }
    return left;
  }
  Expr* product(Depth& depth) {
    Expr* left = unary();
    while (peek() == Token::Star || peek() == Token::Slash || peek() == Token::Percent) {
      const std::string_view function = peek() == Token::Star    ? op::kMultiply
                                        : peek() == Token::Slash ? op::kDivide
                                                                 : op::kModulo;
      const int32_t offset = current().offset;
      ++at_;
      depth.deeper();
      left = global_call(offset, function, {left, unary()});
    }
    return left;
  }

  Expr* unary() {
    const Token token = peek();
    if (token == Token::Minus && (peek(1) == Token::Int || peek(1) == Token::Float)) return member();
    if (token != Token::Not && token != Token::Minus) return member();
    const int32_t offset = current().offset;
    size_t count = 0;
    while (peek() == token) {
      ++at_;
      ++count;
    }
    Expr* operand = member();
    return count % 2 == 0 ? operand : global_call(offset, token == Token::Not ? op::kNot : op::kNegate, {operand});
  }

  Expr* member() {
    Depth depth(*this, member_depth_);
    Expr* operand = primary();
    while (true) {
      if (peek() == Token::Dot) {
        const Lexeme dot = current();
        ++at_;
        const bool optional = accept(Token::Question);
        const bool escaped = peek() == Token::EscapedIdentifier;
        if (escaped) issues_.add(current().offset, "unsupported syntax: '`'");
        const Lexeme& name = take(escaped ? Token::EscapedIdentifier : Token::Identifier);
        depth.deeper();
        if (!optional && !escaped && peek() == Token::LeftParen) {
          const int32_t open = current().offset;
          ++at_;
          const std::vector<Expr*> args = arguments();
          operand = member_call(open, text_of(name), operand, args);
        } else if (optional) {
          Expr* field = factory_.literal(name.offset, Val::string(text_of(name)));
          operand = factory_.call(dot.offset, op::kOptSelect, {operand, field});
        } else {
          operand = factory_.select(dot.offset, operand, text_of(name));
        }
      } else if (peek() == Token::LeftBracket) {
        const int32_t offset = current().offset;
        ++at_;
        depth.deeper();
        const bool optional = accept(Token::Question);
        Expr* index = expression();
        take(Token::RightBracket);
        operand = global_call(offset, optional ? op::kOptIndex : op::kIndex, {operand, index});
      } else {
        return operand;
      }
    }
  }

  std::vector<Expr*> arguments() {
    std::vector<Expr*> args;
    if (accept(Token::RightParen)) return args;
    do {
      args.push_back(expression());
    } while (accept(Token::Comma));
    take(Token::RightParen);
    return args;
  }

  Expr* primary() {
    const Lexeme& first = current();
    switch (first.token) {
      case Token::LeftParen: {
        ++at_;
        Expr* inner = expression();
        take(Token::RightParen);
        return inner;
      }
      case Token::LeftBracket:
        return list();
      case Token::LeftBrace:
        return map();
      case Token::Dot:
      case Token::Identifier:
        return name();
      default:
        return literal();
    }
  }

  // An empty literal, which may contain a comma.
  bool closed_at_once(Token close) {
    if (peek() == Token::Comma && peek(1) == close) ++at_;
    return accept(close);
  }

  Expr* list() {
    const int32_t offset = current().offset;
    ++at_;
    std::vector<Expr*> elements;
    std::vector<char> optionals;
    bool any_optional = false;
    bool more = !closed_at_once(Token::RightBracket);
    while (more) {
      const bool optional = accept(Token::Question);
      any_optional |= optional;
      optionals.push_back(optional);
      elements.push_back(expression());
      more = another(Token::RightBracket);
    }
    Expr* result = factory_.list(offset, elements);
    if (any_optional) {
      bool* flags = arena_.allocate_array<bool>(optionals.size());
      std::copy(optionals.begin(), optionals.end(), flags);
      result->optionals = {flags, optionals.size()};
    }
    return result;
  }

  Expr* map() {
    const int32_t offset = current().offset;
    ++at_;
    std::vector<Entry> entries;
    bool more = !closed_at_once(Token::RightBrace);
    while (more) {
      Entry entry;
      entry.optional = accept(Token::Question);
      entry.key_expr = expression();
      entry.offset = take(Token::Colon).offset;
      entry.value = expression();
      entries.push_back(entry);
      more = another(Token::RightBrace);
    }
    Expr* result = factory_.make(ExprKind::Map, offset);
    result->entries = arena_.copy(std::span<const Entry>(entries));
    return result;
  }

  // a, .a, a(...), a.b.C{...}: distinguished by what follows the dotted name.
  Expr* name() {
    const Lexeme& start = current();
    size_t i = at_ + (start.token == Token::Dot ? 1 : 0);
    if (i >= tokens_.size() || tokens_[i].token != Token::Identifier) syntax_error();
    size_t end = i + 1;
    while (end + 1 < tokens_.size() && tokens_[end].token == Token::Dot && tokens_[end + 1].token == Token::Identifier)
      end += 2;
    const bool dotted = start.token == Token::Dot;
    if (tokens_[end].token == Token::LeftBrace) {
      std::string type_name = dotted ? "." : "";
      for (size_t k = i; k < end; ++k) type_name += text_of(tokens_[k]);
      at_ = end;
      return structure(arena_.copy(type_name));
    }
    const Lexeme& id = tokens_[i];
    const std::string_view spelled = text_of(id);
    at_ = i + 1;
    const std::string_view full = dotted ? arena_.copy("." + std::string(spelled)) : spelled;
    const bool reserved = is_reserved(spelled);
    if (reserved) issues_.add(start.offset, "reserved identifier: " + std::string(spelled));
    if (peek() == Token::LeftParen) {
      const int32_t open = current().offset;
      ++at_;
      const std::vector<Expr*> args = arguments();
      if (reserved) return factory_.make(ExprKind::Unspecified, start.offset);
      return global_call(open, full, args);
    }
    if (reserved) return factory_.make(ExprKind::Unspecified, start.offset);
    Expr* e = factory_.make(ExprKind::Ident, id.offset);
    e->name = full;
    return e;
  }

  Expr* structure(std::string_view type_name) {
    Expr* result = factory_.make(ExprKind::Struct, current().offset);
    ++at_;
    result->name = type_name;
    std::vector<Entry> entries;
    bool more = !closed_at_once(Token::RightBrace);
    while (more) {
      Entry entry;
      const int32_t start = current().offset;
      entry.optional = accept(Token::Question);
      if (peek() == Token::EscapedIdentifier) {
        issues_.add(start, "unsupported syntax: '`'");
        ++at_;
      } else {
        entry.field = text_of(take(Token::Identifier));
      }
      entry.offset = take(Token::Colon).offset;
      entry.value = expression();
      entries.push_back(entry);
      more = another(Token::RightBrace);
    }
    result->entries = arena_.copy(std::span<const Entry>(entries));
    return result;
  }

  Expr* literal() {
    const Lexeme& first = current();
    const bool negative = first.token == Token::Minus;
    if (negative) ++at_;
    const Lexeme& lexeme = current();
    const std::string_view text = text_of(lexeme);
    const auto bad = [&](std::string message) {
      issues_.add(first.offset, std::move(message));
      return factory_.make(ExprKind::Unspecified, first.offset);
    };
    switch (lexeme.token) {
      case Token::Int: {
        ++at_;
        const std::optional<uint64_t> magnitude = unsigned_value(text);
        const uint64_t highest = uint64_t{INT64_MAX} + (negative ? 1 : 0);
        if (!magnitude || *magnitude > highest) return bad("invalid int literal");
        return factory_.literal(first.offset,
                                Val::integer(static_cast<int64_t>(negative ? 0 - *magnitude : *magnitude)));
      }
      case Token::Uint: {
        ++at_;
        const std::optional<uint64_t> value = unsigned_value(text.substr(0, text.size() - 1));
        if (!value) return bad("invalid uint literal");
        return factory_.literal(first.offset, Val::unsigned_integer(*value));
      }
      case Token::Float: {
        ++at_;
        const std::string spelled = (text[0] == '.' ? "0" : "") + std::string(text);
        const std::optional<double> value = codec::parse_float(spelled);
        if (!value || std::isinf(*value)) return bad("invalid double literal");
        return factory_.literal(first.offset, Val::number(negative ? -*value : *value));
      }
      case Token::String:
      case Token::Bytes: {
        ++at_;
        std::string error;
        const std::string_view value =
            unescaped(lexeme.token == Token::Bytes ? text.substr(1) : text, lexeme.token == Token::Bytes, error);
        if (!error.empty()) issues_.add(first.offset, std::move(error));
        return factory_.literal(first.offset, lexeme.token == Token::Bytes ? Val::bytes(value) : Val::string(value));
      }
      case Token::True:
        ++at_;
        return factory_.literal(first.offset, Val::boolean(true));
      case Token::False:
        ++at_;
        return factory_.literal(first.offset, Val::boolean(false));
      case Token::Null:
        ++at_;
        return factory_.literal(first.offset, Val::null());
      default:
        syntax_error();
    }
  }

  static std::optional<uint64_t> unsigned_value(std::string_view text) {
    int base = 10;
    if (text.starts_with("0x")) {
      base = 16;
      text.remove_prefix(2);
    }
    return parse_number<uint64_t>(text, base);
  }

  // The value of a literal token including its quotes. Line breaks become \n.
  std::string_view unescaped(std::string_view text, bool is_bytes, std::string& error) {
    bool raw = false;
    if (text[0] == 'r' || text[0] == 'R') {
      raw = true;
      text.remove_prefix(1);
    }
    const size_t quotes = text.size() >= 6 && text[0] == text[1] && text[1] == text[2] ? 3 : 1;
    text = text.substr(quotes, text.size() - 2 * quotes);
    if (text.find('\\') == std::string_view::npos && text.find('\r') == std::string_view::npos) return text;
    std::string out;
    out.reserve(text.size());
    for (size_t i = 0; i < text.size();) {
      const char c = text[i];
      if (c == '\r') {
        out += '\n';
        i += i + 1 < text.size() && text[i + 1] == '\n' ? 2 : 1;
        continue;
      }
      if (c != '\\' || raw) {
        out += c;
        ++i;
        continue;
      }
      const char kind = text[i + 1];
      i += 2;
      uint32_t code = 0;
      const auto hex = [&](int count) {
        for (int k = 0; k < count; ++k) code = code << 4 | static_cast<uint32_t>(hex_value(text[i++]));
      };
      switch (kind) {
        case 'a':
          out += '\a';
          continue;
        case 'b':
          out += '\b';
          continue;
        case 'f':
          out += '\f';
          continue;
        case 'n':
          out += '\n';
          continue;
        case 'r':
          out += '\r';
          continue;
        case 't':
          out += '\t';
          continue;
        case 'v':
          out += '\v';
          continue;
        case 'x':
        case 'X':
          hex(2);
          break;
        case 'u':
        case 'U':
          if (is_bytes) {
            error = "unable to unescape string";
            return text;
          }
          hex(kind == 'u' ? 4 : 8);
          break;
        case '0':
        case '1':
        case '2':
        case '3':
          code = static_cast<uint32_t>(kind - '0') * 64 + static_cast<uint32_t>(text[i] - '0') * 8 +
                 static_cast<uint32_t>(text[i + 1] - '0');
          i += 2;
          break;
        default:
          out += kind;
          continue;
      }
      if (is_bytes) {
        out += static_cast<char>(code);
      } else if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
        error = "invalid unicode code point";
        return text;
      } else {
        append_utf8(out, code);
      }
    }
    return arena_.copy(out);
  }

  // --- Calls ---

  Expr* global_call(int32_t offset, std::string_view function, const std::vector<Expr*>& args) {
    if (Expr* expanded = expand(offset, function, nullptr, args)) return expanded;
    return factory_.call(offset, function, args);
  }
  Expr* member_call(int32_t offset, std::string_view function, Expr* target, const std::vector<Expr*>& args) {
    if (Expr* expanded = expand(offset, function, target, args)) return expanded;
    return factory_.member_call(offset, function, target, args);
  }
  Expr* expand(int32_t offset, std::string_view function, Expr* target, const std::vector<Expr*>& args) {
    MacroResult result = expand_macro(factory_, offset, function, target, args);
    if (factory_.too_large()) {
      issues_.add_without_location("expression is too large after the expansion of macros");
      throw Abort{};
    }
    if (!result.error.empty()) {
      issues_.add(result.error_offset, std::move(result.error));
      return factory_.make(ExprKind::Unspecified, result.error_offset);
    }
    return result.expr;
  }

  Arena& arena_;
  const std::string_view text_;
  Issues& issues_;
  const std::span<const Lexeme> tokens_;
  ExprFactory factory_;
  size_t at_ = 0;
  bool is_malformed_ = false;
  int expression_depth_ = 0, relation_depth_ = 0, sum_depth_ = 0, member_depth_ = 0;
};

}  // namespace

Expr* parse(Arena& arena, const Source& source, Issues& issues, bool binds) {
  if (source.code_points() > kMaxCodePoints) {
    issues.add_without_location("expression code point size exceeds limit: size: " +
                                std::to_string(source.code_points()) + ", limit " + std::to_string(kMaxCodePoints));
    return nullptr;
  }
  const std::vector<Lexeme> tokens = tokenize(source, issues);
  Issues found(source);
  Parser parser(arena, source, found, tokens, binds);
  Expr* e = parser.run();
  if (parser.is_malformed()) {
    if (const auto repaired = report_syntax_errors(source.text(), tokens, issues)) {
      Parser(arena, source, issues, *repaired, binds).run();  // To report errors other than syntax errors.
      return nullptr;
    }
  }
  issues.add_all(found);
  return issues.empty() ? e : nullptr;
}

}  // namespace holdfast::cel
