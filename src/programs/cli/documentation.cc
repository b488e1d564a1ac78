// Completion scripts and man pages, generated from the same parser as the help.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/session.h"

namespace holdfast::cli {
namespace {

// --- Completion

constexpr const char* kBash = R"(# holdfast completion for bash: source <(holdfast completion bash)
_holdfast() {
  local IFS=$'\n'
  COMPREPLY=($(holdfast __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _holdfast holdfast
)";
constexpr const char* kZsh = R"(#compdef holdfast
# holdfast completion for zsh: source <(holdfast completion zsh)
_holdfast() {
  local -a found
  found=("${(@f)$(holdfast __complete "${words[@]:1:$((CURRENT-1))}" 2>/dev/null)}")
  [[ -n "$found" ]] && compadd -- $found || _files
}
compdef _holdfast holdfast
)";
constexpr const char* kFish = R"(# holdfast completion for fish: holdfast completion fish | source
function __holdfast
    holdfast __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null
end
complete -c holdfast -f -a '(__holdfast)'
complete -c holdfast -n 'not count (__holdfast) >/dev/null' -F
)";

// Completes words from the server named by the preceding flags.
class Completion {
 public:
  explicit Completion(ConnectionFlags connection) : connection_(std::move(connection)) {}

  std::vector<std::string> kinds() const {
    std::vector<std::string> found;
    Result<Session> session = open();
    if (!session) return found;
    Result<std::vector<client::ServedResource>> served = session->client.served().wait();
    if (!served) return found;
    for (const client::ServedResource& one : *served) {
      found.push_back(one.resource.plural);
      found.insert(found.end(), one.short_names.begin(), one.short_names.end());
    }
    return found;
  }

  std::vector<std::string> names(const std::string& kind) const {
    std::vector<std::string> found;
    Result<Session> session = open();
    if (!session) return found;
    Result<client::Resource> resource = session->client.find(kind).wait();
    if (!resource) return found;
    Result<client::Object> page =
        session->client.api(*resource, space_for(*session, *resource)).list({.limit = 500}).wait();
    if (!page) return found;
    for (const Value& item : page->root().items_at("items")) found.emplace_back(item.text_at("metadata", "name"));
    return found;
  }

 private:
  Result<Session> open() const {
    ConnectionFlags connection = connection_;
    connection.request_timeout = "2s";  // A user is waiting at a prompt.
    return open_session(connection, ManagedFields::Dropped);
  }

  ConnectionFlags connection_;
};

void put_before_each(const std::string& prefix, std::vector<std::string>& words) {
  for (std::string& word : words) word.insert(0, prefix);
}

// Completes kinds, then names of a kind; also a,b and KIND/NAME.
std::vector<std::string> complete_objects(const Completion& completion, const std::vector<std::string>& given,
                                          const std::string& partial) {
  if (!given.empty() && given[0].find('/') == std::string::npos) return completion.names(given[0]);
  if (const size_t slash = partial.find('/'); slash != std::string::npos) {
    std::vector<std::string> names = completion.names(partial.substr(0, slash));
    put_before_each(partial.substr(0, slash + 1), names);
    return names;
  }
  std::vector<std::string> kinds = completion.kinds();
  if (const size_t comma = partial.rfind(','); comma != std::string::npos) {
    put_before_each(partial.substr(0, comma + 1), kinds);
  }
  return kinds;
}

std::vector<std::string> complete_value(const Completion& completion, const std::string& flag) {
  if (flag == "-n" || flag == "--namespace") return completion.names("namespaces");
  if (flag == "-o" || flag == "--output") {
    return {"wide", "yaml", "json", "name", "jsonpath=", "custom-columns="};
  }
  return {};
}

int complete(CLI::App& app, const std::vector<std::string>& words) {
  CLI::App* command = &app;
  const CLI::App* const any = app.get_subcommand("get");
  ConnectionFlags connection;
  CLI::App known;  // Accepts the connection flags at any position.
  add_connection_flags(known, connection);
  std::vector<std::string> given;  // Arguments before the word that is being typed.
  const std::string partial = words.empty() ? "" : words.back();
  std::string waiting;  // The flag whose value is being typed.
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.starts_with('-')) {
      const size_t name_end = word.starts_with("--") ? std::min(word.find('='), word.size()) : 2;
      const CLI::Option* option = (command == &app ? any : command)->get_option_no_throw(word.substr(0, name_end));
      const bool has_value = option != nullptr && option->get_items_expected_min() > 0;
      const bool attached = name_end < word.size();
      if (has_value && !attached && i + 2 == words.size()) waiting = word;
      if (option != nullptr && option->get_group() == kConnectionGroup && waiting.empty()) {
        std::vector<std::string> one{word};
        if (has_value && !attached) one.insert(one.begin(), words[i + 1]);  // CLI11 expects reverse order.
        try {
          known.parse(one);
        } catch (const CLI::Error&) {
          // The value is still incomplete.
        }
      }
      if (has_value && !attached) ++i;
      continue;
    }
    const std::vector<CLI::App*> below = command->get_subcommands([&](CLI::App* one) { return one->check_name(word); });
    if (given.empty() && !below.empty()) {
      command = below.front();
    } else {
      given.push_back(word);
    }
  }
  const Completion completion(connection);
  std::vector<std::string> found;
  if (!waiting.empty()) {
    found = complete_value(completion, waiting);
  } else if (partial.starts_with('-')) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) found.push_back("--" + name);
    }
  } else if (!command->get_subcommands(nullptr).empty()) {
    for (const CLI::App* below : command->get_subcommands([](CLI::App* one) { return !one->get_group().empty(); })) {
      found.push_back(below->get_name());
    }
  } else if (command->get_option_no_throw("KIND/NAME") != nullptr) {
    found = complete_objects(completion, given, partial);
  } else if (given.empty() && (command->get_option_no_throw("KIND") != nullptr ||
                               command->get_option_no_throw("KIND.FIELD") != nullptr)) {
    found = completion.kinds();
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  for (const std::string& one : found) {
    if (one.starts_with(partial)) printf("%s\n", one.c_str());
  }
  return 0;
}

