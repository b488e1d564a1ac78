// Waiting for an object to become something.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/error.h"
#include "client/client.h"

namespace holdfast::cli {

// Follows one object until `done` says so of it; null: it does not exist. Looks at least once. Timeout (the reason)
// when `timeout` passes first; an error of `done` ends it too.
using Done = std::function<Result<bool>(const Value* object)>;
Result<Unit> wait_until(const client::Api<>& api, const std::string& name, std::chrono::nanoseconds timeout,
                        const Done& done);

// "30s", as flags give it: negative means a week.
Result<std::chrono::nanoseconds> parse_timeout(const std::string& text);

}  // namespace holdfast::cli
