#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "base/hash.h"
#include "base/strings.h"

namespace holdfast::net {

namespace detail {

namespace {

struct BioFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using BioPtr = std::unique_ptr<BIO, BioFree>;

BioPtr memory_bio(std::string_view text) { return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

constexpr unsigned char kAlpn[] = "\x02h2\x08http/1.1";

int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_bytes, const unsigned char* in,
                    unsigned in_bytes, void*) {
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_bytes, kAlpn, sizeof kAlpn - 1, in, in_bytes) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;  // Clients that offer neither get HTTP/1.1, as with Go.
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

// CaPool verifies certificates later; building the chain here would be wasted work.
int accept_any(X509_STORE_CTX*, void*) { return 1; }

// Stale errors would make OpenSSL misreport the next failure.
void clear_stale_errors() {
  if (ERR_peek_error() != 0) ERR_clear_error();  // Clearing walks the whole queue, even an empty one.
}

Result<Unit> use_identity(SSL_CTX* ctx, const Identity& identity) {
  Result<std::vector<X509Ptr>> chain = certificates_from_pem(identity.certificate_pem, "the certificate");
  if (!chain) return chain.take_error();
  BioPtr key_bio = memory_bio(identity.key_pem);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr);
  if (key == nullptr) return bad_request("the private key cannot be read: " + openssl_error());
  const bool used = SSL_CTX_use_certificate(ctx, chain->front().get()) == 1 && SSL_CTX_use_PrivateKey(ctx, key) == 1;
  EVP_PKEY_free(key);
  if (!used || SSL_CTX_check_private_key(ctx) != 1) {
    return bad_request("the certificate and its private key cannot be used together: " + openssl_error());
  }
  for (size_t i = 1; i < chain->size(); ++i) SSL_CTX_add1_chain_cert(ctx, (*chain)[i].get());
  return Unit{};
}

ContextPtr new_context(const SSL_METHOD* method) {
  ContextPtr ctx(SSL_CTX_new(method), SslCtxFree{});
  SSL_CTX_set_min_proto_version(ctx.get(), TLS1_2_VERSION);
  // Partial writes cannot happen: output goes to memory.
  SSL_CTX_set_mode(ctx.get(), SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_options(ctx.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  return ctx;
}

std::vector<std::string> subject_texts(X509* certificate, int nid) {
  std::vector<std::string> texts;
  X509_NAME* subject = X509_get_subject_name(certificate);
  for (int i = X509_NAME_get_index_by_NID(subject, nid, -1); i >= 0; i = X509_NAME_get_index_by_NID(subject, nid, i)) {
    unsigned char* utf8 = nullptr;
    const int bytes = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, i)));
    if (bytes >= 0) texts.emplace_back(reinterpret_cast<char*>(utf8), bytes);
    OPENSSL_free(utf8);
  }
  return texts;
}

std::string subject_uid(X509* certificate) {
  ASN1_OBJECT* oid = OBJ_txt2obj("1.3.6.1.4.1.57683.2", 1);
  X509_NAME* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_OBJ(subject, oid, -1);
  ASN1_OBJECT_free(oid);
  if (at < 0) return {};
  const ASN1_STRING* text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)), static_cast<size_t>(ASN1_STRING_length(text))};
}

}  // namespace

std::string openssl_error() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "unknown error" : reason;
}

Result<std::vector<X509Ptr>> certificates_from_pem(std::string_view pem, std::string_view source) {
  std::vector<X509Ptr> found;
  BioPtr bio = memory_bio(pem);
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) found.emplace_back(certificate);
  const unsigned long last = ERR_peek_last_error();
  const bool at_end = ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
  const std::string why = openssl_error();
  if (!at_end) return bad_request(std::string(source) + " holds a certificate that cannot be read: " + why);
  if (found.empty()) return bad_request(std::string(source) + " holds no certificate in PEM form");
  return found;
}

