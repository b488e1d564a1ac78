// `holdfast version`: what this program is, and what it consists of.
#pragma once

#include "cli/commands.h"

namespace holdfast::cli {

Command add_version(CLI::App& app);

}  // namespace holdfast::cli
