#include "codec/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "codec/codec.h"

namespace holdfast::codec {
namespace {

using namespace std::string_literals;

struct Case {
  std::string_view name;
  std::string in;
  std::string want;  // JSON, or "error: message"; YAML for the writer.
};

std::string read(const std::string& in) {
  const auto document = parse_yaml(in);
  return document ? encode_json(document->root()) : "error: " + document.error().message;
}

std::string text_of(std::string_view json) {
  const auto document = parse_json(std::string(json));
  EXPECT_TRUE(document);
  std::string out;
  const Result<Unit> written = encode_yaml(document->root(), out);
  return written ? out : "error: " + written.error().message;
}

const Case kScalars[] = {
    {"true", "[y, Y, yes, Yes, YES, on, On, ON, true, True, TRUE]",
     "[true,true,true,true,true,true,true,true,true,true,true]"},
    {"false", "[n, N, no, No, NO, off, Off, OFF, false, False, FALSE]",
     "[false,false,false,false,false,false,false,false,false,false,false]"},
    {"null", "[~, null, Null, NULL, '']", R"([null,null,null,null,""])"},
    {"integers in every base", "[0x1F, 0X1f, 0b101, -0b101, 0o10, 010, 1_000, 1_, +5, -0, 0b-11]",
     "[31,31,5,-5,8,8,1000,1,5,0,-3]"},
    {"integers beyond int64", "[9223372036854775807, 9223372036854775808, 18446744073709551616]",
     "[9223372036854775807,9223372036854776000,18446744073709552000]"},
    {"floats, integral ones as integers", "[1.5, 1.0, 08, 5., .5, 1e3, 1e20, -0.0, 1e-7]",
     "[1.5,1,8,5,0.5,1000,100000000000000000000,0,1e-7]"},
    {"texts that look like other types",
     "[yEs, 1e, _1, 1e400, 0x, 2001-12-14, 1:30, 190:20:30, =, <<, 0x12345678901234567]",
     R"(["yEs","1e","_1","1e400","0x","2001-12-14","1:30","190:20:30","=","\u003c\u003c","0x12345678901234567"])"},
    {"quoted scalars are texts", R"(["1", 'yes', "~"])", R"(["1","yes","~"])"},
    {"infinity", "a: .inf", "error: json: unsupported value: +Inf"},
    {"not a number", "a: .NaN", "error: json: unsupported value: NaN"},
    {"tags that determine the type", "[!!str 1, !!int '5', !!float 1, !!bool 'yes', !!null '']",
     R"(["1",5,1,true,null])"},
    {"a tag that does not fit", "!!null x", "error: yaml: cannot decode !!str `x` as a !!null"},
    {"binary", "!!binary aGVsbG8=", R"("hello")"},
    {"binary that is not UTF-8", "!!binary /w==", "\"\ufffd\""},
    {"a timestamp remains a text", "!!timestamp 2001-12-14", R"("2001-12-14")"},
    {"unknown tags give texts", "!foo 5", R"("5")"},
};

const Case kDocuments[] = {
    {"empty input", "", "null"},
    {"only a comment", "# x\n", "null"},
    {"only the first document", "a: 1\n---\n: : :[\n", R"({"a":1})"},
    {"a leading empty document counts", "---\n---\na: 1\n", "null"},
    {"keys come out sorted", "b: 1\na: 2\nB: 3\n", R"({"B":3,"a":2,"b":1})"},
    {"keys become texts", "on: a\n0x10: b\n1.5: c\n", R"({"1.5":"c","16":"b","true":"a"})"},
    {"a null key", "~: 1", "error: unsupported map key of type: %!s(<nil>), key: <nil>, value: 1"},
    {"a map with a duplicate as key", "{{k, k}}",
     "error: yaml: invalid map key: map[interface {}]interface {}{\"k\":interface {}(nil)}"},
    {"a list as key", "? [1]\n: 2", "error: yaml: invalid map key: []interface {}{1}"},
    {"aliases", "a: &x {k: 1}\nb: *x\n", R"({"a":{"k":1},"b":{"k":1}})"},
    {"an anchor used again", "a: &x 1\nb: *x\nc: &x 2\nd: *x\n", R"({"a":1,"b":1,"c":2,"d":2})"},
    {"an unknown anchor", "a: *x", "error: yaml: unknown anchor 'x' referenced"},
    {"an anchor inside itself", "a: &x [*x]", "error: yaml: anchor 'x' value contains itself"},
    {"a merge before", "b: &b {x: 1, z: 2}\nc: {<<: *b, x: 9}\n", R"({"b":{"x":1,"z":2},"c":{"x":9,"z":2}})"},
    {"a merge after", "b: &b {x: 1, z: 2}\nc: {x: 9, <<: *b}\n", R"({"b":{"x":1,"z":2},"c":{"x":1,"z":2}})"},
    {"a merge of several", "a: &a {x: 1}\nb: &b {x: 2, z: 3}\nc: {<<: [*a, *b]}\n",
     R"({"a":{"x":1},"b":{"x":2,"z":3},"c":{"x":1,"z":3}})"},
    {"a merge of a scalar", "{<<: 1}", "error: yaml: map merge requires map or sequence of maps as the value"},
    {"block scalars", "a: |\n  x\n  y\nb: >-\n  x\n  y\nc: |+\n  z\n\n", R"({"a":"x\ny\n","b":"x y","c":"z\n\n"})"},
    {"escapes", R"("\x41\u00e9\U0001f600\t\e\_")", "\"A\u00e9\U0001f600\\t\\u001b\u00a0\""},
    {"a slash may not be escaped", R"({"a":"b\/c"})", "error: yaml: found unknown escape character"},
    {"surrogates", R"("\ud83d\ude00")", "error: yaml: found invalid Unicode character escape code"},
    {"tabs do not indent", "a:\n\tb: 1\n", "error: yaml: line 2: found character that cannot start any token"},
    {"version 1.1", "%YAML 1.1\n---\na: 1\n", R"({"a":1})"},
    {"version 1.2", "%YAML 1.2\n---\na: 1\n", "error: yaml: found incompatible YAML document"},
    {"bad UTF-8", "a: \xff", "error: yaml: invalid leading UTF-8 octet"},
    {"a control character", "a: \x01", "error: yaml: control characters are not allowed"},
    {"a colon without a space in flow", "{a:1}", R"({"a:1":null})"},
    {"JSON", R"({"a":1,"b":[1.0,"x\n"]})", R"({"a":1,"b":[1,"x\n"]})"},
};

TEST(Yaml, ReadsScalarsByYaml11Rules) {
  for (const Case& c : kScalars) EXPECT_EQ(read(c.in), c.want) << c.name;
}

TEST(Yaml, ReadsDocumentsLikeKubernetes) {
  for (const Case& c : kDocuments) EXPECT_EQ(read(c.in), c.want) << c.name;
}

TEST(Yaml, ReportsDuplicateKeysWithTheirLine) {
  std::vector<std::string> found;
  const auto document = parse_yaml("a: 1\nb: {x: 1}\na: 2\ntrue: 3\nb: 4\non: 5\n", {.duplicates = &found});
  ASSERT_TRUE(document);
  EXPECT_EQ(encode_json(document->root()), R"({"a":2,"b":4,"true":5})");
  EXPECT_THAT(found,
              testing::ElementsAre("line 3: key \"a\" already set in map", "line 5: key \"b\" already set in map",
                                   "line 6: key true already set in map"));
}

TEST(Yaml, ReportsDuplicateKeysInJson) {
  std::vector<std::string> found;
  ASSERT_TRUE(parse_yaml("{\"a\":1,\n\"a\":2}", {.duplicates = &found}));
  EXPECT_THAT(found, testing::ElementsAre("line 2: key \"a\" already set in map"));
}

TEST(Yaml, LimitsAliasExpansion) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) bomb += "*a" + std::to_string(i - 1) + ", ";
    bomb += "]\n";
  }
  EXPECT_EQ(read(bomb), "error: yaml: document contains excessive aliasing");
}

