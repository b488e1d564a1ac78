// Transcodes JSON bytes to other formats, without building a tree.
//
// The source is one JSON value without duplicate keys (as encode_json writes it). In JSON output, texts and numbers
// keep their original form. If the source is not valid JSON, an error is returned and `out` is unchanged.
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

// A single item without the tag, for embedding; null if the source is not valid JSON.
void write_json_as_cbor(std::string_view source, Sink& sink);

}  // namespace holdfast::codec
