// Authorization and flow control: the authorizers over the watch caches, the privilege escalation check, and API
// priority and fairness.
#pragma once

#include "access/authorizers.h"
#include "access/escalation.h"
#include "access/flow_control.h"
#include "access/rbac_authorizer.h"
