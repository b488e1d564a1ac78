// Text with the semantics of Go: runes, printability, quoting. Error messages and manager names depend on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast {

struct Rune {
  uint32_t value;  // U+FFFD if the bytes are not valid UTF-8; length is then 1.
  uint8_t length;  // In bytes, at least 1.
  bool valid;
};
// The rune at byte `at`, which must be inside the text.
Rune decode_rune(std::string_view text, size_t at);

// Go's unicode.IsPrint: letters, marks, numbers, punctuation, symbols, and the ASCII space.
bool is_print(uint32_t rune);

// Go's %q: double quotes and Go's escapes.
std::string go_quote(std::string_view text);
// Go's %#U: U+000A, or U+0041 'A' if printable.
std::string go_code_point(uint32_t rune);

// Quotes like encoding/json: escapes <, >, & and the line separators, and replaces bytes that are not UTF-8 with
// \ufffd.
std::string json_quote(std::string_view text);

void append_utf8(std::string& out, uint32_t rune);
// The same into a buffer of at least four bytes; returns the end.
char* write_utf8(uint32_t rune, char* to);

// Whether a byte of UTF-8 continues a character.
inline bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }
// The number of characters (not bytes) of a UTF-8 text.
size_t count_characters(std::string_view text);

}  // namespace holdfast
