// Converts errors to Status objects; the only place that knows HTTP status codes.
#pragma once

#include <string_view>

#include "base/arena.h"
#include "base/error.h"
#include "value/value.h"

namespace holdfast::render {

int http_code(const Error& error);

// The metav1.Status for an error, members in Go's order. `reason` overrides the error's own reason.
Value status_of(Arena& arena, const Error& error, std::string_view reason = {});

// Success, without details and a code.
Value success_status(Arena& arena);
// The Status returned by a delete: Success and the deleted object, without a code.
Value deleted_status(Arena& arena, std::string_view group, std::string_view plural, std::string_view name,
                     std::string_view uid);
// Same, for an object that could not be decoded, so that only its name is known; with a code.
Value unread_deleted_status(Arena& arena, std::string_view kind, std::string_view name);

// Errors of the router, with an empty details object.
Error route_not_found();
Error route_method_not_allowed();

}  // namespace holdfast::render
