#include "tokens/tokens.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>

#include "base/base64.h"
#include "base/limits.h"
#include "base/text.h"
#include "codec/codec.h"
#include "value/value.h"

namespace holdfast::tokens {
namespace {

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using KeyPtr = std::unique_ptr<EVP_PKEY, FreeKey>;

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};

// Strict: the signed text of a token has no line breaks.
std::optional<std::string> decode_part(std::string_view text) {
  if (text.find_first_of("\r\n") != std::string_view::npos) return {};
  return base64url_decode(text);
}

struct Algorithm {
  std::string_view name;
  const EVP_MD* digest = nullptr;
  size_t coordinate_bytes = 0;  // EC only.
};

// The algorithm a key signs with; an empty name for keys that cannot sign tokens.
Algorithm algorithm_of(EVP_PKEY* key) {
  if (EVP_PKEY_base_id(key) == EVP_PKEY_RSA) return {"RS256", EVP_sha256()};
  if (EVP_PKEY_base_id(key) != EVP_PKEY_EC) return {};
  // By its name: there are other curves of these sizes.
  std::array<char, 64> curve{};
  size_t length = 0;
  if (EVP_PKEY_get_group_name(key, curve.data(), curve.size(), &length) != 1) return {};
  const std::string_view name(curve.data(), length);
  if (name == SN_X9_62_prime256v1) return {"ES256", EVP_sha256(), 32};
  if (name == SN_secp384r1) return {"ES384", EVP_sha384(), 48};
  if (name == SN_secp521r1) return {"ES512", EVP_sha512(), 66};
  return {};
}

// The key's "kid": the hash of its public part, as in kube-apiserver.
std::string key_id(EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int length = i2d_PUBKEY(key, &der);
  if (length <= 0) return "";
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(der, static_cast<size_t>(length), digest);
  OPENSSL_free(der);
  return base64url_encode({reinterpret_cast<const char*>(digest), sizeof digest});
}

// JOSE encodes an EC signature as r and s side by side, OpenSSL as DER.
std::string der_to_raw(std::string_view der, size_t coordinate_bytes) {
  const auto* data = reinterpret_cast<const unsigned char*>(der.data());
  ECDSA_SIG* signature = d2i_ECDSA_SIG(nullptr, &data, static_cast<long>(der.size()));
  if (signature == nullptr) return "";
  std::string raw(2 * coordinate_bytes, '\0');
  auto* out = reinterpret_cast<unsigned char*>(raw.data());
  BN_bn2binpad(ECDSA_SIG_get0_r(signature), out, static_cast<int>(coordinate_bytes));
  BN_bn2binpad(ECDSA_SIG_get0_s(signature), out + coordinate_bytes, static_cast<int>(coordinate_bytes));
  ECDSA_SIG_free(signature);
  return raw;
}

std::string raw_to_der(std::string_view raw, size_t coordinate_bytes) {
  if (raw.size() != 2 * coordinate_bytes) return "";
  const auto* in = reinterpret_cast<const unsigned char*>(raw.data());
  ECDSA_SIG* signature = ECDSA_SIG_new();
  ECDSA_SIG_set0(signature, BN_bin2bn(in, static_cast<int>(coordinate_bytes), nullptr),
                 BN_bin2bn(in + coordinate_bytes, static_cast<int>(coordinate_bytes), nullptr));
  unsigned char* der = nullptr;
  const int length = i2d_ECDSA_SIG(signature, &der);
  ECDSA_SIG_free(signature);
  if (length <= 0) return "";
  std::string result(reinterpret_cast<const char*>(der), static_cast<size_t>(length));
  OPENSSL_free(der);
  return result;
}

std::string sign_bytes(EVP_PKEY* key, const Algorithm& algorithm, std::string_view bytes) {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  std::string signature;
  size_t length = 0;
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  if (EVP_DigestSignInit(context, nullptr, algorithm.digest, nullptr, key) == 1 &&
      EVP_DigestSign(context, nullptr, &length, data, bytes.size()) == 1) {
    signature.resize(length);
    if (EVP_DigestSign(context, reinterpret_cast<unsigned char*>(signature.data()), &length, data, bytes.size()) == 1)
      signature.resize(length);
    else
      signature.clear();
  }
  EVP_MD_CTX_free(context);
  return algorithm.coordinate_bytes > 0 ? der_to_raw(signature, algorithm.coordinate_bytes) : signature;
}

bool verify_bytes(EVP_PKEY* key, const Algorithm& algorithm, std::string_view bytes, std::string_view signature) {
  std::string der;
  if (algorithm.coordinate_bytes > 0) {
    der = raw_to_der(signature, algorithm.coordinate_bytes);
    if (der.empty()) return false;
    signature = der;
  }
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  const bool good =
      EVP_DigestVerifyInit(context, nullptr, algorithm.digest, nullptr, key) == 1 &&
      EVP_DigestVerify(context, reinterpret_cast<const unsigned char*>(signature.data()), signature.size(),
                       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()) == 1;
  EVP_MD_CTX_free(context);
  return good;
}

Value reference(Arena& arena, const NamedUid& object) {
  MapBuilder map(arena);
  map.add("name", Value::string(object.name));
  if (!object.uid.empty()) map.add("uid", Value::string(object.uid));
  return map.build();
}

std::optional<NamedUid> reference_at(const Value& map, std::string_view key) {
  const Value* found = map.find(key);
  if (found == nullptr || !found->is_map()) return {};
  return NamedUid{std::string(found->text_at("name")), std::string(found->text_at("uid"))};
}

// Claim names of tokens stored in a Secret.
constexpr std::string_view kSecretNamespace = "kubernetes.io/serviceaccount/namespace",
                           kSecretName = "kubernetes.io/serviceaccount/secret.name",
                           kSecretAccount = "kubernetes.io/serviceaccount/service-account.name",
                           kSecretAccountUid = "kubernetes.io/serviceaccount/service-account.uid";

std::string secret_payload(const Claims& claims) {
  Arena arena;
  MapBuilder token(arena);
  token.add("iss", Value::string(claims.issuer));
  token.add(kSecretNamespace, Value::string(claims.ns));
  token.add(kSecretName, Value::string(claims.secret->name));
  token.add(kSecretAccount, Value::string(claims.service_account.name));
  token.add(kSecretAccountUid, Value::string(claims.service_account.uid));
  token.add("sub", Value::string(arena, claims.subject()));
  return codec::encode_json(token.build());
}

std::string bound_payload(const Claims& claims) {
  Arena arena;
  ListBuilder audiences(arena);
  for (const std::string& audience : claims.audiences) audiences.add(Value::string(audience));
  MapBuilder bound(arena), token(arena);
  bound.add("namespace", Value::string(claims.ns));
  if (claims.node) bound.add("node", reference(arena, *claims.node));
  if (claims.pod) bound.add("pod", reference(arena, *claims.pod));
  if (claims.secret) bound.add("secret", reference(arena, *claims.secret));
  bound.add("serviceaccount", reference(arena, claims.service_account));
  if (claims.warn_after) bound.add("warnafter", Value::integer(*claims.warn_after));
  token.add("aud", audiences.build());
  token.add("exp", Value::integer(claims.expires));
  token.add("iat", Value::integer(claims.issued));
  token.add("iss", Value::string(claims.issuer));
  token.add("jti", Value::string(claims.id));
  token.add("kubernetes.io", bound.build());
  token.add("nbf", Value::integer(claims.not_before));
  token.add("sub", Value::string(arena, claims.subject()));
  return codec::encode_json(token.build());
}

// Formats a list of strings like Go's %q.
std::string quoted_list(const std::vector<std::string>& texts) {
  std::string list = "[";
  for (const std::string& text : texts) list += (list.size() > 1 ? " " : "") + go_quote(text);
  return list + "]";
}

Error refused(std::string why) { return {Reason::Unauthorized, std::move(why)}; }

struct Parts {
  std::string_view signed_text, header, payload, signature;
};

std::optional<Parts> split(std::string_view token) {
  const size_t first = token.find('.');
  if (first == std::string_view::npos) return {};
  const size_t second = token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos) return {};
  return Parts{token.substr(0, second), token.substr(0, first), token.substr(first + 1, second - first - 1),
               token.substr(second + 1)};
}

