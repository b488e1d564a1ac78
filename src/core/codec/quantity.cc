#include "codec/quantity.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/ascii.h"
#include "base/same_text.h"
#include "base/strings.h"
namespace holdfast::codec {
namespace {

using Format = Quantity::Format;

constexpr std::string_view kFormatWrong =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
constexpr std::string_view kNumericWrong = "unable to parse numeric part of quantity";
constexpr std::string_view kSuffixWrong = "unable to parse quantity's suffix";

// Any number with this many digits fits into an int64; beyond that, upstream computes with big numbers and does not
// keep the text.
constexpr size_t kFastDigits = 18;
// When adding numbers whose magnitudes differ by more digits than this, only the larger one is kept, so that an
// exponent cannot cause excessive memory usage. Upstream has no limit.
constexpr int64_t kMostDigits = 4096;

struct Suffix {
  std::string_view text;
  int32_t exponent;  // Of 10, or of 2 for binary suffixes.
};
constexpr Suffix kDecimal[] = {{"n", -9}, {"u", -6}, {"m", -3}, {"", 0},   {"k", 3},
                               {"M", 6},  {"G", 9},  {"T", 12}, {"P", 15}, {"E", 18}};
constexpr Suffix kBinary[] = {{"Ki", 10}, {"Mi", 20}, {"Gi", 30}, {"Ti", 40}, {"Pi", 50}, {"Ei", 60}};

// --- Decimal digits, most significant first ---

void strip_leading_zeros(std::string& digits) {
  if (digits.starts_with('0')) digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
}

void multiply(std::string& digits, uint32_t factor) {
  uint64_t carry = 0;
  for (size_t i = digits.size(); i-- > 0;) {
    carry += static_cast<uint64_t>(digits[i] - '0') * factor;
    digits[i] = static_cast<char>('0' + carry % 10);
    carry /= 10;
  }
  std::string front = carry == 0 ? "" : std::to_string(carry);
  digits.insert(0, front);
}

// Multiplies by 2^bits; `bits` is a multiple of ten.
void shift_left(std::string& digits, int32_t bits) {
  constexpr size_t kSurelyFits = 18;
  if (digits.size() <= kSurelyFits && bits < 64) {
    uint64_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (number <= UINT64_MAX >> bits) {
      if (number > 0) digits = std::to_string(number << bits);
      return;
    }
  }
  for (; bits > 0 && !digits.empty(); bits -= 10) multiply(digits, 1024);
}

// Divides in place and returns the remainder.
uint32_t divide(std::string& digits, uint32_t divisor) {
  uint64_t rest = 0;
  for (char& digit : digits) {
    rest = rest * 10 + static_cast<uint64_t>(digit - '0');
    digit = static_cast<char>('0' + rest / divisor);
    rest %= divisor;
  }
  strip_leading_zeros(digits);
  return static_cast<uint32_t>(rest);
}

void increment(std::string& digits) {
  for (size_t i = digits.size(); i-- > 0;) {
    if (digits[i] != '9') {
      ++digits[i];
      return;
    }
    digits[i] = '0';
  }
  digits.insert(digits.begin(), '1');
}

// Removes the last `count` digits, rounding away from zero; true if the result is exact.
bool cut(std::string& digits, int64_t count) {
  if (digits.empty()) return true;
  const size_t kept = count >= static_cast<int64_t>(digits.size()) ? 0 : digits.size() - static_cast<size_t>(count);
  const bool exact = digits.find_first_not_of('0', kept) == std::string::npos;
  digits.resize(kept);
  if (!exact) increment(digits);
  return exact;
}

std::string add(const std::string& a, const std::string& b) {
  std::string sum(std::max(a.size(), b.size()) + 1, '0');
  int carry = 0;
  for (size_t i = 0; i < sum.size(); ++i) {
    if (i < a.size()) carry += a[a.size() - 1 - i] - '0';
    if (i < b.size()) carry += b[b.size() - 1 - i] - '0';
    sum[sum.size() - 1 - i] = static_cast<char>('0' + carry % 10);
    carry /= 10;
  }
  strip_leading_zeros(sum);
  return sum;
}

// a - b, where a is not smaller than b.
std::string subtract(const std::string& a, const std::string& b) {
  std::string rest = a;
  int borrow = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    int digit = a[a.size() - 1 - i] - '0' - borrow - (i < b.size() ? b[b.size() - 1 - i] - '0' : 0);
    borrow = digit < 0 ? 1 : 0;
    rest[a.size() - 1 - i] = static_cast<char>('0' + digit + borrow * 10);
  }
  strip_leading_zeros(rest);
  return rest;
}

// Compares digits * 10^scale without expanding zeros.
std::strong_ordering compare(const std::string& a, int32_t a_scale, const std::string& b, int32_t b_scale) {
  if (a.empty() || b.empty()) return !a.empty() <=> !b.empty();
  const auto a_top = static_cast<int64_t>(a.size()) + a_scale;
  const auto b_top = static_cast<int64_t>(b.size()) + b_scale;
  if (a_top != b_top) return a_top <=> b_top;
  const size_t length = std::max(a.size(), b.size());
  for (size_t i = 0; i < length; ++i) {
    const char x = i < a.size() ? a[i] : '0';
    const char y = i < b.size() ? b[i] : '0';
    if (x != y) return x <=> y;
  }
  return std::strong_ordering::equal;
}

// --- The parts of a text ---

struct Parts {
  bool negative = false;
  std::string_view value;  // Sign and number, for the exact path.
  std::string_view whole;  // Without leading zeros, but at least "0".
  std::string_view fraction;
  std::string_view suffix;
  bool ok = true;
};

Parts split(std::string_view text) {
  Parts parts;
  size_t at = 0;
  if (text[0] == '-' || text[0] == '+') {
    parts.negative = text[0] == '-';
    at = 1;
  }
  while (at < text.size() && text[at] == '0') ++at;
  if (at == text.size()) {
    parts.value = parts.whole = "0";
    return parts;
  }
  size_t start = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  parts.whole = at == start ? std::string_view("0") : text.substr(start, at - start);
  if (at < text.size() && text[at] == '.') {
    start = ++at;
    while (at < text.size() && is_digit(text[at])) ++at;
    parts.fraction = text.substr(start, at - start);
  }
  parts.value = text.substr(0, at);
  parts.suffix = text.substr(at);
  while (at < text.size() && std::string_view("eEinumkKMGTP").find(text[at]) != std::string_view::npos) ++at;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  while (at < text.size() && is_digit(text[at])) ++at;
  parts.ok = at == text.size();
  return parts;
}

struct Scale {
  Format format;
  int32_t exponent;
};

bool interpret(std::string_view suffix, Scale& scale) {
  for (const Suffix& s : kDecimal) {
    if (same_text(s.text, suffix)) {
      scale = {Format::DecimalSI, s.exponent};
      return true;
    }
  }
  for (const Suffix& s : kBinary) {
    if (same_text(s.text, suffix)) {
      scale = {Format::BinarySI, s.exponent};
      return true;
    }
  }
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return false;
  suffix.remove_prefix(1);
  if (suffix[0] == '+') {
    suffix.remove_prefix(1);
    if (suffix.empty() || !is_digit(suffix[0])) return false;
  }
  const std::optional<int64_t> exponent = parse_number<int64_t>(suffix);
  if (!exponent) return false;
  scale = {Format::DecimalExponent, static_cast<int32_t>(*exponent)};  // Upstream wraps likewise.
  return true;
}

}  // namespace

