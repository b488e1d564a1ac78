// kube-apiserver's command line, for the program under that name.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace holdfast::cli {

struct KubeFlags {
  std::vector<std::string> arguments;  // --name=value, all of them known to `serve`.
  std::vector<std::string> ignored;    // Names that kube-apiserver knows and that mean nothing here.
};

// Takes kube-apiserver's arguments (--name value, --name=value, bare names of booleans, underscores for dashes) to
// those of `serve`. A name that neither knows is an error in kube-apiserver's words.
Result<KubeFlags> translate_kube_flags(const std::vector<std::string>& arguments,
                                       const std::function<bool(std::string_view name)>& serve_has);

}  // namespace holdfast::cli
