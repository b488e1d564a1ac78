#include "ownership/fields_v2.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "base/limits.h"
#include "base/strings.h"
#include "ownership/fields_v2_codes.h"
#include "ownership/fields_v2_names.h"

namespace holdfast::ownership {
namespace {

constexpr FieldsV2Layout kLayouts[] = {FieldsV2Layout::Plain, FieldsV2Layout::NameTable, FieldsV2Layout::CodedNames};

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char& c : bytes) out += (out.empty() ? "" : " ") + to_hex({&c, 1});
  return out;
}

std::string bytes_of(std::initializer_list<int> list) {
  std::string out;
  for (int b : list) out += static_cast<char>(b);
  return out;
}

struct RoundTrip {
  const char* name;
  const char* fields_v1;  // Canonical.
};
constexpr RoundTrip kRoundTrips[] = {
    {"the empty set", "{}"},
    {"a field", R"({"f:spec":{}})"},
    {"a field below a field that is not owned", R"({"f:spec":{"f:replicas":{}}})"},
    {"a field and one below it", R"({"f:labels":{".":{},"f:app":{}}})"},
    {"a keyed item", R"({"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{}}}})"},
    {"items of a set of every scalar",
     R"({"f:s":{"v:-7":{},"v:0.5":{},"v:1e+21":{},"v:\"x\"":{},"v:false":{},"v:true":{},"v:null":{}}})"},
    {"a set item that is -0", R"({"f:s":{"v:-0":{}}})"},
    {"set items that are lists and maps", R"({"f:s":{"v:[1,\"a\",[]]":{},"v:{\"a\":1,\"b\":{}}":{}}})"},
    {"indices", R"({"f:s":{"i:-1":{},"i:0":{},"i:300":{}}})"},
    {"an empty name and names with colons, quotes and controls", R"({"f:":{},"f:a:b":{},"f:q\"\u0001":{}})"},
    {"the same name many times", R"({"f:aa":{"f:aa":{".":{},"f:aa":{"f:aa":{}}}},"f:ab":{"f:aa":{},"f:ab":{}}})"},
    {"a keyed item with a null key", R"({"f:l":{"k:{\"a\":null}":{".":{}}}})"},
};

TEST(FieldsV2Test, SetsSurviveARoundTripInEveryLayout) {
  for (const RoundTrip& test : kRoundTrips) {
    SCOPED_TRACE(test.name);
    Arena arena;
    Result<FieldSet> set = parse_fields_v1(arena, test.fields_v1);
    ASSERT_TRUE(set) << set.error().message;
    const std::string v1 = to_fields_v1(*set);
    for (FieldsV2Layout layout : kLayouts) {
      const std::string bytes = to_fields_v2(*set, layout);
      std::string direct = "before ";
      append_fields_v1_of(bytes, direct);
      EXPECT_EQ(direct, "before " + v1);
      // Only the layout that we write can be measured, and not every set in it.
      const std::optional<size_t> measured = measure_fields_v2(bytes);
      EXPECT_EQ(measured.value_or(v1.size()), v1.size());
      if (layout != FieldsV2Layout::CodedNames) EXPECT_EQ(measured, std::nullopt);
      Result<FieldSet> back = parse_fields_v2(arena, bytes);
      ASSERT_TRUE(back) << back.error().message << ": " << hex(bytes);
      EXPECT_TRUE(*back == *set);
      EXPECT_EQ(to_fields_v1(*back), v1);
      EXPECT_EQ(to_fields_v2(*back, layout), bytes);
    }
  }
}

TEST(FieldsV2Test, MeasuresTypicalSets) {
  for (
      const char* fields : {
          R"({})",
          R"({"f:metadata":{"f:labels":{".":{},"f:app.kubernetes.io/name":{},"f:app.kubernetes.io/part-of":{}}}})",
          R"({"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}})",
          R"({"f:status":{"f:podIPs":{".":{},"k:{\"ip\":\"10.1.2.3\"}":{".":{},"f:ip":{}}},"f:phase":{}}})",
          R"({"f:metadata":{"f:finalizers":{".":{},"v:\"example.com/a\"":{},"v:\"example.com/b\"":{}}}})",
      }) {
    Arena arena;
    const FieldSet set = *parse_fields_v1(arena, fields);
    EXPECT_EQ(measure_fields_v2(to_fields_v2(set)), to_fields_v1(set).size()) << fields;
  }
}

