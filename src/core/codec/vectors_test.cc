// Recorded responses of a real server, run through the text and self-describing codecs.
#include <gtest/gtest.h>

#include "base/files.h"
#include "codec/codec.h"
#include "codec/vectors.h"

namespace holdfast::codec {
namespace {

// Watch bodies contain several objects; all others are a single value.
bool is_one_value(const Vector& vector) { return !vector.name.starts_with("watch-"); }

// Texts that a tree cannot reproduce: floats that print like integers (-0), a RawExtension's own number texts, and
// Tables, which were encoded by a different encoder.
bool keeps_its_text(const Vector& vector) {
  return vector.name != "yaml-custom-numbers" && vector.name != "yaml-controllerrevision-raw" &&
         vector.name.find("table") == std::string::npos;
}

TEST(Vectors, JsonSurvivesARoundTrip) {
  for (const Vector& vector : all_vectors()) {
    const auto document = parse_json(vector.json);
    ASSERT_TRUE(document) << vector.name;
    if (keeps_its_text(vector)) {
      EXPECT_EQ(encode_json(document->root()), vector.json) << vector.name;
    }
    std::string compact;
    ASSERT_TRUE(json_to_json(vector.json, {}, compact)) << vector.name;
    EXPECT_EQ(compact, vector.json) << vector.name;
  }
}

TEST(Vectors, PrettyJsonFromTreeAndFromBytesAgree) {
  for (const Vector& vector : all_vectors()) {
    const auto document = parse_json(vector.json);
    ASSERT_TRUE(document) << vector.name;
    std::string pretty;
    ASSERT_TRUE(json_to_pretty_json(vector.json, {}, pretty)) << vector.name;
    if (keeps_its_text(vector)) {
      EXPECT_EQ(pretty, encode_json_pretty(document->root())) << vector.name;
    }
    const auto again = parse_json(pretty);
    ASSERT_TRUE(again) << vector.name;
    EXPECT_TRUE(equal(document->root(), again->root())) << vector.name;
  }
}

TEST(Vectors, CborAgreesWithJson) {
  size_t seen = 0;
  for (const Vector& vector : all_vectors()) {
    if (vector.cbor.empty() || !is_one_value(vector)) continue;
    ++seen;
    const auto json = parse_json(vector.json);
    const auto cbor = parse_cbor(vector.cbor);
    ASSERT_TRUE(json && cbor) << vector.name;
    // 1.0 is 1 in JSON.
    EXPECT_TRUE(equal(json->root(), cbor->root(), Numbers::ByValue)) << vector.name;

    const auto from_tree = parse_cbor(encode_cbor(json->root()));
    ASSERT_TRUE(from_tree) << vector.name;
    EXPECT_TRUE(equal(json->root(), from_tree->root())) << vector.name;
    std::string bytes;
    ASSERT_TRUE(json_to_cbor(vector.json, {}, bytes)) << vector.name;
    EXPECT_EQ(bytes, encode_cbor(json->root())) << vector.name;
  }
  EXPECT_GT(seen, 80u);
}

TEST(Vectors, YamlMatchesTheRecordedTextAndReadsBack) {
  size_t seen = 0;
  const std::filesystem::path folder = std::filesystem::path(HOLDFAST_SOURCE_DIR) / "tests" / "vectors";
  for (const Vector& vector : all_vectors()) {
    const auto document = parse_json(vector.json);
    ASSERT_TRUE(document) << vector.name;
    std::string yaml;
    ASSERT_TRUE(encode_yaml(document->root(), yaml)) << vector.name;
    if (std::filesystem::exists(folder / (vector.name + ".yaml"))) {
      ++seen;
      EXPECT_EQ(yaml, *read_file(folder / (vector.name + ".yaml"))) << vector.name;
    }
    const auto read_back = parse_yaml(yaml);
    ASSERT_TRUE(read_back) << vector.name << ": " << read_back.error().message;
    EXPECT_TRUE(equal(document->root(), read_back->root(), Numbers::ByValue)) << vector.name;
  }
  EXPECT_GT(seen, 20u);
}

TEST(Vectors, YamlAndJsonReadersAgreeOnJson) {
  for (const Vector& vector : all_vectors()) {
    const auto json = parse_json(vector.json);
    const auto yaml = parse_yaml(vector.json);
    ASSERT_TRUE(json && yaml) << vector.name;
    EXPECT_TRUE(equal(json->root(), yaml->root(), Numbers::ByValue)) << vector.name;
  }
}

TEST(Vectors, ManagedFieldsAreDroppedInEveryFormat) {
  const Shape shape{.drop = &managed_fields_paths()};
  for (const Vector& vector : all_vectors()) {
    std::string json;
    std::string cbor;
    ASSERT_TRUE(json_to_json(vector.json, shape, json)) << vector.name;
    ASSERT_TRUE(json_to_cbor(vector.json, shape, cbor)) << vector.name;
    const auto from_json = parse_json(json);
    const auto from_cbor = parse_cbor(cbor);
    ASSERT_TRUE(from_json && from_cbor) << vector.name;
    EXPECT_TRUE(equal(from_json->root(), from_cbor->root())) << vector.name;
    EXPECT_EQ(from_json->root().get("metadata", "managedFields"), nullptr) << vector.name;
    for (const Value& item : from_json->root().items_at("items")) {
      EXPECT_EQ(item.get("metadata", "managedFields"), nullptr) << vector.name;
    }
  }
}

}  // namespace
}  // namespace holdfast::codec
