// Private to the module.
#pragma once

#include <string>
#include <string_view>

#include "value/value.h"

namespace holdfast::applygen {

// A C++ string literal.
inline std::string quoted_literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      const auto byte = static_cast<unsigned char>(c);
      out += {'\\', static_cast<char>('0' + (byte >> 6)), static_cast<char>('0' + (byte >> 3 & 7)),
              static_cast<char>('0' + (byte & 7))};
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// A scalar as a C++ literal; empty if it is not a scalar.
inline std::string literal_of(const Value& value) {
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  if (value.is_int()) return std::to_string(value.as_int());
  if (value.is_string()) return quoted_literal(value.as_string());
  return {};
}

}  // namespace holdfast::applygen
