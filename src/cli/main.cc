#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>

#include "cli/commands.h"
#include "cli/etcd_stand_in.h"
#include "server/version.h"

namespace holdfast::cli {

int fail(const char* message) {
  fprintf(stderr, "holdfast: %s\n", message);
  return 1;
}

}  // namespace holdfast::cli

int main(int argc, char** argv) {
  using namespace holdfast;
  // Run through a link made by `holdfast envtest-assets`, it acts as the program it is named after.
  const std::string name = std::filesystem::path(argv[0]).filename();
  if (name == "etcd") return cli::run_etcd({argv + 1, argv + argc});
  if (name == "kube-apiserver") return cli::run_kube_apiserver({argv + 1, argv + argc});
  CLI::App app("Holdfast: a Kubernetes API server in one small process.", "holdfast");
  app.set_version_flag("--version", "holdfast " + std::string(server::holdfast_version()) + " (Kubernetes " +
                                        std::string(server::kubernetes_version()) + ")");
  app.require_subcommand(1);
  app.footer(
      "Start a server:  holdfast serve --data-dir /tmp/h\nThen:            kubectl --kubeconfig /tmp/h/kubeconfig get "
      "namespaces");

  std::vector<std::pair<CLI::App*, cli::Command>> commands;
  for (auto add : {cli::add_serve, cli::add_kubeconfig, cli::add_store, cli::add_envtest_assets, cli::add_applygen,
                   cli::add_cel}) {
    cli::Command run = add(app);
    commands.emplace_back(app.get_subcommands({}).back(), std::move(run));
  }
  try {
    Result<std::vector<std::string>> arguments = cli::expand_config({argv + 1, argv + argc});
    if (!arguments) return cli::fail(arguments.error().message.c_str());
    // CLI11 takes them in reverse order.
    app.parse(std::vector<std::string>(arguments->rbegin(), arguments->rend()));
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForAllHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::Error& e) {
    return cli::fail(e.what());
  }
  for (auto& [command, run] : commands) {
    if (command->parsed()) return run();
  }
  return 0;
}
