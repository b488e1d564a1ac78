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

TEST_F(OpenApiTest, TheIndexListsGroupsVersionsAndTheFixedDocuments) {
  const auto paths = v3_paths(source());
  EXPECT_EQ(paths.size(), 48u);
  EXPECT_EQ(paths.front(), ".well-known/openid-configuration");
  EXPECT_EQ(paths.back(), "version");
  for (const std::string& path : paths) EXPECT_FALSE(v3_document(source(), path).empty()) << path;
  EXPECT_TRUE(v3_document(source(), "apis/nothing/v1").empty());
  EXPECT_TRUE(v3_document(source(), "apis/nothing").empty());
}

TEST_F(OpenApiTest, EveryReferenceOfADocumentIsInIt) {
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

TEST_F(OpenApiTest, APatchOperationHasWhatKubectlLooksFor) {
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

TEST_F(OpenApiTest, TheOptOutIsDiscoverableWhileItsGateIsOn) {
  EXPECT_THAT(v3_document(source(), "api/v1"), HasSubstr("application/json;drop=metadata.managedFields"));
  EXPECT_THAT(v2_document(source()), HasSubstr("application/vnd.kubernetes.protobuf;drop=metadata.managedFields"));
  const Gates off = Gates().with(Gate::ManagedFieldsOptOut, false);
  EXPECT_THAT(v3_document(source(off), "api/v1"), Not(HasSubstr("drop=")));
  EXPECT_THAT(v2_document(source(off)), Not(HasSubstr("drop=")));
}

TEST_F(OpenApiTest, MetadataOptionsAppearWhileTheirGateIsOn) {
  const std::string_view meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
  EXPECT_NE(document("api/v1").get("components", "schemas", meta, "properties", "options"), nullptr);
  EXPECT_EQ(document("api/v1", Gates().with(Gate::DeclarativeFieldManager, false))
                .get("components", "schemas", meta, "properties", "options"),
            nullptr);
}

TEST_F(OpenApiTest, ACustomResourceIsPublishedAsItsSchemaIsWritten) {
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
  // v2 cannot say nullable, so it says nothing of the type.
  EXPECT_THAT(v2_document(source()), HasSubstr(R"("spec":{"type":"object","properties":{"size":{}}})"));
}

TEST_F(OpenApiTest, TheProtobufFormStartsWithVersionAndInfo) {
  const std::string bytes = v2_protobuf(source());
  const std::string head(
      "\x0a\x03"
      "2.0\x12\x12\x0a\x0aKubernetes\x12\x04"
      "1.36\x42",
      26);
  EXPECT_EQ(bytes.substr(0, head.size()), head);
}

TEST(CustomSchemaNameTest, ReversesTheGroup) {
  EXPECT_EQ(custom_schema_name("stable.example.com", "v1", "Bolt"), "com.example.stable.v1.Bolt");
}

}  // namespace
}  // namespace holdfast::openapi
