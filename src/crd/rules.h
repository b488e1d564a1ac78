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
// A definition whose verbatim JSON (defaults, enum values) is read into trees, so that it can be compared and checked.
Value with_read_raws(Arena& arena, const Value& value);

// Groups of Kubernetes itself need an annotation: the URL of the approval, or why there is none.
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

// Whether bytes in base64 hold a certificate in PEM form, as far as this can be seen from outside.
bool holds_certificate(std::string_view encoded);

// What is asked of a schema. An update asks nothing that the stored definition does not hold to: it may be older than
// the demand.
struct SchemaDemands {
  bool structural = true;
  bool known_types = true;
  bool pruned_defaults = true;
  bool atomic_sets = true;   // Items of sets are.
  bool present_keys = true;  // Items of sets and keyed lists are never null, and have their keys.
  bool rule_costs = true;    // Of each rule by itself.
};
SchemaDemands demands_after(std::span<const Value> stored_schemas);

// Why a schema has no structural form that could be looked at: a keyword that there is no place for. Empty: it has one.
std::string without_form(const Value& schema);
// The schema rules of one openAPIV3Schema: structural form first, or alone and sorted, then keyword by keyword.
void validate_structural(const Value& schema, const Path& at, FieldErrors& errors);
void validate_schema(const Value& schema, bool status_enabled, const SchemaDemands& demands, const Path& at,
                     FieldErrors& errors);
// Whether it holds for the schema or for one inside it.
bool any_schema(const Value& schema, const std::function<bool(const Value& part)>& holds);

// Parts of a definition as Go's internal structs look in an error.
std::string go_rule(const Value& rule);
std::string go_schema(const Value& schema);
std::string go_schema_or_list(const Value& items);
std::string go_version(const Value& version);

// An object, or part of one, against its type. `at` is null for a whole object. Sentences name what is in the part as
// if the part were all.
void validate_value(const types::Type& type, const Value& value, const Value* old, const Path* at, FieldErrors& errors);
// A resource that is embedded somewhere: named by itself, with metadata that an object of its own could have.
void validate_lone_resource(const Value& value, FieldErrors& errors);
// The resources embedded in part of an object.
void validate_embedded(const types::Type& type, const Value& value, const Path& at, FieldErrors& errors);
// x-kubernetes-list-type set and map hold what they promise.
void validate_unique_items(const types::Type& type, const Value& value, const Path* at, FieldErrors& errors);

// What compiling the CEL rules of a schema finds: those that do not compile, and those that may cost too much. Rules at
// the places in `without` are left out.
// `costs`: those of each rule by itself count.
void validate_rules(const Value& schema, const std::set<std::string>& without, bool costs, const Path& at,
                    FieldErrors& errors);
// Runs the rules of a schema over its default, as if it stayed the same and as if it were new.
void run_default_rules(const Value& schema, bool resource_root, const Value& value, const Path& at, int64_t& budget,
                       FieldErrors& errors);
// Runs the CEL rules over an object that is valid otherwise.
void run_rules(const Version& version, const Value& object, const Value* old, FieldErrors& errors);

// Whether the text has the format; nothing known of the format: true.
bool has_format(std::string_view format, std::string_view text);
bool is_known_format(std::string_view type, std::string_view format);
// Whether the pattern compiles and is found in the text.
bool pattern_matches(std::string_view pattern, std::string_view text);

}  // namespace holdfast::crd
