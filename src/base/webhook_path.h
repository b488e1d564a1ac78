// Paths of webhooks that are reached through a Service.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

// What is wrong with the path, in Kubernetes' words; empty: nothing. `step_problems` says it of what is between two
// slashes.
std::vector<std::string> webhook_path_problems(
    std::string_view path, const std::function<std::vector<std::string>(std::string_view step)>& step_problems);

}  // namespace holdfast
