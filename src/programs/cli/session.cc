#include "cli/session.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "auth/auth.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/session_on.h"
#include "cli/terminal.h"
#include "codec/codec.h"
#include "server/server.h"
#include "types/types.h"

namespace holdfast::cli {

void add_connection_flags(CLI::App& command, ConnectionFlags& flags) {
  const auto option = [&](const char* name, auto& value, const char* text) {
    return command.add_option(name, value, text)->group(kConnectionGroup);
  };
  option("--kubeconfig", flags.kubeconfig, "Kubeconfig to use; default: KUBECONFIG, then ~/.kube/config");
  option("--context", flags.context, "Context of the kubeconfig; default: the current one");
  option("--cluster", flags.cluster, "Cluster of the kubeconfig, instead of the context's");
  option("--user", flags.user, "User of the kubeconfig, instead of the context's");
  option("-n,--namespace", flags.space, "Namespace; default: that of the context");
  option("-s,--server", flags.server, "Address of the server, instead of the kubeconfig's");
  option("--certificate-authority", flags.ca_file, "File with the CA certificates that verify the server");
  option("--tls-server-name", flags.tls_server_name, "Name to verify in the server's certificate; default: its host");
  command.add_flag("--insecure-skip-tls-verify", flags.insecure, "Do not verify the server's certificate")
      ->group(kConnectionGroup);
  option("--client-certificate", flags.certificate_file, "File with the client certificate; requires --client-key");
  option("--client-key", flags.key_file, "Private key for --client-certificate");
  option("--token", flags.token, "Bearer token for authentication");
  option("--username", flags.username, "User name for basic authentication");
  option("--password", flags.password, "Password for basic authentication");
  option("--as", flags.as, "User to impersonate");
  option("--as-uid", flags.as_uid, "UID to impersonate");
  option("--as-group", flags.as_groups, "Group to impersonate; may be repeated");
  option("--request-timeout", flags.request_timeout,
         "Time to wait for one request, such as 1s, 2m, 3h; 0 means the default of one minute")
      ->capture_default_str();
}

namespace {

constexpr std::string_view kNoServer =
    "no server to talk to: set KUBECONFIG or use --kubeconfig FILE. To start a server: holdfast serve --data-dir DIR; "
    "to run one command with a server of its own: holdfast with -- COMMAND";

std::string cache_folder() {
  if (const char* folder = getenv("KUBECACHEDIR"); folder != nullptr && *folder != 0) {
    return std::string(folder) + "/holdfast";
  }
  const char* home = getenv("HOME");
  return home == nullptr || *home == 0 ? "" : std::string(home) + "/.kube/cache/holdfast";
}

bool has_kubeconfig() {
  const char* variable = getenv("KUBECONFIG");
  if (variable != nullptr && *variable != 0) return true;
  const char* home = getenv("HOME");
  std::error_code ignored;
  if (home != nullptr && std::filesystem::exists(std::string(home) + "/.kube/config", ignored)) return true;
  return getenv("KUBERNETES_SERVICE_HOST") != nullptr;
}

// The kubeconfig, overridden by the flags.
Result<client::Config> config_of(const ConnectionFlags& flags) {
  client::Config config;
  if (flags.kubeconfig.empty() && flags.server.empty() && !has_kubeconfig()) return bad_request(std::string(kNoServer));
  Result<client::Config> loaded = client::Config::load({flags.kubeconfig, flags.context, flags.cluster, flags.user});
  if (loaded) {
    config = std::move(*loaded);
  } else if (loaded.error().reason == Reason::NotFound) {
    if (flags.server.empty()) {
      Error error = loaded.take_error();
      error.message += ". There is " + std::string(kNoServer);
      return error;
    }
  } else {
    return loaded.take_error();
  }
  if (!flags.server.empty()) config.server = flags.server;
  if (!flags.tls_server_name.empty()) config.tls_server_name = flags.tls_server_name;
  if (!flags.ca_file.empty()) {
    Result<std::string> pem = read_file(flags.ca_file);
    if (!pem) return pem.take_error();
    config.ca_pem = std::move(*pem);
  }
  if (flags.certificate_file.empty() != flags.key_file.empty()) {
    return bad_request("--client-certificate and --client-key must be used together");
  }
  const bool other_user = !flags.certificate_file.empty() || !flags.token.empty() || !flags.username.empty();
  if (other_user) {
    // Credentials from a flag replace all credentials of the kubeconfig.
    config.certificate_pem.clear();
    config.key_pem.clear();
    config.certificate_file = flags.certificate_file;
    config.key_file = flags.key_file;
    config.token = flags.token;
    config.token_file.clear();
    config.username = flags.username;
    config.password = flags.password;
    config.exec.reset();
  }
  if (!flags.certificate_file.empty()) {
    Result<std::string> certificate = read_file(flags.certificate_file), key = read_file(flags.key_file);
    if (!certificate) return certificate.take_error();
    if (!key) return key.take_error();
    config.certificate_pem = std::move(*certificate);
    config.key_pem = std::move(*key);
  }
  if (flags.as.empty() && (!flags.as_uid.empty() || !flags.as_groups.empty())) {
    return bad_request("--as-uid and --as-group require --as USER");
  }
  if (!flags.as.empty()) config.impersonate = {flags.as, flags.as_uid, flags.as_groups, {}};
  if (flags.insecure) {
    config.insecure = true;
    config.ca_pem.clear();
  }
  return config;
}

// Without a loop, the client gets one of its own.
Result<Session> open(const ConnectionFlags& flags, ManagedFields managed_fields, net::EventLoop* loop) {
  Result<client::Config> known = config_of(flags);
  if (!known) return known.take_error();
  client::Config config = std::move(*known);
  const std::string space = flags.space.empty() ? config.default_namespace : flags.space;

  client::Options options;
  options.field_manager.clear();  // Each command sets its own, or leaves it to the manifest.
  options.user_agent = "holdfast/" + std::string(server::holdfast_version());
  if (managed_fields == ManagedFields::Dropped) options.drop_fields = {std::string(client::kManagedFields)};
  options.encoding = client::Encoding::Json;  // Objects are shown as the server writes them.
  options.retry = {.max_attempts = 3, .first_delay = net::Millis(50)};
  options.cache_folder = cache_folder();
  if (loop == nullptr) options.on_warning = print_warning;  // Calls of a page are not those of the terminal's user.
  std::string timeout = flags.request_timeout;
  if (!timeout.empty() && timeout.find_first_not_of("0123456789") == std::string::npos) timeout += "s";
  const Result<int64_t> nanos = parse_go_duration(timeout);
  if (!nanos) return bad_request("--request-timeout: " + nanos.error().message);
  if (*nanos > 0) options.timeout = net::Millis(*nanos / 1'000'000);
  Result<client::Client> client = loop == nullptr ? client::Client::connect(config, std::move(options))
                                                  : client::Client::connect(*loop, config, std::move(options));
  if (!client) return client.take_error();
  return Session{std::move(*client), space, config.server};
}

}  // namespace

Result<Session> open_session(const ConnectionFlags& flags, ManagedFields managed_fields) {
  return open(flags, managed_fields, nullptr);
}

Result<Session> open_session_on(net::EventLoop& loop, const ConnectionFlags& flags) {
  return open(flags, ManagedFields::Kept, &loop);
}

std::string space_for(const Session& session, const client::Resource& resource) {
  return resource.namespaced ? session.space : std::string();
}

namespace {

// Ignores the version: one is enough, and discovery lists the preferred one first.
bool has_resource(const std::vector<client::Resource>& resources, const client::Resource& resource) {
  return std::any_of(resources.begin(), resources.end(), [&](const client::Resource& other) {
    return other.group == resource.group && other.plural == resource.plural;
  });
}

Result<std::vector<client::Resource>> find_kinds(const Session& session, std::string_view names) {
  std::vector<client::Resource> found;
  for (const std::string_view name : split(names, ',')) {
    Result<client::Resource> resource = session.client.find(std::string(name)).wait();
    if (resource) {
      found.push_back(std::move(*resource));
      continue;
    }
    if (resource.error().reason != Reason::NotFound) return resource.take_error();
    Result<std::vector<client::ServedResource>> all = session.client.served().wait();
    if (!all) return all.take_error();
    const size_t before = found.size();
    for (const client::ServedResource& served : *all) {
      if (std::find(served.categories.begin(), served.categories.end(), name) == served.categories.end()) continue;
      if (!has_resource(found, served.resource)) found.push_back(served.resource);
    }
    if (found.size() == before) return resource.take_error();
  }
  return found;
}

}  // namespace

Result<std::vector<Target>> find_targets(const Session& session, const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    return bad_request(
        "You must specify the type of resource to get, such as: pods, deployments/web; holdfast "
        "api-resources lists them");
  }
  std::vector<Target> targets;
  if (arguments[0].find('/') != std::string::npos) {
    for (const std::string& argument : arguments) {
      const size_t slash = argument.find('/');
      if (slash == std::string::npos) {
        return bad_request(
            "there is no need to specify a resource type as a separate argument when passing arguments in "
            "resource/name form (e.g. 'holdfast get resource/<resource_name>' instead of 'holdfast get "
            "resource resource/<resource_name>'");
      }
      Result<client::Resource> resource = session.client.find(argument.substr(0, slash)).wait();
      if (!resource) return resource.take_error();
      targets.push_back({std::move(*resource), argument.substr(slash + 1)});
    }
    return targets;
  }
  Result<std::vector<client::Resource>> kinds = find_kinds(session, arguments[0]);
  if (!kinds) return kinds.take_error();
  for (const client::Resource& resource : *kinds) {
    if (arguments.size() == 1) targets.push_back({resource, ""});
    for (size_t i = 1; i < arguments.size(); ++i) targets.push_back({resource, arguments[i]});
  }
  return targets;
}

