#include "base/strings.h"

#include <gtest/gtest.h>

#include <cctype>
#include <regex>
#include <set>

#include "base/ascii.h"

namespace holdfast {
namespace {

TEST(StringsTest, CaseChangesOnlyOfAsciiLetters) {
  EXPECT_EQ(to_lower("aBZ[\xc3\x84"), "abz[\xc3\x84");
  EXPECT_EQ(to_upper("aBz{\xc3\xa4"), "ABZ{\xc3\xa4");
}

TEST(AsciiTest, ClassesAgreeWithTheCLibraryInAsciiAndExcludeEverythingElse) {
  for (int i = 0; i < 256; ++i) {
    const char c = static_cast<char>(i);
    const bool ascii = i < 128;
    EXPECT_EQ(is_digit(c), ascii && std::isdigit(i) != 0) << i;
    EXPECT_EQ(is_lower(c), ascii && std::islower(i) != 0) << i;
    EXPECT_EQ(is_upper(c), ascii && std::isupper(i) != 0) << i;
    EXPECT_EQ(is_letter(c), ascii && std::isalpha(i) != 0) << i;
    EXPECT_EQ(is_alnum(c), ascii && std::isalnum(i) != 0) << i;
    EXPECT_EQ(is_space(c), ascii && std::isspace(i) != 0) << i;
    EXPECT_EQ(is_hex(c), ascii && std::isxdigit(i) != 0) << i;
    EXPECT_EQ(hex_value(c), is_hex(c) ? std::stoi(std::string(1, c), nullptr, 16) : -1) << i;
  }
}

TEST(StringsTest, IgnoresTheCaseOfAsciiLettersOnly) {
  EXPECT_TRUE(equals_ignoring_case("WebSocket", "websocket"));
  EXPECT_FALSE(equals_ignoring_case("websocket", "websockets"));
  EXPECT_FALSE(equals_ignoring_case("[", "{"));
}

TEST(StringsTest, SplitAndJoinAreInverses) {
  for (const std::string_view text : {"", "a", "a,b", ",", "a,,b,"}) EXPECT_EQ(join(split(text, ','), ","), text);
  EXPECT_EQ(split("a,,b", ',').size(), 3u);
  EXPECT_EQ(split("", ',').size(), 1u);
  EXPECT_EQ(split("a,b,c", ',', 2).back(), "b,c");
}

TEST(StringsTest, TrimRemovesWhiteSpaceAtBothEnds) {
  EXPECT_EQ(trim("\t a b \r\n"), "a b");
  EXPECT_EQ(trim(" \v"), "");
}

TEST(StringsTest, TrimRemovesGivenCharactersAtBothEnds) {
  EXPECT_EQ(trim("\t a\tb \n", " \t"), "a\tb \n");
  EXPECT_EQ(trim("  ", " "), "");
}

TEST(StringsTest, JoinWritesPartsOfAnyRange) {
  EXPECT_EQ(join(std::set<std::string>{"b", "", "a"}, ", "), ", a, b");
  EXPECT_EQ(join(std::vector<int>{1, 2}, "+", [](int part) { return std::to_string(part); }), "1+2");
}

TEST(StringsTest, OnlyWholeTextsAreNumbers) {
  EXPECT_EQ(parse_number<int32_t>("-12"), -12);
  EXPECT_EQ(parse_number<uint64_t>("ff", 16), 255u);
  EXPECT_EQ(parse_number<uint16_t>("65535"), 65535);
  for (const char* text : {"", "+1", " 1", "1 ", "0x1", "-1", "65536"}) {
    EXPECT_EQ(parse_number<uint16_t>(text), std::nullopt) << text;
  }
}

TEST(StringsTest, BytesBecomeLowerCaseHexadecimal) { EXPECT_EQ(to_hex(std::string_view("\x00\xff", 2)), "00ff"); }

TEST(StringsTest, RecognizesAddressesOfBothFamilies) {
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
