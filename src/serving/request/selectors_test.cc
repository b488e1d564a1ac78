#include "request/selectors.h"

#include <gtest/gtest.h>

namespace holdfast::request {
namespace {

std::string labels(std::string_view text) {
  auto parsed = parse_label_selector(text);
  return parsed ? label_selector_text(*parsed) : parsed.error().message;
}

TEST(LabelSelectorTest, RoundTrips) {
  EXPECT_EQ(labels("x in (foo,,baz),y,z notin ()"), "x in (,baz,foo),y,z!=");
  EXPECT_EQ(labels("!b,a==1"), "a=1,!b");
  EXPECT_EQ(labels("in in (in),n>5,m<3"), "in=in,m<3,n>5");
  EXPECT_EQ(labels("a="), "a=");
  EXPECT_EQ(labels(""), "");
}

TEST(LabelSelectorTest, ErrorsNameTheToken) {
  EXPECT_EQ(labels("x in (a"), "unable to parse requirement: found '', expected: ',' or ')'");
  EXPECT_EQ(labels("=a"), "found '=', expected: !, identifier, or 'end of string'");
  EXPECT_EQ(labels("a b"), "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
  EXPECT_EQ(labels("a,"), "found '', expected: identifier after ','");
  EXPECT_EQ(labels("!a=b"), "found '=', expected: ',' or 'end of string'");
}

TEST(LabelSelectorTest, ErrorIsNoLongerThanNecessary) {
  std::string text = "a in (";
  for (int i = 0; i < 50'000; ++i) text += "-" + std::to_string(i) + ",";
  const auto parsed = parse_label_selector(text + "a)");
  ASSERT_FALSE(parsed);
  EXPECT_LT(parsed.error().message.size(), 2u << 20);
  EXPECT_TRUE(parsed.error().message.ends_with(" more errors]")) << parsed.error().message.substr(1 << 20);
}

std::string fields(std::string_view text) {
  static constexpr std::string_view kNames[] = {"spec.nodeName"};
  static constexpr std::pair<std::string_view, std::string_view> kAliases[] = {{"spec.host", "spec.nodeName"}};
  auto terms = parse_field_terms(text);
  if (!terms) return terms.error().message;
  auto parsed = resolve_fields(std::move(*terms),
                               {.names = kNames, .refusal = "field label not supported: %s", .aliases = kAliases});
  if (!parsed) return parsed.error().message;
  std::string out;
  for (const cache::FieldRequirement& r : *parsed) {
    out += std::to_string(r.field) + (r.equal ? "=" : "!=") + r.value + ";";
  }
  return out;
}

TEST(FieldSelectorTest, TermsAreSortedAndUnescaped) {
  EXPECT_EQ(fields("spec.nodeName!=n,metadata.name=a"), "-1=a;0!=n;");
  EXPECT_EQ(fields("spec.host==x\\,y\\=z"), "0=x,y=z;");
  EXPECT_EQ(fields("a.b=1"), "field label not supported: a.b");
  EXPECT_EQ(fields("metadata.name"), "invalid selector: 'metadata.name'; can't understand 'metadata.name'");
  EXPECT_EQ(fields("metadata.name=a=b"), "invalid field selector: unescaped character in value: 61");
}

}  // namespace
}  // namespace holdfast::request
