// Values in the store that are in a version which is no longer served.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::resource {

// The version and kind of such a value, as "policy/v1beta1 PodDisruptionBudget"; empty for all others. It can be read,
// and the next write stores it in the version of today.
std::string outdated_version(std::string_view value);

}  // namespace holdfast::resource
