// What is wrong with the syntax of an expression, in the words of Kubernetes. Private to the module.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cel/ast.h"
#include "cel/lexer.h"

namespace holdfast::cel {

// Reports every syntax error of an expression that the parser gave up on. Kubernetes' parser is made by ANTLR, which
// repairs what it can (a token too many, a token that is missing, a rule abandoned at a token that may follow it) and
// goes on: which errors it finds, and what it says it expected, depends on these repairs. They are repeated here on the
// same grammar. Takes time linear in the number of tokens, apart from `a.b.c`, which is read twice.
//
// The result is the expression as it was repaired; nothing if a rule had to be abandoned.
std::optional<std::vector<Lexeme>> report_syntax_errors(std::string_view text, std::span<const Lexeme> tokens,
                                                        Issues& issues);

}  // namespace holdfast::cel
