// Service account tokens: JSON Web Tokens that this server signs and verifies (RFC 7519, 7515, 7517).
//
// This module checks the signature, the validity period and the structure of a token. Whether its service account and
// the object it is bound to still exist is for the caller to check.
//
// Threading: Signer and Verifier are immutable; share freely.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace holdfast::tokens {

// Issuer of the tokens stored in Secrets (kubernetes.io/service-account-token). These have no validity period and no
// audiences, and are valid for as long as the Secret contains them.
inline constexpr std::string_view kSecretIssuer = "kubernetes/serviceaccount";

// Maximum clock skew between signer and verifier.
inline constexpr int64_t kLeewaySeconds = 60;

struct NamedUid {
  std::string name, uid;
  bool operator==(const NamedUid&) const = default;
};

struct Claims {
  std::string issuer, ns;
  NamedUid service_account;
  std::vector<std::string> audiences;
  int64_t expires = 0, issued = 0, not_before = 0;  // Unix seconds.
  std::string id;                                   // jti
  std::optional<NamedUid> pod, secret, node;        // What the token is bound to; a pod's token also names its node.
  std::optional<int64_t> warn_after;
  bool operator==(const Claims&) const = default;

  bool is_legacy_token() const { return issuer == kSecretIssuer; }  // `secret` then has no uid.
  std::string subject() const { return "system:serviceaccount:" + ns + ":" + service_account.name; }
};

// The payload of a token: its claims as JSON.
std::string encode_claims(const Claims& claims);

// Signs with an RSA (RS256) or EC (ES256, ES384, ES512) private key.
class Signer {
 public:
  // The error says what is wrong with the key.
  static Result<Signer> from_pem(std::string_view private_key_pem);
  ~Signer();
  Signer(Signer&&) noexcept;
  Signer& operator=(Signer&&) noexcept;

  std::string sign(const Claims& claims) const;

 private:
  struct Key;
  explicit Signer(std::unique_ptr<const Key> key);
  std::unique_ptr<const Key> key_;
};

// A key that another program signs with, and the name that it has in the tokens.
struct PublicKey {
  std::string id;
  std::string der;           // A SubjectPublicKeyInfo (PKIX).
  bool is_unlisted = false;  // Verifies tokens, but is not in the key set that others read.
  bool operator==(const PublicKey&) const = default;
};

class Verifier {
 public:
  // Each PEM text holds any number of public keys, private keys or certificates. Tokens of any of `issuers` (at least
  // one) are accepted; the first is the issuer published in the OpenID configuration.
  static Result<Verifier> from_pem(std::vector<std::string> issuers, const std::vector<std::string>& key_pems);
  // The error names the key that is not one of RSA, P-256, P-384 or P-521. Two keys may have the same name.
  static Result<Verifier> from_keys(std::vector<std::string> issuers, const std::vector<PublicKey>& keys);
  ~Verifier();
  Verifier(Verifier&&) noexcept;
  Verifier& operator=(Verifier&&) noexcept;

  // Whether the token's header names one of these keys; other tokens are left to other authenticators. Decodes only the
  // header.
  bool recognizes(std::string_view token) const;
  // Whether the token says that it is of one of these issuers, and its header names a key that is not here. Nothing of
  // it is verified.
  bool lacks_key_of(std::string_view token) const;
  bool has_key(std::string_view id) const;
  bool has_unlisted_key(std::string_view id) const;
  // Unauthorized, with the reason for the log. The claims are decoded only after the signature has been verified. The
  // token must be valid for at least one of `audiences`, unless that is empty. Audiences of a token stored in a Secret
  // are not checked: the caller adds them and calls check().
  Result<Claims> verify(std::string_view token, const std::vector<std::string>& audiences, UnixTime now) const;

  // The part of verify() whose result may change later: validity period and audiences.
  static Result<Unit> check(const Claims& claims, const std::vector<std::string>& audiences, UnixTime now);

  // /openid/v1/jwks and /.well-known/openid-configuration.
  const std::string& key_set_json() const;
  std::string configuration_json(std::string_view key_set_uri) const;

 private:
  struct Keys;
  Verifier(std::vector<std::string> issuers, std::unique_ptr<Keys> keys);
  std::vector<std::string> issuers_;
  std::unique_ptr<const Keys> keys_;
};

}  // namespace holdfast::tokens
