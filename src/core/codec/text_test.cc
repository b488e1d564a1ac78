#include "codec/text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace holdfast::codec {
namespace {

struct FloatCase {
  double number;
  std::string_view json;
  std::string_view fields;
  std::string_view go;
};

constexpr FloatCase kFloats[] = {
    {0, "0", "0", "0"},
    {-0.0, "-0", "-0", "-0"},
    {1, "1", "1", "1"},
    {1.5, "1.5", "1.5", "1.5"},
    {-123.456, "-123.456", "-123.456", "-123.456"},
    {0.0001, "0.0001", "0.0001", "0.0001"},
    {0.00001, "0.00001", "0.00001", "1e-05"},
    {0.000001, "0.000001", "0.000001", "1e-06"},
    {1e-7, "1e-7", "1e-07", "1e-07"},
    {1.5e-7, "1.5e-7", "1.5e-07", "1.5e-07"},
    {1e-10, "1e-10", "1e-10", "1e-10"},
    {100000, "100000", "100000", "100000"},
    {1234567.5, "1234567.5", "1234567.5", "1.2345675e+06"},
    {1e20, "100000000000000000000", "100000000000000000000", "1e+20"},
    {1e21, "1e+21", "1e+21", "1e+21"},
    {1e100, "1e+100", "1e+100", "1e+100"},
    {5e-324, "5e-324", "5e-324", "5e-324"},
    {9223372036854775808.0, "9223372036854776000", "9223372036854776000", "9.223372036854776e+18"},
};

TEST(Text, FloatsAreFormattedLikeGo) {
  for (const FloatCase& c : kFloats) {
    EXPECT_EQ(float_text(c.number, FloatText::Json), c.json);
    EXPECT_EQ(float_text(c.number, FloatText::Fields), c.fields);
    EXPECT_EQ(float_text(c.number, FloatText::Go), c.go);
  }
}

TEST(Text, FloatsAreParsedInPlainDecimalNotationOnly) {
  EXPECT_EQ(parse_float("1.5e3"), 1500);
  EXPECT_EQ(parse_float("+.5"), 0.5);
  EXPECT_EQ(parse_float("5."), 5);
  EXPECT_EQ(parse_float("1e-400"), 0);
  for (const char* bad : {"", "-", "1e", "1e400", "inf", "nan", "0x10", "1 ", "--1", "e5"}) {
    EXPECT_EQ(parse_float(bad), std::nullopt) << bad;
  }
}

TEST(Text, Utf8IsValidatedLikeGo) {
  EXPECT_TRUE(is_valid_utf8(""));
  EXPECT_TRUE(is_valid_utf8("plain ascii that is longer than eight bytes"));
  EXPECT_TRUE(is_valid_utf8("\u00e9\u20ac\U0001f600 and more"));
  EXPECT_FALSE(is_valid_utf8("\xc0\x80"));
  EXPECT_FALSE(is_valid_utf8("abcdefgh\xed\xa0\x80"));
  EXPECT_FALSE(is_valid_utf8("\xf4\x90\x80\x80"));
  EXPECT_FALSE(is_valid_utf8("\xe2\x82"));
}

}  // namespace
}  // namespace holdfast::codec
