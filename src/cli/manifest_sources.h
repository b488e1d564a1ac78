// Manifests that are not files of this machine: what a URL holds, what kustomize builds.
#pragma once

#include <string>

#include "base/error.h"

namespace holdfast::cli {

// Whether -f names a URL: http:// or https://.
bool is_url(const std::string& path);
// What is there; redirects are followed. Errors name the URL.
Result<std::string> fetch_text(const std::string& url);

// What `kustomize build FOLDER` prints, or `kubectl kustomize FOLDER` where there is no kustomize. Their own messages
// go to standard error.
Result<std::string> build_kustomization(const std::string& folder);

}  // namespace holdfast::cli
