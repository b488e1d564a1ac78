#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/base64.h"
#include "codec/json.h"
#include "ownership/field_set.h"

namespace holdfast::ownership {
namespace {

std::string round(std::string_view json, MemberOrder order = MemberOrder::Canonical) {
  Arena arena;
  Result<FieldSet> set = parse_fields_v1(arena, json);
  return set.ok() ? to_fields_v1(*set, order) : "error: " + set.error().message;
}

struct Row {
  const char *name, *in, *out;
};

TEST(FieldsV1, ParsesAndWritesEveryElement) {
  for (const Row& row : {
           Row{"an empty set", "{}", "{}"},
           Row{"null is an empty set", "null", "{}"},
           Row{"members are put in canonical order: f, k, v, i",
               R"({"i:2":{},"i:10":{},"v:1":{},"k:{\"a\":1}":{},"f:b":{},"f:a":{}})",
               R"({"f:a":{},"f:b":{},"k:{\"a\":1}":{},"v:1":{},"i:2":{},"i:10":{}})"},
           Row{"values: numbers, strings, booleans, null",
               R"({"v:null":{},"v:true":{},"v:false":{},"v:\"a\"":{},"v:10":{},"v:9.5":{}})",
               R"({"v:9.5":{},"v:10":{},"v:\"a\"":{},"v:false":{},"v:true":{},"v:null":{}})"},
           Row{"a key that is a prefix of another comes first", R"({"k:{\"a\":1,\"b\":2}":{},"k:{\"a\":1}":{}})",
               R"({"k:{\"a\":1}":{},"k:{\"a\":1,\"b\":2}":{}})"},
           Row{"the names of a key are sorted", R"({"k:{ \"b\" : 2, \"a\":1 }":{}})", R"({"k:{\"a\":1,\"b\":2}":{}})"},
           Row{"whitespace is allowed", " {\n\"f:a\" :\t{ } , \"f:b\": null }", R"({"f:a":{},"f:b":{}})"},
           Row{"the dot is dropped where nothing is below", R"({"f:a":{".":{}}})", R"({"f:a":{}})"},
           Row{"the value of the dot is ignored", R"({"f:a":{"f:b":{},".":[1,{"x":"\""}]}})",
               R"({"f:a":{".":{},"f:b":{}}})"},
           Row{"an unknown kind is dropped with everything below it", R"({"f:a":{},"z:b":{"f:c":{"x":1}}})",
               R"({"f:a":{}})"},
           Row{"a parent left without children is a leaf", R"({"f:a":{"z:b":{}}})", R"({"f:a":{}})"},
           Row{"a duplicate member stays a member and the later children win",
               R"({"f:a":{"f:x":{}},"f:a":{},"f:a":{"f:y":{}}})", R"({"f:a":{".":{},"f:y":{}}})"},
           Row{"what follows the object is ignored", R"({"f:a":{}} trailing)", R"({"f:a":{}})"},
           Row{"what follows a payload is ignored", R"({"v:1 x":{}})", R"({"v:1":{}})"},
           Row{"80.0 is 80", R"({"v:80.0":{}})", R"({"v:80":{}})"},
           Row{"minus zero stays", R"({"v:-0.0":{}})", R"({"v:-0":{}})"},
           Row{"small numbers have an exponent of two digits", R"({"v:0.0000001":{},"v:0.000001":{}})",
               R"({"v:1e-07":{},"v:0.000001":{}})"},
           Row{"large numbers have an exponent from 1e21 on", R"({"v:1e20":{},"v:1e21":{},"v:1E100":{}})",
               R"({"v:100000000000000000000":{},"v:1e+21":{},"v:1e+100":{}})"},
           Row{"numbers beyond 2^53 have their shortest digits",
               R"({"v:-12345678901234567890":{},"v:18446744073709551615":{}})",
               R"({"v:-12345678901234567000":{},"v:18446744073709552000":{}})"},
           Row{"integers beyond 2^53 lose digits", R"({"v:9007199254740993":{}})", R"({"v:9007199254740992":{}})"},
           Row{"an empty name", R"({"f:":{}})", R"({"f:":{}})"},
           Row{"a name with a colon", R"({"f:a:b":{}})", R"({"f:a:b":{}})"},
           Row{"names keep < > &", R"({"f:<&>":{}})", R"({"f:<&>":{}})"},
           Row{"payload values escape < > &", R"({"v:\"<&>\"":{}})", R"({"v:\"\\u003c\\u0026\\u003e\"":{}})"},
           Row{"key names do not escape, key values do", R"({"k:{\"<\":\"<\"}":{}})",
               R"({"k:{\"<\":\"\\u003c\"}":{}})"},
           Row{"controls: short for n, r, t, otherwise u00", R"({"f:\n\r\t\b\u0001":{}})",
               "{\"f:\\n\\r\\t\\u0008\\u0001\":{}}"},
           Row{"quotes and backslashes", R"({"f:a\"b\\c":{},"v:\"a\\\"b\\\\c\"":{}})",
               R"({"f:a\"b\\c":{},"v:\"a\\\"b\\\\c\"":{}})"},
           Row{"line separators in a payload", "{\"v:\\\"\u2028\u2029\\\"\":{}}", R"({"v:\"\\u2028\\u2029\"":{}})"},
           Row{"text beyond ASCII passes", R"({"f:\u00e4\ud83d\ude00":{}})", "{\"f:ä😀\":{}}"},
           Row{"a lone surrogate is replaced", R"({"f:\ud800x":{}})", "{\"f:\uFFFDx\":{}}"},
           Row{"lists and maps as values", R"({"v:[1,{\"b\":2,\"a\":null}]":{}})",
               R"({"v:[1,{\"a\":null,\"b\":2}]":{}})"},
       }) {
    EXPECT_EQ(round(row.in), row.out) << row.name;
  }
}

