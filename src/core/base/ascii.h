// Classes of ASCII characters and their conversions. Unlike <cctype>, independent of the locale and defined for every
// char.
#pragma once

namespace holdfast {

constexpr bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
constexpr bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_letter(char c) { return is_lower(c) || is_upper(c); }
constexpr bool is_alnum(char c) { return is_letter(c) || is_digit(c); }
constexpr bool is_lower_alnum(char c) { return is_lower(c) || is_digit(c); }
constexpr bool is_hex(char c) { return is_digit(c) || static_cast<unsigned char>((c | 0x20) - 'a') < 6; }
constexpr bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

constexpr char to_lower(char c) { return is_upper(c) ? static_cast<char>(c | 0x20) : c; }
constexpr char to_upper(char c) { return is_lower(c) ? static_cast<char>(c & ~0x20) : c; }

// The value of a hexadecimal digit; -1 for any other character.
constexpr int hex_value(char c) { return is_digit(c) ? c - '0' : is_hex(c) ? (c | 0x20) - 'a' + 10 : -1; }

}  // namespace holdfast
