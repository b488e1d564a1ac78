// Kubernetes quantities ("500m", "1.5Gi", "2e3"): exact numbers that remember the family of their suffix and, where
// Kubernetes does, the exact text they were sent as.
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
  // As resource.ParseQuantity; surrounding white space is trimmed first, as the JSON and CBOR readers do it. The error
  // is BadRequest in upstream's words.
  static Result<Quantity> parse(std::string_view text);

  // Whether a text is certainly printed as it stands, found without parsing it ("100m", "3Gi"). False means: parse.
  static bool surely_canonical(std::string_view text);

  // What is printed: the text it was sent as where that is close enough to canonical, else the canonical text.
  std::string text() const { return as_sent_.empty() ? canonical() : as_sent_; }
  std::string canonical() const;
  Format format() const { return format_; }

  bool is_zero() const { return digits_.empty(); }
  int sign() const { return is_zero() ? 0 : negative_ ? -1 : 1; }
  // By value: 1 equals 1000m.
  std::strong_ordering operator<=>(const Quantity& other) const;
  bool operator==(const Quantity& other) const { return (*this <=> other) == 0; }
  // Same number and same text, as apply compares them.
  bool same_spelling(const Quantity& other) const { return text() == other.text(); }

  // Units of 10^scale, rounded away from zero, held within int64.
  int64_t scaled(int32_t scale) const;
  int64_t value() const { return scaled(0); }
  int64_t milli_value() const { return scaled(kMilli); }
  double approximate() const;

  // Whether it is a whole number of 10^scale.
  bool is_multiple_of(int32_t scale) const;
  // Rounded away from zero to 10^scale. What is that coarse already keeps its text.
  Quantity rounded_up(int32_t scale) const;

  // A zero takes the format of what is added.
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

// The text a quantity prints as, for canonicalising a field. In a ResourceList values finer than milli are rounded up.
enum class QuantityField : uint8_t { Plain, ResourceList };
Result<std::string> canonical_quantity(std::string_view text, QuantityField field = QuantityField::Plain);

// An IntOrString: an integer, or a text such as "25%" or a port's name.
struct IntOrString {
  bool is_int = true;
  int64_t number = 0;
  std::string_view text;

  static IntOrString from(const Value& value);  // Anything but an int or a string counts as 0.
  Value to_value() const { return is_int ? Value::integer(number) : Value::string(text); }
  // "25%" of total, rounded up or down; an integer is itself. BadRequest when the text is not a percentage.
  Result<int64_t> scaled_from(int64_t total, bool round_up) const;
};

}  // namespace holdfast::codec