TEST(FieldsV2Test, MeasuresOnlyCanonicalBytes) {
  const auto bytes = [](std::initializer_list<int> list) {
    std::string result;
    for (const int byte : list) result += static_cast<char>(byte);
    return result;
  };
  Arena arena;
  const std::string shortest = to_fields_v2(*parse_fields_v1(arena, R"({"f:team":{}})"));
  ASSERT_TRUE(measure_fields_v2(shortest));
  // The same field, written out although a code is shorter.
  const std::string longer = bytes({3, 1, 1, 4 << 4 | 3, 't', 'e', 'a', 'm'});
  ASSERT_TRUE(parse_fields_v2(arena, longer));
  EXPECT_EQ(measure_fields_v2(longer), std::nullopt);
  // "spec", which is in the fixed table, written as text.
  const std::string named = bytes({3, 1, 1, 4 << 4 | 3, 's', 'p', 'e', 'c'});
  ASSERT_TRUE(parse_fields_v2(arena, named));
  EXPECT_EQ(measure_fields_v2(named), std::nullopt);
  for (size_t length = 0; length < shortest.size(); ++length) {
    EXPECT_EQ(measure_fields_v2(std::string_view(shortest).substr(0, length)), std::nullopt);
  }
  EXPECT_EQ(measure_fields_v2(shortest + '\0'), std::nullopt);
}

// The worked example of docs/formats/fieldsv2.md.
constexpr const char* kExample =
    R"({"f:metadata":{"f:labels":{".":{},"f:team":{}}},"f:spec":{"f:ports":{"k:{\"port\":80}":{".":{},"f:port":{}}},"f:team":{}}})";

TEST(FieldsV2Test, BytesWithANameTableAreAsDocumented) {
  Arena arena;
  EXPECT_EQ(hex(to_fields_v2(*parse_fields_v1(arena, kExample), FieldsV2Layout::NameTable)),
            "02 02 "                 // version 2, two children
            "09 04 01 "              // metadata (2), children: one
            "19 0a 01 "              // labels (5), itself too, one child
            "01 09 74 65 61 6d "     // team, written out: number 272
            "09 06 02 "              // spec (3), two children
            "09 42 01 "              // ports (33), one child
            "1a 01 48 03 a0 01 01 "  // key of one pair: port (36) = 80; itself too, one child
            "01 48 "                 // port
            "01 a0 04");             // team: 272 << 1
}

TEST(FieldsV2Test, PlainBytesAreAsDocumented) {
  Arena arena;
  EXPECT_EQ(
      hex(to_fields_v2(*parse_fields_v1(arena, R"({"f:l":{".":{},"f:a":{}},"f:s":{"k:{\"p\":80}":{},"v:\"x\"":{}}})"),
                       FieldsV2Layout::Plain)),
      "01 02 "                       // version 1, two nodes
      "01 01 6c 02 "                 // field l, two nodes below:
      "05 "                          //   itself
      "01 01 61 00 "                 //   field a, nothing below
      "01 01 73 02 "                 // field s, two nodes below:
      "02 06 01 01 70 03 a0 01 00 "  //   key, 6 bytes: one pair, p = integer 80
      "03 03 05 01 78 00");          //   value, 3 bytes: text x
}

TEST(FieldsV2Test, BytesWithCodedNamesAreAsDocumented) {
  Arena arena;
  EXPECT_EQ(hex(to_fields_v2(*parse_fields_v1(arena, R"({"f:data":{"f:log.format":{},"f:log.level":{}}})"))),
            "03 01 "                    // version 3, one child
            "09 d8 02 02 "              // data (172), two children
            "01 29 a2 e3 1d ca d5 27 "  // ten characters in the code of words: log.format
            "21 04 15 a0 e2 28");       // four characters of the field before, then five: level
}

TEST(FieldsV2Test, EveryCodeIsComplete) {
  for (const std::string_view lengths : kCodeLengths) {
    ASSERT_EQ(lengths.size(), 95u);
    uint32_t used = 0;
    for (const char digit : lengths) {
      const int bits = digit >= 'a' ? digit - 'a' + 10 : digit - '0';
      if (bits != 0) used += 1u << (kMaxCodeBits - static_cast<unsigned>(bits));
    }
    EXPECT_EQ(used, 1u << kMaxCodeBits);
  }
}

std::string set_of(std::string_view field, const std::vector<std::string>& names) {
  std::set<std::string> sorted(names.begin(), names.end());
  std::string text = "{\"f:" + std::string(field) + "\":{";
  for (const std::string& name : sorted) text += (text.back() == '{' ? "\"f:" : ",\"f:") + name + "\":{}";
  return text + "}}";
}

