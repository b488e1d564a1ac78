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

TEST(Conflicts, UnsetFieldsAreShownAsUnset) {
  const codec::Document config = parse(
      "{data: {x: {k8s_io__value: unset}}, box: {k8s_io__value: unset}, l: [{name: a, k8s_io__value: unset}],"
      " f: [{k8s_io__value: unset, value: x.io/a}]}");
  const codec::Document live = parse("{data: {x: '1'}, box: {in: {y: '2'}}, l: [{name: a, v: '3'}], f: [x.io/a]}");
  Error error{Reason::Conflict, ""};
  for (const char* field : {".data.x", ".box.in.y", ".l[name=\"a\"]", ".l[name=\"a\"].v", ".f[=\"x.io/a\"]"}) {
    error.causes.push_back({"FieldManagerConflict", "conflict with \"b\"", field});
  }
  for (const FieldConflict& conflict : read_conflicts(error, config.root(), live.root(), "me")) {
    EXPECT_EQ(conflict.ours, "(unset)") << conflict.path;
  }
}

TEST(FieldPaths, CommasInKeysDoNotSplit) {
  using testing::Contains;
  const auto paths = split_paths({R"(.spec.ports[port=80,protocol="TCP"].name,.spec.type)", ".a[k=\"x],y\"]", ".b,c"});
  for (const char* path :
       {R"(.spec.ports[port=80,protocol="TCP"].name)", ".spec.type", ".a[k=\"x],y\"]", ".b", "c", ".b,c"}) {
    EXPECT_THAT(paths, Contains(std::string(path)));
  }
}

struct MarkerCase {
  const char* path;
  const char* want;
};

TEST(FieldPaths, MarkersAreSetByPath) {
  const codec::Document config = parse("{data: {own: '1'}, l: [{name: a, v: '1'}]}");
  const codec::Document live = parse(
      "{data: {own: '1', app.io/x: '2', other: '3'}, f: [x.io/a, x.io/b], l: [{name: a, v: '1', w: '2'}],"
      " p: [{port: 80, protocol: TCP}]}");
  const MarkerCase cases[] = {
      {".data.other", R"({"data":{"other":U,"own":"1"},"l":[{"name":"a","v":"1"}]})"},
      {"data.app.io/x", R"({"data":{"app.io/x":U,"own":"1"},"l":[{"name":"a","v":"1"}]})"},
      {".data.own", R"({"data":{"own":U},"l":[{"name":"a","v":"1"}]})"},
      {".data.k8s_io__value", R"({"data":{"k8s_io__value":{"k8s_io__value":U},"own":"1"},"l":[{"name":"a","v":"1"}]})"},
      {".none.at.all", R"({"data":{"own":"1"},"l":[{"name":"a","v":"1"}],"none":{"at":{"all":U}}})"},
      {".l[name=\"a\"].w", R"({"data":{"own":"1"},"l":[{"name":"a","v":"1","w":U}]})"},
      {".l[name=\"a\"]", R"({"data":{"own":"1"},"l":[{"k8s_io__value":"unset","name":"a"}]})"},
      {".l[name=\"b,c\"]", R"({"data":{"own":"1"},"l":[{"name":"a","v":"1"},{"k8s_io__value":"unset","name":"b,c"}]})"},
      {".f[=\"x.io/a\"]",
       R"({"data":{"own":"1"},"f":[{"k8s_io__value":"unset","value":"x.io/a"}],"l":[{"name":"a","v":"1"}]})"},
      {".p[port=80,protocol=\"TCP\"].name",
       R"({"data":{"own":"1"},"l":[{"name":"a","v":"1"}],"p":[{"name":U,"port":80,"protocol":"TCP"}]})"},
  };
  for (const MarkerCase& c : cases) {
    Arena arena;
    const Result<Value> marked = with_marker_at(arena, config.root(), live.root(), c.path);
    ASSERT_TRUE(marked) << c.path << ": " << marked.error().message;
    std::string want = c.want;
    for (size_t at = 0; (at = want.find(":U", at)) != std::string::npos;) {
      want.replace(at, 2, R"(:{"k8s_io__value":"unset"})");
    }
    EXPECT_EQ(codec::encode_json_sorted(*marked), want) << c.path;
  }
  Arena arena;
  for (const char* bad : {".l[0]", ".l[=\"a\"]", ".f[=\"a\"].b", ".f[=a]", ".f[={}]", ".l[", ".l[x]", ".", ".data."}) {
    EXPECT_FALSE(with_marker_at(arena, config.root(), live.root(), bad)) << bad;
  }
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
