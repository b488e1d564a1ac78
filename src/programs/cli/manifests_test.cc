#include "cli/manifests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Manifests, DocumentsRecordTheirFirstLine) {
  Result<std::vector<Manifest>> found = parse_manifests(
      "# first\napiVersion: v1\nkind: A\n---\n---\n\napiVersion: v1\nkind: B\n---\n{\"apiVersion\": \"v1\", \"kind\": "
      "\"C\"}\n",
      "x.yaml");
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 3u);
  EXPECT_EQ((*found)[0].where(), "x.yaml:2 (document 1)");
  EXPECT_EQ((*found)[1].where(), "x.yaml:7 (document 2)");
  EXPECT_EQ((*found)[2].kind(), "C");
}

TEST(Manifests, JsonDocumentsMayUseYamlSeparators) {
  const std::string one = R"({"apiVersion": "v1", "kind": "A"})";
  Result<std::vector<Manifest>> found = parse_manifests(one + "\n---\n" + one + "\n---\n" + one + "\n", "x");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size(), 3u);
  EXPECT_EQ(parse_manifests(one + one, "x")->size(), 2u);
}

TEST(Manifests, ListsAreSplitIntoItems) {
  Result<std::vector<Manifest>> found = parse_manifests(
      "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n", "x");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[1].kind(), "ConfigMap");
  EXPECT_EQ((*found)[1].object.name(), "b");
}

TEST(Manifests, ErrorsNameFileLineAndDocument) {
  Result<std::vector<Manifest>> bad = parse_manifests("apiVersion: v1\nkind: A\n---\nkind: B\nx: [\n", "x.yaml");
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().message, StartsWith("x.yaml:"));
  EXPECT_THAT(bad.error().message, HasSubstr("(document 2)"));
  EXPECT_THAT(parse_manifests("apiVersion: v1\n", "y").error().message, HasSubstr("y:1 (document 1): kind is not set"));
  EXPECT_THAT(parse_manifests("kind: A\n", "y").error().message, HasSubstr("apiVersion is not set"));
  EXPECT_THAT(read_manifests({.files = {"/no/such/file"}}).error().message, HasSubstr("/no/such/file"));
}

}  // namespace
}  // namespace holdfast::cli
