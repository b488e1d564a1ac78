// kube-apiserver's command line, for the program running under that name.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace holdfast::cli {

// Translates kube-apiserver's arguments (--name value, --name=value, bare boolean names, underscores for dashes) to
// those of `serve`, each as --name=value. An unknown flag is rejected with kube-apiserver's message. A kube-apiserver
// flag that `serve` lacks is rejected by name, unless its value asks for what this server does anyway, or only affects
// kube-apiserver's internals, which is logged. The error names all rejected flags, one per line.
Result<std::vector<std::string>> translate_kube_flags(const std::vector<std::string>& arguments,
                                                      const std::function<bool(std::string_view name)>& serve_has);

}  // namespace holdfast::cli
