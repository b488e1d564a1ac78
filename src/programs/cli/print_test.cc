#include "cli/print.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "cli/terminal.h"
#include "codec/codec.h"
#include "codec/visible.h"

namespace holdfast::cli {
namespace {

using testing::ElementsAre;

codec::Document parse(std::string_view yaml) { return std::move(*codec::parse_yaml(std::string(yaml))); }

TEST(TableWriter, ColumnsAreThreeSpacesApartAndNeverNarrower) {
  TableWriter table;
  table.add({"NAME", "AGE"});
  table.add({"a-long-name", "1s"});
  EXPECT_EQ(table.take(), "NAME          AGE\na-long-name   1s\n");
  table.add({"b", "2s"});
  EXPECT_EQ(table.take(), "b             2s\n");
  TableWriter narrow;
  narrow.add({"a", "é", "c"});
  EXPECT_EQ(narrow.take(), "a     é     c\n");
}

TEST(Cells, AreOneLineWithoutControlCharacters) {
  EXPECT_EQ(cell_text(Value::string("one\ntwo")), "one...");
  EXPECT_EQ(cell_text(Value::string("\x1b[2J")), "^[[2J");
  EXPECT_EQ(cell_text(Value::integer(3)), "3");
  EXPECT_EQ(cell_text(Value::null()), "");
}

// Every character that could act on a terminal, and every byte that is not UTF-8, between two letters.
std::vector<std::string> hostile_texts() {
  std::vector<std::string> texts;
  for (uint32_t rune = 0; rune < 0x10000; ++rune) {
    if (rune == '\n' || rune == '\t' || (rune >= 0xd800 && rune < 0xe000) || !codec::is_hidden(rune)) continue;
    std::string text = "a";
    append_utf8(text, rune);
    texts.push_back(text + "b");
  }
  for (int byte = 0x80; byte < 0x100; ++byte) texts.push_back({'a', static_cast<char>(byte), 'b'});
  texts.emplace_back("a\x1b[2J\xc2\x9b[31m\xe2\x80\xae\xe2\x81\xa6\x07\xf0\x9f\xff b");
  return texts;
}

// Whether the text may be written to a terminal.
bool is_safe(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Rune rune = decode_rune(text, at);
    const bool layout = rune.value == '\n' || rune.value == '\t';
    if (!rune.valid || (codec::is_hidden(rune.value) && !layout)) return false;
    at += rune.length;
  }
  return true;
}

TEST(Visible, NothingHostileReachesATerminal) {
  for (const std::string& text : hostile_texts()) {
    EXPECT_TRUE(is_safe(visible(text))) << text;
    EXPECT_TRUE(is_safe(visible_line(text))) << text;
    EXPECT_TRUE(is_safe(cell_text(Value::string(text)))) << text;
    for (const bool colours : {false, true}) {
      Terminal terminal;
      terminal.colours = colours;
      std::string shown = coloured(terminal, text, 0) + dimmed(terminal, text) + added(terminal, text);
      for (const std::string_view own : {"\x1b[36m", "\x1b[2m", "\x1b[32m", "\x1b[0m"}) {
        for (size_t at = 0; (at = shown.find(own, at)) != std::string::npos;) shown.erase(at, own.size());
      }
      EXPECT_TRUE(is_safe(shown)) << shown;
    }
    TableWriter table;
    table.add({"HEAD" + text, "X"});
    table.add({"cell", text});
    EXPECT_TRUE(is_safe(table.take())) << text;
    Arena arena;
    MapBuilder map(arena);
    map.add(text, Value::string(text));
    EXPECT_TRUE(is_safe(json_text(map.build()))) << text;
    EXPECT_TRUE(is_safe(yaml_text(map.build()))) << text;
    testing::internal::CaptureStdout();
    print("text: ", text, "\n");
    EXPECT_TRUE(is_safe(testing::internal::GetCapturedStdout())) << text;
    testing::internal::CaptureStderr();
    print_error("Warning: ", text, "\n");
    EXPECT_TRUE(is_safe(testing::internal::GetCapturedStderr())) << text;
  }
}

TEST(Visible, HiddenCharactersAreNamed) {
  EXPECT_EQ(visible("a\x1b[2J\x7f\tb\r\n"), "a^[[2J^?\tb^M\n");
  EXPECT_EQ(visible_line("a\tb\n"), "a^Ib^J");
  EXPECT_EQ(visible("\xc2\x9b \xe2\x80\xae \xf3\xa0\x81\x81 \xff\xc3"), "\\u009b \\u202e \\U000e0041 \\xff\\xc3");
  EXPECT_EQ(visible("naïve 中 😀"), "naïve 中 😀");
}

TEST(Json, IsSortedAndIndentedByFour) {
  const codec::Document document = parse("{b: [1], a: {}, c: []}");
  EXPECT_EQ(json_text(document.root()), "{\n    \"a\": {},\n    \"b\": [\n        1\n    ],\n    \"c\": []\n}");
}

struct TemplateCase {
  const char* name;
  const char* text;
  const char* want;
};
constexpr TemplateCase kTemplates[] = {
    {"a path", "{.kind}", "List"},
    {"a bare path", ".kind", "List"},
    {"text around it", "kind={.kind};", "kind=List;"},
    {"several results", "{.items[*].name}", "a b"},
    {"a range", "{range .items[*]}{.name}:{.size}{\"\\n\"}{end}", "a:1\nb:2\n"},
    {"a range inside a range", "{range .items[*]}{range .tags[*]}{@}{','}{end}{end}", "x,y,"},
    {"the root inside a range", "{range .items[*]}{$.kind}{end}", "ListList"},
    {"a filter", "{.items[?(@.name==\"b\")].size}", "2"},
    {"what is missing is nothing", "{.nope}", ""},
    {"maps are JSON", "{.items[0].map}", "{\"k\":1}"},
};

TEST(JsonPath, PrintsTemplates) {
  const codec::Document document =
      parse("{kind: List, items: [{name: a, size: 1, tags: [x, 'y'], map: {k: 1}}, {name: b, size: 2}]}");
  for (const TemplateCase& row : kTemplates) {
    Result<JsonPathTemplate> parsed = JsonPathTemplate::parse(row.text);
    ASSERT_TRUE(parsed) << row.name << ": " << parsed.error().message;
    Result<std::string> text = parsed->print(document.root());
    ASSERT_TRUE(text) << row.name << ": " << text.error().message;
    EXPECT_EQ(*text, row.want) << row.name;
  }
  for (const char* bad : {"{.a", "{range .items[*]}x", "{end}"}) EXPECT_FALSE(JsonPathTemplate::parse(bad)) << bad;
}

TEST(Columns, ShowMapsAsInGoAndMissingValuesAsNone) {
  Result<CustomColumns> columns = CustomColumns::parse("N:.name,M:.map,X:.none,L:.list");
  ASSERT_TRUE(columns);
  EXPECT_THAT(columns->headers(), ElementsAre("N", "M", "X", "L"));
  const codec::Document document = parse("{name: web, map: {b: 1, a: [x]}, list: [1, 2]}");
  EXPECT_THAT(*columns->row(document.root()), ElementsAre("web", "map[a:[x] b:1]", "<none>", "[1 2]"));
  EXPECT_FALSE(CustomColumns::parse("N"));
}

TEST(SortOrder, PutsMissingKeysFirstAndComparesByType) {
  const codec::Document document = parse(R"([
    {"n": "a", "count": 10, "size": "1Gi", "text": "b"},
    {"n": "b", "count": 9, "size": "500M", "text": "a"},
    {"n": "c", "count": 10, "size": "2k", "text": "10"},
    {"n": "d"}])");
  const auto names = [&](std::string_view path) -> std::string {
    Result<SortOrder> order = SortOrder::parse(path);
    if (!order) return order.error().message;
    std::vector<std::optional<Value>> keys;
    for (const Value& item : document.root().items()) keys.push_back(order->key_of(item));
    Result<std::vector<size_t>> sorted = order->sorted(keys);
    if (!sorted) return sorted.error().message;
    std::string out;
    for (const size_t position : *sorted) out += document.root().items()[position].text_at("n");
    return out;
  };
  EXPECT_EQ(names("{.count}"), "dbac");
  EXPECT_EQ(names(".size"), "dcba");
  EXPECT_EQ(names("text"), "dcba");
  EXPECT_EQ(names(".nothing"), "couldn't find any field with path \"{.nothing}\" in the list of objects");
  const std::optional<Value> none[1];
  EXPECT_TRUE(SortOrder::parse(".nothing")->sorted(none)) << "one object needs no order";
}

