// Paths of webhooks that are called through a Service.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

// Problems with the path, in Kubernetes' words; empty if there are none. `step_problems` checks one path segment.
std::vector<std::string> webhook_path_problems(
    std::string_view path, const std::function<std::vector<std::string>(std::string_view step)>& step_problems);

}  // namespace holdfast