namespace {

// Go's names for the supported TLS 1.2 suites, and whether they are enabled by default.
struct Suite {
  std::string_view name;
  bool usual;
};
constexpr Suite kSuites[] = {
    {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", true},
    {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", true},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", true},
    {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", true},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", true},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", true},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", false},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", false},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", false},
    {"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", false},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", false},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", false},
    {"TLS_RSA_WITH_AES_128_GCM_SHA256", false},
    {"TLS_RSA_WITH_AES_256_GCM_SHA384", false},
    {"TLS_RSA_WITH_AES_128_CBC_SHA", false},
    {"TLS_RSA_WITH_AES_256_CBC_SHA", false},
    {"TLS_RSA_WITH_AES_128_CBC_SHA256", false},
};
// Go's preference order, so that clients negotiate the same suite as with kube-apiserver; OpenSSL's default starts with
// AES-256, which is a third slower.
constexpr const char kTls13Suites[] = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

// OpenSSL's names order their parts differently from IANA's.
std::string openssl_name(std::string_view name) {
  // OpenSSL omits the hash in these two.
  if (name.ends_with("CHACHA20_POLY1305_SHA256")) {
    return name.find("ECDSA") != std::string_view::npos ? "ECDHE-ECDSA-CHACHA20-POLY1305"
                                                        : "ECDHE-RSA-CHACHA20-POLY1305";
  }
  const char* found = OPENSSL_cipher_name(std::string(name).c_str());
  return found == nullptr ? std::string() : std::string(found);
}

Result<Unit> use_suites(SSL_CTX* ctx, const std::vector<std::string>& names) {
  std::string list;
  const auto add = [&list](std::string_view name) { list += (list.empty() ? "" : ":") + openssl_name(name); };
  for (std::string name : names) {
    if (name.ends_with("CHACHA20_POLY1305")) name += "_SHA256";  // Go's original names.
    const auto known =
        std::find_if(std::begin(kSuites), std::end(kSuites), [&](const Suite& s) { return s.name == name; });
    if (known != std::end(kSuites)) {
      add(name);
    } else if (std::string_view(kTls13Suites).find(name) == std::string_view::npos) {
      return bad_request("Cipher suite " + name + " not supported or doesn't exist");
    }
  }
  if (list.empty()) {
    for (const Suite& suite : kSuites) {
      if (suite.usual) add(suite.name);
    }
  }
  if (SSL_CTX_set_cipher_list(ctx, list.c_str()) != 1) {
    return bad_request("the cipher suites cannot be used: " + openssl_error());
  }
  SSL_CTX_set_ciphersuites(ctx, kTls13Suites);
  return Unit{};
}

// The host names a certificate is valid for.
std::vector<std::string> names_in(X509* certificate) {
  std::vector<std::string> names;
  auto* all = static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all, i);
    if (name->type != GEN_DNS) continue;
    names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                       static_cast<size_t>(ASN1_STRING_length(name->d.dNSName)));
  }
  GENERAL_NAMES_free(all);
  return names;
}

// A server's context and those for other host names.
struct NamedContexts {
  ContextPtr usual;
  std::vector<std::pair<std::string, ContextPtr>> named;  // Lower case; the first match wins.

  const ContextPtr* find(std::string_view host) const {
    for (const auto& [name, context] : named) {
      const size_t dot = host.find('.');
      const bool below = name.starts_with("*.") && dot != std::string_view::npos && host.substr(dot) == name.substr(1);
      if (below || name == host) return &context;
    }
    return nullptr;
  }
};

int choose_context(SSL* ssl, int*, void* arg) {
  const char* host = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (host == nullptr) return SSL_TLSEXT_ERR_OK;
  if (const ContextPtr* found = static_cast<const NamedContexts*>(arg)->find(to_lower(host))) {
    SSL_set_SSL_CTX(ssl, found->get());
  }
  return SSL_TLSEXT_ERR_OK;
}

