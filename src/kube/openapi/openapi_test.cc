#include "openapi/openapi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/codec.h"

namespace holdfast::openapi {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Fixture : testing::Test {
  std::vector<Served> resources;
  Arena arena;

  Fixture() {
    for (const types::Resource& resource : types::builtin_resources()) resources.push_back({&resource});
  }
  Source source(Gates gates = {}) const { return {resources, gates}; }
  Value document(std::string_view path, Gates gates = {}) {
    const auto tree = codec::decode_json(arena, arena.copy(v3_document(source(gates), path)));
    EXPECT_TRUE(tree) << path;
    return tree ? *tree : Value();
  }
};
using OpenApiTest = Fixture;

TEST_F(OpenApiTest, IndexListsGroupsVersionsAndFixedDocuments) {
  const auto paths = v3_paths(source());
  EXPECT_EQ(paths.size(), 50u);
  EXPECT_EQ(paths.front(), ".well-known/openid-configuration");
  EXPECT_EQ(paths.back(), "version");
  for (const std::string& path : paths) EXPECT_FALSE(v3_document(source(), path).empty()) << path;
  EXPECT_TRUE(v3_document(source(), "apis/nothing/v1").empty());
  EXPECT_TRUE(v3_document(source(), "apis/nothing").empty());
}

TEST_F(OpenApiTest, DocumentsContainAllReferencedSchemas) {
  for (const std::string& path : v3_paths(source())) {
    const std::string text = v3_document(source(), path);
    Arena local;
    const auto tree = codec::decode_json(local, text);
    ASSERT_TRUE(tree);
    constexpr std::string_view kPrefix = "\"#/components/schemas/";
    for (size_t at = text.find(kPrefix); at != std::string::npos; at = text.find(kPrefix, at + 1)) {
      const size_t start = at + kPrefix.size();
      const std::string name = text.substr(start, text.find('"', start) - start);
      ASSERT_NE(tree->get("components", "schemas", name), nullptr) << path << " " << name;
    }
  }
}

TEST_F(OpenApiTest, PatchOperationHasEverythingKubectlNeeds) {
  const Value apps = document("apis/apps/v1");
  const Value* patch = apps.get("paths", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}", "patch");
  ASSERT_NE(patch, nullptr);
  EXPECT_EQ(codec::encode_json(*patch->find("x-kubernetes-group-version-kind")),
            R"({"group":"apps","version":"v1","kind":"Deployment"})");
  EXPECT_NE(patch->get("requestBody", "content", "application/strategic-merge-patch+json"), nullptr);
  std::vector<std::string> names;
  for (const Value& parameter : patch->items_at("parameters")) names.emplace_back(parameter.text_at("name"));
  EXPECT_EQ(names, (std::vector<std::string>{"dryRun", "fieldManager", "fieldValidation", "force"}));
  EXPECT_EQ(codec::encode_json(
                *apps.get("components", "schemas", "io.k8s.api.apps.v1.Deployment", "x-kubernetes-group-version-kind")),
            R"([{"group":"apps","kind":"Deployment","version":"v1"}])");
}

TEST_F(OpenApiTest, ManagedFieldsOptOutIsListedWhileItsGateIsOn) {
  EXPECT_THAT(v3_document(source(), "api/v1"), HasSubstr("application/json;drop=metadata.managedFields"));
  EXPECT_THAT(v2_document(source()), HasSubstr("application/vnd.kubernetes.protobuf;drop=metadata.managedFields"));
  const Gates off = Gates().with(Gate::ManagedFieldsOptOut, false);
  EXPECT_THAT(v3_document(source(off), "api/v1"), Not(HasSubstr("drop=")));
  EXPECT_THAT(v2_document(source(off)), Not(HasSubstr("drop=")));
  EXPECT_THAT(v2_document(source(off)), Not(HasSubstr("showManagedFields")));
}

TEST_F(OpenApiTest, OptOutIsListedLeanlyAndOnlyWhereItWorks) {
  EXPECT_THAT(v2_document(source()), Not(HasSubstr("stream=watch;drop=")));
  EXPECT_THAT(v2_document(source()), Not(HasSubstr("application/cbor-seq;drop=")));
  const Gates off = Gates().with(Gate::ManagedFieldsOptOut, false);
  const auto size = [](const std::string& document) { return static_cast<double>(document.size()); };
  EXPECT_LT(size(v3_document(source(), "api/v1")), 1.2 * size(v3_document(source(off), "api/v1")));
  EXPECT_LT(size(v2_document(source())), 1.1 * size(v2_document(source(off))));
}

TEST_F(OpenApiTest, CborIsListedWhileItsGateIsOn) {
  EXPECT_THAT(v3_document(source(), "api/v1"), HasSubstr("application/apply-patch+cbor"));
  const Gates off = Gates().with(Gate::CBORServingAndStorage, false);
  for (const std::string& path : v3_paths(source(off))) {
    EXPECT_THAT(v3_document(source(off), path), Not(HasSubstr("cbor"))) << path;
  }
  EXPECT_THAT(v2_document(source(off)), Not(HasSubstr("cbor")));
}

TEST_F(OpenApiTest, MetadataOptionsAppearWhileTheirGateIsOn) {
  const std::string_view meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
  EXPECT_NE(document("api/v1").get("components", "schemas", meta, "properties", "options"), nullptr);
  EXPECT_EQ(document("api/v1", Gates().with(Gate::DeclarativeFieldManager, false))
                .get("components", "schemas", meta, "properties", "options"),
            nullptr);
}

TEST_F(OpenApiTest, CustomResourceIsPublishedWithItsSourceSchema) {
  const types::Resource widget{.group = "example.com",
                               .version = "v1",
                               .plural = "widgets",
                               .singular = "widget",
                               .kind = "Widget",
                               .verbs = types::find_resource("", "v1", "configmaps")->verbs};
  const auto written = codec::decode_json(
      arena,
      R"({"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer","nullable":true}}}}})");
  ASSERT_TRUE(written);
  const auto schema = schema::Schema::build(*written, false);
  resources.push_back({&widget, true, schema.get()});
  const Value published = document("apis/example.com/v1");
  const Value* item = published.get("components", "schemas", "com.example.v1.Widget");
  ASSERT_NE(item, nullptr);
  EXPECT_NE(item->get("properties", "spec", "properties", "size", "nullable"), nullptr);
  EXPECT_NE(item->get("properties", "metadata", "allOf"), nullptr);
  EXPECT_EQ(published.get("paths", "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}", "patch", "requestBody",
                          "content", "application/strategic-merge-patch+json"),
            nullptr);
  // v2 has no nullable, so the type is omitted.
  EXPECT_THAT(v2_document(source()), HasSubstr(R"("spec":{"type":"object","properties":{"size":{}}})"));
}

TEST_F(OpenApiTest, V2ProtobufStartsWithVersionAndInfo) {
  const std::string bytes = v2_protobuf(source());
  const std::string head(
      "\x0a\x03"
      "2.0\x12\x12\x0a\x0aKubernetes\x12\x04"
      "1.36\x42",
      26);
  EXPECT_EQ(bytes.substr(0, head.size()), head);
}

// A text or message field.
std::string field(int number, std::string_view bytes) {
  std::string out;
  if (number >= 16) out += static_cast<char>(0x80 | (number << 3 & 0x7f) | 2);
  out += static_cast<char>(number >= 16 ? number >> 4 : number << 3 | 2);
  return out + static_cast<char>(bytes.size()) + std::string(bytes);
}

TEST_F(OpenApiTest, V3DocumentIsEncodedAsProtobuf) {
  const auto tree = codec::decode_json(arena, R"({"openapi":"3.0.0","info":{"title":"T","version":"1"},"paths":{},
      "components":{"schemas":{"A":{"type":"object","properties":{"b":{"$ref":"#/B"},"c":{"default":false}}}}}})");
  ASSERT_TRUE(tree);
  const std::string reference = field(2, field(1, "#/B"));
  // A default of false differs from no default.
  const std::string with_default = field(1, field(33, std::string_view("\x10\x00", 2)));
  const std::string properties =
      field(1, field(1, "b") + field(2, reference)) + field(1, field(1, "c") + field(2, with_default));
  const std::string schema = field(1, field(25, "object") + field(31, properties));
  const std::string schemas = field(1, field(1, "A") + field(2, schema));
  EXPECT_EQ(v3_to_protobuf(*tree),
            field(1, "3.0.0") + field(2, field(1, "T") + field(6, "1")) + field(4, "") + field(5, field(1, schemas)));
}

