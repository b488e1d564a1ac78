// Runs the built-in admission plugins on a write, and provides the objects they look up.
#pragma once

#include <optional>
#include <string_view>

#include "admission/admission.h"
#include "call/call.h"
#include "own_calls/own_calls.h"
#include "write/admission_request.h"

namespace holdfast::write {

// Other objects needed by the plugins. Since the cache may not have one that was just created, a missing one is looked
// up in the store.
struct KnownObjects {
  cache::EntryRef ns;               // Null if it does not exist or the request has none.
  cache::EntryRef service_account;  // For the create of a pod: its service account.
};
// `object` is the object being written; null for a delete. Waits a little for a pod's `default` account, which a
// controller creates in every namespace.
Task<Result<KnownObjects>> find_known_objects(call::Call& call, const admission::Chain& plugins,
                                              AdmissionOperation operation, const Value& object);

// NamespaceAutoProvision: before a create in a namespace that does not exist, creates it. 403.
Task<Result<Unit>> provide_namespace(call::Call& call, const admission::Chain& plugins, const own_calls::Handler& own,
                                     AdmissionOperation operation, const Value& object, bool dry_run,
                                     KnownObjects& known);

// Mutating admission. `object` is the draft's root, or a null node for a delete.
Result<Unit> admit_by_plugins(call::Call& call, const admission::Chain& plugins, const auth::Authorizer& authorizer,
                              admission::Operation operation, Draft::Node object, const Value* old, bool dry_run,
                              const KnownObjects& known);
// Validating admission. `object` is null for a delete.
Result<Unit> validate_by_plugins(call::Call& call, const admission::Chain& plugins, const auth::Authorizer& authorizer,
                                 admission::Operation operation, const Value& object, const Value* old, bool dry_run,
                                 const KnownObjects& known);

}  // namespace holdfast::write
