#include "server/version.h"

namespace holdfast::server {

std::string_view holdfast_version() { return HOLDFAST_VERSION; }
std::string_view kubernetes_version() { return "v1.36.3"; }

std::string_view version_json() {
  // Clients parse gitVersion as a semantic version; the part after the plus does not affect ordering.
  static const std::string kText =
      "{\n  \"major\": \"1\",\n  \"minor\": \"36\",\n  \"emulationMajor\": \"1\",\n  \"emulationMinor\": \"36\",\n"
      "  \"minCompatibilityMajor\": \"1\",\n  \"minCompatibilityMinor\": \"35\",\n  \"gitVersion\": \"" +
      std::string(kubernetes_version()) +
      "+holdfast-" HOLDFAST_VERSION
      "\",\n  \"gitCommit\": \"\",\n  \"gitTreeState\": \"clean\",\n  \"buildDate\": \"1970-01-01T00:00:00Z\",\n"
      "  \"goVersion\": \"\",\n  \"compiler\": \"clang\",\n  \"platform\": \"linux/amd64\"\n}";
  return kText;
}

}  // namespace holdfast::server
