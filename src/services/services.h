// What Services have that other kinds have not: cluster addresses and node ports out of a pool, IPAddress objects
// beside them, and where a Service is reached.
#pragma once

#include "services/ip_objects.h"
#include "services/service_addresses.h"
#include "services/service_pools.h"
