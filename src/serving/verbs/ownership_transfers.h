// OwnershipTransfers and OwnershipReleases: fields change hands, or lose an owner, without a change of their values.
//
// Each object is written on its own, like any other write: admission decides, and a conflicting write makes it start
// over. The user needs the right to `transfer` the object, and to see it.
#pragma once

#include "call/call.h"
#include "verbs/verbs.h"

namespace holdfast::verbs {

bool is_ownership_transfer(const types::Resource& resource);  // Or a release.
// 422.
Result<Unit> validate_ownership_transfer(const types::Resource& resource, const Value& spec);
// The status; an error if the request is about a single object and it failed, or if it selects too many.
Task<Result<Value>> transfer_ownership(call::Call& call, const Parts& parts, const Value& spec, bool dry_run);

}  // namespace holdfast::verbs