TEST(Yaml, RejectsNestingBeyondTheLimit) {
  const std::string deep = std::string(limits::kDecodedDepth, '[') + std::string(limits::kDecodedDepth, ']');
  EXPECT_TRUE(parse_yaml(deep));
  EXPECT_FALSE(parse_yaml("[" + deep + "]"));
}

const Case kWritten[] = {
    {"lists in maps are not indented", R"({"a":["x",{"b":1,"c":[["y"]]}],"d":{},"e":[]})",
     "a:\n- x\n- b: 1\n  c:\n  - - \"y\"\nd: {}\ne: []\n"},
    {"keys in natural order", R"({"a10":1,"a2":2,"B":3,"b":4,"1":5,"_":6})",
     "_: 6\n\"1\": 5\nB: 3\na2: 2\na10: 1\nb: 4\n"},
    {"texts that would read as something else", R"(["yes","1","~","1e3","2001-12-14","1:30","",".5"])",
     "- \"yes\"\n- \"1\"\n- \"~\"\n- \"1e3\"\n- \"2001-12-14\"\n- \"1:30\"\n- \"\"\n- \".5\"\n"},
    {"texts that cannot be written in plain style",
     R"([" a","a ","#a","a #b","a: b","a:","- a","-","it's","'q'","---"])",
     "- ' a'\n- 'a '\n- '#a'\n- 'a #b'\n- 'a: b'\n- 'a:'\n- '- a'\n- '-'\n- it's\n- '''q'''\n- '---'\n"},
    {"unprintable characters", "[\"a\\tb\",\"\\u0001\",\"\xF0\x9F\x98\x80\",\"\\u001b\"]",
     "- \"a\\tb\"\n- \"\\x01\"\n- \"\\U0001F600\"\n- \"\\e\"\n"},
    {"texts of several lines", R"({"a":"x\ny\n","b":"x\ny","c":"x\n\n","d":" x\n","e":"x \ny"})",
     "a: |\n  x\n  y\nb: |-\n  x\n  y\nc: |+\n  x\n\nd: |2\n   x\ne: \"x \\ny\"\n"},
    {"numbers", R"([1,1.5,1.0,1e20,0.00001,1234567.5,-0.0,1e21])",
     "- 1\n- 1.5\n- 1\n- 1e+20\n- 1e-05\n- 1.2345675e+06\n- 0\n- 1e+21\n"},
    {"a scalar alone", R"("x")", "x\n"},
    {"control characters that JSON leaves raw", "\"a\x7f\"", "error: yaml: control characters are not allowed"},
    {"a key with a line break", "{\"a\xc2\x85 b\":1}", "error: yaml: did not find expected ',' or '}'"},
};

