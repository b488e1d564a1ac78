#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/file.h>

#include <ctime>
#include <filesystem>

#include "auth/auth.h"
#include "base/base64.h"
#include "base/files.h"
#include "base/strings.h"

namespace holdfast::auth {

namespace {

struct Free {
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(X509_EXTENSION* p) const { X509_EXTENSION_free(p); }
};
template <class T>
using Ptr = std::unique_ptr<T, Free>;

constexpr Days kAuthorityDays{3650};
constexpr Days kLeafDays{365};
constexpr Days kRenewBefore{30};

Error openssl_failure(std::string_view what) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return internal_error(std::string(what) + ": " + (reason == nullptr ? "unknown error" : reason));
}

std::string pem_of(const std::function<void(BIO*)>& write) {
  Ptr<BIO> bio(BIO_new(BIO_s_mem()));
  write(bio.get());
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<size_t>(bytes)};
}

Ptr<BIO> reader(std::string_view pem) { return Ptr<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))); }

Ptr<X509> certificate_of(std::string_view pem) {
  return Ptr<X509>(PEM_read_bio_X509(reader(pem).get(), nullptr, nullptr, nullptr));
}
Ptr<EVP_PKEY> key_of(std::string_view pem) {
  return Ptr<EVP_PKEY>(PEM_read_bio_PrivateKey(reader(pem).get(), nullptr, nullptr, nullptr));
}
// "EC PRIVATE KEY", as kubeadm and client-go write it (MarshalPrivateKeyToPEM): for some clients, such as fabric8's for
// Java, this label is the only way to tell that the key is not an RSA key.
std::string private_pem(EVP_PKEY* key) {
  return pem_of(
      [&](BIO* bio) { PEM_write_bio_PrivateKey_traditional(bio, key, nullptr, nullptr, 0, nullptr, nullptr); });
}

void add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX ctx;
  X509V3_set_ctx_nodb(&ctx);
  X509V3_set_ctx(&ctx, issuer, certificate, nullptr, nullptr, 0);
  Ptr<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, &ctx, nid, value.c_str()));
  assert(extension != nullptr);
  X509_add_ext(certificate, extension.get(), -1);
}

void add_name(X509_NAME* name, const char* field, const std::string& value) {
  X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(value.data()),
                             static_cast<int>(value.size()), -1, 0);
}

bool lasts(X509* certificate, Days days) {
  time_t then = time(nullptr) + std::chrono::seconds(days).count();
  return X509_cmp_time(X509_get0_notAfter(certificate), &then) > 0;
}

bool covers(X509* certificate, const CertificateRequest& request) {
  for (const std::string& name : request.dns_names) {
    if (X509_check_host(certificate, name.c_str(), name.size(), 0, nullptr) != 1) return false;
  }
  for (const std::string& address : request.addresses) {
    if (X509_check_ip_asc(certificate, address.c_str(), 0) != 1) return false;
  }
  return true;
}

bool matches(X509* certificate, EVP_PKEY* key) { return X509_check_private_key(certificate, key) == 1; }

}  // namespace

Result<std::pair<std::string, std::string>> make_key_pair() {
  Ptr<EVP_PKEY> key(EVP_EC_gen("P-256"));
  if (!key) return openssl_failure("cannot generate a key");
  return std::pair(pem_of([&](BIO* bio) { PEM_write_bio_PUBKEY(bio, key.get()); }), private_pem(key.get()));
}