bool Quantity::surely_canonical(std::string_view text) {
  if (text.empty() || text[0] < '1' || text[0] > '9') return text == "0";
  size_t digits = 1;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  const std::string_view number = text.substr(0, digits), suffix = text.substr(digits);
  // Below 1024, no larger suffix is possible. An odd last digit is not a multiple of eight. Few digits are within every
  // suffix's exact range.
  if (suffix == "Ki" || suffix == "Mi" || suffix == "Gi")
    return digits <= 3 || (digits <= 5 && (number.back() & 1) != 0);
  if (digits > kFastDigits || number.ends_with("000")) return false;
  return suffix.empty() || (suffix.size() == 1 && std::string_view("numkMG").find(suffix[0]) != std::string_view::npos);
}

Quantity Quantity::of(int64_t value, Format format) {
  Quantity q;
  q.negative_ = value < 0;
  q.digits_ = value == 0 ? "" : std::to_string(value).substr(value < 0 ? 1 : 0);
  q.format_ = format;
  return q;
}

Quantity Quantity::milli(int64_t value, Format format) {
  Quantity q = of(value, format);
  q.scale_ = kMilli;
  return q;
}

Result<Quantity> Quantity::parse(std::string_view text) {
  text = trim(text);
  if (text.empty()) return bad_request(std::string(kFormatWrong));
  Quantity q;
  if (text == "0") {
    q.as_sent_ = "0";
    return q;
  }
  const Parts parts = split(text);
  if (!parts.ok) return bad_request(std::string(kFormatWrong));
  Scale scale{};
  if (!interpret(parts.suffix, scale)) return bad_request(std::string(kSuffixWrong));
  const bool binary = scale.format == Format::BinarySI;
  q.format_ = scale.format;
  q.negative_ = parts.negative;

  std::string digits(parts.whole);
  digits += parts.fraction;
  // Whether the original text is kept depends on the limits of upstream's int64 path: eighteen digits, or for binary
  // suffixes fifteen less the digits that the suffix itself adds.
  const auto length = static_cast<int64_t>(digits.size());
  const int64_t exact_scale = (binary ? 0 : int64_t{scale.exponent}) - static_cast<int64_t>(parts.fraction.size());
  const bool fast = binary ? parts.fraction.empty() && 15 - length - scale.exponent * 3 / 10 - 1 >= 0
                           : length <= static_cast<int64_t>(kFastDigits);
  if (fast && exact_scale >= kNano) {
    bool keep;
    if (binary) {
      // The last three digits determine the low three bits.
      const std::string_view low = std::string_view(digits).substr(digits.size() - std::min<size_t>(3, digits.size()));
      int tail = 0;
      std::from_chars(low.data(), low.data() + low.size(), tail);
      keep = (tail & 7) != 0;
    } else {
      keep = exact_scale % 3 == 0 && !std::string_view(digits).ends_with("000") && digits[0] != '0';
    }
    if (keep) q.as_sent_ = text;
  } else if (std::none_of(parts.value.begin(), parts.value.end(), is_digit)) {
    return bad_request(std::string(kNumericWrong));
  }
  strip_leading_zeros(digits);
  if (binary) shift_left(digits, scale.exponent);
  q.digits_ = std::move(digits);
  q.scale_ = static_cast<int32_t>(std::clamp<int64_t>(exact_scale, INT32_MIN, INT32_MAX));
  if (q.is_zero()) {
    q.negative_ = false;
    return q;
  }
  if (fast && exact_scale >= kNano) return q;

  if (q.scale_ < kNano) {
    cut(q.digits_, int64_t{kNano} - q.scale_);
    q.scale_ = kNano;
  }
  if (binary) {
    const std::string most = std::to_string(INT64_MAX);
    if (compare(q.digits_, q.scale_, most, 0) > 0) {
      q.digits_ = most;
      q.scale_ = 0;
    }
    if (compare(q.digits_, q.scale_, "1", 0) < 0) q.format_ = Format::DecimalSI;
  }
  return q;
}