std::string number_parameter(EVP_PKEY* key, const char* name, size_t pad_to = 0) {
  BIGNUM* number = nullptr;
  if (EVP_PKEY_get_bn_param(key, name, &number) != 1) return "";
  std::string bytes(std::max<size_t>(pad_to, static_cast<size_t>(BN_num_bytes(number))), '\0');
  BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  BN_free(number);
  return bytes;
}

}  // namespace

struct Signer::Key {
  KeyPtr key;
  Algorithm algorithm;
  std::string id;
};

struct Verifier::Keys {
  struct Entry {
    KeyPtr key;
    Algorithm algorithm;
    std::string id;
    bool is_unlisted = false;
  };
  std::vector<Entry> entries;
  std::string set_json;  // Those that others may know.

  std::string make_set_json() const;
};

std::string encode_claims(const Claims& claims) {
  return claims.is_legacy_token() ? secret_payload(claims) : bound_payload(claims);
}

template <class Entry>
static bool could_be_signed_by(const Entry& entry, const Value& header) {
  const std::string_view id = header.text_at("kid");
  return entry.algorithm.name == header.text_at("alg") && (id.empty() || id == entry.id);
}

Signer::Signer(std::unique_ptr<const Key> key) : key_(std::move(key)) {}
Signer::~Signer() = default;
Signer::Signer(Signer&&) noexcept = default;
Signer& Signer::operator=(Signer&&) noexcept = default;

