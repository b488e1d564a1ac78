#include "cli/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/etcd_stand_in.h"
#include "cli/session.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "server/server.h"

namespace holdfast::cli {

int fail(const char* message) {
  print_error("holdfast: ", message, "\n");
  return 1;
}

namespace {

// Rewrites spellings that kubectl accepts and CLI11 does not: -o=yaml, and an empty --show-managed-fields= value.
void accept_kubectl_spellings(std::vector<std::string>& arguments) {
  for (std::string& argument : arguments) {
    if (argument == "--") return;  // The rest belongs to another command.
    if (argument.size() > 2 && argument[0] == '-' && argument[1] != '-' && argument[2] == '=') argument.erase(2, 1);
    if (argument == "--show-managed-fields=") argument.pop_back();
  }
}

// Null if there is none.
const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  const auto found = app.get_subcommands([&](const CLI::App* one) { return one->check_name(name); });
  return found.empty() ? nullptr : found.front();
}

// kubectl also accepts connection flags before the command (holdfast -n web get pods). Moves them after it.
void move_leading_flags(const CLI::App& app, std::vector<std::string>& arguments) {
  const CLI::App* const any = app.get_subcommand("get");
  size_t flags = 0;
  while (flags < arguments.size() && arguments[flags].starts_with('-')) {
    const std::string& argument = arguments[flags];
    const bool is_long = argument.starts_with("--");
    const size_t name_end = is_long ? argument.find('=') : 2;
    const CLI::Option* option = any->get_option_no_throw(argument.substr(0, name_end));
    if (option == nullptr || option->get_group() != kConnectionGroup) return;
    const bool value_attached = name_end < argument.size();
    flags += option->get_items_expected_min() > 0 && !value_attached ? 2 : 1;
  }
  if (flags == 0 || flags >= arguments.size()) return;
  // The command may consist of several words: top ownership.
  size_t end = flags;
  for (const CLI::App* command = &app; end < arguments.size(); ++end) {
    command = find_command(*command, arguments[end]);
    if (command == nullptr) break;
  }
  if (end == flags) ++end;  // Not a command: keep it first, for the error message.
  std::rotate(arguments.begin(), arguments.begin() + flags, arguments.begin() + end);
}

}  // namespace

int run(std::vector<std::string> arguments) {
  // A link made by `holdfast envtest-assets` acts as the program it is named after.
  const std::string name = arguments.empty() ? "" : std::filesystem::path(arguments[0]).filename();
  if (!arguments.empty()) arguments.erase(arguments.begin());
  if (name == "etcd") return run_etcd(arguments);
  if (name == "kube-apiserver") return run_kube_apiserver(arguments);
  if (name.starts_with("kubectl-")) arguments.insert(arguments.begin(), name.substr(8));
  CLI::App app("Holdfast: a Kubernetes API server in one small process, and a command line for any Kubernetes server",
               "holdfast");
  app.set_version_flag("--version", "holdfast " + std::string(server::holdfast_version()) + " (Kubernetes " +
                                        std::string(server::kubernetes_version()) + ")");
  app.require_subcommand(1);
  app.footer(
      "Start a server:      holdfast serve --data-dir /tmp/h\n"
      "Then:                holdfast get namespaces --kubeconfig /tmp/h/kubeconfig\n"
      "Or for one command:  holdfast with -- COMMAND");

  std::vector<std::pair<CLI::App*, Command>> commands;
  for (auto add : {add_serve,    add_with,           add_get,        add_watch,    add_apply,         add_unset,
                   add_diff,     add_create,         add_delete,     add_wait,     add_api_resources, add_blame,
                   add_console,  add_migrate,        add_transfer,   add_release,  add_top,           add_explain,
                   add_describe, add_edit,           add_completion, add_complete, add_man,           add_kubeconfig,
                   add_store,    add_envtest_assets, add_applygen,   add_cel,      add_version}) {
    Command run = add(app);
    commands.emplace_back(app.get_subcommands({}).back(), std::move(run));
  }
  try {
    // Other commands may have a --config of their own, or pass one on.
    if (!arguments.empty() && arguments[0] == "serve") {
      Result<std::vector<std::string>> expanded = expand_config(std::move(arguments));
      if (!expanded) return fail(expanded.error().message.c_str());
      arguments = std::move(*expanded);
    }
    accept_kubectl_spellings(arguments);
    move_leading_flags(app, arguments);
    if (!arguments.empty() && !arguments[0].starts_with('-') && find_command(app, arguments[0]) == nullptr) {
      return fail(("unknown command \"" + arguments[0] + "\"; holdfast --help lists the commands").c_str());
    }
    // CLI11 expects them in reverse order.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForAllHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::Error& e) {
    return fail(e.what());
  }
  for (auto& [command, run] : commands) {
    if (command->parsed()) return run();
  }
  return 0;
}

}  // namespace holdfast::cli
