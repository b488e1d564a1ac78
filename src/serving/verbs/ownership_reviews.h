// OwnershipReviews: what a create, update, patch or apply would do to objects and to the owners of their fields.
//
// Each document becomes a dry run on behalf of the user, in order, and its result is compared with the stored object.
// The user needs the rights of that dry run, and must be allowed to get an object that already exists.
#pragma once

#include "call/call.h"
#include "verbs/verbs.h"

namespace holdfast::verbs {

bool is_ownership_review(const types::Resource& resource);
// 422.
Result<Unit> validate_ownership_review(const Value& spec);
Task<Value> ownership_review_status(call::Call& call, const Parts& parts, const Value& spec);

}  // namespace holdfast::verbs
