// What a plain YAML 1.1 scalar means to go-yaml v2. The reader resolves with it, the writer quotes by it. Private to
// the module.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::codec {

struct YamlScalar {
  enum class Kind : uint8_t { Null, Bool, Int, Uint, Float, Timestamp, String, Merge };
  Kind kind = Kind::String;
  bool boolean = false;
  int64_t integer = 0;
  uint64_t unsigned_integer = 0;  // Beyond int64.
  double number = 0;
};

inline constexpr std::string_view kYamlTagPrefix = "tag:yaml.org,2002:";

// Of an untagged plain scalar.
YamlScalar resolve_yaml(std::string_view text);

// Of a scalar with a tag, long form; false with `message` when the text is not valid.
bool resolve_yaml(std::string_view tag, std::string_view text, YamlScalar& scalar, std::string& message);

// "!!str" for tag:yaml.org,2002:str
std::string short_yaml_tag(std::string_view tag);

// Digits in base 60 with colons: a text that other YAML readers would take for a number.
bool is_yaml_base60(std::string_view text);

}  // namespace holdfast::codec
