// A decoded tree as an object of a built-in type: what Go's decoder would make of the body, and Go's encoder of that.
//
// The result has exactly the members that Kubernetes would print, in the order of declaration: unknown members are
// gone, zero values dropped or shown as omitempty and omitzero say, quantities, times and base64 in their canonical
// text, maps sorted. Nothing is defaulted. A tree that has that form already is returned as it is, shared.
//
// RawExtension fields become Raw leaves: the sender's own bytes when the JSON source is given, otherwise compact JSON
// with sorted keys. FieldsV1 stays what it is, a map or a Raw leaf.
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
  const Gates* gates = nullptr;  // Fields of ours whose gate is off are unknown. Null: all are off.
  // The JSON text that the tree was decoded from; empty when it came from elsewhere. Errors quote numbers from it,
  // quantities given as numbers take their spelling from it, RawExtensions their bytes. (Decode it with
  // JsonOptions::keep_huge_numbers, so that a number beyond the doubles is rejected here, with its field's name.)
  std::string_view json_source = {};
  // A tree of this type from which the one to be read was made: what both share is not examined again.
  const Value* made_from = nullptr;
  // Whose error messages to use: those of a decoder of a whole document, which name the field, or those of a conversion
  // of a tree that is already decoded (apply configurations, patched objects), which works value by value.
  enum class Errors : uint8_t { OfDocument, OfSingleValue } errors = Errors::OfDocument;
};

struct TypedReport {
  bool has_unknown = false;  // Members were dropped that the type does not have: ask the functions below which.
};

// Errors are BadRequest in Go's words: "json: cannot unmarshal string into Go struct field
// DeploymentSpec.spec.replicas of type int32".
Result<Value> to_typed(Arena& arena, const types::Type& type, const Value& in, const TypedOptions& options = {},
                       TypedReport* report = nullptr);

// What field validation reports, each text once, at most 100, in the decoder's order:
//   unknown field "spec.x", duplicate field "spec.containers[0].name"
// Of a JSON body, both kinds, in the order of the text.
std::vector<std::string> strict_json_errors(const types::Type& type, std::string_view source,
                                            const Gates* gates = nullptr);
// Of a tree from YAML (Kubernetes makes JSON of it first, with sorted keys): unknown fields only.
std::vector<std::string> strict_tree_errors(const types::Type& type, const Value& tree, const Gates* gates = nullptr);

}  // namespace holdfast::codec