Result<ContextPtr> one_context(const Identity& identity, const TlsOptions& options, std::string_view client_ca_pem) {
  ContextPtr ctx = new_context(TLS_server_method());
  if (options.min_version == TlsOptions::Version::Tls13) SSL_CTX_set_min_proto_version(ctx.get(), TLS1_3_VERSION);
  if (Result<Unit> suites = use_suites(ctx.get(), options.cipher_suites); !suites) return suites.take_error();
  Result<Unit> used = use_identity(ctx.get(), identity);
  if (!used) return used.take_error();
  SSL_CTX_set_options(ctx.get(), SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_TICKET);
  // No resumption: clients keep connections for hours, and a resumed session would lack the certificate chain.
  SSL_CTX_set_session_cache_mode(ctx.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(ctx.get(), 0);
  SSL_CTX_set_alpn_select_cb(ctx.get(), choose_protocol, nullptr);
  SSL_CTX_set_verify(ctx.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_cert_verify_callback(ctx.get(), accept_any, nullptr);
  // Input is in memory, so reading a record's header and body separately saves nothing.
  SSL_CTX_set_read_ahead(ctx.get(), 1);
  if (!client_ca_pem.empty()) {
    Result<std::vector<X509Ptr>> authorities = certificates_from_pem(client_ca_pem, "the client CA bundle");
    if (!authorities) return authorities.take_error();
    for (const X509Ptr& authority : *authorities) SSL_CTX_add_client_CA(ctx.get(), authority.get());
  }
  return ctx;
}

}  // namespace

Result<ContextPtr> server_context(const Identity& identity, std::span<const NamedIdentity> named_identities,
                                  const TlsOptions& options, std::string_view client_ca_pem) {
  auto all = std::make_shared<NamedContexts>();
  Result<ContextPtr> usual = one_context(identity, options, client_ca_pem);
  if (!usual) return usual;
  all->usual = std::move(*usual);
  for (const NamedIdentity& named : named_identities) {
    Result<ContextPtr> context = one_context(named.identity, options, client_ca_pem);
    if (!context) return context;
    for (const std::string& name :
         named.names.empty() ? names_in(SSL_CTX_get0_certificate(context->get())) : named.names) {
      all->named.emplace_back(to_lower(name), *context);
    }
  }
  if (!all->named.empty()) {
    SSL_CTX_set_tlsext_servername_callback(all->usual.get(), choose_context);
    SSL_CTX_set_tlsext_servername_arg(all->usual.get(), all.get());
  }
  SSL_CTX* const raw = all->usual.get();
  return ContextPtr(std::move(all), raw);
}

Result<ContextPtr> client_context(const ClientOptions& options) {
  ContextPtr ctx = new_context(TLS_client_method());
  SSL_CTX_set_mode(ctx.get(), SSL_MODE_RELEASE_BUFFERS);
  if (options.http2) {
    constexpr unsigned char kProtocols[] = "\x02h2\x08http/1.1";
    SSL_CTX_set_alpn_protos(ctx.get(), kProtocols, sizeof kProtocols - 1);
  }
  if (options.identity) {
    Result<Unit> used = use_identity(ctx.get(), *options.identity);
    if (!used) return used.take_error();
  }
  if (options.insecure) return ctx;
  SSL_CTX_set_verify(ctx.get(), SSL_VERIFY_PEER, nullptr);
  if (options.ca_pem.empty()) {
    SSL_CTX_set_default_verify_paths(ctx.get());
    return ctx;
  }
  Result<std::vector<X509Ptr>> authorities = certificates_from_pem(options.ca_pem, "the CA bundle");
  if (!authorities) return authorities.take_error();
  X509_STORE* store = SSL_CTX_get_cert_store(ctx.get());
  for (const X509Ptr& authority : *authorities) X509_STORE_add_cert(store, authority.get());
  // A bundle may contain the server's own certificate or an intermediate, as in Go.
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx.get()), X509_V_FLAG_PARTIAL_CHAIN);
  return ctx;
}

// The BIO that connects OpenSSL to an engine's two buffers.
struct MemoryBio {
  static int read(BIO* bio, char* to, int capacity) {
    auto* engine = static_cast<TlsEngine*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    if (engine->input_.empty()) {
      BIO_set_retry_read(bio);
      return -1;
    }
    const size_t take = std::min<size_t>(capacity, engine->input_.size());
    std::memcpy(to, engine->input_.data(), take);
    engine->input_.remove_prefix(take);
    return static_cast<int>(take);
  }
  static int write(BIO* bio, const char* from, int bytes) {
    auto* engine = static_cast<TlsEngine*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    assert(engine->output_ != nullptr);
    engine->output_->append(from, bytes);
    return bytes;
  }
  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }
  static int create(BIO* bio) {
    BIO_set_init(bio, 1);
    return 1;
  }
  static BIO_METHOD* method() {
    static BIO_METHOD* const kMethod = [] {
      BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "holdfast memory");
      BIO_meth_set_read(m, read);
      BIO_meth_set_write(m, write);
      BIO_meth_set_ctrl(m, control);
      BIO_meth_set_create(m, create);
      return m;
    }();
    return kMethod;
  }
};