Result<Unit> each_object(const Session& session, const Target& target, const std::string& space,
                         const std::string& label_selector, const VisitObject& visit) {
  const client::Api<> api = session.client.api(target.resource, space);
  if (!target.name.empty()) {
    Result<client::Object> object = api.get(target.name).wait();
    return object ? visit(object->root()) : object.take_error();
  }
  client::ListOptions options{.label_selector = label_selector, .limit = 500};
  do {
    Result<client::Object> page = api.list(options).wait();
    if (!page && page.error().reason == Reason::Expired && !page.error().continue_token.empty()) {
      options.continue_token = page.error().continue_token;  // Expired: read the rest at the current version.
      continue;
    }
    if (!page) return page.take_error();
    for (const Value& item : page->root().items_at("items")) {
      // List items omit apiVersion and kind.
      Arena arena;
      Value object = with_member(arena, item, "kind", Value::string(target.resource.kind));
      object = with_member(arena, object, "apiVersion", Value::string(arena, target.resource.api_version()));
      Result<Unit> visited = visit(object);
      if (!visited) return visited;
    }
    options.continue_token = page->root().text_at("metadata", "continue");
  } while (!options.continue_token.empty());
  return Unit{};
}

Result<std::vector<client::Resource>> resources_with(const Session& session,
                                                     std::initializer_list<std::string_view> verbs) {
  Result<std::vector<client::ServedResource>> served = session.client.served().wait();
  if (!served) return served.take_error();
  std::vector<client::Resource> found;
  for (const client::ServedResource& one : *served) {
    const bool able = std::all_of(verbs.begin(), verbs.end(), [&](std::string_view verb) {
      return std::find(one.verbs.begin(), one.verbs.end(), verb) != one.verbs.end();
    });
    if (able && !has_resource(found, one.resource)) found.push_back(one.resource);
  }
  return found;
}

