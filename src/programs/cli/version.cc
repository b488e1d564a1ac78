#include "cli/version.h"

#include <gnu/libc-version.h>
#include <nghttp2/nghttp2.h>
#include <openssl/crypto.h>
#include <rocksdb/version.h>
#include <simdjson.h>
#include <zstd.h>

#include <CLI/CLI.hpp>

#include "base/gates.h"
#include "base/text.h"
#include "cli/terminal.h"
#include "server/server.h"

namespace holdfast::cli {

namespace {

// Empty in builds that are not packages.
#ifndef HOLDFAST_COMMIT
#define HOLDFAST_COMMIT ""
#endif
#ifndef HOLDFAST_DATE
#define HOLDFAST_DATE ""
#endif
#ifdef HOLDFAST_STATIC
constexpr std::string_view kLinkage = "static";
#else
constexpr std::string_view kLinkage = "dynamic";
#endif

// Of the library in use, where it can be asked; otherwise of the headers that were compiled with.
std::vector<std::pair<std::string, std::string>> libraries() {
  const auto dotted = [](int major, int minor, int patch) {
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
  };
  return {{"glibc", gnu_get_libc_version()},
          {"nghttp2", nghttp2_version(0)->version_str},
          {"openssl", OpenSSL_version(OPENSSL_VERSION_STRING)},
          {"rocksdb", dotted(ROCKSDB_MAJOR, ROCKSDB_MINOR, ROCKSDB_PATCH)},
          {"simdjson", dotted(simdjson::SIMDJSON_VERSION_MAJOR, simdjson::SIMDJSON_VERSION_MINOR,
                              simdjson::SIMDJSON_VERSION_REVISION)},
          {"zstd", ZSTD_versionString()}};
}

std::string as_json() {
  std::string json = "{\n  \"version\": " + json_quote(server::holdfast_version()) +
                     ",\n  \"kubernetesVersion\": " + json_quote(server::kubernetes_version()) +
                     ",\n  \"commit\": " + json_quote(HOLDFAST_COMMIT) + ",\n  \"date\": " + json_quote(HOLDFAST_DATE) +
                     ",\n  \"linkage\": " + json_quote(kLinkage) + ",\n  \"features\": {";
  const char* separator = "\n    ";
  for (const GateInfo& gate : all_gates()) {
    json += separator + json_quote(gate.name) + ": " + (gate.default_on ? "true" : "false");
    separator = ",\n    ";
  }
  json += "\n  },\n  \"libraries\": {";
  separator = "\n    ";
  for (const auto& [name, version] : libraries()) {
    json += separator + json_quote(name) + ": " + json_quote(version);
    separator = ",\n    ";
  }
  return json + "\n  }\n}\n";
}

}  // namespace

Command add_version(CLI::App& app) {
  auto format = std::make_shared<std::string>("text");
  CLI::App* c = app.add_subcommand("version", "Print the version of this program, and what it consists of");
  c->add_option("-o,--output", *format, "Output format: text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  return [format] {
    if (*format == "json") {
      print(as_json());
    } else {
      print("holdfast ", server::holdfast_version(), " (Kubernetes ", server::kubernetes_version(), ")\n");
    }
    return 0;
  };
}

}  // namespace holdfast::cli
