#include "base/go_numbers.h"

#include <charconv>
#include <string>

#include "base/text.h"

namespace holdfast {
namespace {

Error number_error(std::string_view function, std::string_view text, std::string_view what) {
  return bad_request("strconv." + std::string(function) + ": parsing " + go_quote(text) + ": " + std::string(what));
}

}  // namespace

Result<int64_t> go_parse_int(std::string_view text) {
  std::string_view digits = text;
  const bool plus = !digits.empty() && digits.front() == '+';
  if (plus) digits.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || error == std::errc::invalid_argument ||
      (plus && !digits.empty() && digits.front() == '-')) {
    return number_error("ParseInt", text, "invalid syntax");
  }
  if (error == std::errc::result_out_of_range) return number_error("ParseInt", text, "value out of range");
  return value;
}

Result<uint64_t> go_parse_uint(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument) {
    return number_error("ParseUint", text, "invalid syntax");
  }
  if (error == std::errc::result_out_of_range) return number_error("ParseUint", text, "value out of range");
  return value;
}

}  // namespace holdfast
