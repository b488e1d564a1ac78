#include <signal.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <tuple>

#include "auth/auth.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/url.h"
#include "cli/commands.h"
#include "cli/service_manager.h"
#include "cli/terminal.h"
#include "discovery/discovery.h"
#include "server/server.h"

namespace holdfast::cli {

namespace {

struct ServeFlags {
  server::Options options;
  std::string config;  // Expanded before parsing.
  std::string bind_address;
  int secure_port = -1;
  std::vector<std::string> feature_gates, runtime_config;
  int verbosity = 0;
  std::string log_format = "text";
  int grace_seconds = 10;
  std::string event_ttl = "1h0m0s";
  std::string max_token_expiration = "0";
  std::string etcd_compaction_interval = "5m";
  std::string request_timeout = "1m0s";
  std::string kubelet_timeout = "5s";
  int min_request_timeout = 1800;  // Seconds.
  std::string shutdown_delay = "0s", livez_grace_period = "0s";
  bool check_config = false;
};

std::string gates_table() {
  std::string text = "Feature gates (--feature-gates Name=true|false):\n";
  for (const GateInfo& gate : all_gates()) {
    std::string name = "  " + std::string(gate.name);
    name.resize(std::max<size_t>(name.size() + 1, 34), ' ');
    text += name + std::string(gate.stage) + ", " + (gate.default_on ? "on" : "off") + (gate.locked ? ", locked" : "") +
            ". Off: " + std::string(gate.when_off) + "\n";
  }
  return text;
}

// Waits for a signal, and meanwhile tells a watchdog that the event loops work.
int next_signal(const sigset_t& signals, const server::Server& running) {
  const std::optional<std::chrono::milliseconds> interval = watchdog_interval();
  while (true) {
    int signal = 0;
    if (!interval) {
      sigwait(&signals, &signal);
      return signal;
    }
    if (running.responds(*interval)) notify_manager("WATCHDOG=1");
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*interval);
    const timespec pause{.tv_sec = seconds.count(), .tv_nsec = (*interval - seconds).count() * 1'000'000};
    signal = sigtimedwait(&signals, nullptr, &pause);
    if (signal > 0) return signal;
  }
}

int serve(ServeFlags& flags) {
  server::Options& o = flags.options;
  if (!flags.bind_address.empty() || flags.secure_port >= 0) {
    const std::string host = flags.bind_address.empty() ? "0.0.0.0" : flags.bind_address;
    o.listen = host_port(host, flags.secure_port < 0 ? 6443 : flags.secure_port);
  }
  for (const std::string& text : flags.feature_gates) {
    Result<Gates> gates = o.gates.parse(text);
    if (!gates) return fail(("--feature-gates: " + gates.error().message).c_str());
    o.gates = *gates;
  }
  Result<discovery::RuntimeConfig> runtime_config = discovery::RuntimeConfig::parse(flags.runtime_config);
  if (!runtime_config) return fail(runtime_config.error().message.c_str());
  o.runtime_config = std::move(*runtime_config);
  const Result<int64_t> event_ttl = parse_go_duration(flags.event_ttl);
  if (!event_ttl) return fail(("--event-ttl: " + event_ttl.error().message).c_str());
  o.event_ttl = std::chrono::seconds(*event_ttl / 1'000'000'000);
  const Result<int64_t> max_token = parse_go_duration(flags.max_token_expiration);
  if (!max_token) return fail(("--service-account-max-token-expiration: " + max_token.error().message).c_str());
  o.service_account_max_token_expiration = std::chrono::seconds(*max_token / 1'000'000'000);
  const Result<int64_t> compaction = parse_go_duration(flags.etcd_compaction_interval);
  if (!compaction) return fail(("--etcd-compaction-interval: " + compaction.error().message).c_str());
  o.etcd_compaction_interval = std::chrono::milliseconds(*compaction / 1'000'000);
  const Result<int64_t> request_timeout = parse_go_duration(flags.request_timeout);
  if (!request_timeout) return fail(("--request-timeout: " + request_timeout.error().message).c_str());
  if (*request_timeout <= 0) return fail("--request-timeout must be positive");
  o.request_timeout = std::chrono::milliseconds(*request_timeout / 1'000'000);
  o.min_request_timeout = std::chrono::seconds(flags.min_request_timeout);
  o.shutdown_grace = std::chrono::seconds(flags.grace_seconds);
  for (const auto& [name, text, into] :
       {std::tuple{"--shutdown-delay-duration", &flags.shutdown_delay, &o.shutdown_delay},
        std::tuple{"--livez-grace-period", &flags.livez_grace_period, &o.livez_grace_period},
        std::tuple{"--kubelet-timeout", &flags.kubelet_timeout, &o.kubelet_timeout}}) {
    const Result<int64_t> duration = parse_go_duration(*text);
    if (!duration) return fail((std::string(name) + ": " + duration.error().message).c_str());
    if (*duration < 0) return fail((std::string(name) + " can not be a negative value").c_str());
    *into = std::chrono::milliseconds(*duration / 1'000'000);
  }
  log::configure(flags.verbosity, flags.log_format == "json" ? log::Format::Json : log::Format::Text);

  if (flags.check_config) {
    if (Result<Unit> checked = server::Server::check(std::move(o)); !checked)
      return fail(checked.error().message.c_str());
    print("The configuration is valid\n");
    return 0;
  }

  // Blocked in all threads started from here on; received by sigtimedwait below.
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // Tools that ask Go programs for their state send these; their default action would end the server.
  for (int signal : {SIGUSR1, SIGUSR2}) (void)std::signal(signal, SIG_IGN);

  const auto told_to_stop = [] {
    sigset_t pending;
    return sigpending(&pending) == 0 && (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
  };
  o.cancelled = told_to_stop;
  o.on_stuck_shutdown = [] { _exit(1); };
  Result<std::unique_ptr<server::Server>> started = server::Server::start(std::move(o));
  if (!started && told_to_stop()) {
    log::info("stopping", {{"reason", started.error().message}});
    return 0;
  }
  if (!started) return fail(started.error().message.c_str());
  server::Server& running = **started;
  print("Serving on ", running.url(), "\n");
  if (!running.has_admin()) {
    print("Kubeconfig without credentials, because --client-ca-file decides who is an administrator: ",
          running.kubeconfig_path(), "\n");
  } else if (running.first_start()) {
    print("Created a certificate authority and administrator credentials. Next:\n\n  export KUBECONFIG=",
          running.kubeconfig_path(), "\n  kubectl get namespaces\n\n");
  } else {
    print("Administrator's credentials: ", running.kubeconfig_path(), "\n");
  }
  fflush(stdout);
  notify_manager("READY=1\nSTATUS=Serving on " + running.url());

  while (true) {
    const int signal = next_signal(signals, running);
    if (signal != SIGHUP) break;
    notify_manager("STATUS=Reloading certificates and tokens");
    Result<Unit> reloaded = running.reload();
    if (reloaded) {
      log::info("certificates and tokens reloaded");
    } else {
      log::error("certificates not reloaded", {{"error", reloaded.error().message}});
    }
    notify_manager("STATUS=Serving on " + running.url());
  }
  log::info("stopping");
  notify_manager("STOPPING=1\nSTATUS=Waiting for requests to end");
  running.stop();
  return 0;
}

void add_storage_flags(CLI::App& command, ServeFlags& flags) {
  server::Options& o = flags.options;
  const char* const storage = "Storage";
  command
      .add_option("--data-dir", o.data_dir,
                  "Directory of the embedded store, keys (pki/) and kubeconfig; created if missing")
      ->group(storage);
  command
      .add_flag("--unsafe-no-fsync", o.unsafe_no_fsync,
                "Acknowledge writes before they are on disk: faster, but a power loss may lose the latest writes")
      ->group(storage);
  command
      .add_option(
          "--etcd-servers", o.etcd_servers,
          "List of etcd servers to connect with (scheme://ip:port), comma separated; replaces the embedded store")
      ->delimiter(',')
      ->group(storage);
  command
      .add_option(
          "--etcd-servers-overrides", o.etcd_servers_overrides,
          "Per-resource etcd servers overrides, comma separated: group/resource#servers, where servers are URLs "
          "separated by semicolons")
      ->delimiter(',')
      ->group(storage);
  command
      .add_option("--etcd-compaction-interval", flags.etcd_compaction_interval,
                  "Interval of compaction requests to etcd; 0 disables them")
      ->group(storage);
  command.add_option("--etcd-prefix", o.etcd_prefix, "Prefix to prepend to all resource paths in etcd")
      ->capture_default_str()
      ->group(storage);
  command.add_option("--etcd-cafile", o.etcd_cafile, "Certificate Authority file used to secure etcd communication")
      ->group(storage);
  command.add_option("--etcd-certfile", o.etcd_certfile, "Certificate file used to secure etcd communication")
      ->group(storage);
  command.add_option("--etcd-keyfile", o.etcd_keyfile, "Key file used to secure etcd communication")->group(storage);
}

void add_network_flags(CLI::App& command, ServeFlags& flags) {
  server::Options& o = flags.options;
  const char* const network = "Network";
  command.add_option("--listen", o.listen, "ADDRESS:PORT to serve HTTPS on; port 0 picks a free one")
      ->capture_default_str()
      ->group(network);
  command
      .add_option(
          "--listen-cleartext", o.listen_cleartext,
          "Loopback ADDRESS:PORT or unix:PATH to serve HTTP on, in addition to --listen; clients still authenticate")
      ->group(network);
  command.add_option("--bind-address", flags.bind_address, "IP address to serve HTTPS on, with --secure-port")
      ->group(network);
  command.add_option("--secure-port", flags.secure_port, "Port to serve HTTPS on, with --bind-address")->group(network);
  command
      .add_option("--advertise-address", o.advertise_address, "IP address on which to advertise the server to clients")
      ->group(network);
  command
      .add_option("--external-hostname", o.external_hostname,
                  "Host name or host:port in URLs given to clients, such as that of the OpenID key set")
      ->group(network);
  command
      .add_option(
          "--service-cluster-ip-range", o.service_cluster_ip_range,
          "CIDR range from which to assign service cluster IPs, or two, of IPv4 and IPv6, separated by a comma: "
          "the first one is of the default family")
      ->capture_default_str()
      ->group(network);
  command
      .add_option("--service-node-port-range", o.service_node_port_range,
                  "Port range to reserve for services of type NodePort")
      ->capture_default_str()
      ->group(network);
  command.add_option("--threads", o.threads, "Number of event loops that serve connections")
      ->capture_default_str()
      ->check(CLI::Range(1, 256))
      ->group(network);
  command
      .add_option("--http2-max-streams-per-connection", o.http2_max_streams_per_connection,
                  "Maximum number of streams per HTTP/2 connection; 0 means 100")
      ->capture_default_str()
      ->group(network);
  command
      .add_option("--max-connections", o.max_connections,
                  "Maximum number of client connections, capped by the open file limit")
      ->capture_default_str()
      ->group(network);
  command
      .add_option("--max-unauthenticated-connections", o.max_unauthenticated_connections,
                  "Maximum number of connections that have not made an authenticated request yet")
      ->capture_default_str()
      ->group(network);
  command
      .add_option("--max-unauthenticated-connections-per-address", o.max_unauthenticated_connections_per_address,
                  "Maximum number of unauthenticated connections per client address (per /64 network for IPv6)")
      ->capture_default_str()
      ->group(network);
  command
      .add_option("--request-timeout", flags.request_timeout,
                  "Duration after which a request other than a watch times out")
      ->capture_default_str()
      ->group(network);
  command
      .add_option("--min-request-timeout", flags.min_request_timeout,
                  "Minimum number of seconds that a watch without timeoutSeconds stays open; the maximum is twice that")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 30))
      ->group(network);
  command
      .add_flag(
          "--strict-drop", o.strict_drop,
          "Ignore clauses of Accept that ask to drop anything else than metadata.managedFields, as Kubernetes 1.38 "
          "does (406 if no clause is left), instead of ignoring the parameter; on by default under the name "
          "kube-apiserver")
      ->group(network);
  command
      .add_option("--yielding-field-managers", o.yielding_field_managers,
                  "Names of field managers, comma separated, that yield to the one that an object declares in "
                  "metadata.options.fieldManager, instead of being an error next to it: kubectl always sends its name")
      ->delimiter(',')
      ->group(network);
  command
      .add_option("--shutdown-delay-duration", flags.shutdown_delay,
                  "Time to serve requests as before after SIGTERM, while /readyz fails, so that load balancers notice")
      ->capture_default_str()
      ->group(network);
  command
      .add_option("--shutdown-send-retry-after", o.shutdown_send_retry_after,
                  "While active requests end, reject new ones with 429 and Retry-After instead of refusing connections")
      ->capture_default_str()
      ->group(network);
  command
      .add_option("--livez-grace-period", flags.livez_grace_period,
                  "Time after the start during which /livez assumes that the start will succeed")
      ->capture_default_str()
      ->group(network);
  command
      .add_option("--goaway-chance", o.goaway_chance,
                  "Fraction of requests over HTTP/2 after which the connection is closed, so that clients spread over "
                  "several servers; at most 0.02")
      ->capture_default_str()
      ->group(network);
  command
      .add_option("--cors-allowed-origins", o.cors_allowed_origins,
                  "List of allowed origins for CORS, comma separated; regular expressions that match the whole host")
      ->delimiter(',')
      ->group(network);
  command
      .add_option("--shutdown-grace-seconds", flags.grace_seconds, "Seconds to wait for active requests after SIGTERM")
      ->capture_default_str()
      ->check(CLI::Range(0, 3600))
      ->group(network);
  command
      .add_option("--strict-transport-security-directives", o.strict_transport_security_directives,
                  "List of directives for HSTS, comma separated, such as max-age=31536000,includeSubDomains,preload")
      ->delimiter(',')
      ->group(network);
  command
      .add_option(
          "--proxy-client-cert-file", o.proxy_client_cert_file,
          "Client certificate for calls to aggregated API servers; DATA-DIR/pki/front-proxy-client.crt if not set")
      ->group(network);
  command.add_option("--proxy-client-key-file", o.proxy_client_key_file, "Private key for --proxy-client-cert-file")
      ->group(network);
  command
      .add_option("--kubelet-client-certificate", o.kubelet_client_certificate,
                  "Client certificate for connections to kubelets; none is shown if not set")
      ->group(network);
  command.add_option("--kubelet-client-key", o.kubelet_client_key, "Private key for --kubelet-client-certificate")
      ->group(network);
  command
      .add_option("--kubelet-certificate-authority", o.kubelet_certificate_authority,
                  "CA bundle that kubelets are verified by; they are not verified if not set")
      ->group(network);
  command
      .add_option("--kubelet-preferred-address-types", o.kubelet_preferred_address_types,
                  "List of the preferred types of node addresses to use for connections to kubelets, comma separated")
      ->delimiter(',')
      ->capture_default_str()
      ->group(network);
  command
      .add_option("--kubelet-timeout", flags.kubelet_timeout,
                  "Time to connect to a kubelet, or to a server that a request is proxied to")
      ->capture_default_str()
      ->group(network);
  command
      .add_option(
          "--endpoint-reconciler-type", o.endpoint_reconciler_type,
          "Endpoint reconciler for the kubernetes Service of servers that share an etcd: lease (endpoints of servers "
          "with a live lease), master-count (of --apiserver-count servers) or none; with the embedded store, lease and "
          "master-count write the endpoints once")
      ->check(CLI::IsMember({"lease", "master-count", "none"}))
      ->capture_default_str()
      ->group(network);
  command
      .add_option("--apiserver-count", o.apiserver_count,
                  "Number of API servers, with --endpoint-reconciler-type=master-count")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group(network);
  command
      .add_option("--enable-aggregator-routing", o.enable_aggregator_routing,
                  "Connect to webhooks and aggregated API servers at endpoint IPs rather than at the cluster IP")
      ->capture_default_str()
      ->group(network);
}

void add_access_flags(CLI::App& command, ServeFlags& flags) {
  server::Options& o = flags.options;
  const char* const access = "Authentication and authorization";
  command.add_option("--cert-dir", o.cert_dir, "Directory of keys and certificates; DATA-DIR/pki if not set")
      ->group(access);
  command
      .add_option("--tls-cert-file", o.tls_cert_file,
                  "Serving certificate and chain; generated in --cert-dir if not set")
      ->group(access);
  command.add_option("--tls-private-key-file", o.tls_private_key_file, "Private key for --tls-cert-file")
      ->group(access);
  command
      .add_option(
          "--tls-sni-cert-key", o.tls_sni_cert_keys,
          "Certificate and key for host names, by default those in the certificate: CERT,KEY[:NAME,NAME...]; may be "
          "repeated")
      ->group(access);
  command
      .add_option_function<std::string>(
          "--tls-min-version",
          [&o](const std::string& version) {
            using Version = net::TlsOptions::Version;
            o.tls.min_version = version == "VersionTLS13" ? Version::Tls13 : Version::Tls12;
          },
          "Minimum TLS version supported: VersionTLS12 or VersionTLS13")
      ->default_str("VersionTLS12")
      ->check(CLI::IsMember({"VersionTLS12", "VersionTLS13"}))
      ->group(access);
  command
      .add_option(
          "--tls-cipher-suites", o.tls.cipher_suites,
          "Comma-separated list of TLS 1.2 cipher suites, in order of preference; by default those with forward "
          "secrecy and authenticated encryption")
      ->delimiter(',')
      ->group(access);
  command
      .add_option("--client-ca-file", o.client_ca_file,
                  "CA bundle for client certificates; CommonName is the user, Organization the groups. Replaces the "
                  "generated CA and its administrator")
      ->group(access);
  command
      .add_option(
          "--root-ca-file", o.root_ca_file,
          "CA bundle that clients verify this server by, for kubeconfig and the ConfigMaps kube-root-ca.crt; by "
          "default the last certificate of --tls-cert-file, or the generated CA")
      ->group(access);
  command
      .add_option("--token-auth-file", o.token_auth_file, "CSV file of bearer tokens: token,user,uid,\"group,group\"")
      ->group(access);
  command
      .add_option("--enable-bootstrap-token-auth", o.enable_bootstrap_token_auth,
                  "Accept the tokens in Secrets of type bootstrap.kubernetes.io/token in the namespace kube-system")
      ->capture_default_str()
      ->group(access);
  command.add_option("--anonymous-auth", o.anonymous_auth, "Treat requests without credentials as system:anonymous")
      ->capture_default_str()
      ->group(access);
  command
      .add_option("--authorization-mode", o.authorization_modes,
                  "Authorizers, asked in this order: Node, RBAC (default), ABAC, AlwaysAllow, AlwaysDeny")
      ->delimiter(',')
      ->group(access);
  command
      .add_option(
          "--authorization-config", o.authorization_config,
          "File with an AuthorizationConfiguration (apiserver.config.k8s.io) that names the authorizers; mutually "
          "exclusive with --authorization-mode")
      ->group(access);
  command
      .add_option("--authorization-policy-file", o.authorization_policy_file,
                  "File with the policies of --authorization-mode=ABAC, one JSON object per line")
      ->group(access);
  command
      .add_option("--requestheader-client-ca-file", o.requestheader_client_ca_file,
                  "CA bundle for front proxies, which identify users in request headers")
      ->group(access);
  command
      .add_option("--requestheader-allowed-names", o.requestheader_allowed_names,
                  "List of CommonNames that a front proxy may have; any if empty")
      ->delimiter(',')
      ->group(access);
  o.requestheader_username_headers = {"X-Remote-User"};
  o.requestheader_group_headers = {"X-Remote-Group"};
  o.requestheader_extra_headers_prefix = {"X-Remote-Extra-"};
  command
      .add_option("--requestheader-username-headers", o.requestheader_username_headers,
                  "List of request headers to inspect for usernames")
      ->delimiter(',')
      ->group(access);
  command
      .add_option("--requestheader-uid-headers", o.requestheader_uid_headers,
                  "List of request headers to inspect for UIDs")
      ->delimiter(',')
      ->group(access);
  command
      .add_option("--requestheader-group-headers", o.requestheader_group_headers,
                  "List of request headers to inspect for groups")
      ->delimiter(',')
      ->group(access);
  command
      .add_option("--requestheader-extra-headers-prefix", o.requestheader_extra_headers_prefix,
                  "List of request header prefixes to inspect for extra attributes of the user")
      ->delimiter(',')
      ->group(access);
  command
      .add_option("--service-account-issuer", o.service_account_issuers,
                  "Issuer of service account tokens; if repeated, the first issues tokens and all are accepted")
      ->allow_extra_args(false)
      ->group(access);
  command
      .add_option("--service-account-key-file", o.service_account_key_files,
                  "Public key to verify service account tokens; may be repeated; DATA-DIR/pki/sa.pub if not set")
      ->group(access);
  command
      .add_option("--service-account-signing-key-file", o.service_account_signing_key_file,
                  "Private key to sign service account tokens; DATA-DIR/pki/sa.key if not set")
      ->group(access);
  command
      .add_option("--service-account-signing-endpoint", o.service_account_signing_endpoint,
                  "Path to the socket where an external JWT signer is listening; mutually exclusive with "
                  "--service-account-signing-key-file and --service-account-key-file")
      ->group(access);
  command
      .add_option("--service-account-jwks-uri", o.service_account_jwks_uri,
                  "Overrides the URI for the JSON Web Key Set in the OpenID discovery document")
      ->group(access);
  command
      .add_option("--api-audiences", o.api_audiences,
                  "Identifiers of the API as a token audience; the issuers if not set")
      ->delimiter(',')
      ->group(access);
  command
      .add_option("--service-account-extend-token-expiration", o.service_account_extend_token_expiration,
                  "Extend the expiration of tokens injected into pods to one year, for clients that never reload them")
      ->capture_default_str()
      ->group(access);
  command
      .add_option("--service-account-max-token-expiration", flags.max_token_expiration,
                  "Maximum validity duration of a service account token, such as 24h; 0 means no maximum")
      ->group(access);
}

void add_audit_flags(CLI::App& command, ServeFlags& flags) {
  server::Options& o = flags.options;
  const char* const audit = "Audit";
  command
      .add_option("--audit-policy-file", o.audit_policy_file, "File that defines the audit policy (audit.k8s.io/v1)")
      ->group(audit);
  command
      .add_option("--audit-log-path", o.audit_log_path, "File that audit events are logged to; - means standard output")
      ->group(audit);
  command
      .add_option("--audit-log-maxsize", o.audit_log_maxsize, "Maximum size in megabytes before rotation; 0 means 100")
      ->group(audit);
  command
      .add_option("--audit-log-maxbackup", o.audit_log_maxbackup,
                  "Maximum number of rotated files to keep; 0 means all")
      ->capture_default_str()
      ->group(audit);
  command
      .add_option("--audit-log-maxage", o.audit_log_maxage,
                  "Maximum number of days to keep rotated files; 0 means forever")
      ->capture_default_str()
      ->group(audit);
}

void add_behaviour_flags(CLI::App& command, ServeFlags& flags) {
  server::Options& o = flags.options;
  const char* const behaviour = "API behaviour";
  command
      .add_option("--max-requests-inflight", o.max_requests_inflight,
                  "Summed with --max-mutating-requests-inflight to the server's total concurrency limit")
      ->capture_default_str()
      ->group(behaviour);
  command
      .add_option("--max-mutating-requests-inflight", o.max_mutating_requests_inflight,
                  "Summed with --max-requests-inflight to the server's total concurrency limit")
      ->capture_default_str()
      ->group(behaviour);
  command
      .add_option("--controllers", o.controllers,
                  "List of embedded controllers to run: * for all, none, NAME to enable, -NAME to disable")
      ->delimiter(',')
      ->group(behaviour);
  command
      .add_option("--enable-admission-plugins", o.enable_admission_plugins,
                  "Admission plugins to enable in addition to those enabled by default")
      ->delimiter(',')
      ->group(behaviour);
  command
      .add_option("--disable-admission-plugins", o.disable_admission_plugins,
                  "Admission plugins to disable although they are enabled by default")
      ->delimiter(',')
      ->group(behaviour);
  command
      .add_option("--admission-control-config-file", o.admission_control_config_file,
                  "File with admission control configuration (AdmissionConfiguration of apiserver.config.k8s.io/v1)")
      ->group(behaviour);
  command.add_option("--allow-privileged", o.allow_privileged, "Allow privileged containers")
      ->capture_default_str()
      ->group(behaviour);
  command.add_option("--event-ttl", flags.event_ttl, "Duration to retain events, such as 1h0m0s, 90m or 3600s")
      ->capture_default_str()
      ->group(behaviour);
  command
      .add_option(
          "--watch-cache", o.watch_cache,
          "Serve reads with resourceVersion=0 from the watch cache; if false, they return the latest state and honour "
          "a limit")
      ->capture_default_str()
      ->group(behaviour);
  command
      .add_option("--feature-gates", flags.feature_gates, "List of Name=true|false pairs, comma separated; see below")
      ->group(behaviour);
  command
      .add_option("--runtime-config", flags.runtime_config,
                  "Versions and resources to serve or not: GROUP/VERSION=true|false, "
                  "GROUP/VERSION/RESOURCE=true|false, api/ga, "
                  "api/beta or api/all; off by default: admissionregistration.k8s.io/v1beta1")
      ->delimiter(',')
      ->group(behaviour);
  command.add_option("-v,--v", flags.verbosity, "Log verbosity: 0 for operators, 2 adds changes, 4 adds every request")
      ->capture_default_str()
      ->group(behaviour);
  command.add_option("--log-format,--logging-format", flags.log_format, "Log format: text or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}))
      ->group(behaviour);
}

}  // namespace

Command add_serve(CLI::App& app) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* c = app.add_subcommand("serve", "Serve the Kubernetes API");
  c->add_option("--config", flags->config,
                "File of flags, one name = value per line; the command line takes precedence");
  c->add_flag("--check-config", flags->check_config,
              "Check the flags and the files that they name, and exit without starting a server");
  c->footer(
      "\n" + gates_table() +
      "\nEach flag can also be set in the environment: HOLDFAST_SERVE_DATA_DIR for --data-dir. The environment takes "
      "precedence over --config, and the command line over both.\n"
      "\nSIGTERM closes watches and waits for other requests; SIGHUP reloads certificates, CAs and tokens.");

  add_storage_flags(*c, *flags);
  add_network_flags(*c, *flags);
  add_access_flags(*c, *flags);
  add_audit_flags(*c, *flags);
  add_behaviour_flags(*c, *flags);
  // Values of a repeated list flag accumulate; the last value of any other repeated flag wins. A list never consumes
  // the arguments after it.
  for (CLI::Option* option : c->get_options()) {
    if (option->get_items_expected_max() > 1) {
      option->allow_extra_args(false);
    } else {
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
  }
  return [flags, c] {
    for (const CLI::Option* option : c->get_options()) {
      const std::string name = option->get_single_name();
      if (name == "help") continue;
      std::string value = option->get_default_str();
      if (option->count() > 0) {
        value.clear();
        for (const std::string& given : option->results()) value += (value.empty() ? "" : ",") + given;
      }
      flags->options.flags.emplace_back(name, std::move(value));
    }
    umask(0077);  // Applies to files that the embedded store creates, too.
    return serve(*flags);
  };
}

Command add_kubeconfig(CLI::App& app) {
  struct Flags {
    std::string data_dir, server, user;
    std::vector<std::string> groups;
    int days = 365;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* c = app.add_subcommand(
      "kubeconfig", "Print a kubeconfig for a new user, with a client certificate signed by the server's CA");
  c->add_option("--data-dir", flags->data_dir, "Data directory of the server")->required();
  c->add_option("--user", flags->user, "Name of the user")->required();
  c->add_option("--group", flags->groups, "Group of the user; may be repeated");
  c->add_option("--server", flags->server, "URL of the server; taken from DATA-DIR/kubeconfig if not set");
  c->add_option("--days", flags->days, "Validity of the certificate in days")
      ->capture_default_str()
      ->check(CLI::Range(1, 3650));
  return [flags] {
    const std::string pki = flags->data_dir + "/pki";
    Result<std::string> ca = read_file(pki + "/ca.crt");
    if (!ca) return fail(ca.error().message.c_str());
    Result<std::string> key = read_file(pki + "/ca.key");
    if (!key) return fail(key.error().message.c_str());
    if (!std::filesystem::exists(pki + "/admin.crt")) {
      return fail(("the CA in " + pki + " signs no clients: the server runs with --client-ca-file").c_str());
    }
    std::string url = flags->server;
    if (url.empty()) {
      Result<std::string> admin = read_file(flags->data_dir + "/kubeconfig");
      if (!admin) return fail((admin.error().message + "; start the server or give --server").c_str());
      const size_t at = admin->find("server: ");
      if (at != std::string::npos) url = admin->substr(at + 8, admin->find('\n', at) - at - 8);
    }
    const net::Identity authority{*ca, *key};
    Result<net::Identity> identity = auth::make_certificate({.common_name = flags->user,
                                                             .organizations = flags->groups,
                                                             .dns_names = {},
                                                             .addresses = {},
                                                             .use = auth::CertificateRequest::Use::Client,
                                                             .valid = auth::Days(flags->days)},
                                                            &authority);
    if (!identity) return fail(identity.error().message.c_str());
    const std::string text =
        auth::make_kubeconfig({.server = url, .ca_pem = *ca, .identity = *identity, .user_name = flags->user});
    print(text);
    return 0;
  };
}

}  // namespace holdfast::cli
