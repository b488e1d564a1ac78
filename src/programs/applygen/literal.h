// Private to the module.
#pragma once

#include <string>

#include "codec/codec.h"
#include "value/value.h"

namespace holdfast::applygen {

// A scalar as a C++ literal; empty if it is not a scalar.
inline std::string literal_of(const Value& value) {
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  if (value.is_int()) return std::to_string(value.as_int());
  if (value.is_string()) return codec::encode_json_string(value.as_string());
  return {};
}

}  // namespace holdfast::applygen
