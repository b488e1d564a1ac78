// Privilege escalation check: users may not grant permissions through roles and bindings that they do not hold
// themselves.
#pragma once

#include "access/rbac_authorizer.h"
#include "call/call.h"

namespace holdfast::access {

// `next` is the object about to be stored, `old` the live object; null for a create. Returns 403, or 404 if a
// referenced role does not exist. Objects other than roles and bindings always pass, as does everything when `rbac` is
// null.
Task<Result<Unit>> check_escalation(call::Call& call, const auth::Authorizer& authorizer, const RbacAuthorizer* rbac,
                                    const Value& next, const Value* old);

}  // namespace holdfast::access