TlsEngine::TlsEngine(const ContextPtr& context, bool server) : context_(context), ssl_(SSL_new(context.get())) {
  BIO* bio = BIO_new(MemoryBio::method());
  BIO_set_data(bio, this);
  SSL_set_bio(ssl_.get(), bio, bio);
  if (server) {
    SSL_set_accept_state(ssl_.get());
  } else {
    SSL_set_connect_state(ssl_.get());
  }
}

void TlsEngine::set_server_name(const std::string& name, bool verify) {
  const bool is_address = is_ip_address(name);
  if (!is_address) SSL_set_tlsext_host_name(ssl_.get(), name.c_str());
  if (!verify) return;
  X509_VERIFY_PARAM* param = SSL_get0_param(ssl_.get());
  if (is_address) {
    X509_VERIFY_PARAM_set1_ip_asc(param, name.c_str());
  } else {
    // Like Go, only subject alternative names are considered.
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    X509_VERIFY_PARAM_set1_host(param, name.c_str(), name.size());
  }
}

TlsEngine::Status TlsEngine::status_of(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return Status::WantInput;
    case SSL_ERROR_ZERO_RETURN:
      return Status::Closed;
    default:
      failure_ = openssl_error();
      return Status::Failed;
  }
}

TlsEngine::Status TlsEngine::handshake() {
  clear_stale_errors();
  const int result = SSL_do_handshake(ssl_.get());
  return result == 1 ? Status::Ok : status_of(result);
}

TlsEngine::Status TlsEngine::read(char* to, size_t capacity, size_t& got) {
  clear_stale_errors();
  const int result = SSL_read_ex(ssl_.get(), to, capacity, &got);
  return result == 1 ? Status::Ok : status_of(result);
}

bool TlsEngine::write(std::string_view plaintext) {
  if (plaintext.empty()) return true;
  clear_stale_errors();
  size_t written = 0;
  return SSL_write_ex(ssl_.get(), plaintext.data(), plaintext.size(), &written) == 1;
}

void TlsEngine::close_notify() {
  ERR_clear_error();
  if (SSL_is_init_finished(ssl_.get())) SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

bool TlsEngine::alpn_is_h2() const {
  const unsigned char* name = nullptr;
  unsigned bytes = 0;
  SSL_get0_alpn_selected(ssl_.get(), &name, &bytes);
  return bytes == 2 && std::memcmp(name, "h2", 2) == 0;
}

std::unique_ptr<CertificateData> TlsEngine::peer_certificate() const {
  X509* leaf = SSL_get0_peer_certificate(ssl_.get());
  if (leaf == nullptr) return nullptr;
  auto data = std::make_unique<CertificateData>();
  X509_up_ref(leaf);
  data->leaf.reset(leaf);
  if (STACK_OF(X509)* chain = SSL_get_peer_cert_chain(ssl_.get())) {
    for (int i = 0; i < sk_X509_num(chain); ++i) {
      X509* certificate = sk_X509_value(chain, i);
      if (X509_cmp(certificate, leaf) == 0) continue;
      X509_up_ref(certificate);
      data->intermediates.emplace_back(certificate);
    }
  }
  // Like Go, use the last CN if the subject has several.
  std::vector<std::string> names = subject_texts(leaf, NID_commonName);
  if (!names.empty()) data->common_name = std::move(names.back());
  data->organizations = subject_texts(leaf, NID_organizationName);
  data->uid = subject_uid(leaf);
  tm end{};
  ASN1_TIME_to_tm(X509_get0_notAfter(leaf), &end);
  data->not_after = std::chrono::system_clock::from_time_t(timegm(&end)) + std::chrono::seconds(1);
  unsigned char* der = nullptr;
  const int bytes = i2d_X509(leaf, &der);
  if (bytes > 0) data->der.assign(reinterpret_cast<char*>(der), bytes);
  OPENSSL_free(der);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned digest_bytes = 0;
  X509_digest(leaf, EVP_sha256(), digest, &digest_bytes);
  data->sha256_hex = to_hex({reinterpret_cast<const char*>(digest), digest_bytes});
  return data;
}

}  // namespace detail

