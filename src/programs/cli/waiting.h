// Waiting for a condition on an object.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/error.h"
#include "client/client.h"

namespace holdfast::cli {

// Watches one object until `done` returns true for it (null if the object does not exist). Checks at least once.
// Reason::Timeout if `timeout` passes first; an error returned by `done` ends the wait.
using Done = std::function<Result<bool>(const Value* object)>;
Result<Unit> wait_until(const client::Api<>& api, const std::string& name, std::chrono::nanoseconds timeout,
                        const Done& done);

// Parses a flag such as "30s"; a negative duration means a week.
Result<std::chrono::nanoseconds> parse_timeout(const std::string& text);

}  // namespace holdfast::cli
