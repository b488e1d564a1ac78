// Service account tokens: JSON Web Tokens that this server signs and recognises (RFC 7519, 7515, 7517).
//
// Whether the service account and the object that a token is bound to still exist is for the caller to look up; here
// the signature, the times and the shape are checked.
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

// The issuer of tokens that are kept in Secrets (kubernetes.io/service-account-token). They have no times and no
// audiences, and are good while their Secret holds them.
inline constexpr std::string_view kSecretIssuer = "kubernetes/serviceaccount";

// Maximum difference between the clocks of signer and verifier.
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

  bool is_kept_in_secret() const { return issuer == kSecretIssuer; }  // `secret` has no uid then.
  std::string subject() const { return "system:serviceaccount:" + ns + ":" + service_account.name; }
};

// Signs with an RSA (RS256) or EC (ES256, ES384, ES512) private key.
class Signer {
 public:
  // The error names what is wrong with the key.
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

class Verifier {
 public:
  // Public keys, private keys or certificates in PEM, any number in each text. Tokens of any of the issuers are good
  // (there is at least one); the first is the one that others are told of.
  static Result<Verifier> from_pem(std::vector<std::string> issuers, const std::vector<std::string>& key_pems);
  ~Verifier();
  Verifier(Verifier&&) noexcept;
  Verifier& operator=(Verifier&&) noexcept;

  // Whether the token's header names one of these keys; other tokens are left to other authenticators. Reads nothing
  // but the header.
  bool recognizes(std::string_view token) const;
  // Unauthorized with the reason for the log. The claims are decoded once the signature is good. `audiences`: at least
  // one must be the token's; empty asks for none. Audiences of a token in a Secret are the caller's to add.
  Result<Claims> verify(std::string_view token, const std::vector<std::string>& audiences, UnixTime now) const;

  // The part of verify() that can change its mind later: times and audiences.
  static Result<Unit> check(const Claims& claims, const std::vector<std::string>& audiences, UnixTime now);

  // /openid/v1/jwks and /.well-known/openid-configuration.
  std::string key_set_json() const;
  std::string configuration_json(std::string_view key_set_uri) const;

 private:
  struct Keys;
  Verifier(std::vector<std::string> issuers, std::unique_ptr<const Keys> keys);
  std::vector<std::string> issuers_;
  std::unique_ptr<const Keys> keys_;
};

}  // namespace holdfast::tokens