TEST_F(OpenApiTest, V2DocumentIsConvertedToV3) {
  const auto v2 = codec::decode_json(arena, R"({"swagger":"2.0","info":{"title":"T","version":"1"},"paths":{"/a":{
      "post":{"operationId":"x","consumes":["a/b"],"produces":["c/d","e/f"],"x-own":1,
        "parameters":[{"name":"body","in":"body","schema":{"$ref":"#/definitions/A"}},{"$ref":"#/parameters/p"}],
        "responses":{"200":{"description":"OK","schema":{"type":"array","items":{"$ref":"#/definitions/A"}}}}},
      "parameters":[{"name":"n","in":"path","required":true,"type":"string","uniqueItems":true}]}},
      "parameters":{"p":{"name":"q","in":"query","type":"integer"}},
      "definitions":{"A":{"type":"object","properties":{"b":{"description":"d","$ref":"#/definitions/B"}},
        "additionalProperties":{"$ref":"#/definitions/B"}},"B":{"additionalProperties":true}},
      "securityDefinitions":{"s":{"type":"apiKey","name":"h","in":"header"}}})");
  ASSERT_TRUE(v2);
  const auto want = codec::decode_json(arena, R"({"openapi":"3.0.0","info":{"title":"T","version":"1"},"paths":{"/a":{
      "post":{"operationId":"x","requestBody":{"content":{"a/b":{"schema":{"$ref":"#/components/schemas/A"}}}},
        "parameters":[{"$ref":"#/components/parameters/p"}],
        "responses":{"200":{"description":"OK","content":{
          "c/d":{"schema":{"type":"array","items":{"$ref":"#/components/schemas/A"}}},
          "e/f":{"schema":{"type":"array","items":{"$ref":"#/components/schemas/A"}}}}}},"x-own":1},
      "parameters":[{"name":"n","in":"path","required":true,"schema":{"type":"string","uniqueItems":true}}]}},
      "components":{
        "schemas":{"A":{"type":"object","properties":{
            "b":{"description":"d","allOf":[{"$ref":"#/components/schemas/B"}]}},
          "additionalProperties":{"$ref":"#/components/schemas/B"}},"B":{"additionalProperties":true}},
        "parameters":{"p":{"name":"q","in":"query","schema":{"type":"integer"}}},
        "securitySchemes":{"s":{"type":"apiKey","name":"h","in":"header"}}}})");
  ASSERT_TRUE(want);
  EXPECT_EQ(codec::encode_json(v3_from_v2(arena, *v2)), codec::encode_json(*want));
}

TEST(CustomSchemaNameTest, ReversesTheGroup) {
  EXPECT_EQ(custom_schema_name("stable.example.com", "v1", "Bolt"), "com.example.stable.v1.Bolt");
}

}  // namespace
}  // namespace holdfast::openapi
