// The author of a policy or a binding must be allowed to read the params that it names: a policy can show them to
// anyone whose request it denies. Private to the module.
#pragma once

#include "auth/auth.h"
#include "base/error.h"
#include "call/call.h"

namespace holdfast::write {

// `next` is valid in itself; `old` is null for a create. 422, with the field that names the params.
Result<Unit> check_param_access(const call::Call& call, const auth::Authorizer& authorizer, const Value& next,
                                const Value* old);

}  // namespace holdfast::write
