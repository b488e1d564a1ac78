// JSON and YAML in which no character is hidden, for output that people read on terminals.
//
// A hidden character is one that acts instead of being shown: control characters (C0, DEL, C1), bidirectional controls,
// line and paragraph separators, byte order marks, and tags. The encoders here write them as escapes inside quoted
// scalars, so the text remains valid and reads back to the same value. Bytes that are not UTF-8 become U+FFFD, as in
// all JSON and YAML.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "value/value.h"

namespace holdfast::codec {

bool is_hidden(uint32_t rune);

// A JSON document with hidden characters in strings as \u escapes.
std::string visible_json(std::string json);

// Like encode_yaml, except that hidden characters are escaped instead of refused or written raw, and that keys may have
// any length.
Result<Unit> encode_visible_yaml(const Value& value, std::string& out);

}  // namespace holdfast::codec