// --- Man pages

std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '-') out += '\\';
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    out += c;
  }
  return out;
}

std::string man_page(const CLI::App& command, const std::string& name) {
  std::string title = name;
  for (char& c : title) c = c == ' ' ? '-' : c;
  std::string out = ".TH \"" + title + "\" 1 \"\" Holdfast\n.SH NAME\n" + roff(title) + " \\- " +
                    roff(command.get_description()) + "\n.SH SYNOPSIS\n.B " + roff(name) + "\n[\\fIOPTIONS\\fR]";
  std::string options;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) out += " " + roff(option->get_name(true, false));
    const std::string flags = option->get_name(false, true);
    options += ".TP\n.B " + roff(flags) + "\n" + roff(option->get_description());
    if (!option->get_default_str().empty()) options += " (default " + roff(option->get_default_str()) + ")";
    options += "\n";
  }
  out += "\n";
  if (!options.empty()) out += ".SH OPTIONS\n" + options;
  std::string commands;
  for (const CLI::App* below : command.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    commands += ".TP\n.B " + roff(below->get_name()) + "\n" + roff(below->get_description()) + "\n";
  }
  if (!commands.empty()) out += ".SH COMMANDS\n" + commands;
  if (!command.get_footer().empty()) out += ".SH NOTES\n.nf\n" + roff(trim(command.get_footer())) + "\n.fi\n";
  return out;
}

bool write_pages(const CLI::App& command, const std::string& name, const std::filesystem::path& folder) {
  std::string file = name + ".1";
  for (char& c : file) c = c == ' ' ? '-' : c;
  if (!(std::ofstream(folder / file) << man_page(command, name))) return false;
  for (const CLI::App* below : command.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    if (!write_pages(*below, name + " " + below->get_name(), folder)) return false;
  }
  return true;
}

}  // namespace

Command add_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* c = app.add_subcommand("completion", "Print a completion script for a shell");
  c->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  c->footer("\nKinds and names are completed from the server.\n\nExamples:\n  source <(holdfast completion bash)");
  return [shell] {
    fputs(*shell == "bash" ? kBash : *shell == "zsh" ? kZsh : kFish, stdout);
    return 0;
  };
}

Command add_complete(CLI::App& app) {
  CLI::App* c = app.add_subcommand("__complete", "Print completions for the completion scripts");
  c->group("");  // Not shown.
  c->prefix_command();
  c->set_help_flag();
  return [c, &app] { return complete(app, c->remaining()); };
}

Command add_man(CLI::App& app) {
  auto folder = std::make_shared<std::string>();
  CLI::App* c = app.add_subcommand("man", "Write man pages of all commands to a directory");
  c->add_option("DIR", *folder, "Directory to write to; created if missing")->required();
  c->footer("\nExamples:\n  holdfast man ~/.local/share/man/man1");
  return [folder, &app] {
    std::error_code failed;
    std::filesystem::create_directories(*folder, failed);
    if (failed || !write_pages(app, "holdfast", *folder)) return fail((*folder + " cannot be written").c_str());
    return 0;
  };
}

}  // namespace holdfast::cli
