// Converts a decoded tree to an object of a built-in type: the result of Go's decoder followed by Go's encoder.
//
// The result has exactly the members that Kubernetes would print, in declaration order: unknown members are dropped,
// zero values are dropped or written according to omitempty and omitzero, quantities, times and base64 are in canonical
// form, maps are sorted. Nothing is defaulted. A tree that already has this form is returned as it is, shared.
//
// RawExtension fields become Raw leaves: the sender's own bytes if the JSON source is given, otherwise compact JSON
// with sorted keys. FieldsV1 stays as it is, a map or a Raw leaf.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "base/gates.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::codec {

struct TypedOptions {
  const Gates* gates = nullptr;  // Holdfast fields whose gate is off are unknown. Null if all are off.
  // The JSON text from which the tree was decoded; empty if it came from elsewhere. Used for numbers quoted in errors,
  // the text of quantities given as numbers, and the bytes of RawExtensions. (Decode it with
  // JsonOptions::keep_huge_numbers, so that a number beyond the range of a double is rejected here, with its field's
  // name.)
  std::string_view json_source = {};
  // A typed tree from which the input was derived: shared parts are not converted again.
  const Value* derived_from = nullptr;
  // Which error messages to use: those of decoding a whole document, which name the field, or those of converting a
  // tree that is already decoded (apply configurations, patched objects), which works value by value.
  enum class Errors : uint8_t { OfDocument, OfSingleValue } errors = Errors::OfDocument;
  // What becomes of RawExtensions that are raw text already: Kubernetes encodes a patched document again, JSON and
  // merge patches compactly, strategic ones from a map, whose members are sorted.
  enum class RawText : uint8_t { AsIs, Compact, Sorted } raw_text = RawText::AsIs;
};

struct TypedReport {
  bool has_unknown = false;  // Members unknown to the type were dropped; the functions below list them.
};

// Errors are BadRequest with Go's messages: "json: cannot unmarshal string into Go struct field
// DeploymentSpec.spec.replicas of type int32".
Result<Value> to_typed(Arena& arena, const types::Type& type, const Value& in, const TypedOptions& options = {},
                       TypedReport* report = nullptr);

// The messages reported by field validation, without repetitions, at most 100, in the decoder's order:
//   unknown field "spec.x", duplicate field "spec.containers[0].name"
// For a JSON body: both kinds, in document order.
std::vector<std::string> strict_json_errors(const types::Type& type, std::string_view source,
                                            const Gates* gates = nullptr);
// For a tree decoded from YAML (which Kubernetes first converts to JSON with sorted keys): unknown fields only.
// `hides_map_keys`: the paths have no keys of maps, as for the result of a strategic merge patch.
std::vector<std::string> strict_tree_errors(const types::Type& type, const Value& tree, const Gates* gates = nullptr,
                                            bool hides_map_keys = false);

}  // namespace holdfast::codec
