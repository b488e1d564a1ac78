#include "server/server.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>

#include "abac/abac.h"
#include "access/access.h"
#include "admission/admission.h"
#include "api/api.h"
#include "auth/auth.h"
#include "base/api_error.h"
#include "base/base64.h"
#include "base/fair_pool.h"
#include "base/files.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/process.h"
#include "base/reservation.h"
#include "base/strings.h"
#include "base/task_group.h"
#include "base/text.h"
#include "base/url.h"
#include "codec/codec.h"
#include "controllers/controllers.h"
#include "net/net.h"
#include "nodes/nodes.h"
#include "own_calls/requests.h"
#include "ownership/ownership.h"
#include "server/addresses.h"
#include "server/authorization_config.h"
#include "server/bootstrap_objects.h"
#include "server/bootstrap_tokens.h"
#include "server/credentials.h"
#include "server/file_watch.h"
#include "server/front_filters.h"
#include "server/identity_lease.h"
#include "server/memory.h"
#include "server/own_endpoints.h"
#include "server/pipeline.h"
#include "server/service_accounts.h"
#include "server/service_network.h"
#include "server/service_repair.h"
#include "server/service_stack.h"
#include "server/shutdown_watch.h"
#include "server/store_probe.h"
#include "server/version.h"
#include "signer/signer.h"
#include "store/store.h"
#include "tokens/tokens.h"
#include "verbs/verbs.h"
#include "webhook/webhook.h"
#include "write/write.h"

namespace holdfast::server {

namespace {

template <class T>
bool contains(const std::vector<T>& all, const T& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// Descriptors reserved for the store, its log and reloaded files.
constexpr rlim_t kReservedDescriptors = 512;

// The soft limit is low for old programs (select() supports 1024); the hard limit is what the administrator allows.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) log::warning("cannot raise the limit of open files");
}

// Number of connections that preserves the reserve; webhooks and aggregated servers that a request waits for use more.
uint32_t connections_for_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT32_MAX;
  if (limit.rlim_cur <= 2 * kReservedDescriptors) return std::max<uint32_t>(16, limit.rlim_cur / 2);
  return static_cast<uint32_t>(std::min<rlim_t>(limit.rlim_cur - kReservedDescriptors, UINT32_MAX));
}

Result<Unit> check_hsts(std::span<const std::string> directives) {
  for (const std::string& directive : directives) {
    if (directive.find_first_not_of(' ') == std::string::npos) {
      return bad_request("empty value in strict-transport-security-directives");
    }
    const bool max_age = directive.starts_with("max-age=") && directive.find('=', 8) == std::string::npos;
    if (directive == "includeSubDomains" || directive == "preload" || max_age) continue;
    return bad_request(
        "--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, "
        "preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information");
  }
  return Unit{};
}

// As in kube-apiserver, "registry" and "/registry/" mean /registry.
std::string with_leading_slash(std::string_view prefix) {
  while (prefix.starts_with('/')) prefix.remove_prefix(1);
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  return "/" + std::string(prefix);
}

}  // namespace

struct Server::State {
  ~State() { shut_down(); }  // Also after an incomplete start.

  Options options;
  std::string pki_dir;
  auth::PkiOptions pki_options;
  std::pair<uint16_t, uint16_t> node_ports;  // First and last.
  ServiceNetwork service_network;
  std::string advertised;  // Address in the Endpoints of the kubernetes Service.
  std::string kubeconfig_path;
  bool first_start = false;
  std::atomic<CredentialsRef> credentials;  // Never null after the first load.
  MetricRegistry metrics;
  Family<Counter>* reloads = nullptr;
  std::atomic<bool> started{false};
  std::atomic<bool> stopping{false};
  std::atomic<bool> start_failed{false};  // Ends what start() waits for on other threads.
  std::unique_ptr<StoreProbe> store_probe;
  // For --etcd-servers-overrides, one per etcd.
  struct OtherStore {
    std::vector<std::string> servers;
    std::vector<std::string> resources;  // "events", "deployments.apps"
    std::unique_ptr<store::Store> store;
    std::unique_ptr<StoreProbe> probe;
  };
  std::vector<OtherStore> other_stores;
  FrontProxy front_proxy;
  admission::PluginChoice admission_plugins;
  write::WebhookCredentials webhook_credentials;
  std::unique_ptr<Health> health;
  std::unique_ptr<FrontFilters> front;
  std::unique_ptr<Pipeline> pipeline;
  // What runs. Each part is stopped by the function that was pushed when it was made.
  ServiceStack services;
  std::unique_ptr<verbs::TokenIssuer> token_issuer;
  std::unique_ptr<Auditor> auditor;  // Null disables auditing.
  std::unique_ptr<access::FlowControl> flow;
  std::unique_ptr<ownership::Pool> pool;
  access::AuthorizationOptions authorization;
  std::unique_ptr<net::Loops> loops;
  std::unique_ptr<FairPool> background;
  std::unique_ptr<signer::ExternalSigner> signer;  // Null: tokens are signed and verified with keys of this server.
  std::unique_ptr<store::Store> store;
  std::unique_ptr<api::Api> api;
  std::unique_ptr<TokenUses> token_uses;
  std::unique_ptr<controllers::Controllers> controllers;
  std::unique_ptr<ServiceRepair> service_repair;  // Null with an embedded store.
  std::unique_ptr<BootstrapObjects> bootstrap_objects;
  std::unique_ptr<OwnEndpoints> own_endpoints;    // Null if there are none, or they are static.
  std::unique_ptr<IdentityLease> identity_lease;  // Null if the gate is off.
  std::unique_ptr<StoreWatch> store_watch;
  std::unique_ptr<net::Server> net, cleartext;
  std::mutex reloading;                    // One at a time.
  std::optional<FileWatch> watched_files;  // Owned by credential_watch once that runs.
  std::jthread credential_watch;
  bool stopped = false;

  // The steps of a start, in order.
  Result<Unit> start();
  Result<Unit> check();
  Result<Unit> start_while_opening(std::future<Result<Unit>>& opening);
  Result<Unit> check_options();
  Result<Unit> check_signing() const;
  Result<Unit> configure_admission();
  Result<Unit> choose_folders();
  Result<Unit> choose_addresses();
  Result<Unit> choose_other_stores();
  store::StoreResult<std::unique_ptr<store::Store>> open_etcd(const std::vector<std::string>& servers) const;
  bool ends_start() const { return start_failed || (options.cancelled && options.cancelled()); }
  Result<Unit> open_store();
  Task<void> probe_stores(net::EventLoop& loop);
  Result<Unit> choose_authorizers();
  Result<Unit> read_policies();
  void add_metrics();
  void make_health();
  Result<Unit> make_auditor();
  Result<Unit> bind();
  Result<Unit> start_signer();
  Result<Unit> make_token_issuer();
  Result<verbs::TokenSigner> token_signer() const;
  void add_loop_metrics();
  void make_api();
  void make_pipeline();
  Result<Unit> start_listening();
  bool start_api(const std::string& client_ca_pem);
  void start_own_endpoints();
  IdentityLease::SigningKeys signing_keys() const;
  Result<Unit> write_kubeconfig() const;
  // Ends the service with its close(), then destroys it.
  template <class Service>
  void push_closing(const char* name, std::unique_ptr<Service>& service) {
    services.push(name, [this, &service] {
      block_on(loops->at(0), service->close(loops->at(0)));
      service.reset();
    });
  }
  void drain(std::chrono::steady_clock::time_point end);
  void shut_down();

