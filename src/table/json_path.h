// The JSONPath of printer columns: what k8s.io/client-go/util/jsonpath takes, without ranges over templates.
//
//   .spec.ports[0].port   .status.conditions[?(@.type=="Ready")].status   .metadata.labels.app\.kubernetes\.io/name
//   ..name   [*]   [0:2]
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "value/value.h"

namespace holdfast::table {

// Whether it can be used as a column's path; the error says where it goes wrong.
Result<Unit> check_json_path(std::string_view path);

// Adds what the path selects, in order; an absent member selects nothing. False when the path is malformed or fails (an
// index out of bounds).
bool evaluate_json_path(std::string_view path, const Value& root, std::vector<Value>& found);

// The found values as text: several separated by blanks; lists and maps as compact JSON; null is "<no value>".
std::string json_path_text(const std::vector<Value>& found);

}  // namespace holdfast::table
