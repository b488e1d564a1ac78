#include "codec/quantity.h"

#include <gtest/gtest.h>

#include <string>

namespace holdfast::codec {
namespace {

struct QuantityCase {
  std::string_view sent;
  std::string_view printed;
  std::string_view in_list = {};  // The same if empty.
};

constexpr QuantityCase kCases[] = {
    {"0", "0"},
    {"00", "0"},
    {"+1", "+1"},
    {"007", "007"},
    {"1.", "1."},
    {"1.0", "1"},
    {"1.5", "1500m"},
    {"1.500", "1.500"},
    {"0.500", "500m"},
    {".5", "500m"},
    {"1000m", "1"},
    {"1500m", "1500m"},
    {"0.1m", "100u", "1m"},
    {"1000", "1k"},
    {"1500", "1500"},
    {"1e3", "1e3"},
    {"1E3", "1E3"},
    {"1e4", "10e3"},
    {"1.5e3", "1500"},
    {"12e-4", "1200e-6", "2e-3"},
    {"1e20", "100e18"},
    {"0.0000000001", "1n", "1m"},
    {"1024Ki", "1Mi"},
    {"1000Ki", "1000Ki"},
    {"01Ki", "01Ki"},
    {"01Pi", "1Pi"},
    {"1.5Gi", "1536Mi"},
    {"0.5Ki", "512"},
    {"0.1Ki", "102400m"},
    {"1.1Ki", "1126400m"},
    {"9Ei", "9223372036854775807"},
    {"100000000000000000000", "100E"},
    {"-1.5Gi", "-1536Mi"},
    {" 5 ", "5"},
    {"1000E", "1"},  // Upstream has no suffix for it and prints none.
    {"m", "0"},
    {"-0", "0"},
    {"12345678901234567890", "12345678901234567890"},
    {"1234567890123456789", "1234567890123456789"},
};

TEST(Quantity, PrintsLikeKubernetes) {
  for (const QuantityCase& c : kCases) {
    const auto plain = canonical_quantity(c.sent);
    ASSERT_TRUE(plain) << c.sent;
    EXPECT_EQ(*plain, c.printed) << c.sent;
    EXPECT_EQ(*canonical_quantity(c.sent, QuantityField::ResourceList), c.in_list.empty() ? c.printed : c.in_list)
        << c.sent;
  }
}

TEST(Quantity, RejectsInvalidTextWithUpstreamsMessages) {
  constexpr std::string_view kPattern =
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  constexpr std::string_view kSuffix = "unable to parse quantity's suffix";
  constexpr std::string_view kNumber = "unable to parse numeric part of quantity";
  const QuantityCase bad[] = {
      {"", kPattern},
      {"1x", kPattern},
      {"x", kPattern},
      {"1 m", kPattern},
      {"1.2.3", kPattern},
      {"--1", kSuffix},
      {"1K", kSuffix},
      {"1mm", kSuffix},
      {"1e", kSuffix},
      {"1e+", kSuffix},
      {"1e++1", kPattern},
      {".Pi", kNumber},
      {"1e99999999999999999999", kSuffix},
  };
  for (const QuantityCase& c : bad) {
    const auto q = Quantity::parse(c.sent);
    ASSERT_FALSE(q) << c.sent;
    EXPECT_EQ(q.error().message, c.printed) << c.sent;
  }
}

Quantity q(std::string_view text) { return *Quantity::parse(text); }

TEST(Quantity, ComparesByValue) {
  EXPECT_EQ(q("1"), q("1000m"));
  EXPECT_EQ(q("1Ki"), q("1024"));
  EXPECT_EQ(q("0"), q("-0.0"));
  EXPECT_LT(q("-1"), q("0"));
  EXPECT_LT(q("-2"), q("-1"));
  EXPECT_LT(q("999m"), q("1"));
  EXPECT_GT(q("1Gi"), q("1G"));
  EXPECT_GT(q("1e2000000000"), q("1E"));
  EXPECT_FALSE(q("1").same_spelling(q("+1")));
}

TEST(Quantity, AddsAndSubtractsExactly) {
  EXPECT_EQ((q("100m") + q("1")).text(), "1100m");
  EXPECT_EQ((q("0") + q("1Gi")).text(), "1Gi");
  EXPECT_EQ((q("1Gi") + q("1Mi")).text(), "1025Mi");
  EXPECT_EQ((q("1") - q("250m")).text(), "750m");
  EXPECT_EQ((q("250m") - q("1")).text(), "-750m");
  EXPECT_EQ((q("1") - q("1")).text(), "0");
  EXPECT_EQ((q("9E") + q("9E")).text(), "18E");
  EXPECT_EQ((-q("5")).text(), "-5");
  EXPECT_EQ(q("1500m").times(4).text(), "6");
  EXPECT_EQ(q("3").times(-123456789012).text(), "-370370367036");
  EXPECT_EQ((q("1e2000000000") + q("1")).text(), "100e1999999998");
}

TEST(Quantity, RoundsIntegersAwayFromZero) {
  EXPECT_EQ(q("1500m").value(), 2);
  EXPECT_EQ(q("-1500m").value(), -2);
  EXPECT_EQ(q("1.0001").milli_value(), 1001);
  EXPECT_EQ(q("2Gi").value(), 2147483648);
  EXPECT_EQ(q("1e30").value(), INT64_MAX);
  EXPECT_EQ(q("-1e30").value(), INT64_MIN);
  EXPECT_TRUE(q("2000m").is_multiple_of(0));
  EXPECT_FALSE(q("2500m").is_multiple_of(0));
  EXPECT_DOUBLE_EQ(q("-1.25").approximate(), -1.25);
}

TEST(IntOrString, ScalesPercentagesOfATotal) {
  EXPECT_EQ(*IntOrString::from(Value::integer(3)).scaled_from(10, true), 3);
  EXPECT_EQ(*IntOrString::from(Value::string("25%")).scaled_from(10, true), 3);
  EXPECT_EQ(*IntOrString::from(Value::string("25%")).scaled_from(10, false), 2);
  EXPECT_FALSE(IntOrString::from(Value::string("25")).scaled_from(10, false));
  EXPECT_FALSE(IntOrString::from(Value::string("x%")).scaled_from(10, false));
}

TEST(Quantity, SurelyCanonicalTextIsPrintedUnchanged) {
  for (int number : {0, 1, 7, 10, 12, 100, 128, 250, 1000, 1001, 1024, 99999, 123456}) {
    for (std::string_view suffix : {"", "n", "u", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "e3", "K"}) {
      const std::string text = std::to_string(number) + std::string(suffix);
      if (Quantity::surely_canonical(text)) EXPECT_EQ(Quantity::parse(text)->text(), text);
    }
  }
  EXPECT_TRUE(Quantity::surely_canonical("100m"));
  EXPECT_TRUE(Quantity::surely_canonical("3Gi"));
  EXPECT_TRUE(Quantity::surely_canonical("128Mi"));
  EXPECT_FALSE(Quantity::surely_canonical("1000m"));
}

}  // namespace
}  // namespace holdfast::codec