Result<Signer> Signer::from_pem(std::string_view private_key_pem) {
  const std::unique_ptr<BIO, FreeBio> bio(
      BIO_new_mem_buf(private_key_pem.data(), static_cast<int>(private_key_pem.size())));
  KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  if (key == nullptr) return bad_request("the service account signing key is not a private key in PEM form");
  const Algorithm algorithm = algorithm_of(key.get());
  if (algorithm.name.empty())
    return bad_request("the service account signing key is neither RSA nor an EC key of P-256, P-384 or P-521");
  auto made = std::make_unique<Key>();
  made->id = key_id(key.get());
  made->algorithm = algorithm;
  made->key = std::move(key);
  return Signer(std::move(made));
}

std::string Signer::sign(const Claims& claims) const {
  const std::string header = "{\"alg\":\"" + std::string(key_->algorithm.name) + "\",\"kid\":\"" + key_->id + "\"}";
  const std::string text = base64url_encode(header) + "." + base64url_encode(encode_claims(claims));
  return text + "." + base64url_encode(sign_bytes(key_->key.get(), key_->algorithm, text));
}

Verifier::Verifier(std::vector<std::string> issuers, std::unique_ptr<Keys> keys) : issuers_(std::move(issuers)) {
  assert(!issuers_.empty());
  keys->set_json = keys->make_set_json();
  keys_ = std::move(keys);
}
Verifier::~Verifier() = default;
Verifier::Verifier(Verifier&&) noexcept = default;
Verifier& Verifier::operator=(Verifier&&) noexcept = default;

