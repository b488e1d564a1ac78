// Authorization inside ResourceClaims, in addition to write access. Admin access to devices needs a label of the
// namespace. In the status, schedulers need permission to allocate devices, and drivers need permission for the state
// of their own devices.
#pragma once

#include <vector>

#include "auth/auth.h"
#include "base/error.h"
#include "call/call.h"

namespace holdfast::write {

// What the call's user may not do in a new (`old` is null) or changed ResourceClaim or ResourceClaimTemplate; empty for
// other kinds and endpoints.
std::vector<Cause> forbidden_claim_changes(const call::Call& call, const auth::Authorizer& authorizer,
                                           const Value& next, const Value* old);

}  // namespace holdfast::write
