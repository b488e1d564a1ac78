// Exec credential plugins (client.authentication.k8s.io).
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/base64.h"
#include "base/clock.h"
#include "client/core.h"

extern char** environ;

namespace holdfast::client {

namespace {

Error plugin_error(const ExecPlugin& plugin, const std::string& why) {
  std::string message = "getting credentials: exec: executable " + plugin.command + " " + why;
  return {Reason::Unauthorized, std::move(message)};
}

// The value of KUBERNETES_EXEC_INFO.
std::string exec_info(const ExecPlugin& plugin, const Config& config) {
  Arena arena;
  MapBuilder spec(arena);
  if (plugin.provide_cluster_info) {
    MapBuilder cluster(arena);
    cluster.add("server", Value::string(arena, config.server));
    if (!config.ca_pem.empty()) {
      cluster.add("certificate-authority-data", Value::string(arena, base64_encode(config.ca_pem)));
    }
    if (!config.tls_server_name.empty()) cluster.add("tls-server-name", Value::string(arena, config.tls_server_name));
    if (config.insecure) cluster.add("insecure-skip-tls-verify", Value::boolean(true));
    if (!config.proxy_url.empty()) cluster.add("proxy-url", Value::string(arena, config.proxy_url));
    spec.add("cluster", cluster.build());
  }
  spec.add("interactive", Value::boolean(false));
  MapBuilder info(arena);
  info.add("kind", Value::string("ExecCredential"));
  info.add("apiVersion", Value::string(arena, plugin.api_version));
  info.add("spec", spec.build());
  return codec::encode_json(info.build());
}

struct Finished {
  int status = 0;
  std::string output;
};

Result<Finished> run(const ExecPlugin& plugin, const Config& config) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
  for (const auto& [name, value] : plugin.environment) variables.push_back(name + "=" + value);
  variables.push_back("KUBERNETES_EXEC_INFO=" + exec_info(plugin, config));
  std::vector<char*> environment, arguments;
  // Programs use the first of repeated variables.
  for (auto variable = variables.rbegin(); variable != variables.rend(); ++variable) {
    environment.push_back(variable->data());
  }
  environment.push_back(nullptr);
  std::vector<std::string> words = {plugin.command};
  words.insert(words.end(), plugin.arguments.begin(), plugin.arguments.end());
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return plugin_error(plugin, std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const int failed =
      posix_spawnp(&child, plugin.command.c_str(), &actions, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  if (failed != 0) {
    close(pipe_ends[0]);
    std::string why = failed == ENOENT ? "not found" : "failed: " + std::string(std::strerror(failed));
    if (!plugin.install_hint.empty()) why += "\n\n" + plugin.install_hint;
    return plugin_error(plugin, why);
  }
  Finished finished;
  char buffer[4096];
  constexpr size_t kMostBytes = 1 << 20;
  for (ssize_t n = 0; (n = read(pipe_ends[0], buffer, sizeof buffer)) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 || finished.output.size() > kMostBytes) break;
    finished.output.append(buffer, static_cast<size_t>(n));
  }
  close(pipe_ends[0]);
  while (waitpid(child, &finished.status, 0) < 0 && errno == EINTR) {
  }
  return finished;
}

}  // namespace

Result<Credentials> run_exec_plugin(const ExecPlugin& plugin, const Config& config) {
  Result<Finished> finished = run(plugin, config);
  if (!finished) return finished.take_error();
  if (!WIFEXITED(finished->status) || WEXITSTATUS(finished->status) != 0) {
    const int code = WIFEXITED(finished->status) ? WEXITSTATUS(finished->status) : -1;
    return plugin_error(plugin, "failed with exit code " + std::to_string(code));
  }
  Result<codec::Document> said = codec::parse_json(std::move(finished->output));
  if (!said) return plugin_error(plugin, "printed no ExecCredential: " + said.error().message);
  const Value& root = said->root();
  if (root.text_at("kind") != "ExecCredential" || root.text_at("apiVersion") != plugin.api_version) {
    return plugin_error(plugin, "printed no ExecCredential of " + plugin.api_version);
  }
  const Value* status = root.find("status");
  if (status == nullptr || !status->is_map()) return plugin_error(plugin, "printed an ExecCredential without status");
  Credentials credentials;
  if (const std::string_view token = status->text_at("token"); !token.empty()) {
    credentials.authorization = "Bearer " + std::string(token);
  }
  const std::string_view certificate = status->text_at("clientCertificateData");
  const std::string_view key = status->text_at("clientKeyData");
  if (certificate.empty() != key.empty())
    return plugin_error(plugin, "printed only one of clientCertificateData and clientKeyData");
  if (!certificate.empty()) credentials.identity = net::Identity{std::string(certificate), std::string(key)};
  if (credentials.authorization.empty() && !credentials.identity) {
    return plugin_error(plugin, "printed neither a token nor a certificate");
  }
  if (const std::string_view expiry = status->text_at("expirationTimestamp"); !expiry.empty()) {
    const std::optional<UnixTime> at = parse_rfc3339(expiry);
    if (!at) return plugin_error(plugin, "printed a malformed expirationTimestamp");
    const int64_t left = at->seconds - system_clock().now().seconds;
    credentials.stale_at = std::chrono::steady_clock::now() + std::chrono::seconds(left);
  }
  return credentials;
}

}  // namespace holdfast::client
