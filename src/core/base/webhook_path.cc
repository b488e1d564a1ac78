#include "base/webhook_path.h"

#include "base/strings.h"

namespace holdfast {

std::vector<std::string> webhook_path_problems(
    std::string_view path, const std::function<std::vector<std::string>(std::string_view step)>& step_problems) {
  if (path.empty() || path == "/") return {};
  if (path == "//") return {"segment[0] may not be empty"};
  std::vector<std::string> problems;
  if (!path.starts_with('/')) problems.emplace_back("must start with a '/'");
  std::string_view steps = path.substr(1);
  if (steps.ends_with('/')) steps.remove_suffix(1);
  size_t index = 0;
  for (const std::string_view step : split(steps, '/')) {
    const std::string segment = "segment[" + std::to_string(index++) + "]";
    if (step.empty()) {
      problems.push_back(segment + " may not be empty");
      continue;
    }
    for (const std::string& problem : step_problems(step)) problems.push_back(segment + ": " + problem);
  }
  return problems;
}

}  // namespace holdfast
