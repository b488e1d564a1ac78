// One API server in one process: options in, a listening server out. Wires the modules together; implements no API
// behavior itself.
//
// Threading: call start(), reload() and stop() from one thread that is not a loop's.
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

// User-visible options. Names and meanings match kube-apiserver where it has the same option.
struct Options {
  // The parsed command line for /flagz: names without dashes, and values.
  std::vector<std::pair<std::string, std::string>> flags;
  // Directory of the embedded store, keys and the kubeconfig. Required unless etcd_servers and cert_dir are given.
  std::string data_dir;
  bool unsafe_no_fsync = false;           // Embedded store only: acknowledge writes before they are on disk.
  std::vector<std::string> etcd_servers;  // Instead of the embedded store.
  // GROUP/RESOURCE#SERVER;SERVER: built-in resources stored in another etcd.
  std::vector<std::string> etcd_servers_overrides;
  std::string etcd_prefix = "/registry";
  std::chrono::milliseconds etcd_compaction_interval = std::chrono::minutes(5);  // 0 disables it.
  std::string etcd_cafile, etcd_certfile, etcd_keyfile;

  // Polled while startup waits for the store; returning true aborts startup.
  std::function<bool()> cancelled;

  std::string listen = "127.0.0.1:6443";
  std::string listen_cleartext;   // Additional address without TLS: a loopback address or unix:PATH. Empty for none.
  std::string advertise_address;  // Address advertised to clients; defaults to the listen address.
  std::string external_hostname;  // In URLs given to clients; defaults to the advertised address.
  uint32_t threads = 2;           // Number of event loops.

  std::string cert_dir;  // Defaults to DATA_DIR/pki.
  std::string tls_cert_file, tls_private_key_file;
  std::vector<std::string> tls_sni_cert_keys;  // CERT,KEY[:NAME,NAME...], selected by SNI.
  net::TlsOptions tls;
  // The CAs of client certificates. Replaces our own, so that there is no certificate of an administrator then.
  std::string client_ca_file;
  // What clients verify this server by: published in every namespace and in the kubeconfig. By default the last
  // certificate of tls_cert_file, or our own CA.
  std::string root_ca_file;
  std::string token_auth_file;
  bool enable_bootstrap_token_auth = false;
  bool anonymous_auth = true;
  // RBAC (default), Node, ABAC, AlwaysAllow, AlwaysDeny: asked in this order.
  std::vector<std::string> authorization_modes;
  std::string authorization_config;       // A file that selects them instead.
  std::string authorization_policy_file;  // For ABAC.
  std::string requestheader_client_ca_file;
  std::vector<std::string> requestheader_allowed_names;
  std::vector<std::string> requestheader_username_headers, requestheader_uid_headers, requestheader_group_headers,
      requestheader_extra_headers_prefix;

  // Client certificate for aggregated API servers; defaults to the PKI's own.
  std::string proxy_client_cert_file, proxy_client_key_file;
  // Connections to kubelets: the client certificate shown to them (none if not set), and what they are verified by (not
  // at all if not set).
  std::string kubelet_client_certificate, kubelet_client_key, kubelet_certificate_authority;
  std::vector<std::string> kubelet_preferred_address_types = {"Hostname", "InternalDNS", "InternalIP", "ExternalDNS",
                                                              "ExternalIP"};
  std::chrono::milliseconds kubelet_timeout{5000};  // For connecting.
  // Endpoints of the Service kubernetes: lease, master-count or none. With an embedded store there is only one server,
  // so they are written once unless this is none.
  std::string endpoint_reconciler_type = "lease";
  uint32_t apiserver_count = 1;            // For master-count.
  bool enable_aggregator_routing = false;  // Route to endpoints rather than cluster IPs.

  // The first one is used for signing, all are accepted; defaults to Kubernetes' usual one.
  std::vector<std::string> service_account_issuers;
  std::vector<std::string> service_account_key_files;  // Keys that verify tokens; default to the PKI's own.
  std::string service_account_signing_key_file;
  std::string service_account_signing_endpoint;  // Replaces both: the socket of an external signer.
  std::vector<std::string> api_audiences;        // Accepted audiences; default to the issuers.
  bool service_account_extend_token_expiration = true;
  std::chrono::seconds service_account_max_token_expiration{0};  // 0 for Kubernetes' own limit only.