Result<Verifier> Verifier::from_pem(std::vector<std::string> issuers, const std::vector<std::string>& key_pems) {
  auto keys = std::make_unique<Keys>();
  for (const std::string& pem : key_pems) {
    const std::unique_ptr<BIO, FreeBio> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    const size_t before = keys->entries.size();
    char *name = nullptr, *header = nullptr;
    unsigned char* data = nullptr;
    long length = 0;
    while (PEM_read_bio(bio.get(), &name, &header, &data, &length) == 1) {
      const std::string_view kind(name);
      const unsigned char* at = data;
      EVP_PKEY* key = nullptr;
      if (kind == "PUBLIC KEY")
        key = d2i_PUBKEY(nullptr, &at, length);
      else if (kind == "RSA PUBLIC KEY")
        key = d2i_PublicKey(EVP_PKEY_RSA, nullptr, &at, length);
      else if (kind == "CERTIFICATE") {
        if (X509* certificate = d2i_X509(nullptr, &at, length)) {
          key = X509_get_pubkey(certificate);
          X509_free(certificate);
        }
      } else if (kind.ends_with("PRIVATE KEY"))
        key = d2i_AutoPrivateKey(nullptr, &at, length);
      OPENSSL_free(name);
      OPENSSL_free(header);
      OPENSSL_free(data);
      if (key == nullptr) continue;
      KeyPtr owned(key);
      const Algorithm algorithm = algorithm_of(key);
      if (!algorithm.name.empty()) keys->entries.push_back({std::move(owned), algorithm, key_id(key)});
    }
    if (keys->entries.size() == before)
      return bad_request("a service account key file contains no RSA or EC key in PEM form");
  }
  return Verifier(std::move(issuers), std::move(keys));
}

Result<Verifier> Verifier::from_keys(std::vector<std::string> issuers, const std::vector<PublicKey>& keys) {
  auto made = std::make_unique<Keys>();
  for (const PublicKey& given : keys) {
    const auto* at = reinterpret_cast<const unsigned char*>(given.der.data());
    const unsigned char* const end = at + given.der.size();
    KeyPtr key(d2i_PUBKEY(nullptr, &at, static_cast<long>(given.der.size())));
    if (key == nullptr || at != end)
      return bad_request("key " + go_quote(given.id) + " is not a public key in PKIX form");
    const Algorithm algorithm = algorithm_of(key.get());
    if (algorithm.name.empty()) {
      return bad_request("key " + go_quote(given.id) + " is neither RSA nor an EC key of P-256, P-384 or P-521");
    }
    made->entries.push_back({std::move(key), algorithm, given.id, given.is_unlisted});
  }
  return Verifier(std::move(issuers), std::move(made));
}

// legacyValidator.Validate of pkg/serviceaccount/legacy.go, with the same messages.
static Result<Claims> secret_claims(const Value& token) {
  Claims claims;
  claims.issuer = kSecretIssuer;
  claims.ns = token.text_at(kSecretNamespace);
  claims.secret = NamedUid{std::string(token.text_at(kSecretName)), ""};
  claims.service_account = {std::string(token.text_at(kSecretAccount)), std::string(token.text_at(kSecretAccountUid))};
  if (claims.ns.empty()) return refused("namespace claim is missing");
  if (claims.secret->name.empty()) return refused("secretName claim is missing");
  if (claims.service_account.name.empty()) return refused("serviceAccountName claim is missing");
  if (claims.service_account.uid.empty()) return refused("serviceAccountUID claim is missing");
  if (token.text_at("sub") != claims.subject()) return refused("sub claim is invalid");
  return claims;
}

bool Verifier::recognizes(std::string_view token) const {
  const auto parts = split(token);
  const auto json = parts ? decode_part(parts->header) : std::nullopt;
  if (!json) return false;
  Arena arena;
  const auto header = codec::decode_json(arena, *json);
  return header && std::any_of(keys_->entries.begin(), keys_->entries.end(),
                               [&](const Keys::Entry& entry) { return could_be_signed_by(entry, *header); });
}

