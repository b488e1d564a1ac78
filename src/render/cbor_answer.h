// Responses in CBOR. Base64 in JSON is bytes in CBOR, and only the object's type tells which strings those are.
#pragma once

#include "codec/codec.h"
#include "types/types.h"

namespace holdfast::render {

// Whether objects of a built-in type have bytes somewhere: Secrets, certificates.
bool holds_bytes(const types::Type& type);

// Writes the item, without the self-described tag. Null: the type is unknown and has no bytes.
void append_cbor(const types::Type* type, const Value& value, codec::Sink& sink);

}  // namespace holdfast::render