  std::string service_cluster_ip_range = "10.0.0.0/24";  // Or two: see service_network.h.
  bool allow_privileged = true;
  std::chrono::seconds event_ttl{3600};
  bool watch_cache = true;                       // When false, reads behave as in Kubernetes without a watch cache.
  std::vector<std::string> controllers = {"*"};  // Embedded controllers: see controllers/controllers.h.
  std::vector<std::string> enable_admission_plugins, disable_admission_plugins;
  std::string admission_control_config_file;  // See admission/configuration.h.
  discovery::RuntimeConfig runtime_config;
  Gates gates;

  std::string audit_policy_file, audit_log_path;               // "-" for standard output.
  uint32_t audit_log_maxsize = 0;                              // In megabytes; 0 for 100.
  uint32_t audit_log_maxbackup = 100, audit_log_maxage = 366;  // Number of files, and days; 0 for unlimited.
  // Their sum is the number of seats shared by the priority levels.
  uint32_t max_requests_inflight = 400, max_mutating_requests_inflight = 200;

  // Limits on connections: in total, unauthenticated in total, and unauthenticated per client address.
  uint32_t max_connections = 20'000;
  uint32_t max_unauthenticated_connections = 5'000;
  uint32_t max_unauthenticated_connections_per_address = 1'000;
  // For requests other than watches and streams.
  std::chrono::milliseconds request_timeout{limits::kRequestSeconds * 1000};
  // Watches without timeoutSeconds last between this and twice this value.
  std::chrono::seconds min_request_timeout{1800};
  // Whether a clause of Accept that asks to drop anything else than managedFields matches nothing, as in
  // Kubernetes 1.38.
  bool strict_drop = false;
  // Names of field managers that yield to the one declared in metadata.options.
  std::vector<std::string> yielding_field_managers;
  uint32_t http2_max_streams_per_connection = 0;  // 0 for the default of net.
  std::vector<std::string> strict_transport_security_directives;
  std::string service_node_port_range = "30000-32767";
  std::string service_account_jwks_uri;  // For the OpenID discovery document; defaults to this server's own.

  // How long the server goes on as before after SIGTERM, but for /readyz, so that load balancers notice.
  std::chrono::milliseconds shutdown_delay{0};
  bool shutdown_send_retry_after =
      false;  // Until requests in flight have ended, answer new ones instead of refusing them.
  // /livez assumes for this long that the start will succeed.
  std::chrono::milliseconds livez_grace_period{0};
  double goaway_chance = 0;
  std::vector<std::string> cors_allowed_origins;
  // How long requests in flight may take to finish after SIGTERM.
  std::chrono::milliseconds shutdown_grace{10'000};
  // Called on another thread if stop() has not ended 15 seconds after the grace period, because a call to another
  // program cannot be interrupted. May end the process: what was acknowledged is stored.
  std::function<void()> on_stuck_shutdown;
};

class Server {
 public:
  // Opens the store, creates missing keys and certificates, listens, and writes DATA_DIR/kubeconfig once requests are
  // served. Errors are a single line naming the flag, file or address.
  static Result<std::unique_ptr<Server>> start(Options options);
  // Reads and checks what the options name, without starting anything, writing or connecting.
  static Result<Unit> check(Options options);
  ~Server();  // Calls stop().

  std::string url() const;  // https://127.0.0.1:6443
  const std::string& kubeconfig_path() const;
  bool first_start() const;  // Keys were created by this start.
  bool has_admin() const;    // The kubeconfig holds credentials; not with a client CA of the operator.

  // Reloads certificates, client CAs and tokens, and renews our own certificates that expire soon; on an error the
  // previous ones stay in use. Also happens by itself: soon after one of the files has changed, and twice a day.
  // Any thread.
  Result<Unit> reload();

  // Whether every event loop still runs its tasks, within this time. Any thread.
  bool responds(std::chrono::milliseconds within) const;

  // Ends watches, waits for other requests, closes the store.
  void stop();

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::server
