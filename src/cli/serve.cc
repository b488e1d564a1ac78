#include <signal.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "auth/auth.h"
#include "base/clock.h"
#include "base/log.h"
#include "cli/commands.h"
#include "server/server.h"

namespace holdfast::cli {

namespace {

struct ServeFlags {
  server::Options options;
  std::string config;  // Expanded before parsing.
  std::string bind_address;
  int secure_port = -1;
  std::vector<std::string> feature_gates;
  int verbosity = 0;
  std::string log_format = "text";
  int grace_seconds = 10;
  std::string event_ttl = "1h0m0s";
  std::string max_token_expiration = "0";
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

int serve(ServeFlags& flags) {
  server::Options& o = flags.options;
  if (!flags.bind_address.empty() || flags.secure_port >= 0) {
    const std::string host = flags.bind_address.empty() ? "0.0.0.0" : flags.bind_address;
    const bool v6 = host.find(':') != std::string::npos;
    o.listen = (v6 ? "[" + host + "]" : host) + ":" + std::to_string(flags.secure_port < 0 ? 6443 : flags.secure_port);
  }
  for (const std::string& text : flags.feature_gates) {
    Result<Gates> gates = o.gates.parse(text);
    if (!gates) return fail(("--feature-gates: " + gates.error().message).c_str());
    o.gates = *gates;
  }
  const Result<int64_t> event_ttl = parse_go_duration(flags.event_ttl);
  if (!event_ttl) return fail(("--event-ttl: " + event_ttl.error().message).c_str());
  o.event_ttl = std::chrono::seconds(*event_ttl / 1'000'000'000);
  const Result<int64_t> max_token = parse_go_duration(flags.max_token_expiration);
  if (!max_token) return fail(("--service-account-max-token-expiration: " + max_token.error().message).c_str());
  o.service_account_max_token_expiration = std::chrono::seconds(*max_token / 1'000'000'000);
  o.shutdown_grace = std::chrono::seconds(flags.grace_seconds);
  log::configure(flags.verbosity, flags.log_format == "json" ? log::Format::Json : log::Format::Text);

  // Taken by sigwait below, on this thread alone: the threads to come inherit the mask.
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const auto told_to_stop = [] {
    sigset_t pending;
    return sigpending(&pending) == 0 && (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
  };
  o.cancelled = told_to_stop;
  Result<std::unique_ptr<server::Server>> started = server::Server::start(std::move(o));
  if (!started && told_to_stop()) {
    log::info("stopping", {{"reason", started.error().message}});
    return 0;
  }
  if (!started) return fail(started.error().message.c_str());
  server::Server& running = **started;
  printf("Serving on %s\n", running.url().c_str());
  if (running.first_start()) {
    printf(
        "Made a certificate authority and an administrator. Next:\n\n  export KUBECONFIG=%s\n  kubectl get "
        "namespaces\n\n",
        running.kubeconfig_path().c_str());
  } else {
    printf("Administrator's credentials: %s\n", running.kubeconfig_path().c_str());
  }
  fflush(stdout);

  while (true) {
    int signal = 0;
    sigwait(&signals, &signal);
    if (signal != SIGHUP) break;
    Result<Unit> reloaded = running.reload();
    if (reloaded) {
      log::info("certificates and tokens read again");
    } else {
      log::error("certificates not reloaded", {{"error", reloaded.error().message}});
    }
  }
  log::info("stopping");
  running.stop();
  return 0;
}

}  // namespace

Command add_serve(CLI::App& app) {
  auto flags = std::make_shared<ServeFlags>();
  server::Options& o = flags->options;
  CLI::App* c = app.add_subcommand("serve", "Serve the Kubernetes API.");
  c->add_option("--config", flags->config, "Read flags from this file: lines of name = value; those given here win");
  c->footer("\n" + gates_table() +
            "\nSIGTERM ends watches and waits for other requests; SIGHUP reads certificates, CAs and tokens again.");

  c->add_option("--data-dir", o.data_dir, "Embedded store, keys (pki/) and kubeconfig lie here; made on first start")
      ->group("Where the data is");
  c->add_flag("--unsafe-no-fsync", o.unsafe_no_fsync,
              "Acknowledge writes that are not on disk yet: faster, and a power loss may take the newest")
      ->group("Where the data is");
  c->add_option("--etcd-servers", o.etcd_servers, "Use this etcd instead of the embedded store: URL,URL,...")
      ->delimiter(',')
      ->group("Where the data is");
  c->add_option("--etcd-prefix", o.etcd_prefix, "Prefix of all keys in etcd")
      ->capture_default_str()
      ->group("Where the data is");
  c->add_option("--etcd-cafile", o.etcd_cafile, "Certificate authority of etcd")->group("Where the data is");
  c->add_option("--etcd-certfile", o.etcd_certfile, "Client certificate for etcd")->group("Where the data is");
  c->add_option("--etcd-keyfile", o.etcd_keyfile, "Its key")->group("Where the data is");

  c->add_option("--listen", o.listen, "ADDRESS:PORT; port 0 picks one")->capture_default_str()->group("Network");
  c->add_option(
       "--listen-cleartext", o.listen_cleartext,
       "Beside that, HTTP without TLS on a loopback ADDRESS:PORT or unix:PATH; who comes in still needs a token")
      ->group("Network");
  c->add_option("--bind-address", flags->bind_address, "As kube-apiserver: address alone, with --secure-port")
      ->group("Network");
  c->add_option("--secure-port", flags->secure_port, "As kube-apiserver: port alone, with --bind-address")
      ->group("Network");
  c->add_option("--advertise-address", o.advertise_address, "Address that clients are told to use")->group("Network");
  c->add_option("--service-cluster-ip-range", o.service_cluster_ip_range, "Addresses of Services")
      ->capture_default_str()
      ->group("Network");
  c->add_option("--threads", o.threads, "Event loops that serve connections")
      ->capture_default_str()
      ->check(CLI::Range(1, 256))
      ->group("Network");
  c->add_option("--shutdown-grace-seconds", flags->grace_seconds, "How long SIGTERM waits for requests under way")
      ->capture_default_str()
      ->check(CLI::Range(0, 3600))
      ->group("Network");

  c->add_option("--max-connections", o.max_connections,
                "Maximum number of client connections; never more than the limit of open files leaves room for")
      ->capture_default_str()
      ->group("Network");
  c->add_option("--max-unauthenticated-connections", o.max_unauthenticated_connections,
                "Maximum number of connections on which no credentials have been shown yet")
      ->capture_default_str()
      ->group("Network");
  c->add_option("--max-unauthenticated-connections-per-address", o.max_unauthenticated_connections_per_address,
                "The same, for each client address (for IPv6: each /64 network)")
      ->capture_default_str()
      ->group("Network");

  c->add_option("--cert-dir", o.cert_dir, "Keys and certificates; DATA-DIR/pki if not given")->group("Who may come in");
  c->add_option("--tls-cert-file", o.tls_cert_file, "Serving certificate and chain, instead of one made here")
      ->group("Who may come in");
  c->add_option("--tls-private-key-file", o.tls_private_key_file, "Its key")->group("Who may come in");
  c->add_option("--tls-sni-cert-key", o.tls_sni_cert_keys,
                "Certificate and key for clients that ask for one of the host names, those in the certificate if none "
                "is given: CERT,KEY[:NAME,NAME...]; may be repeated")
      ->group("Who may come in");
  c->add_option_function<std::string>(
       "--tls-min-version",
       [&o](const std::string& version) {
         using Version = net::TlsOptions::Version;
         o.tls.min_version = version == "VersionTLS13" ? Version::Tls13 : Version::Tls12;
       },
       "Minimum TLS version supported: VersionTLS12 or VersionTLS13")
      ->default_str("VersionTLS12")
      ->check(CLI::IsMember({"VersionTLS12", "VersionTLS13"}))
      ->group("Who may come in");
  c->add_option("--tls-cipher-suites", o.tls.cipher_suites,
                "Cipher suites of TLS 1.2, in order of preference; those with forward secrecy and authenticated "
                "encryption if none is given")
      ->delimiter(',')
      ->group("Who may come in");
  c->add_option("--client-ca-file", o.client_ca_file, "Authority of client certificates: CN is the user, O are groups")
      ->group("Who may come in");
  c->add_option("--token-auth-file", o.token_auth_file, "Bearer tokens: lines of token,user,uid,\"group,group\"")
      ->group("Who may come in");
  c->add_option("--anonymous-auth", o.anonymous_auth, "Requests without credentials are system:anonymous")
      ->capture_default_str()
      ->group("Who may come in");
  c->add_option("--authorization-mode", o.authorization_modes, "RBAC or AlwaysAllow")
      ->delimiter(',')
      ->group("Who may come in");
  c->add_option("--requestheader-client-ca-file", o.requestheader_client_ca_file,
                "Authority of front proxies, which name users in headers")
      ->group("Who may come in");
  c->add_option("--requestheader-allowed-names", o.requestheader_allowed_names,
                "Names such a proxy may have; any if not given")
      ->delimiter(',')
      ->group("Who may come in");
  o.requestheader_username_headers = {"X-Remote-User"};
  o.requestheader_group_headers = {"X-Remote-Group"};
  o.requestheader_extra_headers_prefix = {"X-Remote-Extra-"};
  c->add_option("--requestheader-username-headers", o.requestheader_username_headers, "Header of the user's name")
      ->delimiter(',')
      ->group("Who may come in");
  c->add_option("--requestheader-uid-headers", o.requestheader_uid_headers, "Header of the user's uid")
      ->delimiter(',')
      ->group("Who may come in");
  c->add_option("--requestheader-group-headers", o.requestheader_group_headers, "Header of the user's groups")
      ->delimiter(',')
      ->group("Who may come in");
  c->add_option("--requestheader-extra-headers-prefix", o.requestheader_extra_headers_prefix,
                "Prefix of headers with more about the user")
      ->delimiter(',')
      ->group("Who may come in");

  c->add_option("--proxy-client-cert-file", o.proxy_client_cert_file,
                "Certificate shown to aggregated API servers; DATA-DIR/pki/front-proxy-client.crt if not given")
      ->group("Network");
  c->add_option("--proxy-client-key-file", o.proxy_client_key_file, "Its key")->group("Network");
  c->add_option("--enable-aggregator-routing", o.enable_aggregator_routing,
                "Reach webhooks and aggregated API servers at their endpoints instead of the service's cluster IP")
      ->capture_default_str()
      ->group("Network");

  const char* const in = "Who may come in";
  c->add_option("--service-account-issuer", o.service_account_issuers,
                "Issuer of service account tokens; given several times, the first signs and all are believed")
      ->allow_extra_args(false)
      ->group(in);
  c->add_option("--service-account-key-file", o.service_account_key_files,
                "Public keys that verify them; DATA-DIR/pki/sa.pub if not given")
      ->group(in);
  c->add_option("--service-account-signing-key-file", o.service_account_signing_key_file,
                "Private key that signs them; DATA-DIR/pki/sa.key if not given")
      ->group(in);
  c->add_option("--api-audiences", o.api_audiences, "Audiences of tokens for this server; the issuers if not given")
      ->delimiter(',')
      ->group(in);
  c->add_option("--service-account-extend-token-expiration", o.service_account_extend_token_expiration,
                "Tokens of pods live for a year, so that clients that never read them again go on")
      ->capture_default_str()
      ->group(in);
  c->add_option("--service-account-max-token-expiration", flags->max_token_expiration, "None lives longer: 24h; 0: any")
      ->group(in);

  const char* const record = "What is recorded";
  c->add_option("--audit-policy-file", o.audit_policy_file, "Which requests are recorded: a Policy of audit.k8s.io/v1")
      ->group(record);
  c->add_option("--audit-log-path", o.audit_log_path, "Where to: a file, or - for standard output")->group(record);
  c->add_option("--audit-log-maxsize", o.audit_log_maxsize, "Megabytes before the file is put aside; 100 if not given")
      ->group(record);
  c->add_option("--audit-log-maxbackup", o.audit_log_maxbackup, "Files put aside that are kept; all if not given")
      ->group(record);
  c->add_option("--audit-log-maxage", o.audit_log_maxage, "Days that they are kept; for ever if not given")
      ->group(record);

  const char* const behaviour = "Behaviour";
  c->add_option("--max-requests-inflight", o.max_requests_inflight,
                "Seats that priority levels share, together with the next")
      ->capture_default_str()
      ->group(behaviour);
  c->add_option("--max-mutating-requests-inflight", o.max_mutating_requests_inflight, "The same")
      ->capture_default_str()
      ->group(behaviour);
  c->add_option("--controllers", o.controllers, "Embedded controllers to run: *, none, names, -name for all but that")
      ->delimiter(',')
      ->group(behaviour);
  c->add_option("--enable-admission-plugins", o.enable_admission_plugins, "Beside those that are on by default")
      ->delimiter(',')
      ->group(behaviour);
  c->add_option("--disable-admission-plugins", o.disable_admission_plugins, "Of those that are on by default")
      ->delimiter(',')
      ->group(behaviour);
  c->add_option("--allow-privileged", o.allow_privileged, "Pods may have privileged containers")
      ->capture_default_str()
      ->group(behaviour);
  c->add_option("--event-ttl", flags->event_ttl, "How long Events are kept: 1h0m0s, 90m, 3600s")
      ->capture_default_str()
      ->group(behaviour);
  c->add_option("--feature-gates", flags->feature_gates, "Name=true|false,...: see below")->group("Behaviour");
  c->add_option("-v,--v", flags->verbosity, "Log level: 0 what an operator must see, 2 changes, 4 every request")
      ->capture_default_str()
      ->group("Behaviour");
  c->add_option("--log-format", flags->log_format, "text or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}))
      ->group("Behaviour");
  // Repeated flags add up (single-valued ones: the last counts), and a list never swallows what comes behind it.
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
    umask(0077);  // Of the embedded store's files too, which are not ours to open.
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
  CLI::App* c = app.add_subcommand("kubeconfig", "Print a kubeconfig for a new user, signed by a server's authority.");
  c->add_option("--data-dir", flags->data_dir, "The server's")->required();
  c->add_option("--user", flags->user, "The user's name")->required();
  c->add_option("--group", flags->groups, "A group of the user; may be repeated");
  c->add_option("--server", flags->server, "URL of the server; the one in DATA-DIR/kubeconfig if not given");
  c->add_option("--days", flags->days, "How long the certificate is valid")
      ->capture_default_str()
      ->check(CLI::Range(1, 3650));
  return [flags] {
    const std::string pki = flags->data_dir + "/pki";
    Result<std::string> ca = auth::read_file(pki + "/ca.crt");
    if (!ca) return fail(ca.error().message.c_str());
    Result<std::string> key = auth::read_file(pki + "/ca.key");
    if (!key) return fail(key.error().message.c_str());
    std::string url = flags->server;
    if (url.empty()) {
      Result<std::string> admin = auth::read_file(flags->data_dir + "/kubeconfig");
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
    fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  };
}

}  // namespace holdfast::cli