  CredentialFiles credential_files() const;
  Result<Unit> reload();
  Result<Unit> replace_credentials();  // reload() without its lock and its metric.
  void watch_credentials(const std::stop_token& stop);
  Result<std::shared_ptr<const auth::Authenticator>> make_authenticator(const std::string& client_ca_pem) const;
  std::shared_ptr<const tokens::Verifier> current_verifier() const;
  Task<Result<auth::TokenUser>> review_token(std::string token, std::vector<std::string> audiences,
                                             net::EventLoop& loop,
                                             std::shared_ptr<net::Cancellation> cancellation) const;
  Result<Pipeline::OpenId> openid() const;
  std::string url() const;
  std::string external_address() const;
  std::vector<std::string> issuers() const;    // Issuers of service account tokens; the first one signs.
  std::vector<std::string> audiences() const;  // Audiences of tokens for this server.
};

// host:port in URLs given to clients.
std::string Server::State::external_address() const {
  const std::string& host = options.external_hostname;
  if (host.empty()) return url().substr(std::string_view("https://").size());
  const bool has_port = host.find(':') != std::string::npos && !host.ends_with(']') && !is_ip_address(host);
  return has_port ? host : host_port(host, net->port());
}

std::string Server::State::url() const {
  std::string host = options.advertise_address.empty() ? host_of(options.listen) : options.advertise_address;
  if (is_any(host)) host = "127.0.0.1";
  return "https://" + host_port(host, net->port());
}

std::vector<std::string> Server::State::issuers() const {
  if (!options.service_account_issuers.empty()) return options.service_account_issuers;
  return {"https://kubernetes.default.svc.cluster.local"};
}

std::vector<std::string> Server::State::audiences() const {
  if (!options.api_audiences.empty()) return options.api_audiences;
  return issuers();
}

