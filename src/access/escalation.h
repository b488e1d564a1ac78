// Privilege escalation: a user may not grant rights in roles and bindings that they do not hold.
#pragma once

#include "access/rbac_authorizer.h"
#include "call/call.h"

namespace holdfast::access {

// `next` is what is to be stored, `old` what is there; null for a create. 403, and 404 for a role that is not there.
// Anything but a role or a binding passes, and so does everything when `rbac` is null.
Task<Result<Unit>> check_escalation(call::Call& call, const auth::Authorizer& authorizer, const RbacAuthorizer* rbac,
                                    const Value& next, const Value* old);

}  // namespace holdfast::access
