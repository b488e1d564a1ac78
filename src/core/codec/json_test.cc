#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "codec/codec.h"

namespace holdfast::codec {
namespace {

using namespace std::string_literals;

struct TextCase {
  std::string_view name;
  std::string in;
  std::string want;
};

void PrintTo(const TextCase& c, std::ostream* os) { *os << c.name; }

// Decodes a text and encodes it again; an error as "error@offset: message".
std::string reread(const std::string& in) {
  JsonError error;
  const Result<Document> document = parse_json(in, {.error = &error});
  if (!document) {
    EXPECT_EQ(document.error().message, error.message);
    return "error@" + std::to_string(error.offset) + ": " + error.message;
  }
  return encode_json(document->root());
}

class JsonReads : public testing::TestWithParam<TextCase> {};

TEST_P(JsonReads, LikeKubernetes) { EXPECT_EQ(reread(GetParam().in), GetParam().want) << GetParam().name; }

INSTANTIATE_TEST_SUITE_P(
    Values, JsonReads,
    testing::ValuesIn(std::vector<TextCase>{
        {"white space is removed everywhere", " {\t\"a\" :\r\n[ 1 , true,false , null ] } ",
         R"({"a":[1,true,false,null]})"},
        {"empty containers", R"({"a":{},"b":[]})", R"({"a":{},"b":[]})"},
        {"a scalar alone", "\"x\"", "\"x\""},
        {"minus zero is the integer zero", "-0", "0"},
        {"minus zero as a float stays", "-0.0", "-0"},
        {"the largest int64", "9223372036854775807", "9223372036854775807"},
        {"one more is a float", "9223372036854775808", "9223372036854776000"},
        {"the smallest int64", "-9223372036854775808", "-9223372036854775808"},
        {"one less is a float", "-9223372036854775809", "-9223372036854776000"},
        {"twenty digits", "12345678901234567890", "12345678901234567000"},
        {"a whole float prints without fraction", "1.0", "1"},
        {"an exponent makes a float", "1e3", "1000"},
        {"too small becomes zero", "1e-400", "0"},
        {"the smallest float", "5e-324", "5e-324"},
        {"small exponents have no leading zero", "0.00000015", "1.5e-7"},
        {"large exponents", "1e21", "1e+21"},
        {"below 1e21 all digits are written", "1e20", "100000000000000000000"},
        {"a number beyond the range", "[1,1e309]",
         "error@8: json: cannot unmarshal number 1e309 into Go value of type float64"},
        {"the last of two equal keys wins, in the place of the first", R"({"a":1,"b":2,"a":3})", R"({"a":3,"b":2})"},
        {"a duplicate key with and without escapes", R"({"a":1,"\u0061":2})", R"({"a":2})"},
        {"escapes", R"("\"\\\/\b\f\n\r\t\u00e9")", "\"\\\"\\\\/\\b\\f\\n\\r\\t\u00e9\""},
        {"HTML characters are escaped", "\"<a>&\u2028\u2029\"", R"("\u003ca\u003e\u0026\u2028\u2029")"},
        {"other controls", "\"\\u0000\\u001f\x7f\"", "\"\\u0000\\u001f\x7f\""},
        {"a surrogate pair", R"("\ud83d\ude00")", "\"\U0001f600\""},
        {"lone surrogates", R"("\ud83d\u0041\ude00\ud83d")", "\"\ufffdA\ufffd\ufffd\""},
        {"each invalid UTF-8 byte", "\"a\xff\xe2\x82z\xed\xa0\x80\"", "\"a\ufffd\ufffd\ufffdz\ufffd\ufffd\ufffd\""},
        {"invalid bytes next to escapes, also in keys", "{\"\xff\\n\":\"\\t\xfe\"}", "{\"\ufffd\\n\":\"\\t\ufffd\"}"},
        {"texts longer than a vector",
         R"({"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa":"bbbbbbbbbbbbbbbbbbb\nbbbbbbbbbbbbbbbbbbbbbbbbbbb"})",
         R"({"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa":"bbbbbbbbbbbbbbbbbbb\nbbbbbbbbbbbbbbbbbbbbbbbbbbb"})"},
    }));

INSTANTIATE_TEST_SUITE_P(
    Errors, JsonReads,
    testing::ValuesIn(std::vector<TextCase>{
        {"empty input", "", "error@0: unexpected end of JSON input"},
        {"only white space", " \n", "error@2: unexpected end of JSON input"},
        {"no value", "x", "error@1: invalid character 'x' looking for beginning of value"},
        {"a byte order mark", "\xef\xbb\xbf{}", "error@1: invalid character '\u00ef' looking for beginning of value"},
        {"something after the value", "{} {}", "error@4: invalid character '{' after top-level value"},
        {"an open object", "{\"a\":1", "error@6: unexpected end of JSON input"},
        {"an open key", "{\"a", "error@3: unexpected end of JSON input"},
        {"a key that is not a string", "{a:1}",
         "error@2: invalid character 'a' looking for beginning of object key string"},
        {"a comma before the end", "{\"a\":1,}",
         "error@8: invalid character '}' looking for beginning of object key string"},
        {"a comma before the end of a list", "[1,]", "error@4: invalid character ']' looking for beginning of value"},
        {"no colon", "{\"a\" 1}", "error@6: invalid character '1' after object key"},
        {"no comma", "{\"a\":1 \"b\":2}", "error@8: invalid character '\"' after object key:value pair"},
        {"no comma in a list", "[1 2]", "error@4: invalid character '2' after array element"},
        {"the wrong bracket", "[1}", "error@3: invalid character '}' after array element"},
        {"a raw control", "\"a\tb\"", "error@3: invalid character '\\t' in string literal"},
        {"an unknown escape", "\"\\x\"", "error@3: invalid character 'x' in string escape code"},
        {"a malformed \\u escape", "\"\\u12g4\"", "error@6: invalid character 'g' in \\u hexadecimal character escape"},
        {"a leading zero", "01", "error@2: invalid character '1' after top-level value"},
        {"a leading zero in a list", "[01]", "error@3: invalid character '1' after array element"},
        {"a plus", "+1", "error@1: invalid character '+' looking for beginning of value"},
        {"a minus alone", "-x", "error@2: invalid character 'x' in numeric literal"},
        {"a point without digits", "1.x", "error@3: invalid character 'x' after decimal point in numeric literal"},
        {"an exponent without digits", "1e+x", "error@4: invalid character 'x' in exponent of numeric literal"},
        {"a truncated literal", "tru", "error@3: invalid character ' ' in literal true (expecting 'e')"},
        {"a misspelled literal", "nulx", "error@4: invalid character 'x' in literal null (expecting 'l')"},
        {"a quote", "'a'", "error@1: invalid character '\\'' looking for beginning of value"},
        {"a zero byte", "\0"s, "error@1: invalid character '\\x00' looking for beginning of value"},
        {"a syntax error after a huge number wins", "[1e309 x", "error@8: invalid character 'x' after array element"},
    }));

TEST(Json, RejectsNestingBeyondTheLimit) {
  const std::string deep = std::string(limits::kDecodedDepth, '[') + std::string(limits::kDecodedDepth, ']');
  EXPECT_EQ(reread(deep), deep);
  EXPECT_EQ(reread("[" + deep + "]"),
            "error@" + std::to_string(limits::kDecodedDepth + 1) + ": invalid character '[' exceeded max depth");
}

TEST(Json, DeepMapsAreWrittenInEveryFormat) {
  constexpr size_t kLevels = limits::kDecodedDepth - 1;
  std::string deep;
  for (size_t i = 0; i < kLevels; ++i) deep += "{\"a\":";
  deep += "{}" + std::string(kLevels, '}');
  const auto document = parse_json(deep);
  ASSERT_TRUE(document);
  EXPECT_EQ(encode_json(document->root()), deep);
  EXPECT_EQ(encode_json_sorted(document->root()), deep);
  const auto cbor = parse_cbor(encode_cbor(document->root(), CborOrder::Sorted));
  ASSERT_TRUE(cbor);
  EXPECT_TRUE(equal(cbor->root(), document->root()));
  // Indentation makes the text grow with the square of the depth.
  std::string yaml;
  ASSERT_TRUE(encode_yaml(document->root(), yaml));
  EXPECT_GT(yaml.size(), kLevels * (kLevels - 1));
}

TEST(Json, MergingRepeatedMapsIsLinearInTheirMembers) {
  std::string source = "{";
  constexpr int kTimes = 20'000;
  for (int i = 0; i < kTimes; ++i) source += "\"a\":{\"k" + std::to_string(i) + "\":1},";
  source.back() = '}';
  Arena arena;
  const auto tree = decode_json(arena, source, {.merge_duplicate_maps = true});
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->members_at("a").size(), size_t{kTimes});
  EXPECT_LT(arena.reserved_bytes(), source.size() * 64);
}