TEST(Yaml, WritesLikeKubernetes) {
  for (const Case& c : kWritten) EXPECT_EQ(text_of(c.in), c.want) << c.name;
}

TEST(Yaml, FoldsLongLinesAtASpace) {
  std::string words;
  for (int i = 0; i < 30; ++i) words += "word" + std::to_string(i) + " ";
  words.pop_back();
  EXPECT_EQ(text_of("{\"key\":\"" + words + "\"}"),
            "key: word0 word1 word2 word3 word4 word5 word6 word7 word8 word9 word10 word11 word12\n"
            "  word13 word14 word15 word16 word17 word18 word19 word20 word21 word22 word23 word24\n"
            "  word25 word26 word27 word28 word29\n");
}

TEST(Yaml, WritesLongKeysOnTwoLines) {
  const std::string key(129, 'k');
  EXPECT_EQ(text_of("{\"" + key + "\":[1]}"), "? " + key + "\n: - 1\n");
  EXPECT_EQ(text_of("{\"" + std::string(1023, 'k') + "\":1}"), "error: yaml: did not find expected ',' or '}'");
}

TEST(Yaml, WritesEveryItemOfAList) {
  const auto item = [](const std::string& json) {
    std::string out;
    const auto tree = parse_json(json);
    const Result<Unit> written = encode_yaml_item(tree->root(), out);
    return written ? out : "error: " + written.error().message;
  };
  EXPECT_EQ(item("\"a\x7f\xc2\x80\xef\xbf\xbf\""), "\"a\\x7F\\x80\\uFFFF\"\n");
  EXPECT_EQ(item("{\"a\x7f\":1}"), "\"a\\x7F\": 1\n");
  EXPECT_EQ(item("{\"a\xc2\x85 b\":1}"), "? \"a\\N b\"\n: 1\n");
  EXPECT_EQ(item("{\"" + std::string(1023, 'k') + "\":1}"), "? " + std::string(1023, 'k') + "\n: 1\n");
}

TEST(Yaml, SplitsDocumentsLikeKubectl) {
  using testing::ElementsAre;
  EXPECT_THAT(*split_documents("---\na: 1\n--- # next\n\n---\n# only a comment\n---\nb: 2"),
              ElementsAre("a: 1\n", "b: 2"));
  EXPECT_THAT(*split_documents(" {\"a\":1} {\"b\":\"}\"}\n"), ElementsAre("{\"a\":1}", "{\"b\":\"}\"}"));
  EXPECT_THAT(*split_documents("\n  \n"), ElementsAre());
  EXPECT_FALSE(split_documents("a: 1\n--- b\n"));
}

}  // namespace
}  // namespace holdfast::codec
