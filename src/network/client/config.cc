#include "client/config.h"

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/base64.h"
#include "base/files.h"
#include "client/credentials.h"
#include "client/files.h"
#include "codec/codec.h"

namespace holdfast::client {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount/";

Error config_error(std::string message) { return bad_request(std::move(message)); }

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string text(const Value& map, std::string_view key) { return std::string(map.text_at(key)); }

bool flag(const Value& map, std::string_view key) {
  const Value* found = map.find(key);
  return found != nullptr && found->is_bool() && found->as_bool();
}

// The kubeconfigs of a KUBECONFIG list merged into one: the first definition wins.
class Files {
 public:
  // Empty files are skipped.
  Result<Unit> add(std::string_view yaml, const fs::path& folder, const std::string& name) {
    Result<codec::Document> document = codec::parse_yaml(std::string(yaml));
    if (!document) return config_error(name + ": " + document.error().message);
    documents_.push_back({std::move(*document), folder});
    const Value& root = documents_.back().document.root();
    if (root.is_null()) return Unit{};
    if (!root.is_map()) return config_error(name + ": not a kubeconfig");
    if (current_context_.empty()) current_context_ = root.text_at("current-context");
    return Unit{};
  }

  bool empty() const { return documents_.empty(); }
  // User names, possibly repeated.
  std::vector<std::string> user_names() const {
    std::vector<std::string> names;
    for (const Entry& entry : documents_) {
      for (const Value& item : entry.document.root().items_at("users")) names.push_back(text(item, "name"));
    }
    return names;
  }
  const std::string& current_context() const { return current_context_; }

  struct Found {
    const Value* value = nullptr;  // Null if there is no such entry.
    fs::path folder;
  };
  // clusters, contexts and users are lists of {name, cluster|context|user}.
  Found find(std::string_view list, std::string_view member, std::string_view name) const {
    for (const Entry& entry : documents_) {
      for (const Value& item : entry.document.root().items_at(list)) {
        if (item.text_at("name") != name) continue;
        static const Value kNothing = Value::empty_map();
        const Value* value = item.find(member);
        return {value != nullptr && value->is_map() ? value : &kNothing, entry.folder};
      }
    }
    return {};
  }

 private:
  struct Entry {
    codec::Document document;
    fs::path folder;
  };
  std::vector<Entry> documents_;
  std::string current_context_;
};

// Reads inline base64, or the file named by the other key.
Result<std::string> data_or_file(const Files::Found& from, std::string_view data_key, std::string_view file_key) {
  if (const std::string_view data = from.value->text_at(data_key); !data.empty()) {
    std::optional<std::string> bytes = base64_decode(data);
    if (!bytes) return config_error(std::string(data_key) + " is not base64");
    return std::move(*bytes);
  }
  const std::string_view path = from.value->text_at(file_key);
  if (path.empty()) return std::string();
  return read_file((from.folder / path).string());
}

Result<ExecPlugin> exec_of(const Value& exec, const fs::path& folder) {
  ExecPlugin plugin;
  plugin.api_version = text(exec, "apiVersion");
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    return config_error("exec plugin: invalid apiVersion \"" + plugin.api_version + "\"");
  }
  plugin.command = text(exec, "command");
  if (plugin.command.empty()) return config_error("exec plugin: command must be specified");
  // Relative paths start from the kubeconfig; a bare name is searched in PATH.
  if (plugin.command.find('/') != std::string::npos) plugin.command = (folder / plugin.command).string();
  for (const Value& argument : exec.items_at("args")) {
    if (argument.is_string()) plugin.arguments.emplace_back(argument.as_string());
  }
  for (const Value& variable : exec.items_at("env")) {
    plugin.environment.emplace_back(variable.text_at("name"), variable.text_at("value"));
  }
  plugin.install_hint = text(exec, "installHint");
  plugin.provide_cluster_info = flag(exec, "provideClusterInfo");
  return plugin;
}

Result<Unit> read_user(const Files::Found& user, Config& config) {
  Result<std::string> certificate = data_or_file(user, "client-certificate-data", "client-certificate");
  if (!certificate) return certificate.take_error();
  config.certificate_pem = std::move(*certificate);
  Result<std::string> key = data_or_file(user, "client-key-data", "client-key");
  if (!key) return key.take_error();
  config.key_pem = std::move(*key);
  const auto file_of = [&](std::string_view data_key, std::string_view file_key) {
    const std::string_view path = user.value->text_at(file_key);
    return path.empty() || !user.value->text_at(data_key).empty() ? std::string() : (user.folder / path).string();
  };
  config.certificate_file = file_of("client-certificate-data", "client-certificate");
  config.key_file = file_of("client-key-data", "client-key");
  config.token = text(*user.value, "token");
  if (const std::string file = text(*user.value, "tokenFile"); !file.empty()) {
    config.token_file = (user.folder / file).string();
  }
  config.username = text(*user.value, "username");
  config.password = text(*user.value, "password");
  config.impersonate.user = text(*user.value, "as");
  config.impersonate.uid = text(*user.value, "as-uid");
  for (const Value& group : user.value->items_at("as-groups")) {
    if (group.is_string()) config.impersonate.groups.emplace_back(group.as_string());
  }
  for (const Member& extra : user.value->members_at("as-user-extra")) {
    if (!extra.value.is_list()) continue;
    for (const Value& value : extra.value.items()) {
      if (value.is_string()) config.impersonate.extra.emplace_back(extra.key, value.as_string());
    }
  }
  if (const Value* exec = user.value->find("exec"); exec != nullptr && exec->is_map()) {
    Result<ExecPlugin> plugin = exec_of(*exec, user.folder);
    if (!plugin) return plugin.take_error();
    config.exec = std::move(*plugin);
  }
  if (user.value->has("auth-provider")) {
    return config_error("auth-provider is not supported: use an exec plugin");
  }
  return Unit{};
}

