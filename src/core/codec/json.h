// JSON as Kubernetes reads and writes it (sigs.k8s.io/json, a fork of Go's encoding/json).
//
// Reading: an integer within int64 is an Int, every other number a Double; the last of several equal keys wins; each
// invalid UTF-8 byte and each lone surrogate escape becomes U+FFFD; nesting up to limits::kDecodedDepth; only white
// space may follow the value. Errors are BadRequest with Go's messages; the offset is in JsonError.
//
// Writing: compact, members in their order, with Go's escapes (including <, >, &, U+2028, U+2029) and number formats.
// Doubles must be finite; others are written as null.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "codec/fields.h"
#include "codec/sink.h"
#include "value/value.h"

namespace holdfast::codec {

inline constexpr uint32_t kMaxDepth = limits::kDecodedDepth;

struct JsonError {
  std::string message;  // "invalid character 'x' looking for beginning of value"
  size_t offset = 0;    // Bytes read when it was found, including the invalid one (Go's SyntaxError.Offset).
};

struct JsonOptions {
  // If given, receives the messages that field validation reports for duplicate keys, in document order without
  // repetitions, at most 100: duplicate field "spec.template.x[2].y"
  std::vector<std::string>* duplicates = nullptr;
  // If given, set on error.
  JsonError* error = nullptr;
  // Values at these paths become Raw leaves that keep the sender's text, including white space.
  const FieldPaths* raw = nullptr;
  // A number beyond the range of a double becomes an infinity instead of an error. For decoding typed objects, where
  // the error must name the field: see json_text_at.
  bool keep_huge_numbers = false;
  // Merges maps under duplicate keys, like Go's decoder when it fills a struct. Otherwise the last one wins.
  bool merge_duplicate_maps = false;
};

// Texts without escapes are views into `source`, which must outlive the tree; everything else is in `arena`.
Result<Value> decode_json(Arena& arena, std::string_view source, const JsonOptions& options = {});

// The text of the value at a path of keys and list positions ("spec", "ports", "0") in valid JSON; empty if absent. For
// errors that quote the request.
std::string_view json_text_at(std::string_view source, const std::vector<std::string>& path);

// Appends. Raw leaves are compacted like Go does: only white space between tokens is removed.
void encode_json(const Value& value, std::string& out);
std::string encode_json(const Value& value);
// Indented by two spaces, without a trailing newline.
void encode_json_pretty(const Value& value, std::string& out);
std::string encode_json_pretty(const Value& value);
// Maps sorted bytewise by key, as Go writes maps (custom resources, patches, FieldsV1 of custom resources).
void encode_json_sorted(const Value& value, std::string& out);
std::string encode_json_sorted(const Value& value);
// A text as a JSON string, including quotes.
void encode_json_string(std::string_view text, std::string& out);
void encode_json_string(std::string_view text, Sink& out);
std::string encode_json_string(std::string_view text);
// Removes white space between the tokens of raw JSON and escapes <, >, &, U+2028 and U+2029. The source must be valid
// JSON.
void compact_json(std::string_view source, std::string& out);
void compact_json(std::string_view source, Sink& out);

}  // namespace holdfast::codec
