#include "cli/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/files.h"
#include "base/strings.h"

namespace holdfast::cli {

void notify_manager(std::string_view message) {
  const char* path = getenv("NOTIFY_SOCKET");
  if (path == nullptr || *path == '\0') return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t bytes = strlen(path);
  if (bytes >= sizeof address.sun_path) return;
  memcpy(address.sun_path, path, bytes);
  if (path[0] == '@') address.sun_path[0] = '\0';  // An abstract socket.
  const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + bytes);
  // Nobody could be told of a failure.
  (void)::sendto(socket.get(), message.data(), message.size(), MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&address),
                 length);
}

std::optional<std::chrono::milliseconds> watchdog_interval() {
  const char* pid = getenv("WATCHDOG_PID");
  if (pid != nullptr && parse_number<int64_t>(pid) != int64_t{getpid()}) return std::nullopt;
  const char* text = getenv("WATCHDOG_USEC");
  const std::optional<int64_t> micros = text == nullptr ? std::nullopt : parse_number<int64_t>(text);
  if (!micros || *micros <= 0) return std::nullopt;
  // Half of the time after which the manager gives up, as sd_watchdog_enabled(3) advises.
  return std::chrono::milliseconds(*micros / 2000);
}

}  // namespace holdfast::cli
