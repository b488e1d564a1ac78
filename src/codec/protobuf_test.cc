#include "codec/protobuf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/json.h"
#include "codec/vectors.h"

namespace holdfast::codec {
namespace {

using testing::HasSubstr;

const types::Type* type_of(const TypeMeta& meta) {
  const size_t slash = meta.api_version.find('/');
  const bool core = slash == std::string_view::npos;
  return types::find_type_of(core ? "" : meta.api_version.substr(0, slash),
                             core ? meta.api_version : meta.api_version.substr(slash + 1), meta.kind);
}

struct Opened {
  ProtobufEnvelope envelope;
  const types::Type* type;
};
Opened open(const Vector& vector) {
  Result<ProtobufEnvelope> envelope = open_envelope(vector.protobuf);
  EXPECT_TRUE(envelope) << vector.name;
  return {*envelope, type_of(envelope->type)};
}

std::vector<Vector> protobuf_vectors() {
  std::vector<Vector> vectors = all_vectors();
  std::erase_if(vectors, [](const Vector& vector) { return vector.protobuf.empty(); });
  EXPECT_GT(vectors.size(), 100u);
  return vectors;
}

TEST(Protobuf, ReadsEveryVectorAsItsJson) {
  for (const Vector& vector : protobuf_vectors()) {
    const Opened opened = open(vector);
    ASSERT_NE(opened.type, nullptr) << vector.name << " " << opened.envelope.type.kind;
    Arena arena;
    Result<Value> value = decode_protobuf(arena, *opened.type, opened.envelope.message, opened.envelope.type);
    ASSERT_TRUE(value) << vector.name << ": " << value.error().message;
    EXPECT_EQ(encode_json(*value), vector.json) << vector.name;
  }
}

TEST(Protobuf, TranscodesEveryVectorToItsJson) {
  for (const Vector& vector : protobuf_vectors()) {
    const Opened opened = open(vector);
    std::string json;
    Result<Unit> done = protobuf_to_json(*opened.type, opened.envelope.message, opened.envelope.type, {}, json);
    ASSERT_TRUE(done) << vector.name << ": " << done.error().message;
    EXPECT_EQ(json, vector.json) << vector.name;
  }
}

TEST(Protobuf, WritesEveryVectorBackByteForByte) {
  for (const Vector& vector : protobuf_vectors()) {
    const Opened opened = open(vector);
    Arena arena;
    Result<Value> value = decode_protobuf(arena, *opened.type, opened.envelope.message, opened.envelope.type);
    ASSERT_TRUE(value) << vector.name;
    std::string bytes;
    Result<Unit> done = encode_enveloped(*opened.type, *value, bytes);
    ASSERT_TRUE(done) << vector.name << ": " << done.error().message;
    EXPECT_EQ(bytes == vector.protobuf, true) << vector.name;
  }
}

}  // namespace
}  // namespace holdfast::codec