Result<client::Api<>> api_of(const Session& session, const Manifest& manifest) {
  Result<client::Resource> resource =
      session.client.find_kind(std::string(manifest.api_version()), std::string(manifest.kind())).wait();
  if (!resource) {
    Error error = resource.take_error();
    if (error.reason == Reason::NotFound) error.message += "; install its CustomResourceDefinition first";
    error.message = manifest.where() + ": " + error.message;
    return error;
  }
  const std::string_view own = manifest.object.space();
  return session.client.api(*resource, !resource->namespaced ? "" : own.empty() ? session.space : std::string(own));
}

void add_write_flags(CLI::App& command, std::string& dry_run, std::string& validate) {
  command.add_option("--dry-run", dry_run, "server: submit without storing; client: only read the manifests")
      ->capture_default_str()
      ->check(CLI::IsMember({"none", "server", "client"}));
  command.add_option("--validate", validate, "Unknown and duplicate fields: strict, warn or ignore")
      ->capture_default_str()
      ->check(CLI::IsMember({"strict", "warn", "ignore", "true", "false"}));
}

std::string field_validation(const std::string& validate) {
  return validate == "strict" || validate == "true" ? "Strict" : validate == "warn" ? "Warn" : "Ignore";
}

std::string manager_for(const Manifest& manifest, const std::string& flag, std::string_view otherwise) {
  if (!flag.empty()) return flag;
  return manifest.object.root().text_at("metadata", "options", "fieldManager").empty() ? std::string(otherwise) : "";
}