bool Verifier::lacks_key_of(std::string_view token) const {
  const auto parts = split(token);
  const auto header_json = parts ? decode_part(parts->header) : std::nullopt;
  if (!header_json) return false;
  Arena arena;
  const auto header = codec::decode_json(arena, *header_json);
  if (!header || !header->is_map()) return false;
  if (const std::string_view id = header->text_at("kid"); id.empty() || has_key(id)) return false;
  const auto payload_json = decode_part(parts->payload);
  if (!payload_json) return false;
  const auto claims = codec::decode_json(arena, *payload_json);
  if (!claims || !claims->is_map()) return false;
  const std::string_view issuer = claims->text_at("iss");
  return issuer == kSecretIssuer || std::find(issuers_.begin(), issuers_.end(), issuer) != issuers_.end();
}

bool Verifier::has_key(std::string_view id) const {
  return std::any_of(keys_->entries.begin(), keys_->entries.end(),
                     [&](const Keys::Entry& entry) { return entry.id == id; });
}

bool Verifier::has_unlisted_key(std::string_view id) const {
  return std::any_of(keys_->entries.begin(), keys_->entries.end(),
                     [&](const Keys::Entry& entry) { return entry.id == id && entry.is_unlisted; });
}

Result<Claims> Verifier::verify(std::string_view token, const std::vector<std::string>& audiences, UnixTime now) const {
  if (token.size() > limits::kTokenBytes) {
    return refused("the token is longer than " + std::to_string(limits::kTokenBytes) + " bytes");
  }
  const auto parts = split(token);
  if (!parts) return refused("the token does not have three parts");
  const auto header_json = decode_part(parts->header), signature = decode_part(parts->signature);
  if (!header_json || !signature) return refused("the token is not base64url");
  Arena arena;
  const auto header = codec::decode_json(arena, *header_json);
  if (!header) return refused("the token's header is not JSON");
  // "crit" lists extensions that the verifier must understand (RFC 7515, 4.1.11); we support none.
  if (header->has("crit")) return refused("go-jose/go-jose: unsupported crit header");

  const bool good = std::any_of(keys_->entries.begin(), keys_->entries.end(), [&](const Keys::Entry& entry) {
    return could_be_signed_by(entry, *header) &&
           verify_bytes(entry.key.get(), entry.algorithm, parts->signed_text, *signature);
  });
  if (!good) return refused("go-jose/go-jose: error in cryptographic primitive");

  const auto payload_json = decode_part(parts->payload);
  if (!payload_json) return refused("the token is not base64url");
  const auto token_claims = codec::decode_json(arena, *payload_json);
  if (!token_claims || !token_claims->is_map()) return refused("the token's payload is not a JSON object");

  Claims claims;
  claims.issuer = token_claims->text_at("iss");
  if (claims.is_legacy_token()) return secret_claims(*token_claims);
  if (std::find(issuers_.begin(), issuers_.end(), claims.issuer) == issuers_.end())
    return refused("the token's issuer is " + claims.issuer);
  claims.expires = token_claims->int_at_or(0, "exp");
  claims.issued = token_claims->int_at_or(0, "iat");
  claims.not_before = token_claims->int_at_or(0, "nbf");
  claims.id = token_claims->text_at("jti");
  for (const Value& audience : token_claims->items_at("aud")) {
    if (audience.is_string()) claims.audiences.emplace_back(audience.as_string());
  }
  if (const std::string_view single = token_claims->text_at("aud"); !single.empty())
    claims.audiences.emplace_back(single);
  if (Result<Unit> good_now = check(claims, audiences, now); !good_now) return good_now.take_error();
  const Value* bound = token_claims->find("kubernetes.io");
  const auto account = bound == nullptr ? std::nullopt : reference_at(*bound, "serviceaccount");
  if (!account) return refused("the token names no service account");
  claims.ns = bound->text_at("namespace");
  claims.service_account = *account;
  claims.pod = reference_at(*bound, "pod");
  claims.secret = reference_at(*bound, "secret");
  claims.node = reference_at(*bound, "node");
  if (const Value* warn = bound->find("warnafter"); warn != nullptr && warn->is_int())
    claims.warn_after = warn->as_int();
  if (token_claims->text_at("sub") != claims.subject())
    return refused("the token's subject is not its service account");
  return claims;
}

