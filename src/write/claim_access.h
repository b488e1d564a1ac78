// Who may change what in the status of a ResourceClaim: besides the right to write it, schedulers need one to allocate
// devices, and drivers one for the state of their own devices.
#pragma once

#include <vector>

#include "auth/auth.h"
#include "base/error.h"
#include "call/call.h"

namespace holdfast::write {

// What the user of the call may not change there; nothing for other kinds and endpoints.
std::vector<Cause> forbidden_claim_changes(const call::Call& call, const auth::Authorizer& authorizer,
                                           const Value& next, const Value& old);

}  // namespace holdfast::write
