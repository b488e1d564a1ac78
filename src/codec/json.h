// JSON as Kubernetes reads and writes it (sigs.k8s.io/json, a fork of Go's encoding/json).
//
// Reading: an integer within int64 is an Int, every other number a Double; the last of two equal keys wins; each
// byte that is not UTF-8 and each lone surrogate escape becomes U+FFFD; nesting up to limits::kDecodedDepth; nothing
// but white space may follow. Errors are BadRequest with Go's own words; the offset is in JsonError.
//
// Writing: compact, members in their order, Go's escapes (<, >, &, U+2028, U+2029 too) and number texts. Doubles must
// be finite; others are written as null.
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
  size_t offset = 0;    // Bytes read when it was found, the wrong one included (Go's SyntaxError.Offset).
};

struct JsonOptions {
  // Filled, when given, with the strings that field validation reports for keys given twice, in document order, each
  // once, at most 100: duplicate field "spec.template.x[2].y"
  std::vector<std::string>* duplicates = nullptr;
  // Filled, when given, when the result is an error.
  JsonError* error = nullptr;
  // Values at these paths become Raw leaves that keep the sender's text, spaces included.
  const FieldPaths* raw = nullptr;
  // A number beyond the range of a double becomes an infinity instead of an error. For readers of typed objects,
  // whose error names the field: see json_text_at.
  bool keep_huge_numbers = false;
  // Maps given twice under one key are merged, as Go's decoder does when it fills a struct. Else the last one wins.
  bool unite_repeated_maps = false;
};

// Texts without escapes are views into `source`, which must outlive the tree; everything else is in `arena`.
Result<Value> decode_json(Arena& arena, std::string_view source, const JsonOptions& options = {});

// The text of the value at a path of keys and list positions ("spec", "ports", "0") in valid JSON; empty when it is
// not there. For errors that quote what was sent.
std::string_view json_text_at(std::string_view source, const std::vector<std::string>& path);

// Appends. Raw leaves are compacted as Go does: spaces between tokens go, everything else stays.
void encode_json(const Value& value, std::string& out);
std::string encode_json(const Value& value);
// With two spaces of indentation, no newline at the end.
void encode_json_pretty(const Value& value, std::string& out);
std::string encode_json_pretty(const Value& value);
// Maps in bytewise order of their keys, as Go writes maps (custom resources, patches, FieldsV1 of custom resources).
void encode_json_sorted(const Value& value, std::string& out);
std::string encode_json_sorted(const Value& value);
// One text as a JSON string, quotes included.
void encode_json_string(std::string_view text, std::string& out);
void encode_json_string(std::string_view text, Sink& out);
std::string encode_json_string(std::string_view text);
// Raw JSON without the spaces between its tokens, with <, >, &, U+2028 and U+2029 escaped. It must be valid JSON.
void compact_json(std::string_view source, std::string& out);
void compact_json(std::string_view source, Sink& out);

}  // namespace holdfast::codec
