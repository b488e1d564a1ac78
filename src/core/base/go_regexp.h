// The error of Go's regexp for a pattern that does not compile. Inline, so that base itself does not link RE2; all
// users do anyway.
#pragma once

#include <re2/re2.h>

#include <string>
#include <string_view>

namespace holdfast {

// Empty if the pattern compiles.
inline std::string go_regexp_error(std::string_view pattern) {
  const re2::RE2 compiled(re2::StringPiece(pattern.data(), pattern.size()), re2::RE2::Quiet);
  if (compiled.ok()) return {};
  std::string what;
  switch (compiled.error_code()) {
    case re2::RE2::ErrorBadEscape:
      what = "invalid escape sequence";
      break;
    case re2::RE2::ErrorBadCharClass:
      what = "invalid character class";
      break;
    case re2::RE2::ErrorBadCharRange:
      what = "invalid character class range";
      break;
    case re2::RE2::ErrorMissingBracket:
      what = "missing closing ]";
      break;
    case re2::RE2::ErrorMissingParen:
      what = "missing closing )";
      break;
    case re2::RE2::ErrorUnexpectedParen:
      what = "unexpected )";
      break;
    case re2::RE2::ErrorTrailingBackslash:
      return "error parsing regexp: trailing backslash at end of expression: ``";
    case re2::RE2::ErrorRepeatArgument:
      what = "missing argument to repetition operator";
      break;
    case re2::RE2::ErrorRepeatSize:
      what = "invalid repeat count";
      break;
    case re2::RE2::ErrorRepeatOp:
      what = "invalid nested repetition operator";
      break;
    case re2::RE2::ErrorBadPerlOp:
      what = "invalid or unsupported Perl syntax";
      break;
    case re2::RE2::ErrorBadUTF8:
      what = "invalid UTF-8";
      break;
    case re2::RE2::ErrorBadNamedCapture:
      what = "invalid named capture";
      break;
    case re2::RE2::ErrorPatternTooLarge:
      what = "expression too large";
      break;
    default:
      what = compiled.error();
  }
  // Go quotes the whole expression for an unmatched parenthesis.
  const bool whole =
      compiled.error_code() == re2::RE2::ErrorMissingParen || compiled.error_code() == re2::RE2::ErrorUnexpectedParen;
  return "error parsing regexp: " + what + ": `" + (whole ? std::string(pattern) : compiled.error_arg()) + "`";
}

}  // namespace holdfast
