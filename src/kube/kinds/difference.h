// Human-readable differences between two trees, shown in some errors. Private to the module.
#pragma once

#include <string>

#include "types/types.h"
#include "value/value.h"

namespace holdfast::kinds {

// A unified diff with three lines of context, of Kubernetes' internal structs printed as indented JSON.
std::string difference(const types::Type& type, const Value& before, const Value& after);

}  // namespace holdfast::kinds
