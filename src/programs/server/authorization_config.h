// --authorization-config: a file that selects the authorizers and their order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace holdfast::server {

// The types of the authorizers in an AuthorizationConfiguration (apiserver.config.k8s.io v1, v1beta1 or v1alpha1), as
// spelled for --authorization-mode. Errors in the file are reported with Kubernetes' messages. Types that only
// Kubernetes supports are accepted here and rejected when the authorizers are created.
Result<std::vector<std::string>> parse_authorization_config(std::string_view text);

}  // namespace holdfast::server
