#include "server/pages.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

#include "server/version.h"

namespace holdfast::server {
namespace {

std::string heading(const char* page) {
  return "\napiserver " + std::string(page) +
         "\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees "
         "and is for debugging purposes only.\n";
}

}  // namespace

std::string statusz_page(UnixTime started, UnixTime now) {
  const std::time_t start = started.seconds;
  std::tm parts{};
  gmtime_r(&start, &parts);
  char since[64], up[64];
  std::strftime(since, sizeof since, "%a %b %e %H:%M:%S UTC %Y", &parts);
  const long long seconds = now.seconds - started.seconds;
  std::snprintf(up, sizeof up, "%lld hr %02lld min %02lld sec", seconds / 3600, seconds / 60 % 60, seconds % 60);
  const std::string version(kubernetes_version().substr(1));
  return heading("statusz") + "\nStarted: " + since + "\nUp: " + up + "\nGo version: none" +
         "\nBinary version: " + version + "\nEmulation version: " + version.substr(0, version.rfind('.')) +
         "\nPaths: /flagz /healthz /livez /metrics /readyz /statusz /version\n";
}

std::string flagz_page(std::span<const std::pair<std::string, std::string>> flags) {
  std::vector<std::pair<std::string, std::string>> sorted(flags.begin(), flags.end());
  std::sort(sorted.begin(), sorted.end());
  std::string page = heading("flagz");
  for (const auto& [name, value] : sorted) page += name + "=" + value + "\n";
  return page;
}

}  // namespace holdfast::server
