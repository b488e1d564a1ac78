// Text helpers shared by several formats: UTF-8, and numbers as Go formats and parses them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::codec {

// --- UTF-8, in addition to base/text.h ---

inline constexpr uint32_t kReplacementRune = 0xfffd;

bool is_valid_utf8(std::string_view text);
// Writes up to 4 bytes and returns their end. Surrogates and invalid code points become U+FFFD.
char* encode_rune(uint32_t code, char* to);
// Each byte that is not part of valid UTF-8 becomes a U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

// --- Numbers: always the shortest digits that read back as the same value. The value must be finite. ---

enum class FloatText : uint8_t {
  Json,    // encoding/json: positional for 1e-6 <= |x| < 1e21, exponents without leading zeros: 1e-7.
  Fields,  // FieldsV1 keys and values: the same range, exponents of at least two digits: 1e-07.
  Go,      // strconv 'g' with precision -1 (YAML, Table cells): positional for 1e-4 <= |x| < 1e6.
};
inline constexpr size_t kMaxNumberText = 40;  // Maximum number of bytes written by write_float and write_int.
char* write_float(double number, FloatText form, char* to);
char* write_int(int64_t number, char* to);
std::string float_text(double number, FloatText form);
// Go's %v: the Go form, and NaN, +Inf and -Inf, which the other functions do not accept.
std::string go_float_text(double number);
// The shortest digits that read back as the same single-precision number, in Go's 'g' format.
std::string float_text(float number);

// Parses plain decimal notation like strconv.ParseFloat: sign, digits, '.', exponent. Empty if it is not such a number
// or out of range; underflow gives zero.
std::optional<double> parse_float(std::string_view text);

}  // namespace holdfast::codec
