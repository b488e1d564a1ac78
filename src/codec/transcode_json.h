// JSON bytes to other bytes, without a tree in between.
//
// The source is one JSON value whose maps give no key twice (what encode_json writes). Texts and numbers keep its
// spelling in JSON. A source that is not JSON is an error, and `out` is then as it was before.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "codec/fields.h"
#include "codec/sink.h"

namespace holdfast::codec {

// Each appends to `out`.
Result<Unit> json_to_json(std::string_view source, const Shape& shape, std::string& out);
Result<Unit> json_to_pretty_json(std::string_view source, const Shape& shape, std::string& out);
// With the self-described tag in front.
Result<Unit> json_to_cbor(std::string_view source, const Shape& shape, std::string& out);

// One item, without the tag, into a larger one; null when the source is not JSON.
void write_json_as_cbor(std::string_view source, Sink& sink);

}  // namespace holdfast::codec
