// Who may do what, and when it is their turn: RBAC over the watch caches, the check against privilege escalation, and
// priority and fairness.
#pragma once

#include "access/escalation.h"
#include "access/flow_control.h"
#include "access/rbac_authorizer.h"
