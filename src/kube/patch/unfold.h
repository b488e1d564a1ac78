// Patches apply to the content of raw JSON values. Private to the module.
#pragma once

#include "base/arena.h"
#include "codec/codec.h"
#include "value/value.h"

namespace holdfast::patch {

// Decodes a raw value; returns any other value unchanged.
inline Value unfolded(Arena& arena, const Value& value) {
  if (!value.is_raw()) return value;
  Result<Value> tree = codec::decode_json(arena, value.raw_json());
  return tree.ok() ? *tree : value;
}

}  // namespace holdfast::patch
