// Service-specific parts of the API: cluster IPs and node ports allocated from a pool, the corresponding IPAddress
// objects, and the resolution of Services to network addresses.
#pragma once

#include "services/ip_objects.h"
#include "services/service_addresses.h"
#include "services/service_pools.h"
