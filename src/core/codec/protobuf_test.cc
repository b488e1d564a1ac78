#include "codec/protobuf.h"
#include "base/api_version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/cbor.h"
#include "codec/json.h"
#include "codec/vectors.h"

namespace holdfast::codec {
namespace {

using testing::HasSubstr;

const types::Type* type_of(const TypeMeta& meta) {
  const auto [group, version] = split_api_version(meta.api_version);
  return types::find_type_of(group, version, meta.kind);
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

TEST(Protobuf, DecodesEveryVectorToItsJson) {
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

TEST(Protobuf, MemoDoesNotChangeTheJson) {
  MessageMemo memo;
  for (int round = 0; round < 3; ++round) {
    for (const Vector& vector : protobuf_vectors()) {
      const Opened opened = open(vector);
      std::string json = "before";
      Result<Unit> done =
          protobuf_to_json(*opened.type, opened.envelope.message, opened.envelope.type, {}, json, {}, {.memo = &memo});
      ASSERT_TRUE(done) << vector.name << ": " << done.error().message;
      EXPECT_EQ(json, "before" + vector.json) << vector.name;
    }
  }
}

TEST(Protobuf, MemoDoesNotChangeTheCbor) {
  MessageMemo memo;
  for (int round = 0; round < 3; ++round) {
    for (const Vector& vector : protobuf_vectors()) {
      const Opened opened = open(vector);
      const auto cbor_of = [&](const RenderAdditions& additions) {
        std::string cbor = "before";
        EXPECT_TRUE(
            protobuf_to_cbor(*opened.type, opened.envelope.message, opened.envelope.type, {}, cbor, {}, additions));
        return cbor;
      };
      EXPECT_EQ(cbor_of({.memo = &memo}), cbor_of({})) << vector.name;
    }
  }
}

TEST(MessageMemo, KeepsRepeatedMessagesWithinItsBudget) {
  MessageMemo memo;
  const int types[2] = {};
  const std::string message(100, 'm');
  MessageMemo::Place place;
  EXPECT_EQ(memo.find(&types[0], message, place), "");
  EXPECT_FALSE(place.keep);
  EXPECT_EQ(memo.find(&types[0], message, place), "");
  EXPECT_TRUE(place.keep);
  memo.keep(place, &types[0], message, "{}");
  EXPECT_EQ(memo.find(&types[0], message, place), "{}");
  EXPECT_EQ(memo.find(&types[1], message, place), "");
  // After a megabyte it has been cleared, and works as before.
  const std::string long_json(10000, 'j');
  for (int i = 0; i < 100; ++i) {
    const std::string other = "message " + std::to_string(i);
    memo.find(&types[0], other, place);
    memo.find(&types[0], other, place);
    memo.keep(place, &types[0], other, long_json);
    ASSERT_EQ(memo.find(&types[0], other, place), long_json);
  }
  EXPECT_EQ(memo.find(&types[0], message, place), "");
}

TEST(Protobuf, ManagedFieldsAreAddedAsLastMemberOfMetadata) {
  const types::Type& type = *types::find_type_of("", "v1", "ConfigMap");
  struct Case {
    std::string_view name, object, want;
  };
  const Case cases[] = {
      {"after other members", R"({"metadata":{"name":"a"},"data":{"metadata":"b"}})",
       R"({"metadata":{"name":"a","managedFields":[{"manager":"m"}]},"data":{"metadata":"b"}})"},
      {"as the only member", R"({"metadata":{}})", R"({"metadata":{"managedFields":[{"manager":"m"}]}})"},
  };
  for (const Case& c : cases) {
    Arena arena;
    std::string message, json;
    ASSERT_TRUE(encode_protobuf(type, *decode_json(arena, c.object), message));
    ASSERT_TRUE(protobuf_to_json(type, message, {}, {}, json, {}, {.managed_fields = R"([{"manager":"m"}])"}));
    EXPECT_EQ(json, c.want) << c.name;
  }
}

TEST(Protobuf, ReencodesEveryVectorByteForByte) {
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

TEST(Protobuf, TranscodesEveryVectorToItsCbor) {
  for (const Vector& vector : protobuf_vectors()) {
    const Opened opened = open(vector);
    std::string cbor(kCborSelfDescribed);
    Result<Unit> done = protobuf_to_cbor(*opened.type, opened.envelope.message, opened.envelope.type, {}, cbor);
    ASSERT_TRUE(done) << vector.name << ": " << done.error().message;
    Arena arena;
    Result<Value> mine = decode_cbor(arena, cbor);
    ASSERT_TRUE(mine) << vector.name << ": " << mine.error().message;
    if (vector.cbor.empty()) continue;
    Result<Value> theirs = decode_cbor(arena, vector.cbor);
    ASSERT_TRUE(theirs) << vector.name;
    EXPECT_EQ(encode_json_sorted(*mine), encode_json_sorted(*theirs)) << vector.name;
    // The same texts are encoded as byte strings as in Kubernetes.
    EXPECT_EQ(cbor.size(), vector.cbor.size()) << vector.name;
  }
}

// The expected result, computed with a tree.
std::string json_by_tree(const Opened& opened, std::span<const std::string> drop) {
  Arena arena;
  Value value = *decode_protobuf(arena, *opened.type, opened.envelope.message, opened.envelope.type);
  for (const std::string& path : drop) {
    std::vector<std::string_view> keys;
    for (size_t at = 0; at <= path.size();) {
      const size_t dot = std::min(path.find('.', at), path.size());
      keys.push_back(std::string_view(path).substr(at, dot - at));
      at = dot + 1;
    }
    value = without_path(arena, value, keys);
  }
  return encode_json(value);
}

TEST(Protobuf, DropsFieldsInEveryFormat) {
  const std::vector<std::string> paths = {"metadata.managedFields", "spec.template.spec", "metadata.labels.app"};
  const FieldPaths drop(paths);
  for (const Vector& vector : protobuf_vectors()) {
    const Opened opened = open(vector);
    const std::string want = json_by_tree(opened, paths);
    std::string json, cbor, fewer, json_of_fewer;
    ASSERT_TRUE(protobuf_to_json(*opened.type, opened.envelope.message, opened.envelope.type, {.drop = &drop}, json));
    EXPECT_EQ(json, want) << vector.name;
    ASSERT_TRUE(protobuf_to_cbor(*opened.type, opened.envelope.message, opened.envelope.type, {.drop = &drop}, cbor));
    Arena arena;
    EXPECT_EQ(encode_json(*decode_cbor(arena, cbor)), encode_json(*decode_json(arena, want))) << vector.name;
    // A struct that is missing in Protobuf is decoded as an empty one, so it must be dropped from the JSON again.
    ASSERT_TRUE(drop_protobuf_fields(*opened.type, opened.envelope.message, drop, fewer));
    ASSERT_TRUE(protobuf_to_json(*opened.type, fewer, opened.envelope.type, {.drop = &drop}, json_of_fewer));
    if (want.find("\"labels\":{}") == std::string::npos) EXPECT_EQ(json_of_fewer, want) << vector.name;
  }
}

TEST(Protobuf, WritesOnlyTheMetadata) {
  const std::vector<Vector> vectors = protobuf_vectors();
  const auto named = [&](std::string_view name) {
    return *std::find_if(vectors.begin(), vectors.end(), [&](const Vector& v) { return v.name == name; });
  };
  const Vector deployment = named("deployment");
  const Opened opened = open(deployment);
  std::string json;
  ASSERT_TRUE(protobuf_to_json(*opened.type, opened.envelope.message, {}, {.metadata_only = true}, json));
  const std::string metadata_text = deployment.json.substr(deployment.json.find("\"metadata\":"));
  const std::string want = R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",)" +
                           metadata_text.substr(0, metadata_text.find(",\"spec\":")) + "}";
  EXPECT_EQ(json, want);

  std::string bytes, from_bytes;
  ASSERT_TRUE(change_enveloped_metadata(deployment.protobuf, {.metadata_only = true}, bytes));
  Result<ProtobufEnvelope> envelope = open_envelope(bytes);
  ASSERT_TRUE(protobuf_to_json(*types::find_type("meta/v1.PartialObjectMetadata"), envelope->message, envelope->type,
                               {}, from_bytes));
  EXPECT_EQ(from_bytes, want);

  std::string list;
  const Vector lists = named("deployment-list");
  const Opened opened_list = open(lists);
  ASSERT_TRUE(protobuf_to_json(*opened_list.type, opened_list.envelope.message, {}, {.metadata_only = true}, list));
  EXPECT_TRUE(
      list.starts_with(R"({"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"res)"));
  EXPECT_THAT(list,
              HasSubstr(R"("items":[{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{)"));
}

TEST(Protobuf, ReplacesMetadataInEncodedObjects) {
  for (const Vector& vector : protobuf_vectors()) {
    const Opened opened = open(vector);
    if (types::find_member(*opened.type, "metadata") == nullptr ||
        types::find_member(*opened.type, "metadata")->type->name != "meta/v1.ObjectMeta") {
      continue;
    }
    Arena arena;
    const Value value = *decode_protobuf(arena, *opened.type, opened.envelope.message, opened.envelope.type);

    // As stored: without resourceVersion, otherwise unchanged.
    constexpr std::string_view kRevision[] = {"metadata", "resourceVersion"};
    constexpr std::string_view kManaged[] = {"metadata", "managedFields"};
    std::string stored, want;
    ASSERT_TRUE(change_enveloped_metadata(vector.protobuf, {.resource_version = ""}, stored)) << vector.name;
    ASSERT_TRUE(encode_enveloped(*opened.type, with_path(arena, value, kRevision, Value::string("")), want));
    EXPECT_EQ(stored == want, true) << vector.name;

    // As cached: with a revision and without managedFields.
    std::string body, want_body;
    ASSERT_TRUE(
        change_enveloped_metadata(stored, {.drop_managed_fields = true, .resource_version = "123456789"}, body));
    const Value stripped =
        without_path(arena, with_path(arena, value, kRevision, Value::string("123456789")), kManaged);
    ASSERT_TRUE(encode_enveloped(*opened.type, stripped, want_body));
    EXPECT_EQ(body == want_body, true) << vector.name;

    // And with managedFields added back.
    const Value* managed = value.get("metadata", "managedFields");
    std::string entries, back;
    if (managed != nullptr) {
      const Value alone = with_path(arena, Value::empty_map(), std::span(kManaged).subspan(1), *managed);
      ASSERT_TRUE(encode_protobuf(*types::find_type("meta/v1.ObjectMeta"), alone, entries));
      entries.erase(0, entries.find("\x8a\x01"));
    }
    ASSERT_TRUE(change_enveloped_metadata(body, {.managed_fields = entries, .resource_version = ""}, back));
    EXPECT_EQ(back == stored, true) << vector.name;
  }
}

struct BrokenCase {
  std::string_view name, bytes, want;
};

TEST(Protobuf, ErrorsNameTheFieldAndTheByte) {
  using namespace std::string_view_literals;
  const types::Type& pod = *types::find_type("core/v1.Pod");
  const BrokenCase cases[] = {
      {"a truncated text", "\x0a\x03\x0a\x05x"sv, "unexpected EOF in metadata.name at byte 2"},
      {"a truncated tag", "\x0a\x01\x80"sv, "unexpected EOF in metadata at byte 2"},
      {"a wrong wire type", "\x0a\x02\x08\x01"sv, "wrong wire type 0 in metadata.name at byte 2"},
      {"field number 0", "\x00\x00"sv, "illegal tag 0 at byte 0"},
      {"an overlong varint", "\x0a\x0c\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv,
       "unexpected EOF in metadata.generation at byte 2"},
      {"invalid raw JSON", "\x0a\x08\x8a\x01\x05\x3a\x03\x0a\x01{"sv,
       "the embedded value is not JSON in metadata.managedFields[0].fieldsV1 at byte 9"},
  };
  for (const BrokenCase& row : cases) {
    Arena arena;
    Result<Value> value = decode_protobuf(arena, pod, row.bytes);
    ASSERT_FALSE(value) << row.name;
    EXPECT_EQ(value.error().message, row.want) << row.name;
    std::string out = "kept";
    EXPECT_FALSE(protobuf_to_json(pod, row.bytes, {}, {}, out)) << row.name;
    EXPECT_EQ(out, "kept") << row.name;
  }
  EXPECT_THAT(open_envelope("").error().message, HasSubstr("empty data"));
  EXPECT_THAT(open_envelope("{}").error().message, HasSubstr("expected prefix [107 56 115 0]"));
  EXPECT_THAT(open_envelope(kProtobufMagic).error().message, HasSubstr("empty body"));
}

TEST(Protobuf, NestingIsBounded) {
  const auto nested = [](uint32_t levels) {  // not: {not: {not: ...}}
    std::string message;
    for (uint32_t i = 0; i < levels; ++i) {
      std::string outer = "\xe2\x01";
      for (size_t size = message.size();; size >>= 7) {
        outer += static_cast<char>(size >= 0x80 ? size | 0x80 : size);
        if (size < 0x80) break;
      }
      message = outer + message;
    }
    Arena arena;
    Result<Value> value = decode_protobuf(arena, *types::find_type("apiextensions/v1.JSONSchemaProps"), message);
    return value ? std::string() : value.error().message;
  };
  EXPECT_EQ(nested(limits::kProtobufDepth - 1), "");
  EXPECT_THAT(nested(limits::kProtobufDepth), HasSubstr("nested too deeply"));
}

TEST(Protobuf, MessageInPiecesIsMerged) {
  // metadata {name: a} metadata {namespace: b}, labels unordered and with a duplicate.
  using namespace std::string_view_literals;
  constexpr std::string_view kPieces =
      "\x0a\x03\x0a\x01\x61\x0a\x03\x1a\x01\x62"
      "\x0a\x18\x5a\x06\x0a\x01z\x12\x01"
      "1\x5a\x06\x0a\x01"
      "c\x12\x01"
      "1\x5a\x06\x0a\x01z\x12\x01"
      "2"sv;
  std::string json;
  ASSERT_TRUE(protobuf_to_json(*types::find_type("core/v1.ConfigMap"), kPieces, {}, {}, json));
  EXPECT_EQ(json, R"({"metadata":{"name":"a","namespace":"b","labels":{"c":"1","z":"2"}}})");
}

TEST(Protobuf, HoldfastFieldsAreReadOnlyWhileTheirGateIsOn) {
  using namespace std::string_view_literals;
  constexpr std::string_view kMessage = "\x0a\x09\x92\x01\x06\x0a\x01k\x12\x01v"sv;
  const Gates on = Gates().with(Gate::DeclarativeFieldManager, true);
  const types::Type& type = *types::find_type("core/v1.ConfigMap");
  Arena arena;
  EXPECT_EQ(encode_json(*decode_protobuf(arena, type, kMessage, {}, {.gates = &on})),
            R"({"metadata":{"options":{"k":"v"}}})");
  EXPECT_EQ(encode_json(*decode_protobuf(arena, type, kMessage)), R"({"metadata":{}})");
}

}  // namespace
}  // namespace holdfast::codec
