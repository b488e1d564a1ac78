#include "resource/stored_check.h"

#include <gmock/gmock.h>

#include "codec/codec.h"
#include "resource/object_codec.h"

namespace holdfast::resource {
namespace {

using ::testing::HasSubstr;

std::string stored_pod(std::string_view json, std::span<const ownership::ManagedEntry> managed, bool embedded) {
  const types::Resource& pods = *types::find_resource("", "v1", "pods");
  auto codec = make_builtin_codec(pods, Gates());
  Arena arena;
  Result<Value> tree = codec::decode_json(arena, json);
  EXPECT_TRUE(tree);
  Result<std::string> body = codec->body_of(arena, *tree);
  EXPECT_TRUE(body);
  std::shared_ptr<const cache::Codec> at_rest = codec;
  if (embedded) at_rest = cache::embedded_codec(codec, {});
  return *at_rest->encode(*body, managed);
}

constexpr std::string_view kPod =
    R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"n","uid":"u"},"spec":{"nodeName":"x"}})";

std::string wrong(std::string_view key, std::string_view value) {
  static const StoredCheck check = make_stored_check("/registry");
  return check(key, value).value_or("");
}

ownership::ManagedEntry entry(std::string_view fields) {
  return {.manager = "me",
          .operation = "Update",
          .api_version = "v1",
          .subresource = {},
          .time = std::nullopt,
          .fields_type = ownership::kFieldsV1,
          .fields = fields};
}

TEST(StoredCheck, ObjectsInEitherFormAreRight) {
  const ownership::ManagedEntry owners[] = {entry(R"({"f:spec":{"f:nodeName":{}}})")};
  for (bool embedded : {false, true}) EXPECT_EQ(wrong("/registry/pods/n/a", stored_pod(kPod, owners, embedded)), "");
}

TEST(StoredCheck, AnObjectUnderAnotherKeyIsNamed) {
  EXPECT_EQ(wrong("/registry/pods/n/b", stored_pod(kPod, {}, false)), "it holds the object n/a");
}

TEST(StoredCheck, CutAndFlippedBytesAreNamed) {
  const std::string value = stored_pod(kPod, {}, true);
  EXPECT_NE(wrong("/registry/pods/n/a", value.substr(0, value.size() / 2)), "");
  EXPECT_NE(wrong("/registry/pods/n/a", "{}"), "");
  EXPECT_THAT(wrong("/registry/pods/n/a", "k8s:enc:aescbc:v1:key:xx"), HasSubstr("encrypted"));
}

TEST(StoredCheck, OwnershipThatIsNoFieldSetNamesTheManager) {
  const ownership::ManagedEntry owners[] = {entry(R"({"k:nojson":{}})")};
  EXPECT_THAT(wrong("/registry/pods/n/a", stored_pod(kPod, owners, false)), HasSubstr("the fields of manager \"me\""));
}

TEST(StoredCheck, CustomResourcesAreReadWithoutTheirDefinition) {
  constexpr std::string_view kKey = "/registry/example.com/widgets/n/w";
  EXPECT_EQ(wrong(kKey, R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"n"}})"),
            "");
  EXPECT_THAT(wrong(kKey, R"({"apiVersion":"other/v1","kind":"Widget","metadata":{"name":"w","namespace":"n"}})"),
              HasSubstr("other/v1"));
  EXPECT_EQ(wrong(kKey, R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}})"),
            "it holds the object w");
  EXPECT_NE(wrong(kKey, "{"), "");
}

}  // namespace
}  // namespace holdfast::resource