Result<Unit> Verifier::check(const Claims& claims, const std::vector<std::string>& audiences, UnixTime now) {
  // A TokenReview shows these messages. A leeway of one minute for clock skew, as in go-jose.
  const bool has_times = !claims.is_legacy_token();
  if (has_times && now.seconds - kLeewaySeconds > claims.expires) return refused("service account token has expired");
  if (now.seconds + kLeewaySeconds < claims.not_before) return refused("service account token is not valid yet");
  if (now.seconds + kLeewaySeconds < claims.issued) return refused("service account token is issued in the future");
  const bool meant =
      audiences.empty() || std::any_of(audiences.begin(), audiences.end(), [&](const std::string& audience) {
        return std::find(claims.audiences.begin(), claims.audiences.end(), audience) != claims.audiences.end();
      });
  if (!meant) {
    return refused("token audiences " + quoted_list(claims.audiences) + " is invalid for the target audiences " +
                   quoted_list(audiences));
  }
  return Unit{};
}

const std::string& Verifier::key_set_json() const { return keys_->set_json; }

std::string Verifier::Keys::make_set_json() const {
  Arena arena;
  ListBuilder list(arena);
  std::vector<const Entry*> listed;
  for (const Entry& entry : entries) {
    const bool repeats = std::any_of(listed.begin(), listed.end(), [&](const Entry* other) {
      return other->id == entry.id && EVP_PKEY_eq(other->key.get(), entry.key.get()) == 1;
    });
    if (entry.is_unlisted || repeats) continue;
    listed.push_back(&entry);
    MapBuilder key(arena);
    key.add("use", Value::string("sig"));
    key.add("kty", Value::string(entry.algorithm.coordinate_bytes > 0 ? "EC" : "RSA"));
    key.add("kid", Value::string(entry.id));
    if (entry.algorithm.coordinate_bytes > 0) {
      const size_t bytes = entry.algorithm.coordinate_bytes;
      key.add("crv", Value::string(bytes == 32 ? "P-256" : bytes == 48 ? "P-384" : "P-521"));
      key.add("alg", Value::string(entry.algorithm.name));
      key.add("x", Value::string(arena,
                                 base64url_encode(number_parameter(entry.key.get(), OSSL_PKEY_PARAM_EC_PUB_X, bytes))));
      key.add("y", Value::string(arena,
                                 base64url_encode(number_parameter(entry.key.get(), OSSL_PKEY_PARAM_EC_PUB_Y, bytes))));
    } else {
      key.add("alg", Value::string(entry.algorithm.name));
      key.add("n", Value::string(arena, base64url_encode(number_parameter(entry.key.get(), OSSL_PKEY_PARAM_RSA_N))));
      key.add("e", Value::string(arena, base64url_encode(number_parameter(entry.key.get(), OSSL_PKEY_PARAM_RSA_E))));
    }
    list.add(key.build());
  }
  MapBuilder set(arena);
  set.add("keys", list.build());
  return codec::encode_json(set.build());
}

std::string Verifier::configuration_json(std::string_view key_set_uri) const {
  Arena arena;
  ListBuilder algorithms(arena), responses(arena), subjects(arena);
  std::vector<std::string_view> names;
  for (const Keys::Entry& entry : keys_->entries) {
    if (!entry.is_unlisted) names.push_back(entry.algorithm.name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (std::string_view name : names) algorithms.add(Value::string(name));
  responses.add(Value::string("id_token"));
  subjects.add(Value::string("public"));
  MapBuilder document(arena);
  document.add("issuer", Value::string(issuers_.front()));
  document.add("jwks_uri", Value::string(key_set_uri));
  document.add("response_types_supported", responses.build());
  document.add("subject_types_supported", subjects.build());
  document.add("id_token_signing_alg_values_supported", algorithms.build());
  return codec::encode_json(document.build());
}

}  // namespace holdfast::tokens