// The size promised by docs/formats/fieldsv2.md for names that are not in the table.
TEST(FieldsV2Test, NamesOutsideTheTableShrinkByTwoFifths) {
  std::mt19937 random(1);
  const auto pick = [&](std::string_view alphabet, size_t length) {
    std::string out;
    for (size_t i = 0; i < length; ++i) out += alphabet[random() % alphabet.size()];
    return out;
  };
  const std::vector<std::string> words = {"database", "connection", "timeout",  "retries", "logging",   "verbosity",
                                          "cache",    "eviction",   "strategy", "maximum", "endpoints", "credentials"};
  std::vector<std::string> keys, camel, annotations, digests, numbered;
  for (int i = 0; i < 50; ++i) {
    const std::string &a = words[random() % words.size()], &b = words[random() % words.size()],
                      &c = words[random() % words.size()];
    keys.push_back(a + "." + b + "-" + c);
    std::string name = a + b + c;
    name[a.size()] = static_cast<char>(name[a.size()] - 32);
    name[a.size() + b.size()] = static_cast<char>(name[a.size() + b.size()] - 32);
    camel.push_back(name);
    annotations.push_back("platform.example.com/" + a + "-" + b);
    digests.push_back(pick("0123456789abcdef", 32));
    numbered.push_back("item-" + std::to_string(i));
  }
  for (const auto& [field, names] : {std::pair{"data", keys},
                                     {"spec", camel},
                                     {"annotations", annotations},
                                     {"data", digests},
                                     {"data", numbered}}) {
    Arena arena;
    const std::string v1 = set_of(field, names);
    Result<FieldSet> set = parse_fields_v1(arena, v1);
    ASSERT_TRUE(set);
    const size_t bytes = to_fields_v2(*set).size();
    EXPECT_LT(bytes * 10, v1.size() * 6) << field << " like " << names[0];
    EXPECT_LT((bytes + 2) / 3 * 4, v1.size()) << "as base64, " << field << " like " << names[0];
  }
}

struct Bad {
  const char* name;
  std::string bytes;
  const char* error;
};

TEST(FieldsV2Test, ErrorsNameThePosition) {
  const Bad cases[] = {
      {"nothing", "", "truncated at byte 0"},
      {"an unknown version", bytes_of({9, 0}), "unknown version at byte 0"},
      {"truncated", bytes_of({2, 1, 1, 9, 'a', 'b'}), "a length beyond the end at byte 4"},
      {"more children than bytes", bytes_of({2, 0x7f, 1, 0}), "a count beyond the end at byte 2"},
      {"a huge count", bytes_of({1, 0xff, 0xff, 0xff, 0xff, 0x0f}), "a count beyond the end at byte 6"},
      {"a number of more than 64 bits", bytes_of({2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}),
       "a number is too large at byte 11"},
      {"an unknown type", bytes_of({2, 1, 6, 0}), "an unknown type of element at byte 2"},
      {"a name that is not in the table", bytes_of({2, 1, 1, 0xa0, 0x04}), "a name that is not in the table at byte 5"},
      {"fields out of order", bytes_of({2, 2, 1, 3, 'b', 1, 3, 'a'}), "elements out of order at byte 8"},
      {"a field twice", bytes_of({2, 2, 1, 3, 'b', 1, 0xa0, 0x04}), "elements out of order at byte 8"},
      {"children announced, but none present", bytes_of({2, 1, 9, 3, 'a', 0}),
       "children announced, but none there at byte 6"},
      {"an infinite number", bytes_of({2, 1, 3, 4, 0, 0, 0, 0, 0, 0, 0xf0, 0x7f}),
       "a number that is not finite at byte 12"},
      {"a name that is not UTF-8", bytes_of({2, 1, 1, 5, 'a', 0x86}), "a text that is not UTF-8 at byte 6"},
      {"trailing bytes", bytes_of({2, 0, 0}), "bytes after the set at byte 2"},
      {"coded: truncated", bytes_of({3, 1, 1, 0x21, 0x55}), "a length beyond the end at byte 4"},
      {"coded: trailing bits after a text", bytes_of({3, 1, 1, 5, 0x7f}), "bits after a text at byte 4"},
      {"coded: an unknown encoding", bytes_of({3, 1, 1, 0x1f, 0}), "an unknown spelling of a text at byte 4"},
      {"coded: a shared prefix without a preceding field", bytes_of({3, 1, 0x21, 2, 5, 0}),
       "a name that continues nothing at byte 5"},
      {"coded: a key with a shared prefix", bytes_of({3, 1, 0x22, 0}), "an unknown type of element at byte 3"},
      {"a shared prefix in version 2", bytes_of({2, 1, 0x21, 0}), "an unknown type of element at byte 3"},
      {"plain: the root as a member", bytes_of({1, 2, 5, 1, 1, 'a', 0}), "the root cannot be a member at byte 7"},
      {"plain: a length that does not fit", bytes_of({1, 1, 3, 9, 0, 0}), "a length that does not fit at byte 5"},
  };
  for (const Bad& test : cases) {
    SCOPED_TRACE(test.name);
    Arena arena;
    Result<FieldSet> set = parse_fields_v2(arena, test.bytes);
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().message, std::string("FieldsV2: ") + test.error);
  }
}

