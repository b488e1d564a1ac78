#include "signer/header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"

namespace holdfast::signer {
namespace {

struct HeaderCase {
  const char* name;
  std::string json;
  std::string want;  // The key id, or why it is refused.
};

const HeaderCase kHeaderCases[] = {
    {"RSA", R"({"alg":"RS256","kid":"k","typ":"JWT"})", "k"},
    {"the curves, members in any order", R"({"typ":"JWT","kid":"k","alg":"ES512"})", "k"},
    {"escapes are those of JSON", R"({"alg":"ES384","kid":"a\u0062","typ":"JWT"})", "ab"},
    {"the longest key id", R"({"alg":"ES256","kid":")" + std::string(1024, 'k') + R"(","typ":"JWT"})",
     std::string(1024, 'k')},
    {"a longer one", R"({"alg":"ES256","kid":")" + std::string(1025, 'k') + R"(","typ":"JWT"})",
     "key id longer than 1 kb"},
    {"no key id", R"({"alg":"RS256","typ":"JWT"})", "key id missing"},
    {"no type", R"({"alg":"RS256","kid":"k"})", "bad type"},
    {"another type", R"({"alg":"RS256","kid":"k","typ":"at+jwt"})", "bad type"},
    {"a type in lower case", R"({"alg":"RS256","kid":"k","typ":"jwt"})", "bad type"},
    {"no algorithm", R"({"kid":"k","typ":"JWT"})", "bad signing algorithm \"\""},
    {"no signature at all", R"({"alg":"none","kid":"k","typ":"JWT"})", "bad signing algorithm \"none\""},
    {"a secret that both sides know", R"({"alg":"HS256","kid":"k","typ":"JWT"})", "bad signing algorithm \"HS256\""},
    {"another hash", R"({"alg":"RS512","kid":"k","typ":"JWT"})", "bad signing algorithm \"RS512\""},
    {"an unknown member", R"({"alg":"RS256","kid":"k","typ":"JWT","jku":"https://x"})",
     "while parsing header JSON: json: unknown field \"jku\""},
    {"extensions that a reader must know", R"({"alg":"RS256","kid":"k","typ":"JWT","crit":["b64"],"b64":false})",
     "while parsing header JSON: json: unknown field \"crit\""},
    {"a member in upper case", R"({"ALG":"RS256","kid":"k","typ":"JWT"})",
     "while parsing header JSON: json: unknown field \"ALG\""},
    {"a member twice", R"({"alg":"none","alg":"RS256","kid":"k","typ":"JWT"})",
     "while parsing header JSON: duplicate field \"alg\""},
    {"a number", R"({"alg":"RS256","kid":7,"typ":"JWT"})", "while parsing header JSON: kid is not a string"},
    {"a list", R"(["RS256"])", "while parsing header JSON: the header is not an object"},
    {"a second value", R"({"alg":"RS256","kid":"k","typ":"JWT"}{})",
     "while parsing header JSON: invalid character '{' after top-level value"},
    {"nothing", "", "while parsing header JSON: unexpected end of JSON input"},
};

TEST(Headers, NameAKeyAndAnAlgorithmThatIsVerified) {
  for (const HeaderCase& item : kHeaderCases) {
    SCOPED_TRACE(item.name);
    const Result<std::string> key_id = check_header(base64url_encode(item.json));
    EXPECT_EQ(key_id ? *key_id : key_id.error().message, item.want);
  }
}

TEST(Headers, AreBase64ForUrls) {
  const std::string good = base64url_encode(R"({"alg":"RS256","kid":"k","typ":"JWT"})");
  const auto why = [](const std::string& header) {
    const Result<std::string> key_id = check_header(header);
    return key_id ? *key_id : key_id.error().message;
  };
  EXPECT_EQ(why("a+b"), "while unwrapping header: illegal base64 data at input byte 1");
  EXPECT_EQ(why(good + "="),
            "while unwrapping header: illegal base64 data at input byte " + std::to_string(good.size()));
  EXPECT_EQ(why(good.substr(0, 4) + "\n" + good.substr(4)),
            "while unwrapping header: illegal base64 data at input byte 4");
  EXPECT_EQ(why(good + ".e30"),
            "while unwrapping header: illegal base64 data at input byte " + std::to_string(good.size()));
}

}  // namespace
}  // namespace holdfast::signer
