// What changed between two trees, for people: some errors show it. Private to the module.
#pragma once

#include <string>

#include "types/types.h"
#include "value/value.h"

namespace holdfast::kinds {

// A unified diff, three lines of context, of the two as Kubernetes' internal structs print as indented JSON.
std::string difference(const types::Type& type, const Value& before, const Value& after);

}  // namespace holdfast::kinds
