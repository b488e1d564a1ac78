// kube-apiserver's command line, for the program under that name.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace holdfast::cli {

// Translates kube-apiserver's arguments (--name value, --name=value, bare names of booleans, underscores for dashes) to
// those of `serve`: --name=value each. An unknown name is refused in kube-apiserver's words; a flag of kube-apiserver's
// that `serve` does not have is refused by name, unless it asks for what this server does anyway, or only for how to do
// it: that is logged.
Result<std::vector<std::string>> translate_kube_flags(const std::vector<std::string>& arguments,
                                                      const std::function<bool(std::string_view name)>& serve_has);

}  // namespace holdfast::cli
