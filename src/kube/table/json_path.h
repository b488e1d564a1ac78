// The JSONPath of printer columns: the syntax of k8s.io/client-go/util/jsonpath, without ranges over templates.
//
//   .spec.ports[0].port   .status.conditions[?(@.type=="Ready")].status   .metadata.labels.app\.kubernetes\.io/name
//   ..name   [*]   [0:2]
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "value/value.h"

namespace holdfast::table {

// Whether it is a valid column path; the error names the position.
Result<Unit> check_json_path(std::string_view path);

// Appends the values selected by the path, in order, up to `most_found` of them; an absent member selects nothing.
// False if the path is malformed, an index is out of bounds, or the path selects the values of the object so many times
// that this would take too long.
bool evaluate_json_path(std::string_view path, const Value& root, std::vector<Value>& found,
                        size_t most_found = SIZE_MAX);

// The found values as text, separated by blanks; lists and maps as compact JSON; null is "<no value>".
std::string json_path_text(const std::vector<Value>& found);

}  // namespace holdfast::table
