#include <gtest/gtest.h>

#include "base/api_error.h"
#include "base/text.h"

namespace holdfast {
namespace {

TEST(TextTest, QuotesLikeGo) {
  EXPECT_EQ(go_quote("a\"b\\c\n\x01\x7f"), R"("a\"b\\c\n\x01\x7f")");
  EXPECT_EQ(go_quote("ä€\xff"), "\"ä€\\xff\"");
  EXPECT_EQ(go_quote("\u00a0\u2028"), "\"\\u00a0\\u2028\"");
}

TEST(TextTest, JsonQuotingEscapesCharactersUnsafeInBrowsers) {
  EXPECT_EQ(json_quote("<a>&\u2028\x1f\xff"), "\"\\u003ca\\u003e\\u0026\\u2028\\u001f\\ufffd\"");
}

TEST(TextTest, CodePointsShowTheCharacterIfPrintable) {
  EXPECT_EQ(go_code_point('\n'), "U+000A");
  EXPECT_EQ(go_code_point('A'), "U+0041 'A'");
}

TEST(TextTest, TruncatedAndOverlongSequencesAreNotRunes) {
  EXPECT_FALSE(decode_rune("\xe2\x82", 0).valid);
  EXPECT_FALSE(decode_rune("\xc0\x80", 0).valid);
  EXPECT_FALSE(decode_rune("\xed\xa0\x80", 0).valid);
  EXPECT_EQ(decode_rune("€", 0).value, 0x20acu);
}

TEST(TextTest, CountsCharactersOfUtf8) {
  std::string text;
  for (const uint32_t rune : {0x41u, 0xe4u, 0x20acu, 0x1f600u}) append_utf8(text, rune);
  EXPECT_EQ(text, "A\u00e4\u20ac\U0001f600");
  EXPECT_EQ(count_characters(text), 4u);
}

TEST(ApiErrorTest, SeveralErrorsAreAggregatedInBrackets) {
  EXPECT_EQ(aggregate_text(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(aggregate_text(std::vector<std::string>{"a", "b"}), "[a, b]");
  EXPECT_EQ(aggregate_text(std::vector<Cause>{field_required("x")}), "x: Required value");
}

TEST(ApiErrorTest, InvalidListsEachCauseOnceInTheMessage) {
  const Error error = invalid({"apps", "Deployment"}, "web",
                              {field_required("spec.a"), field_required("spec.a"), field_forbidden("spec.b", "no")});
  EXPECT_EQ(error.message, "Deployment.apps \"web\" is invalid: [spec.a: Required value, spec.b: Forbidden: no]");
  EXPECT_EQ(error.causes.size(), 3u);
}

}  // namespace
}  // namespace holdfast
