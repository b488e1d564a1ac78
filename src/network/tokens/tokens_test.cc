#include "tokens/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include <algorithm>

#include "base/base64.h"
#include "base/limits.h"

namespace holdfast::tokens {
namespace {

std::string pem_of(EVP_PKEY* key) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  char* data = nullptr;
  const long length = BIO_get_mem_data(bio, &data);
  std::string pem(data, static_cast<size_t>(length));
  BIO_free(bio);
  EVP_PKEY_free(key);
  return pem;
}

std::string public_der(EVP_PKEY* key) {
  unsigned char* bytes = nullptr;
  const int length = i2d_PUBKEY(key, &bytes);
  std::string der(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
  OPENSSL_free(bytes);
  return der;
}

// The public part of a key in PEM.
std::string public_der(const std::string& private_pem) {
  BIO* bio = BIO_new_mem_buf(private_pem.data(), static_cast<int>(private_pem.size()));
  EVP_PKEY* key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  std::string der = public_der(key);
  EVP_PKEY_free(key);
  return der;
}

// The id of the key that a token names.
std::string key_id_of(const std::string& token) {
  const std::string header = *base64url_decode(token.substr(0, token.find('.')));
  const size_t at = header.find("\"kid\":\"") + 7;
  return header.substr(at, header.find('"', at) - at);
}

Claims sample() {
  Claims claims;
  claims.issuer = "https://kubernetes.default.svc";
  claims.ns = "dev";
  claims.service_account = {"builder", "uid-1"};
  claims.audiences = {"https://kubernetes.default.svc"};
  claims.issued = claims.not_before = 1000;
  claims.expires = 4600;
  claims.id = "jti-1";
  claims.pod = NamedUid{"p", "uid-2"};
  return claims;
}

struct KeyCase {
  const char* name;
  std::string pem;
};

TEST(TokensTest, SignedTokensVerifyForEveryKeyType) {
  const KeyCase kCases[] = {{"P-256", pem_of(EVP_EC_gen("P-256"))},
                            {"P-384", pem_of(EVP_EC_gen("P-384"))},
                            {"P-521", pem_of(EVP_EC_gen("P-521"))},
                            {"RSA", pem_of(EVP_RSA_gen(2048))}};
  for (const KeyCase& item : kCases) {
    SCOPED_TRACE(item.name);
    const auto signer = Signer::from_pem(item.pem);
    const auto verifier = Verifier::from_pem({sample().issuer}, {item.pem});
    ASSERT_TRUE(signer);
    ASSERT_TRUE(verifier);
    const std::string token = signer->sign(sample());
    EXPECT_TRUE(verifier->recognizes(token));
    const auto claims = verifier->verify(token, {sample().issuer}, {2000, 0});
    ASSERT_TRUE(claims) << claims.error().message;
    EXPECT_EQ(*claims, sample());
  }
}

TEST(TokensTest, InvalidTokensAreRejectedWithAReason) {
  const std::string pem = pem_of(EVP_EC_gen("P-256")), other = pem_of(EVP_EC_gen("P-256"));
  const auto signer = Signer::from_pem(pem), foreign = Signer::from_pem(other);
  const auto verifier = Verifier::from_pem({sample().issuer}, {pem});
  const std::string token = signer->sign(sample());
  auto why = [&](const std::string& text, std::vector<std::string> audiences = {}, int64_t now = 2000) {
    const auto result = verifier->verify(text, audiences, {now, 0});
    return result ? std::string("accepted") : result.error().message;
  };
  EXPECT_THAT(why(token, {}, 4661), testing::HasSubstr("expired"));
  EXPECT_THAT(why(token, {}, 4660), "accepted");  // Within the leeway.
  EXPECT_THAT(why(token, {}, 939), testing::HasSubstr("not valid yet"));
  EXPECT_THAT(why(token, {"vault"}), testing::HasSubstr("is invalid for the target audiences [\"vault\"]"));
  EXPECT_THAT(why(foreign->sign(sample())), testing::HasSubstr("error in cryptographic primitive"));
  std::string tampered = token;
  tampered[token.find('.') + 5] = tampered[token.find('.') + 5] == 'A' ? 'B' : 'A';
  EXPECT_NE(why(tampered), "accepted");
  EXPECT_THAT(why("a.b"), testing::HasSubstr("three parts"));
  // A token with algorithm "none".
  const size_t dot = token.find('.');
  EXPECT_NE(why("eyJhbGciOiJub25lIn0" + token.substr(dot, token.rfind('.') - dot + 1)), "accepted");
}

TEST(TokensTest, KeySetContainsOnlyPublicKeys) {
  const auto verifier = Verifier::from_pem({"https://x", "https://old"}, {pem_of(EVP_EC_gen("P-256"))});
  EXPECT_THAT(verifier->key_set_json(),
              testing::AllOf(testing::HasSubstr("\"crv\":\"P-256\""), testing::HasSubstr("\"x\":\""),
                             testing::Not(testing::HasSubstr("\"d\":"))));
  EXPECT_EQ(
      verifier->configuration_json("https://x/openid/v1/jwks"),
      R"({"issuer":"https://x","jwks_uri":"https://x/openid/v1/jwks","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]})");
}

TEST(TokensTest, OnlyTheHeaderIsReadBeforeTheSignatureIsVerified) {
  const std::string pem = pem_of(EVP_EC_gen("P-256")), other = pem_of(EVP_EC_gen("P-256"));
  const auto verifier = Verifier::from_pem({sample().issuer}, {pem});
  const std::string good = Signer::from_pem(pem)->sign(sample()), foreign = Signer::from_pem(other)->sign(sample());
  const auto why = [&](const std::string& token) {
    const auto claims = verifier->verify(token, {}, {2000, 0});
    return claims ? std::string("accepted") : claims.error().message;
  };
  EXPECT_FALSE(verifier->recognizes(foreign));
  // The payload is not even base64url; the error is still about the signature.
  const size_t first = good.find('.'), second = good.rfind('.');
  EXPECT_EQ(why(good.substr(0, first + 1) + "!!" + good.substr(second)),
            "go-jose/go-jose: error in cryptographic primitive");
}

TEST(TokensTest, OversizedTokensAreNotDecoded) {
  const std::string pem = pem_of(EVP_EC_gen("P-256"));
  const auto verifier = Verifier::from_pem({sample().issuer}, {pem});
  Claims large = sample();
  large.audiences = {std::string(limits::kTokenBytes, 'a')};
  const auto claims = verifier->verify(Signer::from_pem(pem)->sign(large), {}, {2000, 0});
  ASSERT_FALSE(claims);
  EXPECT_THAT(claims.error().message, testing::HasSubstr("longer than"));
}

TEST(TokensTest, CriticalHeaderExtensionsAreRejected) {
  const std::string pem = pem_of(EVP_EC_gen("P-256"));
  const auto verifier = Verifier::from_pem({sample().issuer}, {pem});
  const std::string token = Signer::from_pem(pem)->sign(sample());
  std::string header = base64_encode(R"({"alg":"ES256","crit":["exp"]})");
  while (header.ends_with('=')) header.pop_back();
  const auto claims = verifier->verify(header + token.substr(token.find('.')), {}, {2000, 0});
  ASSERT_FALSE(claims);
  EXPECT_EQ(claims.error().message, "go-jose/go-jose: unsupported crit header");
}

TEST(SecretTokens, AreValidWithoutExpiryAndNameTheirSecret) {
  const std::string pem = pem_of(EVP_EC_gen("P-256"));
  Result<Signer> signer = Signer::from_pem(pem);
  Result<Verifier> verifier = Verifier::from_pem({"https://kubernetes.default.svc"}, {pem});
  ASSERT_TRUE(signer && verifier);
  const Claims claims{.issuer = std::string(kSecretIssuer),
                      .ns = "shop",
                      .service_account = {"cart", "u-1"},
                      .secret = NamedUid{"cart-token", ""}};
  Result<Claims> back = verifier->verify(signer->sign(claims), {"https://kubernetes.default.svc"}, UnixTime{1'000'000});
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, claims);
  // The token itself has no audiences; whoever uses it adds them.
  EXPECT_FALSE(Verifier::check(*back, {"other"}, UnixTime{1'000'000}));
}

TEST(NamedKeys, VerifyWhatTheyAreNamedFor) {
  const std::string pem = pem_of(EVP_EC_gen("P-256")), other = pem_of(EVP_EC_gen("P-256"));
  const std::string token = Signer::from_pem(pem)->sign(sample());
  const std::string id = key_id_of(token);
  const auto accepts = [&](const std::vector<PublicKey>& keys) {
    Result<Verifier> verifier = Verifier::from_keys({sample().issuer}, keys);
    EXPECT_TRUE(verifier) << verifier.error().message;
    return verifier && verifier->recognizes(token) && verifier->verify(token, {}, {2000, 0});
  };
  EXPECT_TRUE(accepts({{id, public_der(pem)}}));
  EXPECT_TRUE(accepts({{id, public_der(pem), true}})) << "Those that are not listed, too.";
  EXPECT_TRUE(accepts({{id, public_der(other)}, {id, public_der(pem)}})) << "Two keys of one name.";
  EXPECT_FALSE(accepts({{"another", public_der(pem)}}));
  EXPECT_FALSE(accepts({{id, public_der(other)}}));
  // A key of another kind, under the same name.
  EXPECT_FALSE(accepts({{id, public_der(pem_of(EVP_RSA_gen(2048)))}}));
  EXPECT_FALSE(accepts({{id, public_der(pem_of(EVP_EC_gen("P-384")))}}));
}

TEST(NamedKeys, AreOfKindsThatSignTokens) {
  const auto why = [](const std::string& der) {
    const Result<Verifier> verifier = Verifier::from_keys({"https://x"}, {{"k", der}});
    return verifier ? std::string("accepted") : verifier.error().message;
  };
  const std::string good = public_der(pem_of(EVP_EC_gen("P-521")));
  EXPECT_EQ(why(good), "accepted");
  EXPECT_EQ(why(good + "x"), "key \"k\" is not a public key in PKIX form");
  EXPECT_EQ(why("x"), "key \"k\" is not a public key in PKIX form");
  const std::string other = "key \"k\" is neither RSA nor an EC key of P-256, P-384 or P-521";
  // Curves of the same size.
  EXPECT_EQ(why(public_der(pem_of(EVP_EC_gen("secp256k1")))), other);
  EXPECT_EQ(why(public_der(pem_of(EVP_EC_gen("brainpoolP384r1")))), other);
  EVP_PKEY* edwards = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
  EXPECT_EQ(why(public_der(edwards)), other);
  EVP_PKEY_free(edwards);
}

TEST(NamedKeys, ThatAreNotListedAreNotShown) {
  const std::string p256 = public_der(pem_of(EVP_EC_gen("P-256"))), rsa = public_der(pem_of(EVP_RSA_gen(2048)));
  const Result<Verifier> verifier =
      Verifier::from_keys({"https://x"}, {{"new", rsa}, {"new", p256}, {"new", rsa}, {"old", p256, true}});
  ASSERT_TRUE(verifier);
  const std::string keys = verifier->key_set_json();
  EXPECT_THAT(keys, testing::Not(testing::HasSubstr("\"old\"")));
  EXPECT_EQ(std::count(keys.begin(), keys.end(), '{'), 3) << "The set, and each key once.";
  EXPECT_THAT(verifier->configuration_json("u"), testing::HasSubstr(R"(supported":["ES256","RS256"])"));
  EXPECT_TRUE(verifier->has_key("old") && verifier->has_unlisted_key("old"));
  EXPECT_TRUE(verifier->has_key("new") && !verifier->has_unlisted_key("new"));
  EXPECT_FALSE(verifier->has_key("") || verifier->has_unlisted_key("x"));
  const Result<Verifier> hidden = Verifier::from_keys({"https://x"}, {{"old", p256, true}});
  EXPECT_EQ(hidden->key_set_json(), R"({"keys":[]})");
}

TEST(NamedKeys, AreMissedByTokensOfTheirIssuers) {
  const Result<Verifier> verifier =
      Verifier::from_keys({"https://x", "https://old"}, {{"known", public_der(pem_of(EVP_EC_gen("P-256")))}});
  const auto lacks = [&](const std::string& header, const std::string& payload) {
    return verifier->lacks_key_of(base64url_encode(header) + "." + base64url_encode(payload) + ".c2ln");
  };
  EXPECT_TRUE(lacks(R"({"kid":"k"})", R"({"iss":"https://x"})"));
  EXPECT_TRUE(lacks(R"({"kid":"k"})", R"({"iss":"https://old"})"));
  EXPECT_TRUE(lacks(R"({"kid":"k"})", R"({"iss":"kubernetes/serviceaccount"})"));
  EXPECT_FALSE(lacks(R"({"kid":"known"})", R"({"iss":"https://x"})"));
  EXPECT_FALSE(lacks(R"({"kid":"k"})", R"({"iss":"https://y"})"));
  EXPECT_FALSE(lacks(R"({"alg":"RS256"})", R"({"iss":"https://x"})")) << "Any key may have signed it.";
  EXPECT_FALSE(lacks(R"({"kid":7})", R"({"iss":"https://x"})"));
  EXPECT_FALSE(lacks("[]", R"({"iss":"https://x"})"));
  EXPECT_FALSE(lacks(R"({"kid":"k"})", "[]"));
  EXPECT_FALSE(lacks(R"({"kid":"k"})", "{"));
  EXPECT_FALSE(verifier->lacks_key_of("a.b"));
}

}  // namespace
}  // namespace holdfast::tokens