TEST(FieldsV2Test, RejectsExcessiveNesting) {
  std::string deep = bytes_of({2});
  for (int i = 0; i < 100000; ++i) deep += bytes_of({1, 9, 0});
  deep += bytes_of({1, 1, 0});
  Arena arena;
  Result<FieldSet> set = parse_fields_v2(arena, deep);
  ASSERT_FALSE(set);
  EXPECT_NE(set.error().message.find("nested too deeply"), std::string::npos);
}

TEST(FieldsV2Test, AcceptsTheSameDepthAsFieldsV1) {
  for (const bool beyond : {false, true}) {
    const size_t levels = limits::kFieldSetDepth + (beyond ? 1 : 0);
    std::string json;
    for (size_t i = 0; i < levels; ++i) json += "{\"f:a\":";
    json += "{}" + std::string(levels, '}');
    Arena arena;
    const Result<FieldSet> set = parse_fields_v1(arena, std::string_view(json));
    ASSERT_EQ(set.ok(), !beyond);
    if (beyond) continue;
    const std::string bytes = to_fields_v2(*set);
    ASSERT_TRUE(parse_fields_v2(arena, bytes));
    std::string back;
    append_fields_v1_of(bytes, back);
    EXPECT_EQ(back, json);
  }
}

TEST(FieldsV2Test, FixedNamesAreDistinct) {
  EXPECT_EQ(std::set<std::string_view>(std::begin(kFieldsV2Names), std::end(kFieldsV2Names)).size(),
            std::size(kFieldsV2Names));
}

FieldSet random_set(Arena& arena, std::mt19937& random, int depth) {
  SetBuilder builder(arena);
  const size_t level = builder.open();
  const int count = static_cast<int>(random() % (depth == 0 ? 60 : 5));
  for (int i = 0; i < count; ++i) {
    const std::string name = random() % 3 == 0
                                 ? std::string(kFieldsV2Names[random() % std::size(kFieldsV2Names)])
                                 : "name" + std::to_string(random() % 2000) + std::string(random() % 3 * 70, 'x');
    PathElement element = PathElement::field(arena.copy(name));
    switch (random() % 6) {
      case 0: {
        const Member key[] = {{"a", Value::string(arena, name)},
                              {"b", Value::integer(static_cast<int>(random() % 9) - 4)}};
        element = PathElement::key(arena.copy(std::span<const Member>(key)));
        break;
      }
      case 1:
        element = PathElement::value(arena.make<Value>(Value::number(static_cast<double>(random() % 9) / 2)));
        break;
      case 2:
        element = PathElement::index(static_cast<int64_t>(random()) - 1000000);
        break;
      default:
        break;
    }
    const FieldSet below = depth < 4 ? random_set(arena, random, depth + 1) : FieldSet{};
    builder.add(element, random() % 2 == 0, below);
  }
  return builder.close(level);
}

TEST(FieldsV2Test, RandomSetsSurviveARoundTripAndEqualSetsHaveEqualBytes) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Arena arena;
    const FieldSet set = random_set(arena, random, 0);
    for (FieldsV2Layout layout : kLayouts) {
      const std::string bytes = to_fields_v2(set, layout);
      Result<FieldSet> back = parse_fields_v2(arena, bytes);
      ASSERT_TRUE(back) << back.error().message;
      ASSERT_TRUE(*back == set);
      // Through FieldsV1, where values are parsed again.
      const std::string text = to_fields_v1(set);
      Result<FieldSet> again = parse_fields_v1(arena, text);
      ASSERT_TRUE(again) << again.error().message;
      ASSERT_EQ(to_fields_v2(*again, layout), bytes);
    }
  }
}

}  // namespace
}  // namespace holdfast::ownership
