// YAML as Kubernetes reads and writes it (sigs.k8s.io/yaml on go-yaml v2): YAML 1.1, converted to JSON and read as
// such.
//
// Reading: the first document only; plain scalars are null, bool, integer, float or text by the rules of YAML 1.1 (y,
// on, 010, 1_000, ...); keys become texts; maps are sorted bytewise by key, because they pass through Go maps. An
// integral float becomes an Int, like its JSON text. Anchors, aliases and merge keys are expanded within go-yaml's
// limits. Errors are BadRequest with go-yaml's messages ("yaml: line 3: ...").
//
// Writing: go-yaml's output for an object's JSON: block style, natural order of keys, its quoting and folding.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "value/value.h"

namespace holdfast::codec {

struct YamlOptions {
  // If given, receives the findings of strict decoding, in document order: line 3: key "x" already set in map
  std::vector<std::string>* duplicates = nullptr;
};

// Strings are in `arena`, or are views into `source` if the source is JSON.
Result<Value> decode_yaml(Arena& arena, std::string_view source, const YamlOptions& options = {});

// Appends; ends with a newline. An error (InternalError in Kubernetes) if the object's JSON is not valid YAML: control
// characters that JSON leaves raw, keys of more than 1022 characters.
Result<Unit> encode_yaml(const Value& value, std::string& out);
// The same for an item of a list, which must not fail because of one object: what Kubernetes' YAML cannot carry is
// escaped.
Result<Unit> encode_yaml_item(const Value& value, std::string& out);

// The documents of a stream, split like kubectl does: YAML separated by lines that begin with "---", or, if the first
// character is '{', consecutive JSON values. Empty documents are skipped.
Result<std::vector<std::string_view>> split_documents(std::string_view source);

}  // namespace holdfast::codec
