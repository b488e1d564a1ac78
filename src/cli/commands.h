// The subcommands of `holdfast`. Each adds itself to the program's parser and returns what runs it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"

namespace CLI {
class App;
}

namespace holdfast::cli {

using Command = std::function<int()>;  // Its exit code.

Command add_serve(CLI::App& app);
Command add_kubeconfig(CLI::App& app);
Command add_store(CLI::App& app);
Command add_envtest_assets(CLI::App& app);
Command add_applygen(CLI::App& app);
Command add_cel(CLI::App& app);

// The program under the name kube-apiserver: takes its flags, and runs no controllers unless told to, as it does not.
int run_kube_apiserver(const std::vector<std::string>& arguments);

// Replaces `--config FILE` (or --config=FILE) by the flags in the file, before those on the command line, which
// therefore win. A line is `name = value` or `name: value`; '#' begins a comment. The error names the file and the
// line.
Result<std::vector<std::string>> expand_config(std::vector<std::string> arguments);

// Says what is wrong in one line and returns the exit code for it.
int fail(const char* message);

}  // namespace holdfast::cli
