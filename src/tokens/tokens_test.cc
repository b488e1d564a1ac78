#include "tokens/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

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

TEST(TokensTest, WhatIsSignedIsRecognisedWithEachKindOfKey) {
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

TEST(TokensTest, WrongTokensAreRefusedWithTheReason) {
  const std::string pem = pem_of(EVP_EC_gen("P-256")), other = pem_of(EVP_EC_gen("P-256"));
  const auto signer = Signer::from_pem(pem), foreign = Signer::from_pem(other);
  const auto verifier = Verifier::from_pem({sample().issuer}, {pem});
  const std::string token = signer->sign(sample());
  auto why = [&](const std::string& text, std::vector<std::string> audiences = {}, int64_t now = 2000) {
    const auto result = verifier->verify(text, audiences, {now, 0});
    return result ? std::string("accepted") : result.error().message;
  };
  EXPECT_THAT(why(token, {}, 4661), testing::HasSubstr("expired"));
  EXPECT_THAT(why(token, {}, 4660), "accepted");  // Clocks differ.
  EXPECT_THAT(why(token, {}, 939), testing::HasSubstr("not valid yet"));
  EXPECT_THAT(why(token, {"vault"}), testing::HasSubstr("is invalid for the target audiences [\"vault\"]"));
  EXPECT_THAT(why(foreign->sign(sample())), testing::HasSubstr("error in cryptographic primitive"));
  std::string tampered = token;
  tampered[token.find('.') + 5] = tampered[token.find('.') + 5] == 'A' ? 'B' : 'A';
  EXPECT_NE(why(tampered), "accepted");
  EXPECT_THAT(why("a.b"), testing::HasSubstr("three parts"));
  // A token that claims to need no signature.
  const size_t dot = token.find('.');
  EXPECT_NE(why("eyJhbGciOiJub25lIn0" + token.substr(dot, token.rfind('.') - dot + 1)), "accepted");
}

TEST(TokensTest, TheKeySetListsPublicPartsAlone) {
  const auto verifier = Verifier::from_pem({"https://x", "https://old"}, {pem_of(EVP_EC_gen("P-256"))});
  EXPECT_THAT(verifier->key_set_json(),
              testing::AllOf(testing::HasSubstr("\"crv\":\"P-256\""), testing::HasSubstr("\"x\":\""),
                             testing::Not(testing::HasSubstr("\"d\":"))));
  EXPECT_EQ(
      verifier->configuration_json("https://x/openid/v1/jwks"),
      R"({"issuer":"https://x","jwks_uri":"https://x/openid/v1/jwks","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]})");
}

TEST(TokensTest, NothingButTheHeaderIsReadBeforeTheSignatureIsGood) {
  const std::string pem = pem_of(EVP_EC_gen("P-256")), other = pem_of(EVP_EC_gen("P-256"));
  const auto verifier = Verifier::from_pem({sample().issuer}, {pem});
  const std::string good = Signer::from_pem(pem)->sign(sample()), foreign = Signer::from_pem(other)->sign(sample());
  const auto why = [&](const std::string& token) {
    const auto claims = verifier->verify(token, {}, {2000, 0});
    return claims ? std::string("accepted") : claims.error().message;
  };
  EXPECT_FALSE(verifier->recognizes(foreign));
  // A payload that is no JSON at all makes no difference.
  const size_t first = good.find('.'), second = good.rfind('.');
  EXPECT_EQ(why(good.substr(0, first + 1) + "!!" + good.substr(second)),
            "go-jose/go-jose: error in cryptographic primitive");
}

TEST(TokensTest, TokensBeyondTheLimitAreNotDecoded) {
  const std::string pem = pem_of(EVP_EC_gen("P-256"));
  const auto verifier = Verifier::from_pem({sample().issuer}, {pem});
  Claims large = sample();
  large.audiences = {std::string(limits::kTokenBytes, 'a')};
  const auto claims = verifier->verify(Signer::from_pem(pem)->sign(large), {}, {2000, 0});
  ASSERT_FALSE(claims);
  EXPECT_THAT(claims.error().message, testing::HasSubstr("longer than"));
}

TEST(TokensTest, ExtensionsThatMustBeUnderstoodAreRefused) {
  const std::string pem = pem_of(EVP_EC_gen("P-256"));
  const auto verifier = Verifier::from_pem({sample().issuer}, {pem});
  const std::string token = Signer::from_pem(pem)->sign(sample());
  std::string header = base64_encode(R"({"alg":"ES256","crit":["exp"]})");
  while (header.ends_with('=')) header.pop_back();
  const auto claims = verifier->verify(header + token.substr(token.find('.')), {}, {2000, 0});
  ASSERT_FALSE(claims);
  EXPECT_EQ(claims.error().message, "go-jose/go-jose: unsupported crit header");
}

TEST(SecretTokens, AreGoodWithoutTimesAndNameTheirSecret) {
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
  // The audiences that such a token is for are known only where it is used.
  EXPECT_FALSE(Verifier::check(*back, {"other"}, UnixTime{1'000'000}));
}

}  // namespace
}  // namespace holdfast::tokens
