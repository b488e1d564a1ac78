#include "cli/field_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/conflicts.h"
#include "cli/line_diff.h"
#include "codec/codec.h"

namespace holdfast::cli {
namespace {

using testing::HasSubstr;

codec::Document parse(std::string_view yaml) { return std::move(*codec::parse_yaml(std::string(yaml))); }

constexpr std::string_view kObject = R"(
metadata: {labels: {app: short, app.kubernetes.io/name: long, "a]b": odd}, finalizers: [x, z]}
spec:
  ports: [{port: 80, name: http}, {port: 80, protocol: UDP, name: udp}]
  rows: [[1, 2], [3]]
)";

TEST(FieldPath, ResolvesInTheObject) {
  const codec::Document document = parse(kObject);
  const auto at = [&](std::string_view path) {
    const Value* value = value_at(document.root(), path);
    return value == nullptr ? "nothing" : codec::encode_json(*value);
  };
  EXPECT_EQ(at(".metadata.labels.app"), "\"short\"");
  EXPECT_EQ(at(".metadata.labels.app.kubernetes.io/name"), "\"long\"");
  EXPECT_EQ(at(".metadata.labels.a]b"), "\"odd\"");
  EXPECT_EQ(at(".metadata.finalizers[=\"z\"]"), "\"z\"");
  EXPECT_EQ(at(".spec.ports[port=80,protocol=\"TCP\"].name"), "\"http\"");  // The key's default is left out.
  EXPECT_EQ(at(".spec.ports[port=80,protocol=\"UDP\"].name"), "\"udp\"");
  EXPECT_EQ(at(".spec.rows[0][1]"), "2");
  EXPECT_EQ(at(".spec.ports[port=81].name"), "nothing");
  EXPECT_EQ(at(".spec.nope"), "nothing");
  EXPECT_EQ(at(""), "nothing");
}

TEST(FieldPath, IsChangedAndRemoved) {
  const codec::Document document = parse("{a: {b.c: 1}, l: [{k: x, v: 1}, {k: w, v: 2}]}");
  Arena arena;
  const Value three = Value::integer(3);
  const auto json = [](const Value& value) { return codec::encode_json_sorted(value); };
  EXPECT_EQ(json(with_value_at(arena, document.root(), ".l[k=\"w\"].v", &three)),
            R"({"a":{"b.c":1},"l":[{"k":"x","v":1},{"k":"w","v":3}]})");
  EXPECT_EQ(json(with_value_at(arena, document.root(), ".a.b.c", nullptr)),
            R"({"a":{},"l":[{"k":"x","v":1},{"k":"w","v":2}]})");
  EXPECT_EQ(json(with_value_at(arena, document.root(), ".l[k=\"x\"]", nullptr)),
            R"({"a":{"b.c":1},"l":[{"k":"w","v":2}]})");
  EXPECT_TRUE(equal(with_value_at(arena, document.root(), ".nope", &three), document.root()));
}

TEST(FieldPath, IsWithinComparesWholeElements) {
  EXPECT_TRUE(is_within(".spec.replicas", ".spec"));
  EXPECT_TRUE(is_within(".spec.replicas", "spec.replicas"));
  EXPECT_TRUE(is_within(".spec.ports[port=80]", ".spec.ports"));
  EXPECT_FALSE(is_within(".spec.replicasMore", ".spec.replicas"));
}

TEST(Conflicts, AreReadWithOwnersAndResolved) {
  const codec::Document live = parse(R"(
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
  managedFields:
  - {manager: a, operation: Apply, apiVersion: v1, time: "2026-01-02T03:04:05Z", fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:x": {}}}}
  - {manager: b, operation: Update, apiVersion: v1, subresource: status, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:x": {}, "f:w": {}}}}
data: {x: "1", w: "1"}
)");
  const codec::Document config = parse("{data: {x: '2', w: '2', own: '3'}}");
  Error error{Reason::Conflict, "Apply failed"};
  for (const char* field : {".data.x", ".data.x", ".data.w"}) {
    error.causes.push_back({"FieldManagerConflict", "conflict with \"a\"", field});
  }
  std::vector<FieldConflict> conflicts = read_conflicts(error, config.root(), live.root(), "me");
  ASSERT_EQ(conflicts.size(), 2u);
  EXPECT_EQ(conflicts[0].ours, "2");
  EXPECT_EQ(conflicts[0].live, "1");
  EXPECT_EQ(conflicts[0].owners.size(), 2u);
  EXPECT_EQ(conflicts[1].owners[0].subresource, "status");
  const std::string table = conflict_table(conflicts, Terminal{}, {.seconds = 1767323045 + 120});
  EXPECT_THAT(table, HasSubstr(".data.x   2       1      a       Apply           2m"));
  conflicts[0].resolution = Resolution::Share;
  conflicts[1].resolution = Resolution::Yield;
  Arena arena;
  EXPECT_EQ(codec::encode_json_sorted(resolved(arena, config.root(), live.root(), conflicts)),
            R"({"data":{"own":"3","x":"1"}})");
}

std::string diffed(std::vector<std::string> before, std::vector<std::string> after) {
  std::string out;
  const std::vector<DiffLine> lines = diff_lines(before, after);
  for (const Hunk& hunk : hunks(lines)) {
    out += hunk.heading + "\n";
    for (const DiffLine& line : hunk.lines) {
      out += line.kind == DiffLine::Kind::Same ? " " : line.kind == DiffLine::Kind::Added ? "+" : "-";
      out += (line.kind == DiffLine::Kind::Removed ? before[line.before] : after[line.after]) + "\n";
    }
  }
  return out;
}

TEST(LineDiff, MatchesTheOutputOfDiff) {
  EXPECT_EQ(diffed({"a", "b", "c"}, {"a", "b", "c"}), "");
  EXPECT_EQ(diffed({"a", "b", "c"}, {"a", "x", "c"}), "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
  EXPECT_EQ(diffed({}, {"a"}), "@@ -0,0 +1 @@\n+a\n");
  EXPECT_EQ(diffed({"a"}, {}), "@@ -1 +0,0 @@\n-a\n");
  EXPECT_EQ(
      diffed({"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}, {"1", "2", "3", "4", "5", "6", "7", "8", "9", "x"}),
      "@@ -7,4 +7,4 @@\n 7\n 8\n 9\n-10\n+x\n");
}

}  // namespace
}  // namespace holdfast::cli