TEST(Json, MergesRepeatedMapsLikeGoFillsAStruct) {
  Arena arena;
  const auto tree = decode_json(
      arena,
      R"({"a":{"x":1,"m":{"p":1}},"b":0,"a":{"y":2,"m":{"q":2},"x":3},"a":{"m":5},"c":{"k":1},"c":7,"c":{"l":2}})",
      {.merge_duplicate_maps = true});
  ASSERT_TRUE(tree);
  EXPECT_EQ(encode_json(*tree), R"({"a":{"x":3,"m":5,"y":2},"b":0,"c":{"l":2}})");
}

TEST(Json, WorkForRepeatedMapsIsBounded) {
  // Each level merges again what the levels inside have merged.
  std::string source = "{\"k\":0";
  for (int i = 0; i < 20'000; ++i) source += ",\"k" + std::to_string(i) + "\":1";
  source += "}";
  for (int depth = 0; depth < 300; ++depth) {
    std::string path;
    for (int i = 0; i < depth; ++i) path += "{\"a\":";
    path += "{\"k\":1}" + std::string(static_cast<size_t>(depth), '}');
    source = "{\"a\":" + source + ",\"a\":" + path + "}";
  }
  Arena arena;
  const auto tree = decode_json(arena, source, {.merge_duplicate_maps = true});
  ASSERT_FALSE(tree);
  EXPECT_EQ(tree.error().message, "json: too many members are given more than once");
  EXPECT_LT(arena.reserved_bytes(), source.size() * 2 * limits::kRepeatedBytesPerByte);
}

TEST(Json, ReportsDuplicateKeysInDocumentOrder) {
  std::vector<std::string> found;
  const auto document = parse_json(
      R"({"spec":{"x":1,"x":{"y":[{"k":1,"k":2},7,{"k":1,"k":1,"k":3}]},"x":2},"a\"b":1,"a\"b":{"z":0,"z":1},"spec":3})",
      {.duplicates = &found});
  ASSERT_TRUE(document);
  EXPECT_THAT(found, testing::ElementsAre("duplicate field \"spec.x\"", "duplicate field \"spec.x.y[0].k\"",
                                          "duplicate field \"spec.x.y[2].k\"", "duplicate field \"a\\\"b\"",
                                          "duplicate field \"a\\\"b.z\"", "duplicate field \"spec\""));
}

