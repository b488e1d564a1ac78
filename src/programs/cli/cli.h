// The `holdfast` command: a server, tools for its data, and a command line for any Kubernetes server.
//
//   arguments -> run() -> one subcommand: parser (CLI11), help, then the function that does the work
//
// The name under which the program was started selects what it does: kube-apiserver and etcd (links made by `holdfast
// envtest-assets`), a kubectl plugin (kubectl-blame runs `blame`), otherwise holdfast itself.
//
// Exit status: 0 for success, 1 for an error (one line on standard error), unless the help of the subcommand says
// otherwise.
#pragma once

#include <string>
#include <vector>

namespace holdfast::cli {

// Runs the program; the first argument is its name. Returns the exit status.
int run(std::vector<std::string> arguments);

}  // namespace holdfast::cli
