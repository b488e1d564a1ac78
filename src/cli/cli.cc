#include "cli/cli.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "cli/commands.h"
#include "cli/etcd_stand_in.h"
#include "server/server.h"

namespace holdfast::cli {

int fail(const char* message) {
  fprintf(stderr, "holdfast: %s\n", message);
  return 1;
}

int run(std::vector<std::string> arguments) {
  // Run through a link made by `holdfast envtest-assets`, it acts as the program it is named after.
  const std::string name = arguments.empty() ? "" : std::filesystem::path(arguments[0]).filename();
  if (!arguments.empty()) arguments.erase(arguments.begin());
  if (name == "etcd") return run_etcd(arguments);
  if (name == "kube-apiserver") return run_kube_apiserver(arguments);
  if (name.starts_with("kubectl-")) arguments.insert(arguments.begin(), name.substr(8));
  CLI::App app("Holdfast: a Kubernetes API server in one small process.", "holdfast");
  app.set_version_flag("--version", "holdfast " + std::string(server::holdfast_version()) + " (Kubernetes " +
                                        std::string(server::kubernetes_version()) + ")");
  app.require_subcommand(1);
  app.footer(
      "Start a server:  holdfast serve --data-dir /tmp/h\nThen:            kubectl --kubeconfig /tmp/h/kubeconfig get "
      "namespaces");

  std::vector<std::pair<CLI::App*, Command>> commands;
  for (auto add : {add_serve, add_kubeconfig, add_store, add_envtest_assets, add_applygen, add_cel, add_blame}) {
    Command run = add(app);
    commands.emplace_back(app.get_subcommands({}).back(), std::move(run));
  }
  try {
    Result<std::vector<std::string>> expanded = expand_config(std::move(arguments));
    if (!expanded) return fail(expanded.error().message.c_str());
    // CLI11 takes them in reverse order.
    app.parse(std::vector<std::string>(expanded->rbegin(), expanded->rend()));
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
