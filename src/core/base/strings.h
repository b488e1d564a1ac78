// Small operations on ASCII text, used by many modules.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

// Converts ASCII letters; other bytes are unchanged.
std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);
// Case-insensitive for ASCII letters only.
bool equals_ignoring_case(std::string_view a, std::string_view b);

// The parts between separators, like Go's strings.Split: "" has one, "a,,b" has three. The last of `most` parts is the
// whole rest.
std::vector<std::string_view> split(std::string_view text, char separator, size_t most = SIZE_MAX);

// The parts, each as written by `text_of`, with the separator between them.
template <class Parts, class TextOf = std::identity>
std::string join(const Parts& parts, std::string_view separator, TextOf text_of = {}) {
  std::string joined;
  bool first = true;
  for (const auto& part : parts) {
    if (!first) joined += separator;
    first = false;
    joined += text_of(part);
  }
  return joined;
}

// Strips ASCII white space at both ends.
std::string_view trim(std::string_view text);
// Strips any of these characters at both ends.
inline std::string_view trim(std::string_view text, std::string_view characters) {
  while (!text.empty() && characters.find(text.front()) != std::string_view::npos) text.remove_prefix(1);
  while (!text.empty() && characters.find(text.back()) != std::string_view::npos) text.remove_suffix(1);
  return text;
}

// Two lower-case hexadecimal digits per byte.
std::string to_hex(std::string_view bytes);

// Whether inet_pton accepts the text as an IPv4 or IPv6 address.
bool is_ip_address(std::string_view text);

// A version 4 UUID. Unique but not unpredictable: from a per-thread generator seeded once by the system.
std::string random_uuid();

// The whole text as an integer in decimal or another base; nothing if it is not one or does not fit. A minus sign is
// allowed for signed types; a plus sign and white space are not.
template <std::integral Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The values that Go's strconv.ParseBool accepts; nothing for any other text.
std::optional<bool> parse_bool(std::string_view text);

}  // namespace holdfast
