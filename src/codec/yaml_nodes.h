// The first document of a YAML stream as nodes: what its text says, with aliases resolved. Private to the module.
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
  bool implicit = false;                      // A scalar whose text decides its type.
  uint32_t line = 0;                          // From 1.
  std::string_view tag;                       // Long form; empty: none.
  std::string_view text;                      // Of a scalar; of an alias its name.
  std::span<const YamlNode* const> children;  // Of a map keys and values by turns.
  const YamlNode* target = nullptr;           // Of an alias. May be a node that holds it.
};

struct YamlParse {
  const YamlNode* root = nullptr;      // Null: the stream has no document.
  std::optional<std::string> problem;  // Without "yaml: ".
};

YamlParse parse_yaml_nodes(Arena& arena, std::string_view source);

}  // namespace holdfast::codec
