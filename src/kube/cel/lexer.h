// The lexer. Private to the module.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cel/ast.h"

namespace holdfast::cel {

enum class Token : uint8_t {
  Eof,
  Equals,
  NotEquals,
  In,
  Less,
  LessEquals,
  GreaterEquals,
  Greater,
  And,
  Or,
  LeftBracket,
  RightBracket,
  LeftBrace,
  RightBrace,
  LeftParen,
  RightParen,
  Dot,
  Comma,
  Minus,
  Not,
  Question,
  Colon,
  Plus,
  Star,
  Slash,
  Percent,
  True,
  False,
  Null,
  Float,
  Int,
  Uint,
  String,
  Bytes,
  Identifier,
  EscapedIdentifier,
  Count,
};

struct Lexeme {
  Token token = Token::Eof;
  int32_t offset = 0;           // In code points.
  uint32_t start = 0, end = 0;  // In bytes.
};

// All tokens, ending with Eof. Unrecognized characters are reported and skipped.
std::vector<Lexeme> tokenize(const Source& source, Issues& issues);

// ANTLR's name of a token in messages: '+', IDENTIFIER, <EOF>.
std::string_view token_name(Token token);

}  // namespace holdfast::cel
