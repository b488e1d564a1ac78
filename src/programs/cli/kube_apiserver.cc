#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "base/gates.h"
#include "base/log.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/etcd_stand_in.h"
#include "cli/kube_flags.h"
#include "server/server.h"

namespace holdfast::cli {
namespace {

bool knows_gate(std::string_view name) {
  const auto gates = all_gates();
  return std::any_of(gates.begin(), gates.end(), [name](const GateInfo& gate) { return gate.name == name; });
}

// The gates that this server knows. An existing command line may contain any Kubernetes gate (also as
// "kube:Name=true"); a warning is logged for each one that has no effect here.
std::string known_gates(std::string_view list) {
  std::vector<std::string_view> known;
  for (std::string_view gate : split(list, ',')) {
    if (gate.empty()) continue;
    if (gate.starts_with("kube:")) gate.remove_prefix(5);
    if (knows_gate(gate.substr(0, gate.find('=')))) {
      known.push_back(gate);
    } else {
      log::warning("feature gate has no effect", {{"gate", gate}});
    }
  }
  return join(known, ",");
}

bool starts_with_any(const std::vector<std::string>& arguments, std::string_view prefix) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [prefix](const std::string& argument) { return argument.starts_with(prefix); });
}

}  // namespace

int run_kube_apiserver(const std::vector<std::string>& given) {
  CLI::App app("kube-apiserver, implemented by Holdfast", "kube-apiserver");
  const Command run = add_serve(app);
  CLI::App* serve = app.get_subcommand("serve");
  Result<std::vector<std::string>> flags = translate_kube_flags(given, [serve](std::string_view name) {
    return serve->get_option_no_throw(std::string(name.size() == 1 ? "-" : "--") + std::string(name)) != nullptr;
  });
  if (!flags) {
    fprintf(stderr, "Error: %s\n", flags.error().message.c_str());
    return 1;
  }
  // Gates that are on in `serve` and off in kube-apiserver; --feature-gates can still turn them on.
  std::vector<std::string> arguments{
      "--feature-gates=AllowUnsafeMalformedObjectDeletion=false,CBORServingAndStorage=false,OwnershipAPI=false"};
  std::string cert_dir = "/var/run/kubernetes";
  for (std::string& argument : *flags) {
    constexpr std::string_view kGates = "--feature-gates=", kServers = "--etcd-servers=", kCerts = "--cert-dir=";
    if (argument == "--version") {
      printf("Kubernetes %s\n", std::string(server::kubernetes_version()).c_str());
      return 0;
    }
    if (argument == "--help") {
      puts(app.help("", CLI::AppFormatMode::All).c_str());
      return 0;
    }
    if (argument.starts_with(kGates)) {
      const std::string known = known_gates(std::string_view(argument).substr(kGates.size()));
      if (!known.empty()) arguments.push_back(std::string(kGates) + known);
      continue;
    }
    if (argument.starts_with(kServers)) {
      if (std::optional<StandIn> stand_in = find_stand_in(argument.substr(kServers.size()))) {
        arguments.push_back("--data-dir=" + stand_in->data_dir);
        if (!stand_in->fsync) arguments.emplace_back("--unsafe-no-fsync");
        continue;
      }
    }
    if (argument.starts_with(kCerts)) {
      cert_dir = argument.substr(kCerts.size());
      continue;
    }
    arguments.push_back(std::move(argument));
  }
  // kube-apiserver's defaults where those of `serve` differ.
  if (!starts_with_any(arguments, "--bind-address=") && !starts_with_any(arguments, "--secure-port=") &&
      !starts_with_any(arguments, "--listen=")) {
    arguments.emplace_back("--secure-port=6443");
  }
  // An existing serving certificate in --cert-dir is used; our own keys are kept in a subdirectory.
  const std::string certificate = cert_dir + "/apiserver.crt", key = cert_dir + "/apiserver.key";
  if (!starts_with_any(arguments, "--tls-cert-file=") && access(certificate.c_str(), R_OK) == 0 &&
      access(key.c_str(), R_OK) == 0) {
    arguments.push_back("--tls-cert-file=" + certificate);
    arguments.push_back("--tls-private-key-file=" + key);
  }
  if (!starts_with_any(arguments, "--data-dir=")) arguments.push_back("--cert-dir=" + cert_dir + "/holdfast");
  if (!starts_with_any(arguments, "--controllers=")) arguments.emplace_back("--controllers=none");
  if (!starts_with_any(arguments, "--strict-drop")) arguments.emplace_back("--strict-drop");
  arguments.insert(arguments.begin(), "serve");
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Error& e) {
    return fail(e.what());
  }
  return run();
}

}  // namespace holdfast::cli
