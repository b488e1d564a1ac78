// Answers in CBOR. What JSON shows as base64 is bytes there, and only an object's type tells which texts are that.
#pragma once

#include "codec/codec.h"
#include "types/types.h"

namespace holdfast::render {

// Whether objects of a built-in type have bytes somewhere: Secrets, certificates.
bool holds_bytes(const types::Type& type);

// Writes the item, without the self-described tag. Null: nothing is known of the type, and there are no bytes.
void append_cbor(const types::Type* type, const Value& value, codec::Sink& sink);

}  // namespace holdfast::render
