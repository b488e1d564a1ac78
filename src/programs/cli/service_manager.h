// Messages to systemd (sd_notify), or any service manager that sets NOTIFY_SOCKET: READY=1, STOPPING=1, WATCHDOG=1.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace holdfast::cli {

// Sends nothing if no manager listens.
void notify_manager(std::string_view message);

// How often the manager wants to hear WATCHDOG=1; nullopt if it does not.
std::optional<std::chrono::milliseconds> watchdog_interval();

}  // namespace holdfast::cli
