// Reconciles the bootstrap roles and bindings at every start: missing rules and subjects are added, additions by users
// are kept (component-helpers/auth/rbac/reconciliation).
#pragma once

#include <optional>

#include "base/arena.h"
#include "value/value.h"

namespace holdfast::server {

// A Role, ClusterRole or binding as it should be stored, made from what is stored and what is wanted. Nothing: it stays
// as it is, also because it says so (rbac.authorization.kubernetes.io/autoupdate: "false"). A binding that refers to
// another role cannot be changed: the result has the wanted roleRef, and must take the place of the old object.
std::optional<Value> reconcile(Arena& arena, const Value& live, const Value& wanted);

// A new binding of what was once part of another's permissions: it gets the subjects of that other.
Value split_binding(Arena& arena, const Value& wanted, const Value& source);

}  // namespace holdfast::server
