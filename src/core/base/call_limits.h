// Upper bounds on the calls that the server makes, to itself and to others. Like limits.h, whose table in
// docs/security.md and whose tests they share.
#pragma once

#include <cstddef>

namespace holdfast::limits {

// The response to a request that the server makes to its own API. Lists (of all ClusterRoles) are the largest.
inline constexpr size_t kOwnAnswerBytes = 128 << 20;

// Names that are looked up at a time, and names that wait until they can be; lookups of further ones fail at once.
inline constexpr size_t kNameLookups = 32;
inline constexpr size_t kWaitingNames = 1000;

}  // namespace holdfast::limits
