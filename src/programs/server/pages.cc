#include "server/pages.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <vector>

#include "server/version.h"

namespace holdfast::server {
namespace {

std::string heading(const char* page) {
  return "\napiserver " + std::string(page) +
         "\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees "
         "and is for debugging purposes only.\n";
}

constexpr std::string_view kPaths[] = {"/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version"};
constexpr std::string_view kGoVersion = "none";

std::string binary_version() { return std::string(kubernetes_version().substr(1)); }
std::string emulation_version() {
  const std::string version = binary_version();
  return version.substr(0, version.rfind('.'));
}

// Begins the object with its type and name; the content of the page follows.
MapBuilder page_object(Arena& arena, std::string_view kind, std::string_view version) {
  MapBuilder metadata(arena), object(arena);
  object.add("kind", Value::string(kind));
  object.add("apiVersion", Value::string(arena, "config.k8s.io/" + std::string(version)));
  metadata.add("name", Value::string("apiserver"));
  object.add("metadata", metadata.build());
  return object;
}

}  // namespace

std::string Statusz::text() const {
  const std::time_t start = started.seconds;
  std::tm parts{};
  gmtime_r(&start, &parts);
  char since[64], up[64];
  std::strftime(since, sizeof since, "%a %b %e %H:%M:%S UTC %Y", &parts);
  const long long seconds = now.seconds - started.seconds;
  std::snprintf(up, sizeof up, "%lld hr %02lld min %02lld sec", seconds / 3600, seconds / 60 % 60, seconds % 60);
  std::string page = heading("statusz") + "\nStarted: " + since + "\nUp: " + up +
                     "\nGo version: " + std::string(kGoVersion) + "\nBinary version: " + binary_version() +
                     "\nEmulation version: " + emulation_version() + "\nPaths:";
  for (const std::string_view path : kPaths) page.append(" ").append(path);
  return page + "\n";
}

Value Statusz::object(Arena& arena, std::string_view version) const {
  MapBuilder object = page_object(arena, "Statusz", version);
  object.add("startTime", Value::string(arena, format_rfc3339(started)));
  object.add("uptimeSeconds", Value::integer(std::max<int64_t>(0, now.seconds - started.seconds)));
  object.add("goVersion", Value::string(kGoVersion));
  object.add("binaryVersion", Value::string(arena, binary_version()));
  object.add("emulationVersion", Value::string(arena, emulation_version()));
  ListBuilder paths(arena);
  for (const std::string_view path : kPaths) paths.add(Value::string(path));
  object.add("paths", paths.build());
  return object.build();
}

std::string Flagz::text() const {
  std::vector<std::pair<std::string, std::string>> sorted(flags.begin(), flags.end());
  std::sort(sorted.begin(), sorted.end());
  std::string page = heading("flagz");
  for (const auto& [name, value] : sorted) page += name + "=" + value + "\n";
  return page;
}

Value Flagz::object(Arena& arena, std::string_view version) const {
  MapBuilder object = page_object(arena, "Flagz", version), values(arena);
  const std::map<std::string_view, std::string_view> sorted(flags.begin(), flags.end());
  for (const auto& [name, value] : sorted) values.add(name, Value::string(value));
  object.add("flags", values.build());
  return object.build();
}

}  // namespace holdfast::server
