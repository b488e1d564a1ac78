// Errors as clients see them: the only place that knows HTTP codes.
#pragma once

#include <string_view>

#include "base/arena.h"
#include "base/error.h"
#include "value/value.h"

namespace holdfast::render {

int http_code(const Error& error);

// The metav1.Status of an error, members in Go's order.
// `reason`: in other words than the error's own.
Value status_of(Arena& arena, const Error& error, std::string_view reason = {});

// The Status a deletion answers with: Success and what was deleted, without a code.
Value deleted_status(Arena& arena, std::string_view group, std::string_view plural, std::string_view name,
                     std::string_view uid);
// The same for an object that could not be read, of which only the name is known; with a code.
Value unread_deleted_status(Arena& arena, std::string_view kind, std::string_view name);

// Errors of the router, whose details are an empty object.
Error route_not_found();
Error route_method_not_allowed();

}  // namespace holdfast::render
