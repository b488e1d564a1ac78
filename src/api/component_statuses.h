// ComponentStatuses: nothing is stored. Each answer asks the components whether they are healthy, as kube-apiserver
// does (pkg/registry/core/componentstatus).
#pragma once

#include "api/call.h"

namespace holdfast::api {

Task<void> serve_component_status(Call& call);
Task<void> serve_component_statuses(Call& call);

}  // namespace holdfast::api
