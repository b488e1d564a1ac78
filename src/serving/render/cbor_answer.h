// CBOR responses. Fields that are Base64 in JSON are byte strings in CBOR; only the object's type tells which ones.
#pragma once

#include "codec/codec.h"
#include "types/types.h"

namespace holdfast::render {

// Whether a built-in type contains byte fields anywhere (Secrets, certificates).
bool holds_bytes(const types::Type& type);

// Appends the item without the self-described tag. A null type means unknown, without byte fields.
void append_cbor(const types::Type* type, const Value& value, codec::Sink& sink);

}  // namespace holdfast::render
