// The built-in admission plugins at work: what they may look at, and where in a write they run.
#pragma once

#include <optional>
#include <string_view>

#include "admission/admission.h"
#include "api/call.h"

namespace holdfast::api {

// The namespace of a write as the plugins should see it. The cache may not have heard of one that was made a moment
// ago, so a missing one is looked up in the store.
struct KnownNamespace {
  cache::EntryRef entry;  // Null: it is not there, or the request has none.
};
Task<Result<KnownNamespace>> find_namespace(Call& call);

// The mutating parts. `object` is the draft's root, or a null node for a delete.
Result<Unit> admit_by_plugins(Call& call, admission::Operation operation, Draft::Node object, const Value* old,
                              bool dry_run, const KnownNamespace& ns);
// The validating parts. `object` is null for a delete.
Result<Unit> validate_by_plugins(Call& call, admission::Operation operation, const Value& object, const Value* old,
                                 bool dry_run, const KnownNamespace& ns);

}  // namespace holdfast::api
