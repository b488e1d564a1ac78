// Version information.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::server {

std::string_view holdfast_version();  // "0.1.0"
// The Kubernetes version whose behavior is implemented: "v1.36.3".
std::string_view kubernetes_version();
// The document of /version.
std::string_view version_json();

}  // namespace holdfast::server
