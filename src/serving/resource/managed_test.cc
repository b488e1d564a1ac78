#include "resource/managed.h"

#include <gtest/gtest.h>

#include "codec/codec.h"

namespace holdfast::resource {
namespace {

using ownership::ManagedEntry;

std::vector<ManagedEntry> all_kinds() {
  ManagedEntry applied;
  applied.manager = "alice \"<a>\"";
  applied.operation = "Apply";
  applied.api_version = "apps/v1";
  applied.time = UnixTime{.seconds = 1700000000, .nanos = 0};
  applied.fields_type = ownership::kFieldsV1;
  applied.fields = R"({"f:metadata":{"f:labels":{"f:a":{}}}})";
  ManagedEntry updated = applied;
  updated.manager = std::string_view("kubelet");
  updated.operation = "Update";
  updated.subresource = "status";
  updated.time.reset();
  ManagedEntry binary = updated;
  binary.fields_type = ownership::kFieldsV2;
  binary.fields = std::string_view("\x01\x00\xff", 3);
  ManagedEntry bare;
  bare.manager = "bare";
  return {applied, updated, binary, bare};
}

TEST(ManagedTest, JsonMatchesTheTree) {
  Arena arena;
  const std::vector<ManagedEntry> entries = all_kinds();
  std::string text;
  append_managed_json(entries, text);
  EXPECT_EQ(text, codec::encode_json(managed_fields_value(arena, entries)));
}

TEST(ManagedTest, CborMatchesTheTree) {
  Arena arena;
  const std::vector<ManagedEntry> entries = all_kinds();
  std::string cbor;
  append_managed_cbor(entries, cbor);
  Result<Value> read = codec::decode_cbor(arena, cbor);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(codec::encode_json(*read), codec::encode_json(managed_fields_value(arena, entries)));
}

TEST(ManagedTest, RendererMatchesEntriesAndPredictedSize) {
  const Gates gates;
  ownership::Pool pool(gates);
  const ownership::Pool::Kind kind = pool.kind("pods", ownership::MemberOrder::Canonical);
  const std::vector<ManagedEntry> entries = all_kinds();
  const ownership::OwnersRef owners = pool.intern(kind, entries);
  const ownership::OwnersRef shared = pool.intern(kind, entries);
  for (const std::string_view fields_type : {ownership::kFieldsV1, ownership::kFieldsV2}) {
    Arena arena;
    const std::span<const ManagedEntry> shown = owners.view().entries(arena, fields_type);
    std::string json, cbor, protobuf;
    append_managed_json(shown, json);
    append_managed_cbor(shown, cbor);
    append_managed_protobuf(shown, protobuf);
    OwnersRenderer renderer(fields_type, ownership::MemberOrder::Canonical);
    EXPECT_EQ(renderer.json(owners.view()), json);
    codec::MessageMemo memo;  // Memoizes on the third use.
    for (int i = 0; i < 3; ++i) EXPECT_EQ(renderer.cbor(owners.view(), memo), cbor);
    EXPECT_EQ(renderer.protobuf(owners.view()), protobuf);
    EXPECT_EQ(renderer.json({}), "");
    EXPECT_EQ(renderer.protobuf({}), "");
    if (fields_type == ownership::kFieldsV1) EXPECT_EQ(owners.view().protobuf_bytes(), protobuf.size());
  }
}

}  // namespace
}  // namespace holdfast::resource
