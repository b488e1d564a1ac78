// Manifests that are not local files: those at a URL, and those built by kustomize.
#pragma once

#include <string>

#include "base/error.h"

namespace holdfast::cli {

// Whether -f names a URL: http:// or https://.
bool is_url(const std::string& path);
// Fetches the body, following redirects. Errors name the URL.
Result<std::string> fetch_text(const std::string& url);

// The output of `kustomize build FOLDER`, or of `kubectl kustomize FOLDER` if kustomize is not installed. Their
// diagnostics go to standard error.
Result<std::string> build_kustomization(const std::string& folder);

}  // namespace holdfast::cli
