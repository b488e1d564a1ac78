// The author of a policy or binding must be allowed to read the params it refers to, because a policy can reveal them
// to anyone whose request it denies. Private to the module.
#pragma once

#include "auth/auth.h"
#include "base/error.h"
#include "call/call.h"

namespace holdfast::write {

// `next` is otherwise valid; `old` is null for a create. 422 for the field that refers to the params.
Result<Unit> check_param_access(const call::Call& call, const auth::Authorizer& authorizer, const Value& next,
                                const Value* old);

}  // namespace holdfast::write
