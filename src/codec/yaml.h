// YAML as Kubernetes reads and writes it (sigs.k8s.io/yaml on go-yaml v2): YAML 1.1, turned into JSON and read as that.
//
// Reading: the first document only; plain scalars are null, bool, integer, float or text by YAML 1.1's rules (y, on,
// 010, 1_000, ...); keys become texts; maps come out in bytewise order of their keys, because they pass through Go
// maps. An integral float is an Int afterwards, as its JSON text is. Anchors, aliases and merge keys are expanded
// within go-yaml's bounds. Errors are BadRequest in go-yaml's words ("yaml: line 3: ...").
//
// Writing: what go-yaml makes of an object's JSON: block style, natural order of keys, its quoting and folding.
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
  // Filled, when given, with the findings of strict decoding, in document order: line 3: key "x" already set in map
  std::vector<std::string>* duplicates = nullptr;
};

// Strings are in `arena`, or are views into `source` where the source is JSON.
Result<Value> decode_yaml(Arena& arena, std::string_view source, const YamlOptions& options = {});

// Appends; ends with a newline. An error (InternalError in Kubernetes) when the object's JSON is not YAML: control
// characters that JSON leaves raw, keys of more than 1022 characters.
Result<Unit> encode_yaml(const Value& value, std::string& out);

// The documents of a stream as kubectl distinguishes them: YAML between lines that begin with "---", or, when the first
// character is '{', JSON values one after the other. Documents without content are left out.
Result<std::vector<std::string_view>> split_documents(std::string_view source);

}  // namespace holdfast::codec