std::vector<std::string_view> known_cipher_suites() {
  std::vector<std::string_view> names;
  for (const detail::Suite& suite : detail::kSuites) names.push_back(suite.name);
  return names;
}

PeerCertificate::PeerCertificate(std::unique_ptr<detail::CertificateData> data) : data_(std::move(data)) {}
PeerCertificate::~PeerCertificate() = default;
std::string_view PeerCertificate::common_name() const { return data_->common_name; }
const std::vector<std::string>& PeerCertificate::organizations() const { return data_->organizations; }
std::string_view PeerCertificate::uid() const { return data_->uid; }
std::string_view PeerCertificate::der() const { return data_->der; }
std::string_view PeerCertificate::sha256_hex() const { return data_->sha256_hex; }
std::chrono::system_clock::time_point PeerCertificate::not_after() const { return data_->not_after; }

struct CaPool::State {
  uint64_t id;
  std::string pem;
  X509_STORE* store = X509_STORE_new();
  // Leaves verified without intermediates, by SHA-256, with the expiry of the result: a client opens many connections
  // with one certificate.
  mutable std::mutex mutex;
  mutable std::unordered_map<std::string, std::chrono::system_clock::time_point, KeyHash> good;
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { X509_STORE_free(store); }
};

Result<CaPool> CaPool::from_pem(std::string_view pem, std::string_view source) {
  Result<std::vector<detail::X509Ptr>> authorities = detail::certificates_from_pem(pem, source);
  if (!authorities) return authorities.take_error();
  static std::atomic<uint64_t> next_id{1};
  auto state = std::make_shared<State>();
  state->id = next_id++;
  state->pem = pem;
  for (const auto& authority : *authorities) X509_STORE_add_cert(state->store, authority.get());
  CaPool pool;
  pool.state_ = std::move(state);
  return pool;
}

std::string_view CaPool::pem() const { return state_->pem; }

Result<Unit> CaPool::verify_client(const PeerCertificate& certificate) const {
  // Results are cached for a minute, so that expiry is noticed on long-lived connections.
  constexpr auto kVerdictAge = std::chrono::minutes(1);
  constexpr size_t kGoodLeaves = 1024;
  const auto now = std::chrono::system_clock::now();
  const detail::CertificateData& data = certificate.data();
  // A cached result must not outlive the certificate.
  if (now > data.not_after) return Error{Reason::Unauthorized, "certificate has expired"};
  auto known = std::find_if(data.verdicts.begin(), data.verdicts.end(),
                            [&](const auto& verdict) { return verdict.pool == state_->id; });
  if (known == data.verdicts.end()) {
    if (data.verdicts.size() >= 4) data.verdicts.clear();  // Left by replaced pools.
    data.verdicts.push_back({state_->id, {}, {}});
    known = data.verdicts.end() - 1;
  }
  if (known->until > now) {
    if (known->error) return *known->error;
    return Unit{};
  }
  known->error.reset();
  if (data.intermediates.empty()) {
    std::lock_guard lock(state_->mutex);
    if (const auto good = state_->good.find(data.sha256_hex); good != state_->good.end() && good->second > now) {
      known->until = good->second;
      return Unit{};
    }
  }
  known->until = now + kVerdictAge;
  X509_STORE_CTX* ctx = X509_STORE_CTX_new();
  STACK_OF(X509)* chain = sk_X509_new_null();
  for (const auto& intermediate : data.intermediates) sk_X509_push(chain, intermediate.get());
  X509_STORE_CTX_init(ctx, state_->store, data.leaf.get(), chain);
  X509_STORE_CTX_set_purpose(ctx, X509_PURPOSE_SSL_CLIENT);
  X509_STORE_CTX_set_flags(ctx, X509_V_FLAG_PARTIAL_CHAIN);
  if (X509_verify_cert(ctx) != 1) {
    known->error = Error{Reason::Unauthorized, X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx))};
  }
  sk_X509_free(chain);
  X509_STORE_CTX_free(ctx);
  if (known->error) return *known->error;
  if (data.intermediates.empty()) {
    std::lock_guard lock(state_->mutex);
    if (state_->good.size() >= kGoodLeaves) state_->good.clear();
    state_->good[data.sha256_hex] = known->until;
  }
  return Unit{};
}

}  // namespace holdfast::net
