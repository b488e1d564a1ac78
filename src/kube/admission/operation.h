// What a request does to an object, for plugins, policies and webhooks.
#pragma once

#include <cstdint>
#include <string_view>

namespace holdfast::admission {

enum class Operation : uint8_t { Create, Update, Delete, Connect };

// As in AdmissionReviews and rules: CREATE.
std::string_view to_string(Operation operation);

}  // namespace holdfast::admission
