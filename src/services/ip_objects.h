// IPAddress objects beside the cluster addresses of Services (KEP 1880): one for each address that a Service holds.
#pragma once

#include <string>
#include <vector>

#include "call/call.h"

namespace holdfast::services {

// A Service was stored that took addresses. What is there already stays as it is.
Task<void> make_ip_objects(call::Call& call, std::vector<std::string> ips, Value service);
// Addresses are free again.
Task<void> drop_ip_objects(call::Call& call, std::vector<std::string> ips);

}  // namespace holdfast::services
