#include "server/credentials.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/api_error.h"
#include "base/files.h"
#include "base/strings.h"
#include "net/client_check.h"

namespace holdfast::server {

namespace {

Result<net::Identity> read_identity(const std::string& certificate_file, const std::string& key_file) {
  Result<std::string> certificate = read_file(certificate_file);
  if (!certificate) return certificate.take_error();
  Result<std::string> key = read_file(key_file);
  if (!key) return key.take_error();
  return net::Identity{std::move(*certificate), std::move(*key)};
}

// CERT,KEY[:NAME,NAME...], as in kube-apiserver.
Result<std::vector<net::NamedIdentity>> read_named_identities(const std::vector<std::string>& texts) {
  std::vector<net::NamedIdentity> all;
  for (const std::string& text : texts) {
    const size_t colon = std::min(text.find(':'), text.size());
    const size_t comma = text.find(',');
    if (comma == std::string::npos || comma > colon) {
      return bad_request("--tls-sni-cert-key \"" + text +
                         "\": expected comma separated certificate and key file paths");
    }
    net::NamedIdentity named;
    Result<net::Identity> identity = read_identity(text.substr(0, comma), text.substr(comma + 1, colon - comma - 1));
    if (!identity) return identity.take_error();
    named.identity = std::move(*identity);
    for (size_t from = colon + 1; from < text.size();) {
      const size_t end = std::min(text.find(',', from), text.size());
      named.names.push_back(text.substr(from, end - from));
      from = end + 1;
    }
    all.push_back(std::move(named));
  }
  return all;
}

}  // namespace

Result<CredentialsRef> CredentialFiles::load(const auth::PkiOptions& pki_options) const {
  auto loaded = std::make_shared<Credentials>();
  Result<auth::Pki> pki = auth::ensure_pki(pki_options);
  if (!pki) return pki.take_error();
  loaded->pki = std::move(*pki);
  Result<std::string> client_ca_pem = client_ca(loaded->pki);
  if (!client_ca_pem) return client_ca_pem.take_error();
  loaded->client_ca_pem = std::move(*client_ca_pem);
  Result<std::shared_ptr<const tokens::Verifier>> verifier = token_verifier(loaded->pki);
  if (!verifier) return verifier.take_error();
  loaded->verifier = std::move(*verifier);
  Result<std::shared_ptr<const auth::Authenticator>> authenticator = make_authenticator_(loaded->client_ca_pem);
  if (!authenticator) return authenticator.take_error();
  loaded->authenticator = std::move(*authenticator);
  Result<net::Identity> serving = serving_identity(loaded->pki);
  if (!serving) return serving.take_error();
  loaded->serving = std::move(*serving);
  Result<std::string> root_ca = root_ca_of(loaded->pki, loaded->serving);
  if (!root_ca) return root_ca.take_error();
  loaded->root_ca_pem = std::move(*root_ca);
  Result<std::vector<net::NamedIdentity>> named = read_named_identities(options_.tls_sni_cert_keys);
  if (!named) return named.take_error();
  loaded->named = std::move(*named);
  Result<std::shared_ptr<const nodes::KubeletCredentials>> kubelets = kubelet_credentials();
  if (!kubelets) return kubelets.take_error();
  loaded->kubelets = std::move(*kubelets);
  return CredentialsRef(std::move(loaded));
}

Result<net::Identity> CredentialFiles::serving_identity(const auth::Pki& pki) const {
  if (options_.tls_cert_file.empty()) return pki.serving;
  return read_identity(options_.tls_cert_file, options_.tls_private_key_file);
}

// The CAs of client certificates: the configured ones, or our own, which signs the admin's. Never both: an operator who
// chose a CA must be able to rely on nobody else being able to make administrators.
Result<std::string> CredentialFiles::client_ca(const auth::Pki& pki) const {
  if (options_.client_ca_file.empty()) return pki.authority.certificate_pem;
  Result<std::string> given = read_file(options_.client_ca_file);
  if (!given) return given;
  if (Result<net::CaPool> pool = net::CaPool::from_pem(*given, options_.client_ca_file); !pool)
    return pool.take_error();
  return given;
}

Result<std::string> CredentialFiles::root_ca_of(const auth::Pki& pki, const net::Identity& serving) const {
  if (!options_.root_ca_file.empty()) {
    Result<std::string> given = read_file(options_.root_ca_file);
    if (!given) return given;
    if (Result<std::string> last = auth::last_certificate(*given, options_.root_ca_file); !last) return last;
    return given;
  }
  if (options_.tls_cert_file.empty()) return pki.authority.certificate_pem;
  return auth::last_certificate(serving.certificate_pem, options_.tls_cert_file);
}

std::vector<std::string> CredentialFiles::paths() const {
  std::vector<std::string> files;
  for (const std::string* file :
       {&options_.tls_cert_file, &options_.tls_private_key_file, &options_.client_ca_file, &options_.root_ca_file,
        &options_.token_auth_file, &options_.requestheader_client_ca_file, &options_.kubelet_client_certificate,
        &options_.kubelet_client_key, &options_.kubelet_certificate_authority}) {
    if (!file->empty()) files.push_back(*file);
  }
  for (const std::string& text : options_.tls_sni_cert_keys) {
    const std::string_view pair = std::string_view(text).substr(0, text.find(':'));
    for (const std::string_view file : split(pair, ',')) files.emplace_back(file);
  }
  files.insert(files.end(), options_.service_account_key_files.begin(), options_.service_account_key_files.end());
  return files;
}

Result<std::shared_ptr<const tokens::Verifier>> CredentialFiles::token_verifier(const auth::Pki& pki) const {
  if (!options_.service_account_signing_endpoint.empty()) return std::shared_ptr<const tokens::Verifier>();
  std::vector<std::string> keys;
  for (const std::string& path : options_.service_account_key_files) {
    Result<std::string> key = read_file(path);
    if (!key) return key.take_error();
    keys.push_back(std::move(*key));
  }
  if (keys.empty()) keys.push_back(pki.service_account_public_pem);
  Result<tokens::Verifier> made = tokens::Verifier::from_pem(issuers_, keys);
  if (!made) return made.take_error();
  return std::make_shared<const tokens::Verifier>(std::move(*made));
}

Result<FrontProxy> CredentialFiles::front_proxy(const auth::Pki& pki) const {
  FrontProxy proxy{pki.proxy_client, pki.proxy_authority.certificate_pem, {"front-proxy-client"}};
  if (!options_.requestheader_client_ca_file.empty()) {
    Result<std::string> given = read_file(options_.requestheader_client_ca_file);
    if (!given) return given.take_error();
    proxy.ca_pem = std::move(*given);
    proxy.names = options_.requestheader_allowed_names;
  }
  if (options_.proxy_client_cert_file.empty() != options_.proxy_client_key_file.empty()) {
    return bad_request("--proxy-client-cert-file and --proxy-client-key-file must be given together");
  }
  if (!options_.proxy_client_cert_file.empty()) {
    Result<net::Identity> identity = read_identity(options_.proxy_client_cert_file, options_.proxy_client_key_file);
    if (!identity) return identity.take_error();
    proxy.identity = std::move(*identity);
  }
  return proxy;
}

Result<std::shared_ptr<const nodes::KubeletCredentials>> CredentialFiles::kubelet_credentials() const {
  auto loaded = std::make_shared<nodes::KubeletCredentials>();
  net::ClientOptions check{.insecure = true};
  if (options_.kubelet_client_certificate.empty() != options_.kubelet_client_key.empty()) {
    return bad_request("--kubelet-client-certificate and --kubelet-client-key must be given together");
  }
  if (!options_.kubelet_client_certificate.empty()) {
    Result<net::Identity> identity = read_identity(options_.kubelet_client_certificate, options_.kubelet_client_key);
    if (!identity) return identity.take_error();
    loaded->identity = std::move(*identity);
    check.identity = loaded->identity;
  }
  if (!options_.kubelet_certificate_authority.empty()) {
    Result<std::string> pem = read_file(options_.kubelet_certificate_authority);
    if (!pem) return pem.take_error();
    loaded->ca_pem = std::move(*pem);
    check.ca_pem = loaded->ca_pem;
    check.insecure = false;
  }
  if (Result<Unit> usable = net::check_client(check); !usable) {
    return bad_request("the credentials for kubelets cannot be used: " + usable.error().message);
  }
  return std::shared_ptr<const nodes::KubeletCredentials>(std::move(loaded));
}

Result<Unit> CredentialFiles::check() const {
  for (const std::string& file : paths()) {
    if (Result<std::string> read = read_file(file); !read) return read.take_error();
  }
  const auth::Pki none;
  if (!options_.client_ca_file.empty()) {
    Result<std::string> client_ca_pem = client_ca(none);
    if (!client_ca_pem) return client_ca_pem.take_error();
    if (Result<std::shared_ptr<const auth::Authenticator>> made = make_authenticator_(*client_ca_pem); !made)
      return made.take_error();
  } else if (!options_.token_auth_file.empty()) {
    Result<std::string> csv = read_file(options_.token_auth_file);
    if (!csv) return csv.take_error();
    Result<auth::TokenTable> table = auth::TokenTable::from_csv(*csv, options_.token_auth_file);
    if (!table) return table.take_error();
  }
  if (!options_.service_account_key_files.empty()) {
    Result<std::shared_ptr<const tokens::Verifier>> verifier = token_verifier(none);
    if (!verifier) return verifier.take_error();
  }
  if (!options_.tls_cert_file.empty()) {
    Result<net::Identity> serving = serving_identity(none);
    if (!serving) return serving.take_error();
    if (Result<std::string> root = root_ca_of(none, *serving); !root) return root.take_error();
  }
  if (Result<std::vector<net::NamedIdentity>> named = read_named_identities(options_.tls_sni_cert_keys); !named)
    return named.take_error();
  if (Result<std::shared_ptr<const nodes::KubeletCredentials>> kubelets = kubelet_credentials(); !kubelets)
    return kubelets.take_error();
  return Unit{};
}

}  // namespace holdfast::server