TEST(FieldsV1, ErrorsNameThePosition) {
  for (const Row& row : {
           Row{"a name shorter than two characters", R"({"f":{}})",
               R"(error: "f" is not a path element: it needs at least 2 characters)"},
           Row{"no colon", R"({"fa:":{}})", "error: missing colon: fa:"},
           Row{"an index that is not an integer", R"({"i:x":{}})", "error: i:x: an index must be an integer"},
           Row{"a number where an object belongs", R"({"f:a":1})", "error: an object was expected at byte 7"},
           Row{"an array where an object belongs", R"({"f:a":[]})", "error: an object was expected at byte 7"},
           Row{"a root that is not an object", "[]", "error: an object was expected at byte 0"},
           Row{"nothing", "", "error: an object was expected at byte 0"},
           Row{"truncation", R"({"f:a":{)", "error: a member name was expected at byte 8"},
           Row{"truncation in a name", R"({"f:a)", "error: a JSON string does not end at byte 5"},
           Row{"truncation in an escape", "{\"f:a\\", "error: a JSON string does not end at byte 6"},
           Row{"malformed JSON in a key", R"({"k:{\"a\":}":{}})",
               R"(error: k:{"a":}: a JSON value is malformed at byte 5)"},
           Row{"a key that is not an object", R"({"k:1":{}})", "error: k:1: a key must be a JSON object"},
           Row{"malformed JSON in a value", R"({"v:tru":{}})", "error: v:tru: a JSON value is malformed at byte 0"},
           Row{"an empty value", R"({"v:":{}})", "error: v:: a JSON value is malformed at byte 0"},
       }) {
    EXPECT_EQ(round(row.in), row.out) << row.name;
  }
}

// Generated by generate_fields.go; set FIELDS_VECTORS to check another file of that format.
TEST(FieldsV1, RandomTextsMatchKubernetes) {
  const char* named = std::getenv("FIELDS_VECTORS");
  std::ifstream in(named != nullptr ? named : HOLDFAST_SOURCE_DIR "/tests/vectors/ownership/fields_v1.jsonl");
  ASSERT_TRUE(in.good());
  int failures = 0;
  for (std::string line; std::getline(in, line) && failures < 10;) {
    Arena arena;
    const Result<Value> row = codec::decode_json(arena, line);
    ASSERT_TRUE(row.ok());
    const std::string text = *base64_decode(row->text_at("in"));
    const bool bad = row->has("bad");
    const std::string want = bad ? "" : *base64_decode(row->text_at("out"));
    const std::string got = round(text);
    const bool refused = got.starts_with("error: ");
    if (bad ? !refused : got != want) {
      ++failures;
      ADD_FAILURE() << text << "\n became " << got << "\n instead of " << (bad ? "an error" : want);
    }
  }
}

TEST(FieldsV1, RejectsUnboundedNesting) {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "{\"f:a\":";
  EXPECT_EQ(round(deep).substr(0, 27), "error: nesting is too deep ");
}

TEST(FieldsV1, BytewiseOrderMatchesAPlainJsonMap) {
  EXPECT_EQ(
      round(R"({"v:1":{},"v:-0.5":{},"v:-1e-7":{},"v:0.1":{},"i:1":{},"k:{\"a\":10}":{},"k:{\"a\":9}":{},"f:a":{}})",
            MemberOrder::Bytewise),
      R"({"f:a":{},"i:1":{},"k:{\"a\":10}":{},"k:{\"a\":9}":{},"v:-0.5":{},"v:-1e-07":{},"v:0.1":{},"v:1":{}})");
}

TEST(FieldsV1, DecodedTreeParsesLikeItsText) {
  Arena arena;
  MapBuilder inner(arena), root(arena);
  inner.add(".", Value::empty_map());
  inner.add("k:{\"id\":1}", Value());
  inner.add("q:dropped", Value::empty_map());
  root.add("f:spec", inner.build());
  EXPECT_EQ(to_fields_v1(*parse_fields_v1(arena, root.build())), R"({"f:spec":{".":{},"k:{\"id\":1}":{}}})");
  EXPECT_EQ(to_fields_v1(*parse_fields_v1(arena, Value::raw(R"({"f:a":{}})"))), R"({"f:a":{}})");
  EXPECT_FALSE(parse_fields_v1(arena, Value::integer(1)).ok());
}

}  // namespace
}  // namespace holdfast::ownership
