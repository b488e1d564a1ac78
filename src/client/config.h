// Where the server is and who asks: a kubeconfig's content, or what a pod finds in its file system.
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

// A plugin that provides credentials (client.authentication.k8s.io).
struct ExecPlugin {
  std::string api_version;  // client.authentication.k8s.io/v1 or v1beta1.
  std::string command;
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;  // Beside our own.
  std::string install_hint;                                      // Shown when the command is not there.
  bool provide_cluster_info = false;
};

// The user to impersonate (Impersonate-* headers).
struct Impersonation {
  std::string user, uid;
  std::vector<std::string> groups;
  std::vector<std::pair<std::string, std::string>> extra;  // A key may come several times.
};

struct Config {
  std::string server;  // "https://10.0.0.1:6443/prefix"
  std::string ca_pem;  // The system's roots when empty.
  std::string tls_server_name;
  bool insecure = false;  // Do not verify the server.
  // "http://user:password@proxy:3128". Empty: as HTTPS_PROXY, HTTP_PROXY and NO_PROXY say.
  std::string proxy_url;

  // Credentials: whatever is set.
  std::string certificate_pem, key_pem;
  // Where those were read from, if from files: read again every minute, and when the server rejects their contents.
  std::string certificate_file, key_file;
  std::string token;
  std::string token_file;  // Read again every minute, and when the server rejects its contents.
  std::string username, password;
  std::optional<ExecPlugin> exec;
  Impersonation impersonate;

  std::string default_namespace = "default";

  struct Source {
    std::string path;     // One kubeconfig. Empty: KUBECONFIG, ~/.kube/config, then the pod's own account.
    std::string context;  // Empty: the current one.
    // Instead of the context's; empty: those.
    std::string cluster, user;
  };
  // Errors name the file, and the context, cluster or user that is missing.
  static Result<Config> load(const Source& source);
  static Result<Config> load() { return load(Source{}); }
  // The account of the pod that this runs in.
  static Result<Config> in_cluster();
  // One kubeconfig as text; relative paths in it start from `folder`.
  static Result<Config> parse(std::string_view yaml, std::string_view context = {}, std::string_view folder = {});

  // All users of one kubeconfig, for callers that choose by another rule than a context's.
  struct Users;
  // Errors name the file and the user. Files that a user names must be readable.
  static Result<Users> load_users(const std::string& path);
};

struct Config::Users {
  std::map<std::string, Config, std::less<>> by_name;  // Credentials only.
  std::string current;                                 // That of the current context; empty: there is none.
};

// Directs a connection to a server, through `proxy_url` or, if that is empty, through the proxy that the environment
// names.
Result<Unit> route_to(const HttpUrl& url, const std::string& proxy_url, net::ClientOptions& options);

}  // namespace holdfast::client
