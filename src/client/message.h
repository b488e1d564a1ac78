// The fields of a Protobuf message that have bytes, without knowing its type. Private to the module.
#pragma once

#include <string_view>

#include "base/varint.h"

namespace holdfast::client {

// Calls `visit` with the number and the bytes of each; false: not a message.
template <class Visit>
bool for_each_bytes(std::string_view message, Visit visit) {
  ByteReader reader(message);
  while (!reader.rest().empty()) {
    const uint64_t tag = reader.varint();
    switch (tag & 7) {
      case 0:
        reader.varint();
        break;
      case 1:
        reader.bytes(8);
        break;
      case 2: {
        const std::string_view bytes = reader.bytes(reader.varint());
        if (reader.ok()) visit(tag >> 3, bytes);
        break;
      }
      case 5:
        reader.bytes(4);
        break;
      default:
        return false;
    }
    if (!reader.ok()) return false;
  }
  return true;
}

}  // namespace holdfast::client