Result<Config> config_of(const Files& files, const Config::Source& source) {
  const std::string context_name = source.context.empty() ? files.current_context() : source.context;
  if (context_name.empty()) return config_error("the kubeconfig has no current-context");
  const Files::Found context = files.find("contexts", "context", context_name);
  if (context.value == nullptr) return config_error("context \"" + context_name + "\" does not exist");

  const std::string cluster_name = source.cluster.empty() ? text(*context.value, "cluster") : source.cluster;
  const Files::Found cluster = files.find("clusters", "cluster", cluster_name);
  if (cluster.value == nullptr) {
    return config_error("context \"" + context_name + "\": cluster \"" + cluster_name + "\" does not exist");
  }
  Config config;
  config.server = text(*cluster.value, "server");
  if (config.server.empty()) return config_error("cluster \"" + cluster_name + "\" has no server");
  Result<std::string> ca = data_or_file(cluster, "certificate-authority-data", "certificate-authority");
  if (!ca) return ca.take_error();
  config.ca_pem = std::move(*ca);
  config.tls_server_name = text(*cluster.value, "tls-server-name");
  config.insecure = flag(*cluster.value, "insecure-skip-tls-verify");
  config.proxy_url = text(*cluster.value, "proxy-url");
  if (const std::string space = text(*context.value, "namespace"); !space.empty()) config.default_namespace = space;

  const std::string user_name = source.user.empty() ? text(*context.value, "user") : source.user;
  if (user_name.empty()) return config;
  const Files::Found user = files.find("users", "user", user_name);
  if (user.value == nullptr) {
    return config_error("context \"" + context_name + "\": user \"" + user_name + "\" does not exist");
  }
  Result<Unit> read = read_user(user, config);
  if (!read) return read.take_error();
  return config;
}

// The files listed in KUBECONFIG, or ~/.kube/config, in order.
std::vector<std::string> default_files() {
  std::vector<std::string> files;
  std::istringstream list(environment("KUBECONFIG"));
  for (std::string path; std::getline(list, path, ':');) {
    if (!path.empty()) files.push_back(path);
  }
  if (files.empty()) {
    const std::string home = environment("HOME");
    if (!home.empty()) files.push_back(home + "/.kube/config");
  }
  return files;
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  Result<std::string> content = holdfast::read_file(path);
  if (!content) return config_error("open " + path + ": no such file or directory");
  return content;
}

Result<Config> Config::parse(std::string_view yaml, std::string_view context, std::string_view folder) {
  Files files;
  Result<Unit> added = files.add(yaml, folder, "kubeconfig");
  if (!added) return added.take_error();
  return config_of(files, {.path = {}, .context = std::string(context), .cluster = {}, .user = {}});
}

Result<Config> Config::load(const Source& source) {
  Files files;
  const bool one = !source.path.empty();
  for (const std::string& path : one ? std::vector<std::string>{source.path} : default_files()) {
    if (!one && !fs::exists(path)) continue;
    Result<std::string> content = read_file(path);
    if (!content) return content.take_error();
    Result<Unit> added = files.add(*content, fs::absolute(path).parent_path(), path);
    if (!added) return added.take_error();
  }
  if (!files.empty()) return config_of(files, source);
  Result<Config> own = in_cluster();
  if (own) return own;
  return Error{Reason::NotFound,
               "no kubeconfig: KUBECONFIG is not set, ~/.kube/config does not exist, and this is not a pod"};
}

Result<Config::Users> Config::load_users(const std::string& path) {
  Result<std::string> content = read_file(path);
  if (!content) return content.take_error();
  Files files;
  Result<Unit> added = files.add(*content, fs::absolute(path).parent_path(), path);
  if (!added) return added.take_error();
  Users users;
  for (const std::string& name : files.user_names()) {
    const std::string where = path + ": user \"" + name + "\"";
    const auto [user, fresh] = users.by_name.try_emplace(name);
    if (!fresh) return config_error(where + " is defined twice");
    Result<Unit> read = read_user(files.find("users", "user", name), user->second);
    if (!read) return config_error(where + ": " + read.error().message);
    if (Result<Credentials> credentials = read_credentials(user->second); !credentials) {
      return config_error(where + ": " + credentials.error().message);
    }
  }
  const Files::Found context = files.find("contexts", "context", files.current_context());
  if (context.value != nullptr) users.current = text(*context.value, "user");
  return users;
}

Result<Config> Config::in_cluster() {
  const std::string host = environment("KUBERNETES_SERVICE_HOST"), port = environment("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return config_error("not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined");
  }
  // Overridden by tests.
  const std::string other = environment("HOLDFAST_SERVICEACCOUNT_FOLDER");
  const std::string folder = other.empty() ? std::string(kAccountFolder) : other + "/";
  Config config;
  config.server = "https://" + with_brackets(host) + ":" + port;
  config.token_file = folder + "token";
  Result<std::string> token = read_file(config.token_file);
  if (!token) return token.take_error();
  Result<std::string> ca = read_file(folder + "ca.crt");
  if (!ca) return ca.take_error();
  config.ca_pem = std::move(*ca);
  if (Result<std::string> space = read_file(folder + "namespace"); space && !space->empty()) {
    config.default_namespace = std::move(*space);
  }
  return config;
}

}  // namespace holdfast::client