store::StoreResult<std::unique_ptr<store::Store>> Server::State::open_etcd(
    const std::vector<std::string>& servers) const {
  const store::EtcdOptions wanted{.endpoints = servers,
                                  .ca_file = options.etcd_cafile,
                                  .cert_file = options.etcd_certfile,
                                  .key_file = options.etcd_keyfile,
                                  .compaction_interval = options.etcd_compaction_interval};
  const store::EtcdNotices notices = log_etcd_notices();
  constexpr std::chrono::seconds kAgain{1};
  const auto begin = std::chrono::steady_clock::now();
  bool waited = false;
  while (true) {
    store::StoreResult<std::unique_ptr<store::Store>> opened = store::open_etcd(wanted, notices);
    const bool waits = !opened && opened.error().kind == store::ErrorKind::Unavailable;
    if (opened && waited) {
      const auto took = std::chrono::steady_clock::now() - begin;
      log::info("etcd responds", {{"seconds", std::chrono::duration_cast<std::chrono::seconds>(took).count()}});
    }
    if (!waits || ends_start()) return opened;
    if (!std::exchange(waited, true)) {
      log::warning("waiting for etcd", {{"error", opened.error().message},
                                        {"todo", "start etcd, or correct --etcd-servers and --etcd-cafile"}});
    }
    const auto until = std::chrono::steady_clock::now() + kAgain;
    while (std::chrono::steady_clock::now() < until && !ends_start()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

Result<Unit> Server::State::choose_other_stores() {
  if (options.etcd_servers_overrides.empty()) return Unit{};
  if (options.etcd_servers.empty()) return bad_request("--etcd-servers-overrides needs --etcd-servers");
  for (const std::string& written : options.etcd_servers_overrides) {
    const std::vector<std::string_view> parts = split(written, '#');
    const std::vector<std::string_view> resource = split(parts.front(), '/');
    std::vector<std::string> servers;
    for (const std::string_view server : split(parts.back(), ';')) servers.emplace_back(server);
    if (parts.size() != 2 || resource.size() != 2 || std::find(servers.begin(), servers.end(), "") != servers.end()) {
      return bad_request(
          "--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are URLs, "
          "semicolon separated");
    }
    std::sort(servers.begin(), servers.end());
    auto known = std::find_if(other_stores.begin(), other_stores.end(),
                              [&](const OtherStore& other) { return other.servers == servers; });
    if (known == other_stores.end()) {
      known = other_stores.emplace(known);
      known->servers = std::move(servers);
    }
    known->resources.push_back(to_string(GroupResource{resource[0], resource[1]}));
  }
  return Unit{};
}

Task<void> Server::State::probe_stores(net::EventLoop& loop) {
  co_await store_probe->refresh(loop);
  for (const OtherStore& other : other_stores) co_await other.probe->refresh(loop);
}

Result<Unit> Server::State::open_store() {
  store::StoreResult<std::unique_ptr<store::Store>> opened =
      options.etcd_servers.empty()
          ? store::open_rocks({.directory = options.data_dir + "/store", .fsync = !options.unsafe_no_fsync})
          : open_etcd(options.etcd_servers);
  if (!opened) return Error{Reason::InternalError, opened.error().message};
  store = std::move(*opened);
  for (OtherStore& other : other_stores) {
    store::StoreResult<std::unique_ptr<store::Store>> beside = open_etcd(other.servers);
    if (!beside) return Error{Reason::InternalError, beside.error().message};
    other.store = std::move(*beside);
  }
  if (options.etcd_servers.empty()) return Unit{};
  store->status([](store::StoreResult<store::Status> status) {
    if (!status || status->progress_is_exact) return;
    log::warning("this etcd is too old to serve consistent reads from memory (3.4.31 and 3.5.13 can): they go to etcd",
                 {{"version", status->version}});
  });
  return Unit{};
}

CredentialFiles Server::State::credential_files() const {
  return {options, issuers(), [this](const std::string& client_ca_pem) { return make_authenticator(client_ca_pem); }};
}

Result<Unit> Server::State::reload() {
  std::lock_guard lock(reloading);
  Result<Unit> reloaded = replace_credentials();
  reloads->with({reloaded ? "success" : "failure"}).add();
  return reloaded;
}

Result<Unit> Server::State::replace_credentials() {
  // All or nothing: everything that can fail comes before the first visible change. A certificate that does not fit its
  // key, because only one of the files has been replaced so far, is such a failure.
  Result<CredentialsRef> loaded = credential_files().load(pki_options);
  if (!loaded) return loaded.take_error();
  const CredentialsRef before = credentials.load();
  const CredentialsRef now = std::move(*loaded);
  if (Result<Unit> used = net->reload(now->serving, now->named, now->client_ca_pem); !used) return used;
  credentials.store(now);
  pipeline->set_authenticator(now->authenticator);
  const bool renewed = options.tls_cert_file.empty() && now->serving.certificate_pem != before->serving.certificate_pem;
  if (renewed) log::info("the serving certificate was renewed");
  if (now->pki.admin.certificate_pem == before->pki.admin.certificate_pem && now->root_ca_pem == before->root_ca_pem) {
    return Unit{};
  }
  log::info("the kubeconfig has a new certificate", {{"file", kubeconfig_path}});
  return write_kubeconfig();
}

// Reloads until the server stops.
void Server::State::watch_credentials(const std::stop_token& stop) {
  // As often as a mounted Secret may change unnoticed without anybody caring; a stat() of a few files costs
  // microseconds.
  constexpr std::chrono::seconds kInterval{1};
  // Generated certificates are renewed a month before they end.
  constexpr std::chrono::hours kRenewal{12};
  auto renewed = std::chrono::steady_clock::now();
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  while (!wake.wait_for(lock, stop, kInterval, [&] { return stop.stop_requested(); })) {
    const bool changed = watched_files->changed();
    if (!changed && std::chrono::steady_clock::now() - renewed < kRenewal) continue;
    renewed = std::chrono::steady_clock::now();
    if (Result<Unit> reloaded = reload(); !reloaded) {
      log::error("certificates and tokens not reloaded, the previous ones stay in use",
                 {{"error", reloaded.error().message}});
    } else if (changed) {
      log::info("certificates and tokens reloaded");
    }
  }
}

std::shared_ptr<const tokens::Verifier> Server::State::current_verifier() const {
  return signer ? signer->verifier() : credentials.load()->verifier;
}

Task<Result<auth::TokenUser>> Server::State::review_token(std::string token, std::vector<std::string> meant_for,
                                                          net::EventLoop& loop,
                                                          std::shared_ptr<net::Cancellation> cancellation) const {
  const std::shared_ptr<const auth::Authenticator> authenticator = pipeline->authenticator();
  if (authenticator->needs_keys(token)) co_await authenticator->fetch_keys(loop, std::move(cancellation));
  co_return authenticator->authenticate_token(token, meant_for);
}

Result<Pipeline::OpenId> Server::State::openid() const {
  const std::shared_ptr<const tokens::Verifier> verifier = current_verifier();
  const std::string& given = options.service_account_jwks_uri;
  const std::string uri = given.empty() ? "https://" + external_address() + "/openid/v1/jwks" : given;
  Pipeline::OpenId documents{verifier->configuration_json(uri), verifier->key_set_json()};
  if (signer) documents.max_age = signer->keys_max_age();
  return documents;
}

Result<Unit> Server::State::make_auditor() {
  if (options.audit_log_path.empty()) return Unit{};
  if (options.audit_policy_file.empty()) {
    log::warning("no --audit-policy-file was given: no events will be recorded for --audit-log-path");
    return Unit{};
  }
  Result<std::string> text = read_file(options.audit_policy_file);
  if (!text) return text.take_error();
  Result<audit::Policy> policy = audit::Policy::parse(*text, options.audit_policy_file);
  if (!policy) return policy.take_error();
  audit::LogOptions chosen{.path = options.audit_log_path,
                           .max_backups = options.audit_log_maxbackup,
                           .max_age_days = options.audit_log_maxage};
  if (options.audit_log_maxsize > 0) chosen.max_bytes = uint64_t{options.audit_log_maxsize} << 20;
  Result<std::unique_ptr<audit::Log>> log = audit::Log::open(std::move(chosen), metrics);
  if (!log) return log.take_error();
  auditor = std::make_unique<Auditor>(Auditor{std::move(*policy), std::move(*log)});
  return Unit{};
}

// As completeServiceAccountOptions of pkg/controlplane/apiserver/options: waits for the external signer, then limits
// the lifetime of tokens to what it supports.
Result<Unit> Server::State::start_signer() {
  if (options.service_account_signing_endpoint.empty()) return Unit{};
  signer =
      std::make_unique<signer::ExternalSigner>(*loops, *background, metrics,
                                               signer::Options{.endpoint = options.service_account_signing_endpoint,
                                                               .issuers = issuers(),
                                                               .sign_timeout = options.request_timeout * 9 / 10});
  push_closing("external signer", signer);
  std::future<Result<Unit>> starting =
      std::async(std::launch::async, [this] { return block_on(loops->at(0), signer->start()); });
  while (starting.wait_for(std::chrono::milliseconds(10)) == std::future_status::timeout) {
    if (options.cancelled && options.cancelled()) signer->cancel();
  }
  if (Result<Unit> signer_started = starting.get(); !signer_started) return signer_started;

  log::info("Secrets get no service account tokens: the external signer signs only tokens that expire");
  const std::chrono::seconds longest = signer->max_expiration();
  std::chrono::seconds& wanted = options.service_account_max_token_expiration;
  if (wanted > longest) {
    return bad_request(
        "service-account-max-token-expiration cannot be set longer than the token expiration supported by "
        "service-account-signing-endpoint: " +
        format_go_duration(wanted) + " > " + format_go_duration(longest));
  }
  if (wanted.count() == 0) wanted = longest;
  constexpr std::chrono::seconds kPodTokens{3607}, kExtended{365 * 24 * 60 * 60};
  if (options.service_account_extend_token_expiration && wanted < kPodTokens) {
    log::warning(
        "service-account-extend-token-expiration is true, in order to correctly trigger safe transition logic, token "
        "lifetime supported by external-jwt-signer must be longer than 3607 seconds (currently " +
        format_go_duration(wanted) + ")");
  }
  if (options.service_account_extend_token_expiration && wanted < kExtended) {
    log::warning(
        "service-account-extend-token-expiration is true, tokens validity will be caped at the smaller of 31536000 "
        "seconds and maximum token lifetime supported by external-jwt-signer (" +
        format_go_duration(wanted) + ")");
  }
  return Unit{};
}

Result<verbs::TokenSigner> Server::State::token_signer() const {
  if (signer) return verbs::TokenSigner(signer.get());
  std::string pem = credentials.load()->pki.service_account_private_pem;
  if (!options.service_account_signing_key_file.empty()) {
    Result<std::string> given = read_file(options.service_account_signing_key_file);
    if (!given) return given.take_error();
    pem = std::move(*given);
  }
  Result<tokens::Signer> own = tokens::Signer::from_pem(pem);
  if (!own) return own.take_error();
  return verbs::TokenSigner(std::move(*own));
}

Result<Unit> Server::State::make_token_issuer() {
  Result<verbs::TokenSigner> chosen = token_signer();
  if (!chosen) return chosen.take_error();
  token_issuer = std::make_unique<verbs::TokenIssuer>(
      verbs::TokenIssuer{.signer = std::move(*chosen),
                         .issuer = issuers().front(),
                         .audiences = audiences(),
                         .extends_expiration = options.service_account_extend_token_expiration,
                         .max_expiration = options.service_account_max_token_expiration});
  if (signer) {
    token_issuer->extended_expiration = std::min(token_issuer->extended_expiration, signer->max_expiration());
  }
  return Unit{};
}

Result<std::shared_ptr<const auth::Authenticator>> Server::State::make_authenticator(
    const std::string& client_ca_pem) const {
  auth::AuthenticatorOptions a;
  Result<net::CaPool> pool = net::CaPool::from_pem(client_ca_pem, "the client CA bundle");
  if (!pool) return pool.take_error();
  a.client_ca = std::move(*pool);
  a.anonymous = options.anonymous_auth;
  if (a.anonymous && contains(options.authorization_modes, std::string("AlwaysAllow"))) {
    log::warning(
        "AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. You "
        "should use a different authorizer");
    a.anonymous = false;
  }
  if (!options.token_auth_file.empty()) {
    Result<std::string> csv = read_file(options.token_auth_file);
    if (!csv) return csv.take_error();
    Result<auth::TokenTable> table = auth::TokenTable::from_csv(*csv, options.token_auth_file);
    if (!table) return table.take_error();
    a.tokens.push_back(auth::static_tokens(std::move(*table), audiences()));
  }
  a.audiences = audiences();
  a.tokens.push_back(service_account_tokens([this] { return current_verifier(); }, [this] { return api.get(); },
                                            audiences(), [this](TokenUse use) { token_uses->note(std::move(use)); },
                                            system_clock()));
  if (options.enable_bootstrap_token_auth) {
    a.tokens.push_back(bootstrap_tokens([this] { return api.get(); }, audiences(), system_clock()));
  }
  if (!options.service_account_signing_endpoint.empty()) {
    a.remote_keys = auth::RemoteKeys{
        .lacks_key_of = [this](std::string_view token) { return signer->verifier()->lacks_key_of(token); },
        .fetch =
            [this](net::EventLoop& loop, std::shared_ptr<net::Cancellation> cancellation) {
              return signer->fetch_keys(loop, std::move(cancellation));
            }};
  }
  if (!options.requestheader_client_ca_file.empty()) {
    Result<std::string> pem = read_file(options.requestheader_client_ca_file);
    if (!pem) return pem.take_error();
    Result<net::CaPool> proxy_pool = net::CaPool::from_pem(*pem, options.requestheader_client_ca_file);
    if (!proxy_pool) return proxy_pool.take_error();
    a.request_header_ca = std::move(*proxy_pool);
    a.request_header_allowed_names = options.requestheader_allowed_names;
    a.username_headers = options.requestheader_username_headers;
    a.uid_headers = options.requestheader_uid_headers;
    a.group_headers = options.requestheader_group_headers;
    a.extra_header_prefixes = options.requestheader_extra_headers_prefix;
  }
  return std::make_shared<const auth::Authenticator>(std::move(a));
}

void Server::State::add_metrics() {
  metrics.computed("process_resident_memory_bytes", "Resident memory size in bytes.", "gauge", resident_bytes);
  metrics.computed("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", "counter",
                   cpu_seconds);
  metrics.computed("process_open_fds", "Number of open file descriptors.", "gauge",
                   [] { return static_cast<double>(open_descriptors()); });
  metrics.computed("process_max_fds", "Maximum number of open file descriptors.", "gauge", [] {
    rlimit limit{};
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<double>(limit.rlim_cur) : 0;
  });
  metrics.computed("process_virtual_memory_bytes", "Virtual memory size in bytes.", "gauge", virtual_bytes);
  metrics
      .gauges("version_info", "The versions that this server is compatible with.",
              {"component", "binary", "emulation", "min_compat"})
      .with({"kube", kubernetes_version().substr(1), kEmulatedVersion, kOldestCompatibleVersion})
      .set(1);
  metrics.computed_by("holdfast_certificate_expiration_seconds",
                      "End of validity of our certificates since unix epoch.", "gauge", {"name"}, [this] {
                        const CredentialsRef now = credentials.load();
                        std::vector<MetricRegistry::Labelled> all;
                        const std::pair<const char*, const std::string*> known[] = {
                            {"serving", &now->serving.certificate_pem},
                            {"admin", &now->pki.admin.certificate_pem},
                            {"client-ca", &now->client_ca_pem},
                            {"root-ca", &now->root_ca_pem},
                            {"front-proxy-client", &front_proxy.identity.certificate_pem}};
                        for (const auto& [name, pem] : known) {
                          if (const std::optional<UnixTime> end = auth::expiry_of(*pem))
                            all.push_back({{name}, static_cast<double>(end->seconds)});
                        }
                        return all;
                      });
  metrics.computed("holdfast_background_task_failures_total", "Background tasks that ended with an exception.",
                   "counter", [] { return static_cast<double>(failed_tasks()); });
  reloads = &metrics.counters("holdfast_certificate_reloads_total",
                              "Reloads of certificates, CAs and tokens; one that fails changes nothing.", {"result"});
  const auto start = static_cast<double>(time(nullptr));
  metrics.computed("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", "gauge",
                   [start] { return start; });
  auto stat = [this](std::string name, std::string help, std::string_view type, uint64_t net::ServerStats::* member) {
    metrics.computed(std::move(name), std::move(help), type, [this, member] {
      uint64_t sum = 0;
      for (const auto* one : {&net, &cleartext}) sum += *one ? (*one)->stats().*member : 0;
      return static_cast<double>(sum);
    });
  };
  using Stats = net::ServerStats;
  stat("holdfast_connections_open", "Open client connections.", "gauge", &Stats::connections_open);
  stat("holdfast_connections_total", "Client connections accepted.", "counter", &Stats::connections_accepted);
  stat("holdfast_connections_refused_total", "Client connections above the limit.", "counter",
       &Stats::connections_refused);
  stat("apiserver_tls_handshake_errors_total", "TLS handshakes that failed.", "counter", &Stats::handshake_failures);
  stat("holdfast_requests_active", "Requests being served, watches included.", "gauge", &Stats::requests_active);
  stat("holdfast_handler_exceptions_total", "Requests that ended by an exception.", "counter",
       &Stats::handler_exceptions);
  stat("holdfast_protocol_errors_total", "Malformed requests, floods and stalled peers.", "counter",
       &Stats::protocol_errors);
  stat("holdfast_received_bytes_total", "Bytes from clients, as on the wire.", "counter", &Stats::bytes_received);
  metrics.computed("holdfast_request_memory_bytes", "Memory of the requests under way.", "gauge", [this] {
    const size_t bytes = proxied_bodies().taken_bytes() + watch_selectors().taken_bytes();
    return static_cast<double>(bytes + (api ? api->request_memory().taken_bytes() : 0));
  });
  stat("holdfast_sent_bytes_total", "Bytes to clients, as on the wire.", "counter", &Stats::bytes_sent);
}

void Server::State::add_loop_metrics() {
  metrics.computed_by("holdfast_loop_longest_stall_seconds",
                      "Longest time that an event loop was kept from its other connections since the last scrape.",
                      "gauge", {"loop"}, [this] {
                        std::vector<MetricRegistry::Labelled> stalls;
                        for (size_t i = 0; i < loops->count(); ++i) {
                          const std::chrono::duration<double> longest = loops->at(i).take_longest_stall();
                          stalls.push_back({{std::to_string(i)}, longest.count()});
                        }
                        return stalls;
                      });
}

Result<Unit> Server::State::write_kubeconfig() const {
  const CredentialsRef now = credentials.load();
  const std::string kubeconfig =
      auth::make_kubeconfig({.server = url(), .ca_pem = now->root_ca_pem, .identity = now->pki.admin});
  return replace_file(kubeconfig_path, kubeconfig, Readers::Owner);
}

request::AcceptRule accept_rule_of(const Options& options) {
  return options.strict_drop ? request::AcceptRule::Kubernetes : request::AcceptRule::Lenient;
}

void Server::State::make_api() {
  pool = std::make_unique<ownership::Pool>(options.gates);
  api::Options chosen{.settings = {.gates = options.gates,
                                   .accept_rule = accept_rule_of(options),
                                   .registry_prefix = options.etcd_prefix,
                                   .embedded_store = options.etcd_servers.empty(),
                                   .event_ttl = options.event_ttl,
                                   .allow_privileged = options.allow_privileged,
                                   .service_ip_families = service_network.families,
                                   .server_address = external_address(),
                                   .watch_cache = options.watch_cache,
                                   .yielding_field_managers = {options.yielding_field_managers.begin(),
                                                               options.yielding_field_managers.end()},
                                   .min_watch_timeout = options.min_request_timeout},
                      .runtime_config = options.runtime_config,
                      .service_cluster_ip_ranges = service_network.cidrs,
                      .node_port_first = node_ports.first,
                      .node_port_last = node_ports.second,
                      .authorization = authorization,
                      .admission_plugins = admission_plugins,
                      .webhook_credentials = webhook_credentials,
                      .aggregator_routing = options.enable_aggregator_routing,
                      .proxy_identity = front_proxy.identity,
                      .kubelets = {.address_types = options.kubelet_preferred_address_types,
                                   .connect_timeout = options.kubelet_timeout,
                                   .credentials = [this] { return credentials.load()->kubelets; }}};
  std::map<std::string, store::Store*, std::less<>> kept_elsewhere;
  for (const OtherStore& other : other_stores) {
    for (const std::string& resource : other.resources) kept_elsewhere.emplace(resource, other.store.get());
  }
  api = std::make_unique<api::Api>(
      api::Dependencies{.store = store.get(),
                        .loops = loops.get(),
                        .background = background.get(),
                        .pool = pool.get(),
                        .metrics = &metrics,
                        .clock = &system_clock(),
                        .other_stores = std::move(kept_elsewhere),
                        .token_issuer = token_issuer.get(),
                        .review_token =
                            [this](std::string token, std::vector<std::string> meant_for, net::EventLoop& loop,
                                   std::shared_ptr<net::Cancellation> cancellation) {
                              return review_token(std::move(token), std::move(meant_for), loop,
                                                  std::move(cancellation));
                            }},
      std::move(chosen));
  push_closing("API", api);
  token_uses = std::make_unique<TokenUses>(*api, loops->at(0));
  push_closing("token uses", token_uses);
}

// Starts watching the store, then creates the bootstrap objects. False if it was cancelled before everything was
// loaded.
bool Server::State::start_api(const std::string& client_ca_pem) {
  api->start();
  while (!api->ready()) {
    if (options.cancelled && options.cancelled()) return false;
    // Short, because an empty store is read within milliseconds, and fast startup is a goal.
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  if (!options.etcd_servers.empty()) {
    service_repair = std::make_unique<ServiceRepair>(*api, loops->at(0));
    push_closing("service repair", service_repair);
    block_on(loops->at(0), service_repair->run());
    service_repair->start();
  }
  bootstrap::Options first{.service_cidrs = service_network.cidrs,
                           .service_ip = service_network.kubernetes_ip,
                           .advertise_address = advertised,
                           .secure_port = net->port(),
                           .own_endpoints = options.etcd_servers.empty() && !advertised.empty() &&
                                            options.endpoint_reconciler_type != "none",
                           .client_ca_pem = client_ca_pem,
                           .request_header_ca_pem = front_proxy.ca_pem,
                           .request_header_allowed_names = front_proxy.names,
                           .runtime_config = options.runtime_config,
                           .ownership_api = options.gates.on(Gate::OwnershipAPI)};
  bootstrap_objects =
      std::make_unique<BootstrapObjects>(*api, *store, *loops, std::move(first), options.etcd_servers.empty());
  push_closing("bootstrap objects", bootstrap_objects);
  block_on(loops->at(0), bootstrap_objects->make());
  block_on(loops->at(0), api->permissions_in_effect(loops->at(0)));  // Before the server says that it is ready.
  bootstrap_objects->start();
  start_own_endpoints();

  controllers = std::make_unique<controllers::Controllers>(
      *api, loops->at(0), system_clock(),
      controllers::Options{.controllers = options.controllers,
                           .root_ca_pem = credentials.load()->root_ca_pem,
                           .signer = std::get_if<tokens::Signer>(&token_issuer->signer)});
  push_closing("controllers", controllers);
  controllers->start();
  if (!options.gates.on(Gate::APIServerIdentity)) return true;
  char hostname[HOST_NAME_MAX + 1] = "localhost";
  (void)gethostname(hostname, sizeof hostname - 1);
  identity_lease = std::make_unique<IdentityLease>(*api, loops->at(0), hostname,
                                                   advertised + ":" + std::to_string(net->port()), signing_keys());
  push_closing("identity lease", identity_lease);
  identity_lease->start();
  return true;
}

namespace {

// The name of the key in the header of its tokens.
std::string key_id_of(const tokens::Signer& signer) {
  const std::string token = signer.sign({});
  const std::optional<std::string> header = base64url_decode(std::string_view(token).substr(0, token.find('.')));
  if (!header) return {};
  Arena arena;
  const Result<Value> parsed = codec::decode_json(arena, *header);
  return parsed ? std::string(parsed->text_at("kid")) : std::string();
}

}  // namespace

// Nothing to compare with an embedded store, which one server has alone, or if another program signs.
IdentityLease::SigningKeys Server::State::signing_keys() const {
  const auto* own = std::get_if<tokens::Signer>(&token_issuer->signer);
  if (own == nullptr || options.etcd_servers.empty()) return {};
  return {.own = key_id_of(*own), .accepts = [this](std::string_view id) {
            const std::shared_ptr<const tokens::Verifier> verifier = current_verifier();
            return verifier == nullptr || verifier->has_key(id);
          }};
}

// Several servers may share an etcd, each with its own endpoint.
void Server::State::start_own_endpoints() {
  if (options.etcd_servers.empty() || options.endpoint_reconciler_type == "none") return;
  if (advertised.empty()) {
    log::warning("this machine has no externally reachable address: the Service kubernetes gets no endpoint");
    return;
  }
  own_endpoints = std::make_unique<OwnEndpoints>(
      *api, *store, loops->at(0),
      OwnEndpoints::Options{.kind = options.endpoint_reconciler_type == "lease" ? OwnEndpoints::Kind::Lease
                                                                                : OwnEndpoints::Kind::MasterCount,
                            .own = {advertised, net->port()},
                            .count = options.apiserver_count,
                            .lease_prefix = options.etcd_prefix + "/masterleases/"});
  block_on(loops->at(0), own_endpoints->run());
  own_endpoints->start();
}

// Ends what comes from outside: clients first switch to other servers, then their requests end. These have the grace
// period; then their connections are closed.
void Server::State::drain(std::chrono::steady_clock::time_point end) {
  credential_watch = {};  // Joins it: a reload uses almost everything.
  const auto left = [end] {
    return std::max(net::Millis(0), std::chrono::ceil<net::Millis>(end - std::chrono::steady_clock::now()));
  };
  if (own_endpoints) block_on(loops->at(0), own_endpoints->close(loops->at(0)));
  own_endpoints.reset();
  if (started && options.shutdown_delay.count() > 0) std::this_thread::sleep_for(options.shutdown_delay);
  if (started && options.shutdown_send_retry_after) {
    front->turn_away();
    constexpr std::chrono::milliseconds kAgain{10};
    while (pipeline->in_flight() > 0 && left().count() > 0) std::this_thread::sleep_for(kAgain);
  }
  if (cleartext) cleartext->stop(left());
  if (net) net->stop(left());
  // What is left belongs to the background, and can be repeated by the next server.
  if (loops) own_calls::cancel_calls(*loops);
}

// Every step waits for whatever is still running. After the grace period, calls of the server to itself end, which also
// ends what they wait for: webhooks, watches, name lookups. Calls to etcd end at their own deadline.
void Server::State::shut_down() {
  if (std::exchange(stopped, true)) return;
  stopping = true;
  const auto delay = started ? options.shutdown_delay : std::chrono::milliseconds(0);
  const auto end = std::chrono::steady_clock::now() + delay + options.shutdown_grace;
  ShutdownWatch watch(
      end, services,
      [this] {
        if (loops) own_calls::cancel_calls(*loops);
      },
      options.on_stuck_shutdown);
  drain(end);
  services.stop();
  watch.closed();
  background.reset();
  loops.reset();
}

// Rejects options that contradict each other or with which no server can start.
Result<Unit> Server::State::check_options() {
  if (options.data_dir.empty() && (options.etcd_servers.empty() || options.cert_dir.empty())) {
    return bad_request("--data-dir is needed (or --etcd-servers together with --cert-dir)");
  }
  if (Result<Unit> known = controllers::check({.controllers = options.controllers}); !known) {
    return known.take_error();
  }
  if (Result<Unit> configured = configure_admission(); !configured) return configured;
  Result<std::pair<uint16_t, uint16_t>> range = parse_port_range(options.service_node_port_range);
  if (!range) return bad_request("--service-node-port-range: " + range.error().message);
  node_ports = *range;
  if (Result<Unit> checked = check_hsts(options.strict_transport_security_directives); !checked) return checked;
  if (Result<Unit> checked = check_signing(); !checked) return checked;
  options.etcd_prefix = with_leading_slash(options.etcd_prefix);
  if (Result<Unit> chosen = choose_other_stores(); !chosen) return chosen;
  if (options.tls_cert_file.empty() != options.tls_private_key_file.empty()) {
    return bad_request("--tls-cert-file and --tls-private-key-file must be given together");
  }
  Result<std::unique_ptr<FrontFilters>> filters = FrontFilters::make(
      {.cors_allowed_origins = options.cors_allowed_origins, .goaway_chance = options.goaway_chance});
  if (!filters) return filters.take_error();
  front = std::move(*filters);
  return Unit{};
}

// Tokens are signed either with a key of this server or by another program. The two messages are kube-apiserver's.
Result<Unit> Server::State::check_signing() const {
  const std::string& endpoint = options.service_account_signing_endpoint;
  if (endpoint.empty()) return Unit{};
  if (!options.service_account_signing_key_file.empty()) {
    return bad_request(
        "service-account-signing-key-file and service-account-signing-endpoint are mutually exclusive and cannot be "
        "set at the same time");
  }
  if (!options.service_account_key_files.empty()) {
    return bad_request(
        "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with "
        "`--service-account-signing-endpoint` (They are mutually exclusive)");
  }
  return signer::check_endpoint(endpoint);
}

// The enabled plugins and their configuration.
Result<Unit> Server::State::configure_admission() {
  admission_plugins.enabled = options.enable_admission_plugins;
  admission_plugins.disabled = options.disable_admission_plugins;
  if (Result<Unit> known = admission::check_plugin_choice(admission_plugins); !known) return known;
  if (options.admission_control_config_file.empty()) return Unit{};
  const auto failed = [](const Error& why) { return bad_request("--admission-control-config-file: " + why.message); };
  Result<admission::Configuration> read =
      admission::load_configuration(options.admission_control_config_file, read_file);
  if (!read) return failed(read.error());
  for (const std::string& plugin : read->plugins) {
    if (std::find(admission_plugins.disabled.begin(), admission_plugins.disabled.end(), plugin) ==
        admission_plugins.disabled.end()) {
      continue;
    }
    log::warning("the configuration of a disabled admission plugin has no effect", {{"plugin", plugin}});
  }
  for (const auto& [kubeconfig, credentials] :
       {std::pair{&read->mutating_webhook_kubeconfig, &webhook_credentials.mutating},
        std::pair{&read->validating_webhook_kubeconfig, &webhook_credentials.validating}}) {
    if (kubeconfig->empty()) continue;
    Result<std::shared_ptr<webhook::ClientCredentials>> loaded = webhook::ClientCredentials::load(*kubeconfig);
    if (!loaded) return failed(loaded.error());
    *credentials = std::move(*loaded);
  }
  admission_plugins.configuration = std::move(*read);
  return Unit{};
}

Result<Unit> Server::State::choose_folders() {
  for (const std::string* folder : {&options.data_dir, &options.cert_dir}) {
    if (folder->empty()) continue;
    if (Result<Unit> ours = make_private_directory(*folder); !ours) return ours.take_error();
  }
  pki_dir = options.cert_dir.empty() ? options.data_dir + "/pki" : options.cert_dir;
  kubeconfig_path = (options.data_dir.empty() ? options.cert_dir : options.data_dir) + "/kubeconfig";
  first_start = !std::filesystem::exists(pki_dir + "/sa.key");
  return Unit{};
}

// The advertised address, and the addresses of the serving certificate.
Result<Unit> Server::State::choose_addresses() {
  pki_options.directory = pki_dir;
  pki_options.serving = options.tls_cert_file.empty();
  pki_options.clients = options.client_ca_file.empty();
  if (!options.advertise_address.empty() && !is_ip_address(options.advertise_address)) {
    return bad_request("--advertise-address \"" + options.advertise_address + "\" is not an IP address");
  }
  Result<ServiceNetwork> network = parse_service_network(options.service_cluster_ip_range);
  if (!network) return network.take_error();
  service_network = std::move(*network);
  advertised = options.advertise_address.empty() ? host_of(options.listen) : options.advertise_address;
  if (is_any(advertised) || advertised == "localhost" || advertised.starts_with("127.") || advertised == "::1") {
    advertised = host_address(service_network.families.front());
  }
  if (options.endpoint_reconciler_type != "none") {
    if (Result<Unit> same = check_advertised_family(service_network, advertised); !same) return same;
  }
  // Addresses for the serving certificate. An invalid listen address is reported when listening.
  for (const std::string& address : {host_of(options.listen), advertised, service_network.kubernetes_ip}) {
    if (is_ip_address(address) && !is_any(address) && address != "127.0.0.1" && address != "::1") {
      pki_options.addresses.push_back(address);
    }
  }
  return Unit{};
}

// The client certificate for aggregated servers.
Result<Unit> Server::State::choose_authorizers() {
  std::vector<std::string> modes = options.authorization_modes;
  std::string flag = "--authorization-mode ";
  if (!options.authorization_config.empty()) {
    if (!modes.empty()) {
      return bad_request(
          "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags "
          "are defined");
    }
    Result<std::string> text = read_file(options.authorization_config);
    if (!text) return text.take_error();
    Result<std::vector<std::string>> parsed = parse_authorization_config(*text);
    if (!parsed) return parsed.take_error();
    modes = std::move(*parsed);
    flag = "--authorization-config " + options.authorization_config + ": type ";
  }
  if (modes.empty()) modes = {"RBAC"};
  authorization = {.modes = {}};
  for (const std::string& mode : modes) {
    static const std::map<std::string_view, access::Mode> kModes = {{"ABAC", access::Mode::Abac},
                                                                    {"AlwaysAllow", access::Mode::AlwaysAllow},
                                                                    {"AlwaysDeny", access::Mode::AlwaysDeny},
                                                                    {"Node", access::Mode::Node},
                                                                    {"RBAC", access::Mode::Rbac}};
    const auto known = kModes.find(mode);
    if (known == kModes.end()) {
      return bad_request(flag + mode + " is not known; supported: ABAC, AlwaysAllow, AlwaysDeny, Node, RBAC");
    }
    if (contains(authorization.modes, known->second)) {
      return bad_request("authorization-mode [" + join(modes, " ", go_quote) + "] has mode specified more than once");
    }
    authorization.modes.push_back(known->second);
  }
  return read_policies();
}

Result<Unit> Server::State::read_policies() {
  const bool wanted = contains(authorization.modes, access::Mode::Abac);
  const std::string& file = options.authorization_policy_file;
  if (file.empty() == wanted) {
    return bad_request(wanted ? "authorization-mode ABAC's authorization policy file not passed"
                              : "cannot specify --authorization-policy-file without mode ABAC");
  }
  if (!wanted) return Unit{};
  Result<std::string> text = read_file(file);
  if (!text) return text.take_error();
  Result<std::vector<abac::Policy>> policies = abac::parse(*text, file);
  if (!policies) return policies.take_error();
  authorization.policies = std::move(*policies);
  return Unit{};
}

void Server::State::make_health() {
  std::vector<Health::Probe> other_probes;
  other_probes.reserve(other_stores.size());
  for (size_t i = 0; i < other_stores.size(); ++i)
    other_probes.emplace_back([this, i] { return other_stores[i].probe->wrong(); });
  health = std::make_unique<Health>(
      Health::Probes{.store = [this] { return store_probe->wrong(); },
                     .store_writes =
                         [this] {
                           std::optional<std::string> wrong = store_probe->wrong();
                           if (!wrong) wrong = store_probe->writes_rejected();
                           return wrong;
                         },
                     .started = [this]() -> std::optional<std::string> {
                       if (started) return std::nullopt;
                       return "not finished";
                     },
                     .alive = [this, begin = std::chrono::steady_clock::now()]() -> std::optional<std::string> {
                       const auto took = std::chrono::steady_clock::now() - begin;
                       if (started || took < options.livez_grace_period) return std::nullopt;
                       return "not finished";
                     },
                     .shutdown = [this]() -> std::optional<std::string> {
                       if (!stopping) return std::nullopt;
                       return "process is shutting down";
                     },
                     .other_stores = std::move(other_probes)});
}

void Server::State::make_pipeline() {
  flow = std::make_unique<access::FlowControl>(
      flow::DispatcherOptions{.seats = int64_t{options.max_requests_inflight} +
                                       int64_t{options.max_mutating_requests_inflight}},
      metrics, api->registry());
  pipeline = std::make_unique<Pipeline>(
      Pipeline::Parts{.metrics = &metrics,
                      .front = front.get(),
                      .health = health.get(),
                      .refresh_health = [this](net::EventLoop& loop) { return probe_stores(loop); },
                      .authorizer = &api->authorizer(),
                      .api =
                          [this](const request::RequestInfo& info, net::Request& request, net::Response& response,
                                 auth::UserRef user, call::Recording* recording) {
                            return api->handle(info, request, response, std::move(user), recording);
                          },
                      .flow = flow.get(),
                      .auditor = auditor.get(),
                      .api_paths = [this] { return api->group_paths(); },
                      .serves = [this](const request::Target& target) { return api->serves(target); },
                      .refresh_metrics = [this] { api->refresh_metrics(); },
                      .ownership_page = [this](const request::Query& query) { return api->ownership_page(query); },
                      .openid = [this] { return openid(); },
                      .started = system_clock().now(),
                      .request_timeout = options.request_timeout,
                      .gates = options.gates,
                      .accept_rule = accept_rule_of(options),
                      .strict_transport_security = join(options.strict_transport_security_directives, "; "),
                      .flags = options.flags});
  pipeline->set_authenticator(credentials.load()->authenticator);
  services.push("pipeline", [this] {
    pipeline.reset();
    flow.reset();
  });
}

// Binds the ports; nothing is served before start_listening().
Result<Unit> Server::State::bind() {
  net::ServerOptions net_options;
  const CredentialsRef now = credentials.load();
  net_options.listen = options.listen;
  net_options.identity = now->serving;
  net_options.client_ca_pem = now->client_ca_pem;
  if (options.http2_max_streams_per_connection > 0) {
    net_options.max_concurrent_streams = options.http2_max_streams_per_connection;
  }
  net_options.on_exception = [](const net::Request& request, std::string_view what) {
    log::error("a handler threw", {{"method", request.method}, {"uri", request.target}, {"what", what}});
  };
  net_options.on_deadline = Pipeline::respond_timed_out;
  net_options.tls = options.tls;
  net_options.named_identities = now->named;
  net_options.max_connections = std::min(options.max_connections, connections_for_descriptors());
  net_options.max_unauthenticated_connections = options.max_unauthenticated_connections;
  net_options.max_unauthenticated_connections_per_address = options.max_unauthenticated_connections_per_address;
  loops = std::make_unique<net::Loops>(options.threads);
  // More threads than the loops have, which the operating system lets run beside each other: what takes long delays the
  // rest instead of blocking it.
  background = std::make_unique<FairPool>(std::max<size_t>(4, options.threads));
  services.push("listeners", [this] {
    cleartext.reset();
    net.reset();
  });
  add_loop_metrics();
  const net::Handler handler = [this](net::Request& request, net::Response& response) {
    return pipeline->serve(request, response);
  };
  if (!options.listen_cleartext.empty()) {
    if (!is_local_address(options.listen_cleartext)) {
      return bad_request("--listen-cleartext " + options.listen_cleartext +
                         ": only a loopback address (127.0.0.1:8080, [::1]:8080) or unix:PATH is served without TLS");
    }
    net::ServerOptions without_tls = net_options;
    without_tls.listen = options.listen_cleartext;
    without_tls.identity.reset();
    cleartext = std::make_unique<net::Server>(*loops, std::move(without_tls), handler);
    if (Result<Unit> bound = cleartext->bind(); !bound) return bound.take_error();
  }
  net = std::make_unique<net::Server>(*loops, std::move(net_options), handler);
  if (Result<Unit> bound = net->bind(); !bound) return bound.take_error();
  return Unit{};
}

Result<Unit> Server::State::start_listening() {
  if (Result<Unit> listening = net->start(); !listening) return listening;
  return cleartext ? cleartext->start() : Result<Unit>(Unit{});
}

Result<Unit> Server::State::start() {
  if (Result<Unit> checked = check_options(); !checked) return checked;
  if (Result<Unit> chosen = choose_folders(); !chosen) return chosen;
  if (Result<Unit> chosen = choose_addresses(); !chosen) return chosen;
  if (Result<Unit> chosen = choose_authorizers(); !chosen) return chosen;
  raise_descriptor_limit();
  services.push("store", [this] {
    for (OtherStore& other : other_stores) other.store.reset();
    store.reset();
  });
  // Opening the store is I/O-bound while creating certificates is CPU-bound.
  std::future<Result<Unit>> opening = std::async(std::launch::async, [this] { return open_store(); });
  Result<Unit> result = start_while_opening(opening);
  if (!result) start_failed = true;  // Leaving waits for the store to be opened or given up.
  return result;
}

Result<Unit> Server::State::start_while_opening(std::future<Result<Unit>>& opening) {
  watched_files.emplace(credential_files().paths());  // Before they are read, so that no change is missed.
  Result<CredentialsRef> loaded = credential_files().load(pki_options);
  if (!loaded) return loaded.take_error();
  credentials.store(*loaded);
  Result<FrontProxy> proxy = credential_files().front_proxy((*loaded)->pki);
  if (!proxy) return proxy.take_error();
  front_proxy = std::move(*proxy);
  add_metrics();
  make_health();
  if (Result<Unit> made = make_auditor(); !made) return made;
  if (Result<Unit> bound = bind(); !bound) return bound;
  if (Result<Unit> signing = start_signer(); !signing) return signing;
  if (Result<Unit> made = make_token_issuer(); !made) return made;
  if (Result<Unit> opened = opening.get(); !opened) return opened;
  // The kubeconfig signals readiness, so remove that of an earlier run. (Only now is it certain that the directory is
  // ours.)
  std::error_code ignored;
  std::filesystem::remove(kubeconfig_path, ignored);
  store_probe = std::make_unique<StoreProbe>(*store, options.etcd_prefix + "/health",
                                             options.etcd_servers.empty() ? options.data_dir + "/store" : "");
  for (OtherStore& other : other_stores)
    other.probe = std::make_unique<StoreProbe>(*other.store, options.etcd_prefix + "/health");
  make_api();
  make_pipeline();
  if (Result<Unit> listening = start_listening(); !listening) return listening;
  if (!start_api((*loaded)->client_ca_pem)) {
    return Error{Reason::ServiceUnavailable, "stopped before everything in the store could be read"};
  }
  started = true;
  std::vector<StoreProbe*> probes{store_probe.get()};
  for (const OtherStore& other : other_stores) probes.push_back(other.probe.get());
  store_watch = std::make_unique<StoreWatch>(loops->at(0), std::move(probes));
  push_closing("store watch", store_watch);
  store_watch->start();
  if (Result<Unit> written = write_kubeconfig(); !written) return written;
  credential_watch = std::jthread([this](const std::stop_token& stop) { watch_credentials(stop); });
  // Starting takes more memory than running idle, which adds up if many servers are started for tests.
  background->post(release_startup_memory);
  return Unit{};
}

// The parts of a start that only read.
Result<Unit> Server::State::check() {
  if (Result<Unit> checked = check_options(); !checked) return checked;
  if (Result<Unit> chosen = choose_addresses(); !chosen) return chosen;
  if (Result<Unit> chosen = choose_authorizers(); !chosen) return chosen;
  for (const std::string* file : {&options.etcd_cafile, &options.etcd_certfile, &options.etcd_keyfile}) {
    if (file->empty()) continue;
    if (Result<std::string> read = read_file(*file); !read) return read.take_error();
  }
  if (Result<Unit> checked = credential_files().check(); !checked) return checked;
  if (options.audit_policy_file.empty()) return Unit{};
  Result<std::string> text = read_file(options.audit_policy_file);
  if (!text) return text.take_error();
  Result<audit::Policy> policy = audit::Policy::parse(*text, options.audit_policy_file);
  if (!policy) return policy.take_error();
  return Unit{};
}

Result<Unit> Server::check(Options options) {
  State state;
  state.options = std::move(options);
  return state.check();
}

bool Server::responds(std::chrono::milliseconds within) const {
  // Shared with the loops: one that does not respond in time may still do so later.
  const auto waiting = std::make_shared<std::promise<void>>();
  const auto left = std::make_shared<std::atomic<size_t>>(state_->loops->count());
  std::future<void> all = waiting->get_future();
  for (size_t i = 0; i < state_->loops->count(); ++i) {
    state_->loops->at(i).post([waiting, left] {
      if (left->fetch_sub(1) == 1) waiting->set_value();
    });
  }
  return all.wait_for(within) == std::future_status::ready;
}

Result<std::unique_ptr<Server>> Server::start(Options options) {
  auto state = std::make_unique<State>();
  state->options = std::move(options);
  if (Result<Unit> started = state->start(); !started) return started.take_error();
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() { stop(); }

std::string Server::url() const { return state_->url(); }
const std::string& Server::kubeconfig_path() const { return state_->kubeconfig_path; }
bool Server::first_start() const { return state_->first_start; }

bool Server::has_admin() const { return state_->options.client_ca_file.empty(); }

Result<Unit> Server::reload() { return state_->reload(); }

void Server::stop() { state_->shut_down(); }

}  // namespace holdfast::server
