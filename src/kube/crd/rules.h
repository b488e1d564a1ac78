// Private to the module.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "kinds/kinds.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::crd {

using kinds::FieldErrors;
using kinds::Path;
using kinds::Shown;

struct Version;

bool flag_at(const Value& map, std::string_view key);
// The definition with its verbatim JSON (defaults, enum values) parsed into trees, for comparison and validation.
Value with_parsed_raw_json(Arena& arena, const Value& value);

// Required for definitions in Kubernetes' own groups: the URL of the approval, or the reason why there is none.
inline constexpr std::string_view kApprovedAnnotation = "api-approved.kubernetes.io";
enum class Approval : uint8_t { Missing, Bypassed, Approved, Invalid };
bool is_protected_group(std::string_view group);
Approval approval_of(std::string_view annotation);
inline constexpr std::string_view kApprovalMissing =
    "protected groups must have approval annotation \"api-approved.kubernetes.io\", see "
    "https://github.com/kubernetes/enhancements/pull/1111";
inline constexpr std::string_view kApprovalInvalid =
    "protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a URL or a reason "
    "starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111";

// Whether base64 data appears to contain a PEM certificate; the certificate itself is not parsed.
bool holds_certificate(std::string_view encoded);

// The requirements for a schema. On update, requirements that the stored definition does not meet are waived: it may
// predate them.
struct SchemaRequirements {
  bool structural = true;
  bool known_types = true;
  bool pruned_defaults = true;
  bool atomic_sets = true;   // Items of sets must be atomic.
  bool present_keys = true;  // Items of sets and keyed lists must not be nullable, and must have their keys.
  bool rule_costs = true;    // Cost limit of each individual rule.
};
SchemaRequirements demands_after(std::span<const Value> stored_schemas);

// The keyword because of which a schema has no structural form; empty if it has one.
std::string nonstructural_keyword(const Value& schema);
// Validates one openAPIV3Schema: first the structural form (which validate_structural does on its own, with sorted
// errors), then each keyword.
void validate_structural(const Value& schema, const Path& at, FieldErrors& errors);
void validate_schema(const Value& schema, bool status_enabled, const SchemaRequirements& demands, const Path& at,
                     FieldErrors& errors);
// Whether the predicate holds for the schema or any schema inside it.
bool any_schema(const Value& schema, const std::function<bool(const Value& part)>& holds);

// Parts of a definition as printed by Go for its internal structs, for error messages.
std::string go_rule(const Value& rule);
std::string go_schema(const Value& schema);
std::string go_schema_or_list(const Value& items);
std::string go_version(const Value& version);

// Validates an object, or part of one, against its type. `at` is null for a whole object. Field names in messages are
// relative to the validated part.
void validate_value(const types::Type& type, const Value& value, const Value* old, const Path* at, FieldErrors& errors);
// Validates an embedded resource on its own: apiVersion, kind, and metadata as for a top-level object.
void validate_lone_resource(const Value& value, FieldErrors& errors);
// Validates the resources embedded in part of an object.
void validate_embedded(const types::Type& type, const Value& value, const Path& at, FieldErrors& errors);
// Checks the uniqueness of items with x-kubernetes-list-type set or map.
void validate_unique_items(const types::Type& type, const Value& value, const Path* at, FieldErrors& errors);

// Compiles the CEL rules of a schema and reports compile errors and excessive costs. Skips rules at the paths in
// `without`. `costs` enables the limit for individual rules.
void validate_rules(const Value& schema, const std::set<std::string>& without, bool costs, const Path& at,
                    FieldErrors& errors);
// Evaluates the rules of a schema on its default, both as an unchanged and as a new value.
void run_default_rules(const Value& schema, bool resource_root, const Value& value, const Path& at, int64_t& budget,
                       FieldErrors& errors);
// Evaluates the CEL rules on an otherwise valid object.
void run_rules(const Version& version, const Value& object, const Value* old, FieldErrors& errors);

// Whether the text has the format; true for unknown formats.
bool has_format(std::string_view format, std::string_view text);
bool is_known_format(std::string_view type, std::string_view format);
// Whether the pattern compiles and matches somewhere in the text.
bool pattern_matches(std::string_view pattern, std::string_view text);

}  // namespace holdfast::crd
