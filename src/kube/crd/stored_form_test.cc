#include <gtest/gtest.h>

#include "codec/codec.h"
#include "crd/crd.h"

namespace holdfast::crd {
namespace {

std::string stored(const std::string& spec) {
  Arena arena;
  const std::string text =
      R"({"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","spec":)" + spec + "}";
  const Result<Value> tree = codec::decode_json(arena, text);
  EXPECT_TRUE(tree) << text;
  const Value out = stored_definition(arena, *tree);
  EXPECT_EQ(out.text_at("apiVersion"), "apiextensions.k8s.io/v1beta1");
  return codec::encode_json(*out.find("spec"));
}

std::string served(const std::string& spec, const char* version = "v1beta1") {
  Arena arena;
  const std::string text = R"({"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/)" +
                           std::string(version) + R"(","spec":)" + spec + "}";
  const Result<Value> tree = codec::decode_json(arena, text);
  EXPECT_TRUE(tree) << text;
  const Value out = served_definition(arena, *tree);
  EXPECT_EQ(out.text_at("apiVersion"), "apiextensions.k8s.io/v1");
  return codec::encode_json(*out.find("spec"));
}

constexpr const char* kServed =
    R"({"group":"g","names":{"plural":"ts"},"scope":"Cluster","versions":[)"
    R"({"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}},)"
    R"("additionalPrinterColumns":[{"name":"n","type":"string","jsonPath":".a"}]},)"
    R"({"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}},"subresources":{"status":{}},)"
    R"("additionalPrinterColumns":[{"name":"n","type":"string","jsonPath":".b"}]}],)"
    R"("conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"u"},"conversionReviewVersions":["v1"]}}})";
constexpr const char* kStored =
    R"({"group":"g","version":"v1","names":{"plural":"ts"},"scope":"Cluster",)"
    R"("validation":{"openAPIV3Schema":{"type":"object"}},"versions":[)"
    R"({"name":"v1","served":true,"storage":true,)"
    R"("additionalPrinterColumns":[{"name":"n","type":"string","JSONPath":".a"}]},)"
    R"({"name":"v2","served":true,"storage":false,"subresources":{"status":{}},)"
    R"("additionalPrinterColumns":[{"name":"n","type":"string","JSONPath":".b"}]}],)"
    R"("conversion":{"strategy":"Webhook","webhookClientConfig":{"url":"u"},"conversionReviewVersions":["v1"]},)"
    R"("preserveUnknownFields":false})";

TEST(StoredForm, SharedMembersAreHoisted) { EXPECT_EQ(stored(kServed), kStored); }

TEST(StoredForm, DecodingRestoresMembersOfEveryVersion) {
  Arena arena;
  const Result<Value> want = codec::decode_json(arena, kServed);
  const std::string text = served(kStored);
  const Result<Value> got = codec::decode_json(arena, text);
  EXPECT_TRUE(equal(*want, *got)) << text;
}

TEST(StoredForm, OldDefinitionsGetV1beta1Defaults) {
  EXPECT_EQ(served(R"({"group":"g","version":"v1","names":{"plural":"ts"}})"),
            R"({"group":"g","names":{"plural":"ts"},"scope":"Namespaced",)"
            R"("versions":[{"name":"v1","served":true,"storage":true}],"preserveUnknownFields":true})");
  EXPECT_EQ(
      served(R"({"scope":"Cluster","conversion":{"strategy":"Webhook"},"preserveUnknownFields":false})"),
      R"({"scope":"Cluster","conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1beta1"]}}})");
}

TEST(StoredForm, DefinitionsStoredAsV1AreUnchanged) { EXPECT_EQ(served(kServed, "v1"), kServed); }

}  // namespace
}  // namespace holdfast::crd
