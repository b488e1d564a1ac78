#include "base/base64.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

TEST(Base64, RoundTripsEveryLength) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(base64_decode(base64_encode(bytes)), bytes);
    bytes.push_back(static_cast<char>(i * 37));
  }
  EXPECT_EQ(base64_encode("hello"), "aGVsbG8=");
  EXPECT_EQ(base64url_encode("\xfb\xff~"), "-_9-");
  EXPECT_EQ(base64url_encode("hello"), "aGVsbG8");
  EXPECT_EQ(base64url_decode("-_9-"), "\xfb\xff~");
  EXPECT_EQ(base64url_decode("aGVsbG8"), "hello");
  EXPECT_EQ(base64url_decode("aGVsbG8="), std::nullopt);
  EXPECT_EQ(base64url_decode(base64url_encode("")), "");
  EXPECT_EQ(base64_decode("aGVs\nbG8=\r\n"), "hello");
}

TEST(Base64, ReportsErrorsAtTheSamePositionAsGo) {
  struct Case {
    std::string_view text;
    size_t at;
  };
  constexpr Case kCases[] = {{"a", 0},     {"ab", 0},       {"abc", 0},     {"abcd!", 4}, {"ab=c", 2},
                             {"ab=", 3},   {"====", 0},     {"abcde", 4},   {"ab==x", 4}, {"a=bc", 1},
                             {"abcd=", 4}, {"aGVs bG8", 4}, {"abc=abcd", 4}};
  for (const Case& row : kCases) {
    size_t at = 999;
    EXPECT_EQ(base64_decode(row.text, &at), std::nullopt) << row.text;
    EXPECT_EQ(at, row.at) << row.text;
  }
}

}  // namespace
}  // namespace holdfast
