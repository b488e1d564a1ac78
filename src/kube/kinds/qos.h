// The class of service of a pod.
#pragma once

#include <string_view>

#include "value/value.h"

namespace holdfast::kinds {

// Guaranteed, Burstable or BestEffort.
std::string_view qos_class(const Value& pod_spec);

}  // namespace holdfast::kinds
