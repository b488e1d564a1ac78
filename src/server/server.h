// One API server in one process: options in, a listening server out. Wires the rooms together; has no behaviour of the
// API itself.
//
// Threading: start(), reload() and stop() are called from one thread that is not a loop's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/gates.h"
#include "base/limits.h"
#include "discovery/discovery.h"
#include "net/net.h"
#include "server/version.h"  // IWYU pragma: export

namespace holdfast::server {

// What users can choose. Names and meanings are kube-apiserver's where it has the same.
struct Options {
  // The command line as it was understood, for /flagz: names without dashes, and values.
  std::vector<std::pair<std::string, std::string>> flags;
  // The directory of the embedded store, keys and the kubeconfig. Needed unless etcd_servers and cert_dir are given.
  std::string data_dir;
  bool unsafe_no_fsync = false;           // Of the embedded store: acknowledge what is not on disk yet.
  std::vector<std::string> etcd_servers;  // Instead of the embedded store.
  // GROUP/RESOURCE#SERVER;SERVER: built-in resources that are kept in another etcd.
  std::vector<std::string> etcd_servers_overrides;
  std::string etcd_prefix = "/registry";
  std::chrono::milliseconds etcd_compaction_interval = std::chrono::minutes(5);  // 0: never.
  std::string etcd_cafile, etcd_certfile, etcd_keyfile;

  // Asked while starting waits for the store. True: give up.
  std::function<bool()> cancelled;

  std::string listen = "127.0.0.1:6443";
  std::string listen_cleartext;   // Beside it, without TLS: a loopback address or unix:PATH. Nothing: nowhere.
  std::string advertise_address;  // What clients are told to connect to; the listen address when empty.
  uint32_t threads = 2;           // Event loops.

  std::string cert_dir;  // DATA_DIR/pki when empty.
  std::string tls_cert_file, tls_private_key_file;
  std::vector<std::string> tls_sni_cert_keys;  // CERT,KEY[:NAME,NAME...], chosen by the host name a client asks for.
  net::TlsOptions tls;
  std::string client_ca_file;
  std::string token_auth_file;
  bool anonymous_auth = true;
  std::vector<std::string> authorization_modes;  // RBAC (default), AlwaysAllow; Node beside them.
  std::string authorization_config;              // A file that names them instead.
  std::string requestheader_client_ca_file;
  std::vector<std::string> requestheader_allowed_names;
  std::vector<std::string> requestheader_username_headers, requestheader_uid_headers, requestheader_group_headers,
      requestheader_extra_headers_prefix;

  // Shown to aggregated API servers; PKI's own when empty.
  std::string proxy_client_cert_file, proxy_client_key_file;
  // Endpoints of the Service kubernetes: lease, master-count or none. An embedded store has one server: unless none,
  // they are written once.
  std::string endpoint_reconciler_type = "lease";
  uint32_t apiserver_count = 1;            // With master-count.
  bool enable_aggregator_routing = false;  // To endpoints rather than cluster IPs.

  // The first signs, all are believed; Kubernetes' usual one when empty.
  std::vector<std::string> service_account_issuers;
  std::vector<std::string> service_account_key_files;  // Verify tokens; PKI's own when empty.
  std::string service_account_signing_key_file;
  std::vector<std::string> api_audiences;  // Of tokens that speak to this server; the issuers when empty.
  bool service_account_extend_token_expiration = true;
  std::chrono::seconds service_account_max_token_expiration{0};  // 0: none but Kubernetes' own.

  std::string service_cluster_ip_range = "10.0.0.0/24";
  bool allow_privileged = true;
  std::chrono::seconds event_ttl{3600};
  bool watch_cache = true;  // False: reads are answered as Kubernetes answers them without a watch cache.
  std::vector<std::string> controllers = {"*"};  // Embedded ones: see controllers/controllers.h.
  std::vector<std::string> enable_admission_plugins, disable_admission_plugins;
  std::string admission_control_config_file;  // See admission/configuration.h.
  discovery::RuntimeConfig runtime_config;
  Gates gates;

  std::string audit_policy_file, audit_log_path;           // "-": standard output.
  uint32_t audit_log_maxsize = 0;                          // In megabytes; 0: 100.
  uint32_t audit_log_maxbackup = 0, audit_log_maxage = 0;  // Files, and days; 0: without end.
  // Seats of the server, which priority levels share.
  uint32_t max_requests_inflight = 400, max_mutating_requests_inflight = 200;

  // Connections in all; and those on which no one has shown credentials yet, in all and from one address.
  uint32_t max_connections = 20'000;
  uint32_t max_unauthenticated_connections = 5'000;
  uint32_t max_unauthenticated_connections_per_address = 1'000;
  std::chrono::milliseconds request_timeout{limits::kRequestSeconds *
                                            1000};  // Of requests that are not watches or streams.
  std::chrono::seconds min_request_timeout{1800};   // Watches without timeoutSeconds last between this and twice this.
  uint32_t http2_max_streams_per_connection = 0;    // 0: net's own default.
  std::vector<std::string> strict_transport_security_directives;
  std::string service_node_port_range = "30000-32767";
  std::string service_account_jwks_uri;  // In the OpenID discovery document; this server's own when empty.

  // Requests in progress when a SIGTERM comes are given this long.
  std::chrono::milliseconds shutdown_grace{10'000};
};

class Server {
 public:
  // Opens the store, makes what is missing of keys and certificates, listens, and writes DATA_DIR/kubeconfig when
  // requests are answered. An error is one line that names the flag, file or address.
  static Result<std::unique_ptr<Server>> start(Options options);
  ~Server();  // stop()

  std::string url() const;  // https://127.0.0.1:6443
  const std::string& kubeconfig_path() const;
  bool first_start() const;  // Keys were made just now.

  // Certificates, client CAs and tokens are read again; on an error the previous ones stay in use.
  Result<Unit> reload();

  // Ends watches, waits for other requests, closes the store.
  void stop();

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::server
