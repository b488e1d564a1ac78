// IPAddress objects beside the cluster addresses of Services (KEP 1880): one for each address that a Service holds.
#pragma once

#include <string>
#include <vector>

#include "api/call.h"

namespace holdfast::api {

// A Service was stored that took addresses. What is there already stays as it is.
Task<void> make_ip_objects(Call& call, std::vector<std::string> ips, Value service);
// Addresses are free again.
Task<void> drop_ip_objects(Call& call, std::vector<std::string> ips);

}  // namespace holdfast::api
