// Nobody gives away rights that they do not hold: what RBAC asks of who writes roles and bindings.
#pragma once

#include "api/call.h"

namespace holdfast::api {

// `next` is what is to be stored, `old` what is there; null for a create. 403, and 404 for a role that is not there.
// Everything that is no role and no binding passes.
Task<Result<Unit>> check_escalation(Call& call, const Value& next, const Value* old);

}  // namespace holdfast::api
