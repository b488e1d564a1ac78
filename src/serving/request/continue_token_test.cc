#include "request/continue_token.h"

#include <gtest/gtest.h>

namespace holdfast::request {
namespace {

TEST(ContinueTokenTest, RoundTrips) {
  const std::string text = encode_continue({42, std::string("ns/a\0", 5)});
  EXPECT_EQ(text, "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NDIsInN0YXJ0IjoibnMvYVx1MDAwMCJ9");
  Result<ContinueToken> token = decode_continue(text);
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(token->revision, 42);
  EXPECT_EQ(token->start, std::string("ns/a\0", 5));
}

TEST(ContinueTokenTest, ErrorsNameTheProblem) {
  EXPECT_EQ(decode_continue("eyJ2IjoibWV0YS5rOHMuaW8vdjkiLCJydiI6MSwic3RhcnQiOiJhIn0").error().message,
            "invalid continue token: continue key is not valid: server does not recognize this encoded version "
            "meta.k8s.io/v9");
  EXPECT_EQ(decode_continue("garbage").error().message,
            "invalid continue token: continue key is not valid: invalid character '\\u0081' looking for beginning of "
            "value");
  EXPECT_EQ(decode_continue("eyJ2x").error().message,
            "invalid continue token: continue key is not valid: illegal base64 data at input byte 4");
  EXPECT_FALSE(decode_continue(encode_continue({5, "../x"})).ok());
  EXPECT_FALSE(decode_continue(encode_continue({0, "x"})).ok());
}

}  // namespace
}  // namespace holdfast::request
