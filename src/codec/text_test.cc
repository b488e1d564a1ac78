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

TEST(Text, FloatsPrintAsGoPrintsThem) {
  for (const FloatCase& c : kFloats) {
    EXPECT_EQ(float_text(c.number, FloatText::Json), c.json);
    EXPECT_EQ(float_text(c.number, FloatText::Fields), c.fields);
    EXPECT_EQ(float_text(c.number, FloatText::Go), c.go);
  }
}

TEST(Text, FloatsAreReadInPlainDecimalNotationOnly) {
  EXPECT_EQ(parse_float("1.5e3"), 1500);
  EXPECT_EQ(parse_float("+.5"), 0.5);
  EXPECT_EQ(parse_float("5."), 5);
  EXPECT_EQ(parse_float("1e-400"), 0);
  for (const char* bad : {"", "-", "1e", "1e400", "inf", "nan", "0x10", "1 ", "--1", "e5"}) {
    EXPECT_EQ(parse_float(bad), std::nullopt) << bad;
  }
}

struct DurationCase {
  int64_t nanoseconds;
  std::string_view text;
};

constexpr DurationCase kDurations[] = {
    {0, "0s"},
    {1, "1ns"},
    {1100, "1.1\xc2\xb5s"},
    {2200000, "2.2ms"},
    {3300000000, "3.3s"},
    {245000000000, "4m5s"},
    {245001000000, "4m5.001s"},
    {18367001000000, "5h6m7.001s"},
    {480000000001, "8m0.000000001s"},
    {3600000000000, "1h0m0s"},
    {-90000000000, "-1m30s"},
    {INT64_MAX, "2562047h47m16.854775807s"},
    {INT64_MIN, "-2562047h47m16.854775808s"},
};

TEST(Text, DurationsPrintAndReadAsGoDoesIt) {
  for (const DurationCase& c : kDurations) {
    EXPECT_EQ(duration_text(c.nanoseconds), c.text);
    EXPECT_EQ(parse_duration(c.text), c.nanoseconds);
  }
}

TEST(Text, DurationsInOtherSpellingsAreRead) {
  EXPECT_EQ(parse_duration("0"), 0);
  EXPECT_EQ(parse_duration("+5s"), 5000000000);
  EXPECT_EQ(parse_duration("1.5h"), 5400000000000);
  EXPECT_EQ(parse_duration(".5s"), 500000000);
  EXPECT_EQ(parse_duration("5.s"), 5000000000);
  EXPECT_EQ(parse_duration("3us"), 3000);
  EXPECT_EQ(parse_duration("1s1h"), 3601000000000);
  for (const char* bad : {"", "3", "-", "s", ".", ".s", "1x", "3000000h", "1h-5m", " 1s"}) {
    EXPECT_EQ(parse_duration(bad), std::nullopt) << bad;
  }
}

TEST(Text, Utf8IsCheckedAsGoChecksIt) {
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
