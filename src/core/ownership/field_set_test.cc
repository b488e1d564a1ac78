#include "ownership/field_set.h"

#include <gtest/gtest.h>

namespace holdfast::ownership {
namespace {

class FieldSets : public testing::Test {
 protected:
  FieldSet set(std::string_view json) {
    Result<FieldSet> parsed = parse_fields_v1(arena_, arena_.copy(json));
    EXPECT_TRUE(parsed.ok()) << json << ": " << (parsed.ok() ? "" : parsed.error().message);
    return parsed.ok() ? *parsed : FieldSet();
  }
  std::string text(FieldSet s) { return to_fields_v1(s); }
  Arena arena_;
};

TEST_F(FieldSets, UnionContainsPathsOfBoth) {
  EXPECT_EQ(text(union_of(arena_, set(R"({"f:a":{"f:x":{}},"f:b":{}})"), set(R"({"f:a":{".":{},"f:y":{}},"f:c":{}})"))),
            R"({"f:a":{".":{},"f:x":{},"f:y":{}},"f:b":{},"f:c":{}})");
}

TEST_F(FieldSets, IntersectionComparesExactPaths) {
  EXPECT_EQ(text(intersection(arena_, set(R"({"f:a":{"f:x":{}},"f:b":{}})"), set(R"({"f:a":{},"f:b":{"f:y":{}}})"))),
            "{}");
  EXPECT_EQ(
      text(intersection(arena_, set(R"({"f:a":{".":{},"f:x":{}},"f:b":{}})"), set(R"({"f:a":{"f:x":{}},"f:b":{}})"))),
      R"({"f:a":{"f:x":{}},"f:b":{}})");
}

TEST_F(FieldSets, DifferenceWithParentKeepsChildren) {
  EXPECT_EQ(text(difference(arena_, set(R"({"f:a":{".":{},"f:x":{}}})"), set(R"({"f:a":{}})"))),
            R"({"f:a":{"f:x":{}}})");
}

TEST_F(FieldSets, RecursiveDifferenceWithParentRemovesChildren) {
  EXPECT_EQ(text(recursive_difference(arena_, set(R"({"f:a":{".":{},"f:x":{}},"f:b":{}})"), set(R"({"f:a":{}})"))),
            R"({"f:b":{}})");
  EXPECT_EQ(
      text(recursive_difference(arena_, set(R"({"f:a":{".":{},"f:x":{},"f:y":{}}})"), set(R"({"f:a":{"f:x":{}}})"))),
      R"({"f:a":{".":{},"f:y":{}}})");
}

TEST_F(FieldSets, LeavesAreMembersWithNothingBelow) {
  EXPECT_EQ(text(leaves(arena_, set(R"({"f:a":{".":{},"f:x":{}},"f:b":{}})"))), R"({"f:a":{"f:x":{}},"f:b":{}})");
}

TEST_F(FieldSets, HasAndIncludesConsiderOnlyMembers) {
  const FieldSet s = set(R"({"f:a":{"f:x":{},"k:{\"id\":1}":{".":{},"f:id":{}}}})");
  const PathElement a = PathElement::field("a"), x = PathElement::field("x");
  const PathElement ax[] = {a, x};
  EXPECT_TRUE(s.has(ax));
  EXPECT_FALSE(s.has(std::span(ax, 1)));
  EXPECT_TRUE(s.includes(set(R"({"f:a":{"k:{\"id\":1}":{"f:id":{}}}})")));
  EXPECT_FALSE(s.includes(set(R"({"f:a":{}})")));
  EXPECT_FALSE(set(R"({"f:a":{"f:x":{}}})").includes(s));
}

TEST_F(FieldSets, EqualSetsFromDifferentSourcesHaveEqualHashes) {
  const std::string json = R"({"f:a":{".":{},"k:{\"n\":80}":{}},"f:b":{"v:1.5":{}}})";
  const FieldSet a = set(json), b = set(json), other = set(R"({"f:a":{".":{}}})");
  EXPECT_FALSE(a.same(b));
  EXPECT_TRUE(a == b);
  EXPECT_EQ(hash(a), hash(b));
  EXPECT_FALSE(a == other);
}

TEST_F(FieldSets, CopyIsIndependentOfItsSource) {
  Arena mine;
  FieldSet copied;
  {
    Arena gone;
    std::string json = R"({"f:spec":{"k:{\"name\":\"web\"}":{".":{}},"v:\"x\"":{}}})";
    copied = copy(mine, *parse_fields_v1(gone, json));
    json.assign(json.size(), '#');
  }
  EXPECT_EQ(text(copied), R"({"f:spec":{"k:{\"name\":\"web\"}":{},"v:\"x\"":{}}})");
}

TEST_F(FieldSets, IterationVisitsMembersOfANodeBeforeItsChildren) {
  std::string all;
  set(R"({"f:a":{"f:x":{}},"f:b":{}})").for_each([&](Path p) { all += to_string(p) + " "; });
  EXPECT_EQ(all, ".b .a.x ");
}

TEST_F(FieldSets, SizeCountsPaths) { EXPECT_EQ(set(R"({"f:a":{".":{},"f:x":{}},"f:b":{}})").size(), 3u); }

TEST_F(FieldSets, ElementsHaveReadableText) {
  struct Row {
    const char *element, *as_is, *as_read;
  };
  for (const Row& row : {
           Row{"f:a.b", ".a.b", ".a.b"},
           Row{R"(k:{"name":"x\"y","port":80})", R"([name="x\"y",port=80])", R"([name="x\"y",port=80])"},
           Row{R"(k:{"id":1500000})", "[id=1500000]", "[id=1.5e+06]"},
           Row{R"(v:"x")", R"([="x"])", R"([="x"])"},
           Row{"v:1.5", "[=1.5]", "[=1.5]"},
           Row{"v:0.00001", "[=1e-05]", "[=1e-05]"},
           Row{"v:null", "[=null]", "[=null]"},
           Row{"i:3", "[3]", "[3]"},
       }) {
    const Result<PathElement> element = parse_element(arena_, row.element);
    ASSERT_TRUE(element.ok()) << row.element;
    EXPECT_EQ(to_string(*element), row.as_is);
    EXPECT_EQ(to_string(*element, ShownNumbers::AsRead), row.as_read);
  }
}

}  // namespace
}  // namespace holdfast::ownership
