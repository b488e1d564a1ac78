#include "codec/visible.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "codec/codec.h"

namespace holdfast::codec {
namespace {

std::vector<uint32_t> hidden_runes() {
  std::vector<uint32_t> runes;
  for (uint32_t rune = 0; rune < 0x110000; ++rune) {
    if (rune >= 0xd800 && rune < 0xe000) continue;
    if (is_hidden(rune)) runes.push_back(rune);
  }
  return runes;
}

// Whether any character of the text is hidden or not UTF-8. Newlines end lines.
bool hides_something(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Rune rune = decode_rune(text, at);
    if (!rune.valid || (rune.value != '\n' && is_hidden(rune.value))) return true;
    at += rune.length;
  }
  return false;
}

TEST(Visible, ControlAndBidirectionalCharactersAreHidden) {
  for (uint32_t rune = 0; rune < 0x20; ++rune) EXPECT_TRUE(is_hidden(rune)) << rune;
  for (uint32_t rune = 0x7f; rune < 0xa0; ++rune) EXPECT_TRUE(is_hidden(rune)) << rune;
  for (const uint32_t rune : {0x61c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068,
                              0x2069, 0x2028, 0x2029, 0xfeff}) {
    EXPECT_TRUE(is_hidden(rune)) << rune;
  }
  for (const uint32_t rune : {0x20, 0x7e, 0xa0, 0xe9, 0x200d, 0x2026, 0x4e2d, 0x1f600}) {
    EXPECT_FALSE(is_hidden(rune)) << rune;
  }
}

// Texts that lead the YAML writer to each of its styles.
constexpr const char* kBefore[] = {"", "a", "- ", "# ", "two words ", "line\n", " ", "'", "true"};

TEST(Visible, YamlShowsEveryCharacterAndReadsBack) {
  for (const uint32_t rune : hidden_runes()) {
    for (const char* before : kBefore) {
      std::string text = before;
      append_utf8(text, rune);
      text += "b\n";
      Arena arena;
      MapBuilder below(arena), map(arena);
      below.add(text, Value::string(text));
      map.add("x", below.build());
      map.add("y", Value::string(text));
      const Value value = map.build();
      std::string yaml;
      const Result<Unit> encoded = encode_visible_yaml(value, yaml);
      ASSERT_TRUE(encoded) << rune << ": " << encoded.error().message;
      EXPECT_FALSE(hides_something(yaml)) << rune << ": " << yaml;
      const Result<Value> read = decode_yaml(arena, yaml);
      ASSERT_TRUE(read) << rune << ": " << read.error().message << "\n" << yaml;
      EXPECT_EQ(encode_json(*read), encode_json(value)) << yaml;
    }
  }
}

TEST(Visible, JsonShowsEveryCharacterAndReadsBack) {
  for (const uint32_t rune : hidden_runes()) {
    std::string text = "a";
    append_utf8(text, rune);
    Arena arena;
    MapBuilder map(arena);
    map.add(text, Value::string(text));
    const Value value = map.build();
    const std::string json = visible_json(encode_json(value));
    EXPECT_FALSE(hides_something(json)) << rune;
    const Result<Value> read = decode_json(arena, json);
    ASSERT_TRUE(read) << rune;
    EXPECT_EQ(encode_json(*read), encode_json(value)) << rune;
  }
}

TEST(Visible, BytesThatAreNotUtf8BecomeReplacementCharacters) {
  for (int byte = 0x80; byte < 0x100; ++byte) {
    const std::string text = {'a', static_cast<char>(byte), 'b'};
    Arena arena;
    MapBuilder map(arena);
    map.add("k", Value::string(text));
    std::string yaml;
    ASSERT_TRUE(encode_visible_yaml(map.build(), yaml));
    EXPECT_FALSE(hides_something(yaml)) << byte;
    EXPECT_FALSE(hides_something(visible_json("\"" + text + "\""))) << byte;
  }
}

TEST(Visible, OtherTextIsWrittenAsUsual) {
  Arena arena;
  MapBuilder map(arena);
  map.add("é", Value::string("naïve: 中 😀\n  two\n"));
  map.add("n", Value::string("null"));
  const Value value = map.build();
  std::string usual, visible;
  ASSERT_TRUE(encode_yaml(value, usual));
  ASSERT_TRUE(encode_visible_yaml(value, visible));
  EXPECT_EQ(visible, usual);
  EXPECT_EQ(visible_json(encode_json(value)), encode_json(value));
}

}  // namespace
}  // namespace holdfast::codec
