// The three kinds of patches that change an object by themselves (apply is the ownership engine's). Plain functions:
// what was patched is not changed; results share what stays and live as long as `arena`, object and patch.
//
// Maps that a patch went through come out with their keys sorted, the others as they were: that is how Kubernetes' own
// (lazily decoded) patches print them in errors.
#pragma once

#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/error.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::api {

// RFC 6902 as evanphx/json-patch does it: negative positions count from the end, replacing a missing member adds it,
// copying a missing one adds null. `patch` is the decoded list of operations.
// 413 above 10000 operations; 422 in Kubernetes' generic words when an operation does not fit.
Result<Value> apply_json_patch(Arena& arena, const Value& object, const Value& patch);

// RFC 7386; nulls in what is added are pruned, in objects inside lists too. `patch` must be a map.
Result<Value> apply_merge_patch(Arena& arena, const Value& object, const Value& patch);

// Strategic merge patch: lists merge by the key their field declares. 400 for a malformed directive, 422 for lists of
// lists, 500 for the rest, as Kubernetes answers them.
Result<Value> apply_strategic_patch(Arena& arena, const Value& object, const Value& patch, const types::Type& type);

// Go's %v of a decoded JSON value: map[a:1 b:[x y]].
std::string go_print(const Value& value);

}  // namespace holdfast::api