std::string Quantity::canonical() const {
  if (is_zero()) return "0";
  std::string digits = digits_;
  int64_t exponent = scale_;
  Format format = format_;
  if (format == Format::BinarySI && (compare(digits_, scale_, "1024", 0) < 0 || !is_multiple_of(0))) {
    format = Format::DecimalSI;
  }
  std::string out = negative_ ? "-" : "";
  if (format == Format::BinarySI) {
    if (exponent < 0) cut(digits, -exponent);
    if (exponent > 0) digits.append(static_cast<size_t>(std::min(exponent, kMostDigits)), '0');
    size_t suffix = 0;
    for (std::string next = digits; suffix < std::size(kBinary) && divide(next, 1024) == 0; ++suffix) digits = next;
    return out + digits + std::string(suffix == 0 ? "" : kBinary[suffix - 1].text);
  }
  const size_t last = digits.find_last_not_of('0');
  exponent += static_cast<int64_t>(digits.size() - 1 - last);
  digits.resize(last + 1);
  for (; exponent % 3 != 0; --exponent) digits += '0';
  out += digits;
  if (format == Format::DecimalExponent) {
    if (exponent != 0) out += 'e' + std::to_string(exponent);
    return out;
  }
  // There is no suffix beyond exa, and upstream prints none.
  for (const Suffix& s : kDecimal) {
    if (s.exponent == exponent) out += s.text;
  }
  return out;
}

std::strong_ordering Quantity::operator<=>(const Quantity& other) const {
  if (sign() != other.sign()) return sign() <=> other.sign();
  const auto magnitudes = compare(digits_, scale_, other.digits_, other.scale_);
  return sign() < 0 ? 0 <=> magnitudes : magnitudes;
}

int64_t Quantity::scaled(int32_t scale) const {
  if (is_zero()) return 0;
  std::string digits = digits_;
  const int64_t shift = int64_t{scale_} - scale;
  if (shift < 0) {
    cut(digits, -shift);
  } else if (static_cast<int64_t>(digits.size()) + shift > 19) {
    return negative_ ? INT64_MIN : INT64_MAX;
  } else {
    digits.append(static_cast<size_t>(shift), '0');
  }
  if (digits.size() > 19) return negative_ ? INT64_MIN : INT64_MAX;
  uint64_t magnitude = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), magnitude);
  constexpr auto kMost = static_cast<uint64_t>(INT64_MAX);
  if (negative_) return magnitude > kMost ? INT64_MIN : -static_cast<int64_t>(magnitude);
  return static_cast<int64_t>(std::min(magnitude, kMost));
}

