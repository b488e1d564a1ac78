// Checks whether stored values can be served, for `holdfast store check`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::resource {

// Returns the problem with the value of a key, if any: it cannot be decoded, it is a different object than the key
// says, or its managedFields are not valid field sets. Accepts values in Kubernetes' format and in that of the embedded
// store. Custom resources are not validated against their schema, which may have changed since.
using StoredCheck = std::function<std::optional<std::string>(std::string_view key, std::string_view value)>;
StoredCheck make_stored_check(const std::string& registry_prefix);

}  // namespace holdfast::resource
