// Text as Go sees it: runes, what is printable, quoting. Error texts and names of managers depend on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast {

struct Rune {
  uint32_t value;  // U+FFFD if the bytes are not valid UTF-8; length is 1 then.
  uint8_t length;  // In bytes, at least 1.
  bool valid;
};
// The rune at byte `at`, which must be inside the text.
Rune decode_rune(std::string_view text, size_t at);

// Go's unicode.IsPrint: letters, marks, numbers, punctuation, symbols, and the ASCII space.
bool is_print(uint32_t rune);

// Go's %q: double quotes and Go's escapes.
std::string go_quote(std::string_view text);
// Go's %#U: U+000A, or U+0041 'A' when it is printable.
std::string go_code_point(uint32_t rune);

// As encoding/json writes a string: <, >, & and the line separators escaped, bytes that are not UTF-8 as \ufffd.
std::string json_quote(std::string_view text);

void append_utf8(std::string& out, uint32_t rune);

}  // namespace holdfast