TEST(Json, ReportsAtMostAHundredDuplicateKeys) {
  std::string text = "{";
  for (int i = 0; i < 150; ++i) text += "\"k" + std::to_string(i) + "\":1,\"k" + std::to_string(i) + "\":2,";
  text.back() = '}';
  std::vector<std::string> found;
  const auto document = parse_json(text, {.duplicates = &found});
  ASSERT_TRUE(document);
  EXPECT_EQ(found.size(), 100u);
  EXPECT_EQ(document->root().count(), 150u);
  EXPECT_EQ(document->root().find("k149")->as_int(), 2);
}

TEST(Json, DistinguishesIntegersFromFloats) {
  const auto document = parse_json("[1,1.0,1e0]");
  ASSERT_TRUE(document);
  EXPECT_TRUE(document->root().items()[0].is_int());
  EXPECT_TRUE(document->root().items()[1].is_double());
  EXPECT_TRUE(document->root().items()[2].is_double());
}

TEST(Json, KeepsTheTextAtRawPaths) {
  const FieldPaths raw = FieldPaths::of({"data", "list.inner"});
  const auto document =
      parse_json(R"({"data": { "b" : 2.50, "a":"\u0041<" } ,"list":[{"inner":1E3},{"other":1E3}]})", {.raw = &raw});
  ASSERT_TRUE(document);
  EXPECT_EQ(document->root().find("data")->raw_json(), R"({ "b" : 2.50, "a":"\u0041<" })");
  EXPECT_EQ(encode_json(document->root()),
            R"({"data":{"b":2.50,"a":"\u0041\u003c"},"list":[{"inner":1E3},{"other":1000}]})");
  EXPECT_FALSE(parse_json(R"({"data": {"a" 1}})", {.raw = &raw}));
}

