// Kubernetes quantities ("500m", "1.5Gi", "2e3"): exact numbers that keep the family of their suffix and, where
// Kubernetes does, the original text.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "value/value.h"

namespace holdfast::codec {

class Quantity {
 public:
  enum class Format : uint8_t {
    DecimalSI,        // 12M
    BinarySI,         // 12Mi
    DecimalExponent,  // 12e6
  };
  static constexpr int32_t kNano = -9;
  static constexpr int32_t kMilli = -3;

  Quantity() = default;  // Zero.
  static Quantity of(int64_t value, Format format = Format::DecimalSI);
  static Quantity milli(int64_t value, Format format = Format::DecimalSI);
  // Like resource.ParseQuantity; surrounding white space is trimmed first, as the JSON and CBOR readers do. The error
  // is BadRequest with upstream's message.
  static Result<Quantity> parse(std::string_view text);

  // Whether a text is certainly printed unchanged, determined without parsing ("100m", "3Gi"). False means that it must
  // be parsed.
  static bool surely_canonical(std::string_view text);

  // The printed form: the original text if it is close enough to canonical, else the canonical text.
  std::string text() const { return as_sent_.empty() ? canonical() : as_sent_; }
  std::string canonical() const;
  Format format() const { return format_; }

  bool is_zero() const { return digits_.empty(); }
  int sign() const { return is_zero() ? 0 : negative_ ? -1 : 1; }
  // By value: 1 equals 1000m.
  std::strong_ordering operator<=>(const Quantity& other) const;
  bool operator==(const Quantity& other) const { return (*this <=> other) == 0; }
  // Whether both print the same text, as compared by apply.
  bool same_spelling(const Quantity& other) const { return text() == other.text(); }

  // In units of 10^scale, rounded away from zero, clamped to int64.
  int64_t scaled(int32_t scale) const;
  int64_t value() const { return scaled(0); }
  int64_t milli_value() const { return scaled(kMilli); }
  double approximate() const;

  // Whether it is a multiple of 10^scale.
  bool is_multiple_of(int32_t scale) const;
  // Rounded away from zero to 10^scale. If that changes nothing, the text is kept.
  Quantity rounded_up(int32_t scale) const;

  // Zero takes the format of the other operand.
  Quantity operator+(const Quantity& other) const;
  Quantity operator-(const Quantity& other) const;
  Quantity operator-() const;
  Quantity times(int64_t factor) const;

 private:
  // value = (negative ? -1 : 1) * digits * 10^scale; digits have no leading zero and are empty for zero.
  std::string digits_;
  int32_t scale_ = 0;
  bool negative_ = false;
  Format format_ = Format::DecimalSI;
  std::string as_sent_;
};

// The printed form of a quantity, for canonicalizing a field. In a ResourceList, values finer than milli are rounded
// up.
enum class QuantityField : uint8_t { Plain, ResourceList };
Result<std::string> canonical_quantity(std::string_view text, QuantityField field = QuantityField::Plain);

// An IntOrString: an integer, or a text such as "25%" or a port name.
struct IntOrString {
  bool is_int = true;
  int64_t number = 0;
  std::string_view text;

  static IntOrString from(const Value& value);  // Anything but an int or a string is treated as 0.
  Value to_value() const { return is_int ? Value::integer(number) : Value::string(text); }
  // "25%" of total, rounded up or down; an integer is returned as it is. BadRequest if the text is not a percentage.
  Result<int64_t> scaled_from(int64_t total, bool round_up) const;
};

}  // namespace holdfast::codec
