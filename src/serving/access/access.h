// Authorization and flow control: RBAC over the watch caches, the privilege escalation check, and API priority and
// fairness.
#pragma once

#include "access/escalation.h"
#include "access/flow_control.h"
#include "access/rbac_authorizer.h"
