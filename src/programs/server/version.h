// Version information.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::server {

std::string_view holdfast_version();  // "0.2.0"
// The Kubernetes version whose behavior is implemented: "v1.36.3".
std::string_view kubernetes_version();
inline constexpr std::string_view kEmulatedVersion = "1.36", kOldestCompatibleVersion = "1.35";
// The document of /version.
std::string_view version_json();

}  // namespace holdfast::server