namespace {

// An identity parsed by OpenSSL: parsing the PEM again costs more than generating it.
struct Parsed {
  Ptr<X509> certificate;
  Ptr<EVP_PKEY> key;
};

struct Made {
  net::Identity identity;
  Parsed parsed;
};

// Signed by `authority`, or self-signed.
Result<Made> make_signed(const CertificateRequest& request, const Parsed* authority) {
  Ptr<EVP_PKEY> key(EVP_EC_gen("P-256"));
  if (!key) return openssl_failure("cannot generate a key");
  X509* const issuer = authority == nullptr ? nullptr : authority->certificate.get();
  Ptr<X509> certificate(X509_new());
  X509* const x = certificate.get();
  X509_set_version(x, 2);
  unsigned char serial[16];
  RAND_bytes(serial, sizeof serial);
  serial[0] &= 0x7f;  // Serial numbers must be positive (RFC 5280).
  BIGNUM* number = BN_bin2bn(serial, sizeof serial, nullptr);
  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x));
  BN_free(number);
  // Backdated for clients whose clocks are slightly behind.
  X509_gmtime_adj(X509_getm_notBefore(x), -300);
  X509_time_adj_ex(X509_getm_notAfter(x), static_cast<int>(request.valid.count()), 0, nullptr);
  X509_set_pubkey(x, key.get());
  X509_NAME* subject = X509_get_subject_name(x);
  for (const std::string& organization : request.organizations) add_name(subject, "O", organization);
  add_name(subject, "CN", request.common_name);
  X509* const signer = issuer != nullptr ? issuer : x;
  X509_set_issuer_name(x, X509_get_subject_name(signer));

  using Use = CertificateRequest::Use;
  if (request.use == Use::Authority) {
    add_extension(x, signer, NID_basic_constraints, "critical,CA:TRUE");
    add_extension(x, signer, NID_key_usage, "critical,digitalSignature,keyEncipherment,keyCertSign");
  } else {
    add_extension(x, signer, NID_basic_constraints, "critical,CA:FALSE");
    add_extension(x, signer, NID_key_usage, "critical,digitalSignature,keyEncipherment");
    add_extension(x, signer, NID_ext_key_usage, request.use == Use::Server ? "serverAuth" : "clientAuth");
  }
  add_extension(x, signer, NID_subject_key_identifier, "hash");
  if (issuer != nullptr) add_extension(x, signer, NID_authority_key_identifier, "keyid");
  std::string names;
  for (const std::string& name : request.dns_names) names += (names.empty() ? "DNS:" : ",DNS:") + name;
  for (const std::string& address : request.addresses) names += (names.empty() ? "IP:" : ",IP:") + address;
  for (const std::string& address : request.addresses) {
    if (!is_ip_address(address)) return bad_request("\"" + address + "\" is not an IP address");
  }
  if (!names.empty()) add_extension(x, signer, NID_subject_alt_name, names);

  if (X509_sign(x, authority == nullptr ? key.get() : authority->key.get(), EVP_sha256()) == 0) {
    return openssl_failure("cannot sign the certificate of " + request.common_name);
  }
  net::Identity identity{pem_of([&](BIO* bio) { PEM_write_bio_X509(bio, x); }), private_pem(key.get())};
  return Made{std::move(identity), {std::move(certificate), std::move(key)}};
}

Result<Parsed> parse(const net::Identity& identity) {
  Parsed parsed{certificate_of(identity.certificate_pem), key_of(identity.key_pem)};
  if (!parsed.certificate || !parsed.key) {
    return openssl_failure("cannot read the CA certificate and key");
  }
  return parsed;
}

}  // namespace

Result<net::Identity> make_certificate(const CertificateRequest& request, const net::Identity* authority) {
  std::optional<Parsed> parsed;
  if (authority != nullptr) {
    Result<Parsed> read = parse(*authority);
    if (!read) return read.take_error();
    parsed = std::move(*read);
  }
  Result<Made> made = make_signed(request, parsed ? &*parsed : nullptr);
  if (!made) return made.take_error();
  return std::move(made->identity);
}

namespace {

// The files of one certificate and its key.
class Files {
 public:
  Files(const std::string& directory, const std::string& name)
      : certificate_path_(directory + "/" + name + ".crt"), key_path_(directory + "/" + name + ".key") {}