TEST(Json, FindsTheTextOfAValue) {
  const std::string source =
      R"({"a":{"x":1.0},"spec":{"ports":[{"port":1},{"port": 1.50e1 ,"name":"\u0061"}],"l":[1,true,"x"]}})";
  EXPECT_EQ(json_text_at(source, {"spec", "ports", "1", "port"}), "1.50e1");
  EXPECT_EQ(json_text_at(source, {"spec", "ports", "1", "name"}), R"("\u0061")");
  EXPECT_EQ(json_text_at(source, {"spec", "l", "1"}), "true");
  EXPECT_EQ(json_text_at(source, {"spec", "l", "2"}), "\"x\"");
  EXPECT_EQ(json_text_at(source, {"a"}), R"({"x":1.0})");
  EXPECT_EQ(json_text_at(source, {"spec", "ports", "2", "port"}), "");
}

TEST(Json, CanKeepHugeNumbersForTypedReaders) {
  const auto document = parse_json("[-1e999]", {.keep_huge_numbers = true});
  ASSERT_TRUE(document);
  EXPECT_EQ(document->root().items()[0].as_double(), -INFINITY);
}

TEST(Json, PrettyPrintsLikeGo) {
  const auto document = parse_json(R"({"a":{"b":[1,{"c":"x"}],"d":{},"e":[]}})");
  ASSERT_TRUE(document);
  EXPECT_EQ(encode_json_pretty(document->root()), R"({
  "a": {
    "b": [
      1,
      {
        "c": "x"
      }
    ],
    "d": {},
    "e": []
  }
})");
}

TEST(Json, PrettyPrintsRawLeaves) {
  const FieldPaths raw = FieldPaths::of({"d"});
  const auto document = parse_json(R"({"d": {"x": [1.0, {}], "y":"a,b"} })", {.raw = &raw});
  ASSERT_TRUE(document);
  EXPECT_EQ(encode_json_pretty(document->root()), R"({
  "d": {
    "x": [
      1.0,
      {}
    ],
    "y": "a,b"
  }
})");
}

TEST(Json, SortsKeysBytewiseOnRequest) {
  const auto document = parse_json(R"({"b":{"z":1,"a":2},"B":[{"d":1,"c":2}],"a":0})");
  ASSERT_TRUE(document);
  EXPECT_EQ(encode_json_sorted(document->root()), R"({"B":[{"c":2,"d":1}],"a":0,"b":{"a":2,"z":1}})");
}

TEST(Json, AppendsToTheOutput) {
  std::string out = "x";
  encode_json(Value::integer(-7), out);
  encode_json_string("y", out);
  EXPECT_EQ(out, "x-7\"y\"");
}

}  // namespace
}  // namespace holdfast::codec
