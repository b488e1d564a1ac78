// Small texts that several formats share: UTF-8, and numbers and durations as Go prints and reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::codec {

// --- UTF-8, beside what base/text.h has ---

inline constexpr uint32_t kReplacementRune = 0xfffd;

bool is_valid_utf8(std::string_view text);
// Writes up to 4 bytes, returns their end. Surrogates and codes beyond Unicode become U+FFFD.
char* encode_rune(uint32_t code, char* to);
// Each byte that is not part of valid UTF-8 becomes one U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

// --- Numbers: always the shortest digits that read back. The value must be finite. ---

enum class FloatText : uint8_t {
  Json,    // encoding/json: positional for 1e-6 <= |x| < 1e21, exponents without leading zero: 1e-7.
  Fields,  // FieldsV1 keys and values: the same range, exponents of at least two digits: 1e-07.
  Go,      // strconv 'g' with precision -1 (YAML, Table cells): positional for 1e-4 <= |x| < 1e6.
};
inline constexpr size_t kMaxNumberText = 40;  // Bytes that write_float and write_int need at most.
char* write_float(double number, FloatText form, char* to);
char* write_int(int64_t number, char* to);
std::string float_text(double number, FloatText form);
// The shortest digits that read back as this single-precision number, in Go's 'g' form.
std::string float_text(float number);

// A number's text as strconv.ParseFloat reads plain decimal notation: sign, digits, '.', exponent. Nothing when it
// is not such a number or lies beyond the range; what is too small becomes zero.
std::optional<double> parse_float(std::string_view text);

// --- time.Duration, in nanoseconds ---

// "1h15m30.918s"; 0 is "0s".
std::string duration_text(int64_t nanoseconds);
// As time.ParseDuration; nothing when it is not a duration or beyond int64.
std::optional<int64_t> parse_duration(std::string_view text);

}  // namespace holdfast::codec
