#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>

#include "base/files.h"
#include "base/strings.h"
#include "cli/commands.h"

namespace holdfast::cli {

namespace {

// Edits that turn one text into the other: insertions, deletions and replacements of characters.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

bool is_flag(const CLI::App& serve, const std::string& name) {
  return serve.get_option_no_throw("--" + name) != nullptr;
}

// "; did you mean --listen?", or nothing if no flag is similar.
std::string suggestion(const CLI::App& serve, std::string_view name) {
  constexpr size_t kLongestName = 100;
  if (name.size() > kLongestName) return {};
  std::string nearest;
  size_t least = std::max<size_t>(2, name.size() / 3) + 1;
  for (const CLI::Option* option : serve.get_options()) {
    for (const std::string& known : option->get_lnames()) {
      const size_t away = distance(name, known);
      if (away >= least) continue;
      least = away;
      nearest = known;
    }
  }
  return nearest.empty() ? std::string() : "; did you mean --" + nearest + "?";
}

Result<std::vector<std::string>> flags_of_file(const std::string& path, const CLI::App& serve) {
  Result<std::string> content = read_file(path);
  if (!content) return content.take_error();
  std::vector<std::string> flags;
  int number = 0;
  for (std::string_view line : split(*content, '\n')) {
    ++number;
    line = trim(line);
    if (line.empty() || line.front() == '#') continue;
    const std::string where = path + " line " + std::to_string(number) + ": ";
    const size_t separator = line.find_first_of("=:");
    const std::string name(trim(line.substr(0, separator)));
    if (separator == std::string_view::npos || name.empty()) {
      return bad_request(where + "a line must be name = value");
    }
    if (name == "config") return bad_request(where + "a file cannot name another one");
    if (!is_flag(serve, name)) return bad_request(where + "unknown flag " + name + suggestion(serve, name));
    std::string_view value = trim(line.substr(separator + 1));
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front()) {
      value = value.substr(1, value.size() - 2);
    }
    flags.push_back("--" + name + "=" + std::string(value));
  }
  return flags;
}

Result<std::vector<std::string>> flags_of_environment(const char* const* environment, const CLI::App& serve) {
  constexpr std::string_view kPrefix = "HOLDFAST_SERVE_";
  std::vector<std::string> flags;
  for (const char* const* variable = environment; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!text.starts_with(kPrefix)) continue;
    const size_t equals = text.find('=');
    std::string name(text.substr(kPrefix.size(), equals - kPrefix.size()));
    std::transform(name.begin(), name.end(), name.begin(), [](char c) {
      if (c == '_') return '-';
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    if (name == "config") continue;
    if (!is_flag(serve, name)) {
      return bad_request("environment variable " + std::string(text.substr(0, equals)) + ": unknown flag --" + name +
                         suggestion(serve, name));
    }
    flags.push_back("--" + name + "=" + std::string(text.substr(equals + 1)));
  }
  std::sort(flags.begin(), flags.end());
  return flags;
}

}  // namespace

Result<std::vector<std::string>> expand_config(std::vector<std::string> arguments) {
  CLI::App app;
  const Command unused = add_serve(app);
  const CLI::App& serve = *app.get_subcommand("serve");
  const char* const* const environment = environ;
  constexpr std::string_view kFile = "HOLDFAST_SERVE_CONFIG=";
  std::vector<std::string> given;
  std::vector<std::string> paths;
  for (const char* const* variable = environment; *variable != nullptr; ++variable) {
    if (std::string_view(*variable).starts_with(kFile)) paths.emplace_back(*variable + kFile.size());
  }
  for (size_t i = 1; i < arguments.size(); ++i) {
    std::string& argument = arguments[i];
    if (argument == "--config" && i + 1 < arguments.size()) {
      paths.push_back(arguments[++i]);
      continue;
    }
    if (argument.starts_with("--config=")) {
      paths.push_back(argument.substr(9));
      continue;
    }
    if (argument.starts_with("--")) {
      const std::string name = argument.substr(2, argument.find('=') - 2);
      if (!name.empty() && !is_flag(serve, name)) {
        return bad_request("unknown flag --" + name + suggestion(serve, name));
      }
    }
    given.push_back(std::move(argument));
  }
  std::vector<std::string> expanded{std::move(arguments.front())};  // The subcommand.
  for (const std::string& path : paths) {
    Result<std::vector<std::string>> flags = flags_of_file(path, serve);
    if (!flags) return flags.take_error();
    expanded.insert(expanded.end(), flags->begin(), flags->end());
  }
  Result<std::vector<std::string>> flags = flags_of_environment(environment, serve);
  if (!flags) return flags.take_error();
  expanded.insert(expanded.end(), flags->begin(), flags->end());
  expanded.insert(expanded.end(), given.begin(), given.end());
  return expanded;
}

}  // namespace holdfast::cli
