#include "codec/transcode_json.h"

#include <gtest/gtest.h>

#include <string>

#include "codec/codec.h"

namespace holdfast::codec {
namespace {

struct Case {
  std::string_view name;
  std::string_view in;
  Shape shape;
  std::string_view want;  // Compact JSON.
};

const FieldPaths kSpecOnly = FieldPaths::of({"spec", "status.list.x", "metadata.labels"});

const Case kCases[] = {
    {"everything",
     R"( {"a":[1,{"b":2.50}], "c":"\u003c" ,"d":{},"e":[]} )",
     {},
     R"({"a":[1,{"b":2.50}],"c":"\u003c","d":{},"e":[]})"},
    {"managedFields of an object",
     R"({"metadata":{"managedFields":[{"a":"}"}],"name":"x"},"spec":{"metadata":{"managedFields":1}}})",
     {.drop = &managed_fields_paths()},
     R"({"metadata":{"name":"x"},"spec":{"metadata":{"managedFields":1}}})"},
    {"managedFields as the only and as the last member",
     R"({"items":[{"metadata":{"managedFields":[]}},{"metadata":{"name":"y","managedFields":null}},{"data":1}],"metadata":{}})",
     {.drop = &managed_fields_paths()},
     R"({"items":[{"metadata":{}},{"metadata":{"name":"y"}},{"data":1}],"metadata":{}})"},
    {"other paths, through lists",
     R"({"spec":{"a":1},"status":{"list":[{"x":1,"y":2},{"x":3},[{"x":4}]],"x":5},"metadata":{"labels":{},"l":[{"labels":1}]}})",
     {.drop = &kSpecOnly},
     R"({"status":{"list":[{"y":2},{},[{}]],"x":5},"metadata":{"l":[{"labels":1}]}})"},
    {"a dropped key with escapes",
     R"({"m":1,"\u0073pec":{"a":"\"]"},"n":2})",
     {.drop = &kSpecOnly},
     R"({"m":1,"n":2})"},
    {"metadata only",
     R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","labels":{"a":"b"}},"spec":{"metadata":1}})",
     {.metadata_only = true},
     R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"x","labels":{"a":"b"}}})"},
    {"metadata only, without managedFields",
     R"({"spec":{},"metadata":{"managedFields":[1],"name":"x"}})",
     {.drop = &managed_fields_paths(), .metadata_only = true},
     R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"x"}})"},
    {"no metadata at all",
     R"({"spec":{}})",
     {.metadata_only = true},
     R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"})"},
};

TEST(TranscodeJson, WritesTheRequestedShapeInEveryFormat) {
  for (const Case& c : kCases) {
    std::string compact = "before";
    ASSERT_TRUE(json_to_json(c.in, c.shape, compact)) << c.name;
    EXPECT_EQ(compact, "before" + std::string(c.want)) << c.name;

    const auto wanted = parse_json(std::string(c.want));
    ASSERT_TRUE(wanted) << c.name;

    std::string cbor;
    ASSERT_TRUE(json_to_cbor(c.in, c.shape, cbor)) << c.name;
    const auto read_back = parse_cbor(cbor);
    ASSERT_TRUE(read_back) << c.name;
    EXPECT_TRUE(equal(read_back->root(), wanted->root())) << c.name << encode_json(read_back->root());

    std::string pretty;
    ASSERT_TRUE(json_to_pretty_json(c.in, c.shape, pretty)) << c.name;
    const FieldPaths whole = FieldPaths::of({"r"});
    const auto raw = parse_json(R"({"r":)" + std::string(c.want) + "}", {.raw = &whole});
    ASSERT_TRUE(raw) << c.name;
    // Raw leaves keep number texts, like the transcoder.
    EXPECT_EQ(pretty, encode_json_pretty(*raw->root().find("r"))) << c.name;
  }
}

TEST(TranscodeJson, RejectsInvalidJsonAndLeavesTheOutputUnchanged) {
  std::string out = "before";
  EXPECT_EQ(json_to_json("{\"a\":1", {}, out).error().message, "unexpected end of JSON input");
  EXPECT_EQ(json_to_pretty_json("[1 2]", {}, out).error().message, "invalid character '2' after array element");
  EXPECT_FALSE(json_to_cbor("[1e999]", {}, out));
  EXPECT_EQ(out, "before");
}

TEST(TranscodeJson, TerminatesWhateverIsDropped) {
  using namespace std::string_literals;
  for (const std::string& value : {"[\0]"s, "\0"s, "[x"s, "{\"a\":]"s, "}"s, "tru"s, ""s}) {
    std::string out;
    static_cast<void>(json_to_json("{\"spec\":" + value + "}", {.drop = &kSpecOnly}, out));
  }
}

TEST(TranscodeJson, LargeContainersHaveCorrectCborCounts) {
  std::string json = "[[";
  for (int i = 0; i < 300; ++i) json += std::to_string(i) + ",";
  json.back() = ']';
  json += ",{";
  for (int i = 0; i < 70000; ++i) json += "\"k" + std::to_string(i) + "\":0,";
  json.back() = '}';
  json += "]";
  std::string cbor;
  ASSERT_TRUE(json_to_cbor(json, {}, cbor));
  const auto read_back = parse_cbor(cbor);
  ASSERT_TRUE(read_back);
  EXPECT_EQ(encode_json(read_back->root()), json);
}

}  // namespace
}  // namespace holdfast::codec
