#include "ownership/path_pattern.h"

#include <gtest/gtest.h>

#include <vector>

namespace holdfast::ownership {
namespace {

class PathPatternTest : public ::testing::Test {
 protected:
  FieldSet set(std::string_view json) {
    Result<FieldSet> parsed = parse_fields_v1(arena, arena.copy(json));
    EXPECT_TRUE(parsed) << json;
    return parsed ? *parsed : FieldSet();
  }
  static std::string text(FieldSet set) {
    std::string all;
    set.for_each([&](Path path) { all += (all.empty() ? "" : " ") + to_string(path); });
    return all;
  }
  std::string selection(std::string_view from, std::vector<std::string_view> patterns,
                        InsideAtomic inside = InsideAtomic::Nothing) {
    std::vector<PathPattern> parsed;
    for (const std::string_view pattern : patterns) {
      Result<PathPattern> one = PathPattern::parse(pattern);
      if (!one) return one.error().message;
      parsed.push_back(*one);
    }
    return text(selected(arena, set(from), parsed, inside));
  }

  Arena arena;
};

TEST_F(PathPatternTest, PatternsSelectFieldsAndWhatIsBelow) {
  constexpr std::string_view kSet =
      R"({"f:metadata":{"f:labels":{"f:app.kubernetes.io/name":{},"f:app":{}}},"f:spec":{"f:replicas":{},"f:replicasMax":{},)"
      R"("f:list":{"k:{\"name\":\"a.b\"}":{".":{},"f:image":{},"f:name":{}},"k:{\"name\":\"c\"}":{".":{},"f:image":{}}},"f:set":{"v:\"x\"":{},"v:5":{}}}})";
  EXPECT_EQ(selection(kSet, {".spec.replicas"}), ".spec.replicas");
  EXPECT_EQ(selection(kSet, {".metadata.labels.app"}), ".metadata.labels.app");
  EXPECT_EQ(selection(kSet, {".metadata.labels.app.kubernetes.io/name"}), ".metadata.labels.app.kubernetes.io/name");
  EXPECT_EQ(selection(kSet, {".metadata.labels.*"}), ".metadata.labels.app .metadata.labels.app.kubernetes.io/name");
  EXPECT_EQ(selection(kSet, {".spec.list[*].image"}), R"(.spec.list[name="a.b"].image .spec.list[name="c"].image)");
  EXPECT_EQ(selection(kSet, {R"(.spec.list[name="a.b"])"}),
            R"(.spec.list[name="a.b"] .spec.list[name="a.b"].image .spec.list[name="a.b"].name)");
  EXPECT_EQ(selection(kSet, {".spec.set[=5]", ".spec.set[=\"y\"]"}), ".spec.set[=5]");
  EXPECT_EQ(selection(kSet, {".spec.*", ".spec.replicas"}), selection(kSet, {".spec"}));
  EXPECT_EQ(selection(kSet, {".spec.replicas.deeper"}), "");
  EXPECT_EQ(selection(kSet, {".spec.replicas.deeper"}, InsideAtomic::WholeValue), ".spec.replicas");
  EXPECT_EQ(selection(kSet, {}), "");
}

TEST_F(PathPatternTest, MalformedPatternsSayWhatIsWrong) {
  for (const auto& [pattern, why] : {std::pair<const char*, const char*>{"spec", "begins with a dot"},
                                     {"", "begins with a dot"},
                                     {".", "begins with a dot"},
                                     {".spec.", "a name is missing"},
                                     {".spec..x", "a name is missing"},
                                     {".spec.[*]", "a name is missing"},
                                     {".spec[", "not closed"},
                                     {".spec[name=\"]", "not closed"},
                                     {".spec[]", "names no item"},
                                     {".spec[*]x", "a dot or a bracket follows"}}) {
    EXPECT_NE(selection("{}", {pattern}).find(why), std::string::npos) << pattern;
  }
}

}  // namespace
}  // namespace holdfast::ownership
