// `holdfast console`: the command (commands.h), and what its page leaves to this program: reading manifests, and
// resolving conflicts. Each is a pure function from JSON (a manifest: YAML) to JSON.
//
//   manifest   YAML -> {"objects": [{"where": "document 2", "object": {...}}]}
//   conflicts  {"config", "live", "status", "manager"} -> {"conflicts": [{"path", "ours", "live", "owners":
//   [{"manager",
//              "operation", "subresource", "time"}]}]}: those that the Status of an apply names
//   resolve    {"config", "live", "decisions": [{"path", "decision": "take" | "share" | "yield"}]} -> the configuration
//              to apply
//   owned      {"object", "manager"} -> {"yaml"}: what the manager owns, as a manifest
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "cli/commands.h"
#include "console/console.h"

namespace holdfast::cli {

Command add_console(CLI::App& app);

std::map<std::string, console::Tool, std::less<>> console_tools();

}  // namespace holdfast::cli
