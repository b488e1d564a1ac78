// JSON, merge and strategic merge patches (apply is in `ownership`), and the number conversion that follows some of
// them. Pure functions: the input is not modified; results share its unchanged parts and are valid as long as `arena`,
// object and patch.
//
// Maps that a patch modified have sorted keys, the others keep their order: this is how Kubernetes' own (lazily
// decoded) patches print them in errors.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/error.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::patch {

// RFC 6902 as implemented by evanphx/json-patch: negative indexes count from the end, replacing a missing member adds
// it, copying a missing one adds null. `patch` is the decoded list of operations. Fails with 413 above 10000
// operations, and with 422 and Kubernetes' generic message if an operation cannot be applied.
Result<Value> apply_json_patch(Arena& arena, const Value& object, const Value& patch);

// The same for callers that report the reason themselves.
struct JsonPatched {
  std::optional<Value> value;  // nullopt if an operation cannot be applied.
  std::string problem;         // The error of evanphx/json-patch.
  bool test_failed = false;    // The operation is a `test` whose value differs.
};
JsonPatched run_json_patch(Arena& arena, const Value& object, const Value& patch);

// RFC 7386; nulls in added values are removed, even in objects inside lists. `patch` must be a map.
Result<Value> apply_merge_patch(Arena& arena, const Value& object, const Value& patch);

// Strategic merge patch: lists merge by the key declared for the field. Like Kubernetes, fails with 400 for a malformed
// directive, 422 for lists of lists, 500 for everything else.
Result<Value> apply_strategic_patch(Arena& arena, const Value& object, const Value& patch, const types::Type& type);

// A strategic merge patch as shown in errors after it was applied to `object`: without the directives that the merge
// consumed, and without nulls in added values.
Value remaining_strategic_patch(Arena& arena, const Value& object, const Value& patch, const types::Type& type);

// Converts a tree like Kubernetes' converter from unstructured objects: integer fields accept integral doubles, values
// out of range wrap around, other types are rejected: "cannot convert float64 to int32", "unrecognized type: bool".
Result<Value> with_converted_numbers(Arena& arena, const types::Type& type, const Value& value);

}  // namespace holdfast::patch
