#include "auth/auth.h"
#include "base/files.h"
#include "base/strings.h"
#include "cli/commands.h"

namespace holdfast::cli {

namespace {

Result<std::vector<std::string>> flags_of(const std::string& path) {
  Result<std::string> content = read_file(path);
  if (!content) return content.take_error();
  std::vector<std::string> flags;
  int number = 0;
  for (std::string_view line : split(*content, '\n')) {
    ++number;
    line = trim(line);
    if (line.empty() || line.front() == '#') continue;
    const size_t separator = line.find_first_of("=:");
    const std::string_view name = trim(line.substr(0, separator));
    if (separator == std::string_view::npos || name.empty()) {
      return bad_request(path + " line " + std::to_string(number) + ": a line must be name = value");
    }
    std::string_view value = trim(line.substr(separator + 1));
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front()) {
      value = value.substr(1, value.size() - 2);
    }
    flags.push_back("--" + std::string(name) + "=" + std::string(value));
  }
  return flags;
}

}  // namespace

Result<std::vector<std::string>> expand_config(std::vector<std::string> arguments) {
  std::vector<std::string> expanded;
  size_t insert_at = arguments.empty() ? 0 : 1;  // After the subcommand.
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string path;
    if (arguments[i] == "--config" && i + 1 < arguments.size()) {
      path = arguments[++i];
    } else if (arguments[i].starts_with("--config=")) {
      path = arguments[i].substr(9);
    } else {
      expanded.push_back(std::move(arguments[i]));
      continue;
    }
    Result<std::vector<std::string>> flags = flags_of(path);
    if (!flags) return flags.take_error();
    expanded.insert(expanded.begin() + static_cast<std::ptrdiff_t>(insert_at), flags->begin(), flags->end());
    insert_at += flags->size();
  }
  return expanded;
}

}  // namespace holdfast::cli
