// ComponentStatuses: nothing is stored. Each answer asks the components whether they are healthy, as kube-apiserver
// does (pkg/registry/core/componentstatus).
#pragma once

#include "call/call.h"

namespace holdfast::verbs {

Task<void> serve_component_status(call::Call& call);
Task<void> serve_component_statuses(call::Call& call);

}  // namespace holdfast::verbs
