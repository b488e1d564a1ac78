// The subcommands of `holdfast`. Each adds itself to the program's parser and returns what runs it.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace holdfast::cli {

using Command = std::function<int()>;  // Its exit code.

Command add_serve(CLI::App& app);
Command add_kubeconfig(CLI::App& app);

// Says what is wrong in one line and returns the exit code for it.
int fail(const char* message);

}  // namespace holdfast::cli