  // An empty identity if the files do not exist.
  Result<Made> read() const {
    Result<std::string> certificate = read_file(certificate_path_);
    Result<std::string> key = read_file(key_path_);
    const bool absent = !certificate && !key && certificate.error().reason == Reason::NotFound &&
                        key.error().reason == Reason::NotFound;
    if (absent) return Made{};
    if (!certificate) return certificate.take_error();
    if (!key) return key.take_error();
    Ptr<X509> x = certificate_of(*certificate);
    Ptr<EVP_PKEY> k = key_of(*key);
    ERR_clear_error();
    if (!x) return bad_request(certificate_path_ + " holds no certificate in PEM form");
    if (!k) return bad_request(key_path_ + " holds no private key in PEM form");
    if (!matches(x.get(), k.get())) return bad_request(key_path_ + " is not the key of " + certificate_path_);
    return Made{{std::move(*certificate), std::move(*key)}, {std::move(x), std::move(k)}};
  }

  Result<Unit> write(const net::Identity& identity) const {
    Result<Unit> written = replace_file(key_path_, identity.key_pem, Readers::Owner);
    if (!written) return written;
    return replace_file(certificate_path_, identity.certificate_pem, Readers::Everybody);
  }

 private:
  std::string certificate_path_, key_path_;
};

// The existing identity if it still satisfies `request`, otherwise a new one. Authorities are kept whatever their age:
// replacing one would break every client that trusts it.
Result<Made> ensure(const std::string& directory, const std::string& name, const CertificateRequest& request,
                    const Parsed* authority) {
  Files files(directory, name);
  Result<Made> found = files.read();
  if (!found) return found;
  if (X509* const x = found->parsed.certificate.get(); x != nullptr) {
    bool keep = authority == nullptr || (lasts(x, kRenewBefore) && covers(x, request));
    if (keep && authority != nullptr) {
      Ptr<EVP_PKEY> issuer_key(X509_get_pubkey(authority->certificate.get()));
      keep = X509_verify(x, issuer_key.get()) == 1;
      ERR_clear_error();
    }
    if (keep) return found;
  }
  Result<Made> made = make_signed(request, authority);
  if (!made) return made;
  if (Result<Unit> written = files.write(made->identity); !written) return written.take_error();
  return made;
}

}  // namespace

Result<Pki> ensure_pki(const PkiOptions& options) {
  using Use = CertificateRequest::Use;
  const std::string& dir = options.directory;
  if (Result<Unit> made = make_private_directory(dir); !made) return made.take_error();
  // Two servers that start for the first time with one directory must not make two sets of keys.
  const Descriptor lock(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0) return internal_error("cannot lock " + dir);

  Pki pki;
  Parsed parsed_authority, parsed_proxy_authority;
  auto make = [&](net::Identity& into, const char* name, CertificateRequest request, const Parsed* authority,
                  Parsed* parsed = nullptr) -> std::optional<Error> {
    Result<Made> made = ensure(dir, name, request, authority);
    if (!made) return made.take_error();
    into = std::move(made->identity);
    if (parsed != nullptr) *parsed = std::move(made->parsed);
    return std::nullopt;
  };
  CertificateRequest serving{.common_name = "kube-apiserver",
                             .organizations = {},
                             .dns_names = {"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
                                           "kubernetes.default.svc.cluster.local"},
                             .addresses = {"127.0.0.1", "::1"},
                             .use = Use::Server,
                             .valid = kLeafDays};
  serving.dns_names.insert(serving.dns_names.end(), options.dns_names.begin(), options.dns_names.end());
  serving.addresses.insert(serving.addresses.end(), options.addresses.begin(), options.addresses.end());
  auto authority = [](const char* name) {
    return CertificateRequest{.common_name = name,
                              .organizations = {},
                              .dns_names = {},
                              .addresses = {},
                              .use = Use::Authority,
                              .valid = kAuthorityDays};
  };
  auto client = [](const char* name, std::vector<std::string> groups) {
    return CertificateRequest{.common_name = name,
                              .organizations = std::move(groups),
                              .dns_names = {},
                              .addresses = {},
                              .use = Use::Client,
                              .valid = kLeafDays};
  };
  if (options.serving || options.clients) {
    if (auto e = make(pki.authority, "ca", authority("holdfast-ca"), nullptr, &parsed_authority)) return std::move(*e);
  }
  if (options.serving) {
    if (auto e = make(pki.serving, "apiserver", serving, &parsed_authority)) return std::move(*e);
  }
  if (options.clients) {
    if (auto e = make(pki.admin, "admin", client("kubernetes-admin", {std::string(kMastersGroup)}), &parsed_authority))
      return std::move(*e);
  } else {
    for (const char* file : {"/admin.crt", "/admin.key"}) {
      std::error_code error;
      std::filesystem::remove(dir + file, error);
      if (error) return internal_error(dir + file + ": " + error.message());
    }
  }
  if (auto e =
          make(pki.proxy_authority, "front-proxy-ca", authority("front-proxy-ca"), nullptr, &parsed_proxy_authority))
    return std::move(*e);
  if (auto e = make(pki.proxy_client, "front-proxy-client", client("front-proxy-client", {}), &parsed_proxy_authority))
    return std::move(*e);

  const std::string public_path = dir + "/sa.pub";
  const std::string private_path = dir + "/sa.key";
  Result<std::string> private_key = read_file(private_path);
  if (private_key) {
    Result<std::string> public_key = read_file(public_path);
    if (!public_key) return public_key.take_error();
    pki.service_account_private_pem = std::move(*private_key);
    pki.service_account_public_pem = std::move(*public_key);
    return pki;
  }
  if (private_key.error().reason != Reason::NotFound) return private_key.take_error();
  Result<std::pair<std::string, std::string>> pair = make_key_pair();
  if (!pair) return pair.take_error();
  pki.service_account_public_pem = std::move(pair->first);
  pki.service_account_private_pem = std::move(pair->second);
  if (Result<Unit> w = replace_file(public_path, pki.service_account_public_pem, Readers::Everybody); !w)
    return w.take_error();
  if (Result<Unit> w = replace_file(private_path, pki.service_account_private_pem, Readers::Owner); !w)
    return w.take_error();
  return pki;
}

