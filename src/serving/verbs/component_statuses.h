// ComponentStatuses are not stored: every response probes the health of the components, as in kube-apiserver
// (pkg/registry/core/componentstatus).
#pragma once

#include "call/call.h"

namespace holdfast::verbs {

Task<void> serve_component_status(call::Call& call);
Task<void> serve_component_statuses(call::Call& call);

}  // namespace holdfast::verbs
