// The certificates, keys and tokens that the server reads from files, and reads again when these change.
//
// Threading: any thread. Lifetime: the options outlive CredentialFiles. Errors name the file, or the flags.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "auth/auth.h"
#include "base/error.h"
#include "net/net.h"
#include "nodes/nodes.h"
#include "server/server.h"
#include "tokens/tokens.h"

namespace holdfast::server {

// Everything that is read from files and can be reloaded while the server runs. Loaded as a whole and immutable: users
// hold a reference and see consistent keys and certificates.
struct Credentials {
  auth::Pki pki;
  std::string client_ca_pem;
  std::string root_ca_pem;  // What clients verify this server by.
  net::Identity serving;
  std::vector<net::NamedIdentity> named;             // --tls-sni-cert-key
  std::shared_ptr<const tokens::Verifier> verifier;  // Null: the external signer has the keys.
  std::shared_ptr<const auth::Authenticator> authenticator;
  std::shared_ptr<const nodes::KubeletCredentials> kubelets;
};
using CredentialsRef = std::shared_ptr<const Credentials>;

// What identifies this server to aggregated API servers, and by what they verify it.
struct FrontProxy {
  net::Identity identity;
  std::string ca_pem;
  std::vector<std::string> names;
};

class CredentialFiles {
 public:
  // For certificates of these CAs. An authenticator also uses other parts of the server.
  using MakeAuthenticator =
      std::function<Result<std::shared_ptr<const auth::Authenticator>>(const std::string& client_ca_pem)>;
  // `issuers`: of service account tokens.
  CredentialFiles(const Options& options, std::vector<std::string> issuers, MakeAuthenticator make_authenticator)
      : options_(options), issuers_(std::move(issuers)), make_authenticator_(std::move(make_authenticator)) {}

  // Makes what is missing and was not given by the operator.
  Result<CredentialsRef> load(const auth::PkiOptions& pki) const;
  // What load() would say about the files of the operator. Makes nothing.
  Result<Unit> check() const;
  // The files of the operator that are read again when they change.
  std::vector<std::string> paths() const;
  Result<FrontProxy> front_proxy(const auth::Pki& pki) const;

 private:
  Result<net::Identity> serving_identity(const auth::Pki& pki) const;
  Result<std::string> client_ca(const auth::Pki& pki) const;
  Result<std::string> root_ca_of(const auth::Pki& pki, const net::Identity& serving) const;
  Result<std::shared_ptr<const tokens::Verifier>> token_verifier(const auth::Pki& pki) const;
  Result<std::shared_ptr<const nodes::KubeletCredentials>> kubelet_credentials() const;

  const Options& options_;
  const std::vector<std::string> issuers_;
  const MakeAuthenticator make_authenticator_;
};

}  // namespace holdfast::server