std::string make_kubeconfig(const KubeconfigRequest& r) {
  const std::string context = r.user_name + "@" + r.cluster_name;
  const std::string credentials =
      r.identity.certificate_pem.empty()
          ? "\n  user: {}"
          : "\n  user:\n    client-certificate-data: " + base64_encode(r.identity.certificate_pem) +
                "\n    client-key-data: " + base64_encode(r.identity.key_pem);
  return "apiVersion: v1\nkind: Config\nclusters:\n- name: " + r.cluster_name +
         "\n  cluster:\n    server: " + r.server + "\n    certificate-authority-data: " + base64_encode(r.ca_pem) +
         "\nusers:\n- name: " + r.user_name + credentials + "\ncontexts:\n- name: " + context +
         "\n  context:\n    cluster: " + r.cluster_name + "\n    user: " + r.user_name +
         "\ncurrent-context: " + context + "\n";
}

namespace {

std::vector<Ptr<X509>> certificates_of(std::string_view pem) {
  std::vector<Ptr<X509>> all;
  const Ptr<BIO> bio = reader(pem);
  while (X509* one = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) all.emplace_back(one);
  ERR_clear_error();  // The end of the file is an error, too.
  return all;
}

}  // namespace

Result<std::string> last_certificate(std::string_view pem, std::string_view source) {
  const std::vector<Ptr<X509>> all = certificates_of(pem);
  if (all.empty()) return bad_request(std::string(source) + " holds no certificate in PEM form");
  return pem_of([&](BIO* bio) { PEM_write_bio_X509(bio, all.back().get()); });
}

std::optional<UnixTime> expiry_of(std::string_view pem) {
  std::optional<UnixTime> earliest;
  for (const Ptr<X509>& certificate : certificates_of(pem)) {
    tm broken_down{};
    if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &broken_down) != 1) continue;
    const UnixTime end{.seconds = timegm(&broken_down)};
    if (!earliest || end < *earliest) earliest = end;
  }
  return earliest;
}

}  // namespace holdfast::auth
