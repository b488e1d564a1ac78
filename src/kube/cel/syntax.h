// Syntax errors, with Kubernetes' messages. Private to the module.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cel/ast.h"
#include "cel/lexer.h"

namespace holdfast::cel {

// Reports all syntax errors of an expression that the parser rejected. Kubernetes uses an ANTLR parser, which repairs
// what it can (deletes a token, inserts a missing one, abandons a rule at a token that may follow it) and continues:
// the errors it finds, and the tokens it says it expected, depend on these repairs. They are reproduced here with the
// same grammar. Takes time linear in the number of tokens, except that `a.b.c` is read twice.
//
// Returns the repaired expression, or nullopt if a rule had to be abandoned.
std::optional<std::vector<Lexeme>> report_syntax_errors(std::string_view text, std::span<const Lexeme> tokens,
                                                        Issues& issues);

}  // namespace holdfast::cel
