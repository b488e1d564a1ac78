// Private to the module.
#pragma once

#include <string>

#include "base/error.h"

namespace holdfast::client {

// Errors name the path.
Result<std::string> read_file(const std::string& path);

}  // namespace holdfast::client
