#include "base/strings.h"

#include <gtest/gtest.h>

#include <regex>

namespace holdfast {
namespace {

TEST(StringsTest, LowerCaseChangesAsciiLettersAlone) { EXPECT_EQ(to_lower("aBZ[\xc3\x84"), "abz[\xc3\x84"); }
TEST(StringsTest, IgnoresTheCaseOfAsciiLettersAlone) {
  EXPECT_TRUE(equals_ignoring_case("WebSocket", "websocket"));
  EXPECT_FALSE(equals_ignoring_case("websocket", "websockets"));
  EXPECT_FALSE(equals_ignoring_case("[", "{"));
}

TEST(StringsTest, SplitAndJoinAreInverse) {
  for (const std::string_view text : {"", "a", "a,b", ",", "a,,b,"}) EXPECT_EQ(join(split(text, ','), ","), text);
  EXPECT_EQ(split("a,,b", ',').size(), 3u);
  EXPECT_EQ(split("", ',').size(), 1u);
}

TEST(StringsTest, TrimTakesWhiteSpaceFromBothEnds) {
  EXPECT_EQ(trim("\t a b \r\n"), "a b");
  EXPECT_EQ(trim(" \v"), "");
}

TEST(StringsTest, AddressesOfBothFamilies) {
  for (const char* text : {"10.0.0.1", "::1", "2001:db8::10"}) EXPECT_TRUE(is_ip_address(text)) << text;
  for (const char* text : {"", "10.0.0", "10.0.0.1:80", "[::1]", "host"}) EXPECT_FALSE(is_ip_address(text)) << text;
}

TEST(StringsTest, UuidsAreOfVersion4AndDiffer) {
  const std::regex form("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  const std::string one = random_uuid(), other = random_uuid();
  EXPECT_TRUE(std::regex_match(one, form)) << one;
  EXPECT_NE(one, other);
}

}  // namespace
}  // namespace holdfast
