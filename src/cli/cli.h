// The `holdfast` command: a server, tools for its data, and a command line for any Kubernetes server.
//
//   arguments -> run() -> one subcommand: parser (CLI11), help, then the function that does the work
//
// The name that the program was started under chooses what it is: kube-apiserver and etcd (links made by `holdfast
// envtest-assets`), a plugin of kubectl (kubectl-blame runs `blame`), otherwise holdfast itself.
//
// Exit status: 0 for success, 1 for an error, which is one line on standard error, or what the subcommand's help says.
#pragma once

#include <string>
#include <vector>

namespace holdfast::cli {

// Runs the program; the first argument is its name. Returns the exit status.
int run(std::vector<std::string> arguments);

}  // namespace holdfast::cli