Error at(const Manifest& manifest, Error error) {
  error.message = manifest.where() + ": " + error.message;
  return error;
}

std::string display_name(const client::Resource& resource, std::string_view name) {
  std::string text = to_lower(resource.kind);
  if (!resource.group.empty()) text += "." + resource.group;
  return text + "/" + std::string(name);
}

std::string error_text(const Session& session, const Error& error) {
  if (error.code == 0 && error.reason == Reason::ServiceUnavailable) {
    return "cannot reach the server " + session.url + ": " + error.message +
           "\nCheck that it is running, and that KUBECONFIG, --kubeconfig and --context name the right one. To start a "
           "server: holdfast serve --data-dir DIR";
  }
  if (error.code == 0) return "error: " + error.message;
  if (error.code == 404 && !error.details) return "error: " + error.message;  // A kind that discovery does not have.
  if (error.reason == Reason::Unauthorized) return "error: You must be logged in to the server (" + error.message + ")";
  static constexpr std::pair<Reason, std::string_view> kNames[] = {
      {Reason::BadRequest, "BadRequest"},
      {Reason::Forbidden, "Forbidden"},
      {Reason::NotFound, "NotFound"},
      {Reason::AlreadyExists, "AlreadyExists"},
      {Reason::Conflict, "Conflict"},
      {Reason::Gone, "Gone"},
      {Reason::Expired, "Expired"},
      {Reason::Invalid, "Invalid"},
      {Reason::ServerTimeout, "ServerTimeout"},
      {Reason::Timeout, "Timeout"},
      {Reason::TooManyRequests, "TooManyRequests"},
      {Reason::InternalError, "InternalError"},
      {Reason::ServiceUnavailable, "ServiceUnavailable"},
  };
  std::string text = "Error from server";
  for (const auto& [reason, name] : kNames) {
    if (reason == error.reason) text += " (" + std::string(name) + ")";
  }
  return text + ": " + error.message;
}

int fail_with(const Session& session, const Error& error) {
  fflush(stdout);
  print_error(error_text(session, error), "\n");
  return 1;
}

void print_warning(std::string_view text) { print_error("Warning: ", text, "\n"); }

std::optional<std::string> schema_of(const Session& session, const client::Resource& resource) {
  if (types::find_kind(resource.group, resource.version, resource.kind) != nullptr) return "";
  const client::Resource definitions = client::builtin("apiextensions.k8s.io/v1", "CustomResourceDefinition");
  Result<client::Object> definition =
      session.client.api(definitions).get(resource.plural + "." + resource.group).wait();
  if (!definition) return std::nullopt;
  for (const Value& version : definition->root().items_at("spec", "versions")) {
    const Value* schema = version.get("schema", "openAPIV3Schema");
    if (version.text_at("name") == resource.version && schema != nullptr) return codec::encode_json(*schema);
  }
  return std::nullopt;
}

std::vector<std::string> split_commas(const std::vector<std::string>& values) {
  std::vector<std::string> parts;
  for (const std::string& value : values) {
    for (const std::string_view part : split(value, ',')) {
      if (!part.empty()) parts.emplace_back(part);
    }
  }
  return parts;
}

}  // namespace holdfast::cli
