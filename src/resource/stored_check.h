// Checks whether stored values can be served: for `holdfast store check`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::resource {

// Says what is wrong with the value of a key: its bytes cannot be decoded, it is another object than the key names, or
// an ownership record is not a field set. Values in Kubernetes' form and in the embedded store's are both right; a
// custom resource is not compared with its schema, which may have changed since.
using StoredCheck = std::function<std::optional<std::string>(std::string_view key, std::string_view value)>;
StoredCheck make_stored_check(const std::string& registry_prefix);

}  // namespace holdfast::resource