TEST(Output, ParsesFormats) {
  EXPECT_TRUE(Output::parse("")->is_table());
  EXPECT_TRUE(Output::parse("wide")->is_table());
  EXPECT_EQ(Output::parse("jsonpath={.a}")->form, Output::Form::JsonPath);
  EXPECT_TRUE(Output::parse("jsonpath={.metadata.managedFields}")->reads_managed_fields);
  EXPECT_FALSE(Output::parse("jsonpath={.metadata.name}")->reads_managed_fields);
  for (const char* whole :
       {"jsonpath={.metadata}", "jsonpath={$}", "jsonpath={@}", "jsonpath={.}", "jsonpath={.items[*]}",
        "jsonpath={.items}", "jsonpath={.items[0].metadata}", "jsonpath={range .items[*]}{.metadata}{end}",
        "jsonpath={range .items[*]}{@}{end}", "jsonpath={.*}", "jsonpath={.metadata.*}", "jsonpath={..name}",
        "jsonpath={['metadata']}", "custom-columns=M:.metadata"}) {
    EXPECT_TRUE(Output::parse(whole)->reads_managed_fields) << whole;
  }
  for (const char* part :
       {"jsonpath={.spec}", "jsonpath={.items[*].metadata.name}", "jsonpath={.data.metadata}",
        "jsonpath={range .items[*]}{.metadata.labels}{'x'}{end}", "custom-columns=N:.metadata.name,S:.spec"}) {
    EXPECT_FALSE(Output::parse(part)->reads_managed_fields) << part;
  }
  EXPECT_FALSE(Output::parse("xml"));
}

}  // namespace
}  // namespace holdfast::cli
