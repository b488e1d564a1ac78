// The first document of a YAML stream as nodes, with aliases resolved. Private to the module.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/arena.h"

namespace holdfast::codec {

struct YamlNode {
  enum class Kind : uint8_t { Scalar, List, Map, Alias };
  Kind kind = Kind::Scalar;
  bool implicit = false;                      // A scalar whose type is determined by its text.
  uint32_t line = 0;                          // From 1.
  std::string_view tag;                       // Long form, or empty.
  std::string_view text;                      // Of a scalar, or the name of an alias.
  std::span<const YamlNode* const> children;  // Keys and values alternate in a map.
  const YamlNode* target = nullptr;           // Of an alias. May be an ancestor.
};

struct YamlParse {
  const YamlNode* root = nullptr;      // Null if the stream has no document.
  std::optional<std::string> problem;  // Without "yaml: ".
};

YamlParse parse_yaml_nodes(Arena& arena, std::string_view source);

}  // namespace holdfast::codec
