// Server address and credentials: from a kubeconfig or a pod's service account.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/url.h"

namespace holdfast::net {
struct ClientOptions;
}

namespace holdfast::client {

// A credential plugin (client.authentication.k8s.io).
struct ExecPlugin {
  std::string api_version;  // client.authentication.k8s.io/v1 or v1beta1.
  std::string command;
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;  // In addition to our environment.
  std::string install_hint;                                      // Shown if the command is not found.
  bool provide_cluster_info = false;
};

// The user to impersonate (Impersonate-* headers).
struct Impersonation {
  std::string user, uid;
  std::vector<std::string> groups;
  std::vector<std::pair<std::string, std::string>> extra;  // Keys may repeat.
};

struct Config {
  std::string server;  // "https://10.0.0.1:6443/prefix"
  std::string ca_pem;  // The system's roots if empty.
  std::string tls_server_name;
  bool insecure = false;  // Do not verify the server.
  // "http://user:password@proxy:3128". If empty, HTTPS_PROXY, HTTP_PROXY and NO_PROXY apply.
  std::string proxy_url;

  // Credentials; any may be empty.
  std::string certificate_pem, key_pem;
  // The files they were read from, if any: reread every minute, and when the server rejects the contents.
  std::string certificate_file, key_file;
  std::string token;
  std::string token_file;  // Reread every minute, and when the server rejects the token.
  std::string username, password;
  std::optional<ExecPlugin> exec;
  Impersonation impersonate;

  std::string default_namespace = "default";

  struct Source {
    std::string path;     // A kubeconfig. If empty: KUBECONFIG, ~/.kube/config, then the pod's service account.
    std::string context;  // The current context if empty.
    // Override those of the context unless empty.
    std::string cluster, user;
  };
  // Errors name the file and the missing context, cluster or user.
  static Result<Config> load(const Source& source);
  static Result<Config> load() { return load(Source{}); }
  // The service account of the pod this process runs in.
  static Result<Config> in_cluster();
  // A kubeconfig's text; relative paths in it start from `folder`.
  static Result<Config> parse(std::string_view yaml, std::string_view context = {}, std::string_view folder = {});

  // All users of a kubeconfig, for callers that do not choose by context.
  struct Users;
  // Errors name the file and the user. Files referenced by a user must be readable.
  static Result<Users> load_users(const std::string& path);
};

struct Config::Users {
  std::map<std::string, Config, std::less<>> by_name;  // Credentials only.
  std::string current;                                 // User of the current context; empty if there is none.
};

// Directs a connection to a server, through `proxy_url` or, if that is empty, the proxy from the environment.
Result<Unit> route_to(const HttpUrl& url, const std::string& proxy_url, net::ClientOptions& options);

}  // namespace holdfast::client