double Quantity::approximate() const {
  if (is_zero()) return 0;
  const double magnitude = std::strtod((digits_ + 'e' + std::to_string(scale_)).c_str(), nullptr);
  return negative_ ? -magnitude : magnitude;
}

bool Quantity::is_multiple_of(int32_t scale) const {
  std::string digits = digits_;
  return scale_ >= scale || cut(digits, int64_t{scale} - scale_);
}

Quantity Quantity::rounded_up(int32_t scale) const {
  if (scale_ >= scale) return *this;
  Quantity q = *this;
  q.as_sent_.clear();
  cut(q.digits_, int64_t{scale} - scale_);
  q.scale_ = scale;
  return q;
}

Quantity Quantity::operator+(const Quantity& other) const {
  Quantity sum = *this;
  sum.as_sent_.clear();
  if (is_zero()) {
    sum = other;
    sum.as_sent_.clear();
    return sum;
  }
  if (other.is_zero()) return sum;
  const int64_t apart = int64_t{scale_} - other.scale_;
  if (std::abs(apart) > kMostDigits) {
    const bool mine = compare(digits_, scale_, other.digits_, other.scale_) >= 0;
    sum.digits_ = mine ? digits_ : other.digits_;
    sum.scale_ = mine ? scale_ : other.scale_;
    sum.negative_ = mine ? negative_ : other.negative_;
    return sum;
  }
  std::string a = digits_;
  std::string b = other.digits_;
  if (apart > 0) a.append(static_cast<size_t>(apart), '0');
  if (apart < 0) b.append(static_cast<size_t>(-apart), '0');
  sum.scale_ = std::min(scale_, other.scale_);
  if (negative_ == other.negative_) {
    sum.digits_ = add(a, b);
  } else {
    const bool mine = compare(a, 0, b, 0) >= 0;
    sum.digits_ = mine ? subtract(a, b) : subtract(b, a);
    sum.negative_ = !sum.digits_.empty() && (mine ? negative_ : other.negative_);
  }
  return sum;
}

Quantity Quantity::operator-(const Quantity& other) const { return *this + -other; }

Quantity Quantity::operator-() const {
  Quantity q = *this;
  q.as_sent_.clear();
  q.negative_ = !is_zero() && !negative_;
  return q;
}

Quantity Quantity::times(int64_t factor) const {
  Quantity q = *this;
  q.as_sent_.clear();
  q.negative_ = negative_ != (factor < 0);
  uint64_t magnitude = factor < 0 ? 0 - static_cast<uint64_t>(factor) : static_cast<uint64_t>(factor);
  // Nine digits at a time keep every product within 64 bits.
  constexpr uint32_t kChunk = 1000000000;
  std::string total;
  for (size_t zeros = 0; magnitude != 0; magnitude /= kChunk, zeros += 9) {
    std::string part = digits_;
    multiply(part, static_cast<uint32_t>(magnitude % kChunk));
    strip_leading_zeros(part);
    if (!part.empty()) part.append(zeros, '0');
    total = add(total, part);
  }
  q.digits_ = std::move(total);
  if (q.is_zero()) q.negative_ = false;
  return q;
}

Result<std::string> canonical_quantity(std::string_view text, QuantityField field) {
  Result<Quantity> q = Quantity::parse(text);
  if (!q) return q.take_error();
  return field == QuantityField::ResourceList ? q->rounded_up(Quantity::kMilli).text() : q->text();
}

IntOrString IntOrString::from(const Value& value) {
  if (value.is_int()) return {true, value.as_int(), {}};
  if (value.is_string()) return {false, 0, value.as_string()};
  return {};
}

Result<int64_t> IntOrString::scaled_from(int64_t total, bool round_up) const {
  if (is_int) return number;
  int64_t percent = 0;
  const char* const end = text.data() + text.size();
  const bool percentage = text.ends_with('%');
  if (!percentage) {
    return bad_request("invalid value for IntOrString: invalid type: string is not a percentage");
  }
  const auto [stopped, error] = std::from_chars(text.data(), end, percent);
  if (error != std::errc() || stopped != end - 1) {
    return bad_request("invalid value for IntOrString: invalid value \"" + std::string(text) +
                       "\": strconv.Atoi: parsing \"" + std::string(text.substr(0, text.size() - 1)) +
                       "\": invalid syntax");
  }
  const double part = static_cast<double>(percent) * static_cast<double>(total) / 100;
  constexpr double kLimit = 9.2e18;
  return static_cast<int64_t>(std::clamp(round_up ? std::ceil(part) : std::floor(part), -kLimit, kLimit));
}

}  // namespace holdfast::codec
