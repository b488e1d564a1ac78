// Runs the built-in admission plugins: what they may look at, and where in a write they run.
#pragma once

#include <optional>
#include <string_view>

#include "admission/admission.h"
#include "call/call.h"
#include "write/admission_request.h"

namespace holdfast::write {

// Other objects of a write as the plugins should see them. The cache may not have heard of one that was made a moment
// ago, so a missing one is looked up in the store.
struct KnownObjects {
  cache::EntryRef ns;               // Null: it is not there, or the request has none.
  cache::EntryRef service_account;  // Of a pod that is to be made: the one it runs as.
};
// `object` is what the request writes; null for a delete. A pod's `default` account, which a controller makes for every
// namespace, is waited for a little.
Task<Result<KnownObjects>> find_known_objects(call::Call& call, const admission::Chain& plugins,
                                              AdmissionOperation operation, const Value& object);

// The mutating parts. `object` is the draft's root, or a null node for a delete.
Result<Unit> admit_by_plugins(call::Call& call, const admission::Chain& plugins, const auth::Authorizer& authorizer,
                              admission::Operation operation, Draft::Node object, const Value* old, bool dry_run,
                              const KnownObjects& known);
// The validating parts. `object` is null for a delete.
Result<Unit> validate_by_plugins(call::Call& call, const admission::Chain& plugins, const auth::Authorizer& authorizer,
                                 admission::Operation operation, const Value& object, const Value* old, bool dry_run,
                                 const KnownObjects& known);

}  // namespace holdfast::write
