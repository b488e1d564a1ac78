// Checks a ValidatingAdmissionPolicy's expressions against the types of the objects it matches: warnings for its status
// (k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking.go). They do not affect the policy.
//
//   resources_to_check() --the caller finds kinds and documents--> schema_of() --> type_warnings()
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "cel/cel.h"
#include "value/value.h"

namespace holdfast::policy {

struct CheckedResource {
  std::string group, version, resource;
};
// The resources that the policy names without wildcards, in order; at most ten per rule.
std::vector<CheckedResource> resources_to_check(const Value& policy);

struct CheckedKind {
  std::string group, version, kind;
  std::shared_ptr<const cel::SchemaTypes> types;
};
// From a group version's OpenAPI v3 document; null if the document does not contain the kind.
std::shared_ptr<const cel::SchemaTypes> schema_of(Arena& arena, const Value& document, std::string_view group,
                                                  std::string_view version, std::string_view kind);

struct TypeWarning {
  std::string field, warning;
};
// `kinds` must be sorted by group, version and kind. `params` is null if the policy has none or their type is unknown.
std::vector<TypeWarning> type_warnings(const Value& policy, std::span<const CheckedKind> kinds,
                                       const std::shared_ptr<const cel::SchemaTypes>& params);

}  // namespace holdfast::policy
