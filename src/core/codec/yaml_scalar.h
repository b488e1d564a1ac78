// How go-yaml v2 interprets plain YAML 1.1 scalars. The reader uses it to resolve them, the writer to decide on
// quoting. Private to the module.
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

// Resolves an untagged plain scalar.
YamlScalar resolve_yaml(std::string_view text);

// Resolves a scalar with a tag in long form; false, with `message` set, if the text is not valid.
bool resolve_yaml(std::string_view tag, std::string_view text, YamlScalar& scalar, std::string& message);

// "!!str" for tag:yaml.org,2002:str
std::string short_yaml_tag(std::string_view tag);

// Base-60 digits with colons: a text that other YAML readers would take for a number.
bool is_yaml_base60(std::string_view text);

}  // namespace holdfast::codec
