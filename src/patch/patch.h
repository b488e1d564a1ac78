// JSON, merge and strategic merge patches (apply is in `ownership`), and the number conversion that follows some of
// them. Pure functions: the input is not changed; results share what stays and live as long as `arena`, object
// and patch.
//
// Maps that a patch went through come out with their keys sorted, the others as they were: that is how Kubernetes' own
// (lazily decoded) patches print them in errors.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/error.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::patch {

// RFC 6902 as evanphx/json-patch does it: negative positions count from the end, replacing a missing member adds it,
// copying a missing one adds null. `patch` is the decoded list of operations.
// 413 above 10000 operations; 422 in Kubernetes' generic words when an operation does not fit.
Result<Value> apply_json_patch(Arena& arena, const Value& object, const Value& patch);

// The same for callers that say themselves why an operation does not fit.
struct JsonPatched {
  std::optional<Value> value;  // Nothing: an operation does not fit.
  std::string problem;         // Why, in the words of evanphx/json-patch.
  bool test_failed = false;    // It is a `test` whose value differs.
};
JsonPatched run_json_patch(Arena& arena, const Value& object, const Value& patch);

// RFC 7386; nulls in what is added are pruned, in objects inside lists too. `patch` must be a map.
Result<Value> apply_merge_patch(Arena& arena, const Value& object, const Value& patch);

// Strategic merge patch: lists merge by the key their field declares. 400 for a malformed directive, 422 for lists of
// lists, 500 for the rest, as Kubernetes answers them.
Result<Value> apply_strategic_patch(Arena& arena, const Value& object, const Value& patch, const types::Type& type);

// What errors show of a strategic merge patch that was applied to `object`: without the directives that the merge took
// out of it, and without nulls in what it added.
Value left_of_strategic_patch(Arena& arena, const Value& object, const Value& patch, const types::Type& type);

// A tree as Kubernetes' converter from untyped trees takes it: an integral double fits an integer field, what is beyond
// its range wraps; what is of another type is refused. "cannot convert float64 to int32", "unrecognized type: bool".
Result<Value> with_converted_numbers(Arena& arena, const types::Type& type, const Value& value);

// Go's %v of a decoded JSON value: map[a:1 b:[x y]].
std::string go_print(const Value& value);

}  // namespace holdfast::patch
