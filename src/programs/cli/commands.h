// The subcommands of `holdfast`. Each adds itself to the parser and returns the function that runs it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"

namespace CLI {
class App;
}

namespace holdfast::cli {

using Command = std::function<int()>;  // Returns the exit code.

Command add_serve(CLI::App& app);
Command add_kubeconfig(CLI::App& app);
Command add_store(CLI::App& app);
Command add_envtest_assets(CLI::App& app);
Command add_applygen(CLI::App& app);
Command add_cel(CLI::App& app);
Command add_get(CLI::App& app);
Command add_watch(CLI::App& app);
Command add_wait(CLI::App& app);
Command add_apply(CLI::App& app);
Command add_unset(CLI::App& app);
Command add_diff(CLI::App& app);
Command add_create(CLI::App& app);
Command add_delete(CLI::App& app);
Command add_api_resources(CLI::App& app);
Command add_blame(CLI::App& app);
Command add_migrate(CLI::App& app);
Command add_transfer(CLI::App& app);
Command add_release(CLI::App& app);
Command add_explain(CLI::App& app);
Command add_top(CLI::App& app);
Command add_describe(CLI::App& app);
Command add_edit(CLI::App& app);
Command add_completion(CLI::App& app);
Command add_complete(CLI::App& app);
Command add_man(CLI::App& app);
Command add_with(CLI::App& app);

// Creates the directory for KUBEBUILDER_ASSETS (with links also for KUBE_API_TEST_DIR): this program under the names
// kube-apiserver and etcd, and the kubectl found on the PATH. Errors name the path.
enum class AssetFiles : uint8_t { Links, Copies };
Result<Unit> make_assets(const std::string& folder, AssetFiles files = AssetFiles::Links);

// Runs as kube-apiserver: accepts its flags and, like it, runs no controllers by default.
int run_kube_apiserver(const std::vector<std::string>& arguments);

// For `serve`: flags of `--config FILE` (lines `name = value` or `name: value`; '#' starts a comment), then those of
// the environment (HOLDFAST_SERVE_DATA_DIR), then those given: the last one of a flag counts. Errors name the file and
// the line, and for an unknown flag the nearest one that exists.
Result<std::vector<std::string>> expand_config(std::vector<std::string> arguments);

// Prints a one-line error message and returns the exit code for it.
int fail(const char* message);

}  // namespace holdfast::cli
