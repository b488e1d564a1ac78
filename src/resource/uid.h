// Identity of new objects.
#pragma once

#include <string>

namespace holdfast::resource {

// A random UUID (version 4).
std::string new_uid();

}  // namespace holdfast::resource
