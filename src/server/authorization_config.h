// --authorization-config: a file that says which authorizers decide, in which order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace holdfast::server {

// The types of the authorizers of an AuthorizationConfiguration (apiserver.config.k8s.io v1, v1beta1 or v1alpha1), as
// they are written for --authorization-mode. What is wrong with the file is said in Kubernetes' words. Types that only
// Kubernetes has pass here: whoever makes the authorizers refuses them.
Result<std::vector<std::string>> parse_authorization_config(std::string_view text);

}  // namespace holdfast::server
