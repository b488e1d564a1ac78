#include "discovery/discovery.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "codec/codec.h"

namespace holdfast::discovery {
namespace {

std::vector<const types::Resource*> builtin() {
  std::vector<const types::Resource*> all;
  for (const types::Resource& resource : types::builtin_resources()) all.push_back(&resource);
  return all;
}

TEST(DiscoveryTest, TheCoreVersionsHaveNoApiVersion) {
  Arena arena;
  EXPECT_EQ(
      codec::encode_json(core_versions(arena, "10.0.0.1:6443")),
      R"({"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"10.0.0.1:6443"}]})");
}

TEST(DiscoveryTest, AGroupListsItsVersionsWithThePreferredOneFirst) {
  Arena arena;
  const auto resources = builtin();
  EXPECT_EQ(
      codec::encode_json(group(arena, resources, "autoscaling")),
      R"({"kind":"APIGroup","apiVersion":"v1","name":"autoscaling","versions":[{"groupVersion":"autoscaling/v2","version":"v2"},)"
      R"({"groupVersion":"autoscaling/v1","version":"v1"}],"preferredVersion":{"groupVersion":"autoscaling/v2","version":"v2"}})");
  EXPECT_TRUE(group(arena, resources, "nothing").is_null());
}

TEST(DiscoveryTest, StorageVersionHashesNameWhatIsStored) {
  EXPECT_EQ(storage_version_hash(*types::find_resource("apps", "v1", "controllerrevisions")), "85nkx63pcBU=");
  EXPECT_EQ(storage_version_hash(*types::find_resource("", "v1", "pods")), "xPOwRZ+Yhw8=");
  EXPECT_EQ(storage_version_hash(*types::find_resource("events.k8s.io", "v1", "events")), "r2yiGXH7wu8=");
  EXPECT_EQ(storage_version_hash(*types::find_resource("autoscaling", "v1", "horizontalpodautoscalers")),
            "qwQve8ut294=");
  EXPECT_EQ(storage_version_hash(*types::find_resource("", "v1", "bindings")), "");
}

TEST(DiscoveryTest, CustomGroupsFollowTheBuiltInOnesAndOrderTheirVersions) {
  Arena arena;
  const types::Resource beta{
      .group = "example.com", .version = "v1beta1", .plural = "widgets", .singular = "widget", .kind = "Widget"};
  const types::Resource alpha{
      .group = "example.com", .version = "v2alpha1", .plural = "widgets", .singular = "widget", .kind = "Widget"};
  const types::Resource stable{
      .group = "example.com", .version = "v1", .plural = "widgets", .singular = "widget", .kind = "Widget"};
  const types::Resource early{
      .group = "acme.io", .version = "v1", .plural = "bolts", .singular = "bolt", .kind = "Bolt"};
  auto resources = builtin();
  resources.insert(resources.end(), {&beta, &alpha, &stable, &early});
  const Value list = group_list(arena, resources);
  const auto groups = list.items_at("groups");
  EXPECT_EQ(groups.front().text_at("name"), "apiregistration.k8s.io");
  EXPECT_EQ(groups[groups.size() - 2].text_at("name"), "acme.io");
  EXPECT_EQ(groups.back().text_at("name"), "example.com");
  EXPECT_EQ(
      codec::encode_json(*groups.back().find("versions")),
      R"([{"groupVersion":"example.com/v1","version":"v1"},{"groupVersion":"example.com/v1beta1","version":"v1beta1"},)"
      R"({"groupVersion":"example.com/v2alpha1","version":"v2alpha1"}])");
}

TEST(DiscoveryTest, AggregatedKindsOfBuiltInsAreEmptyButForForeignSubresources) {
  Arena arena;
  const Value document = aggregated(arena, builtin(), Part::Groups);
  for (const Value& item : document.items_at("items")) {
    if (item.text_at("metadata", "name") != "apps") continue;
    for (const Value& resource : item.items_at("versions")[0].items_at("resources")) {
      if (resource.text_at("resource") != "deployments") continue;
      EXPECT_EQ(
          codec::encode_json(resource),
          R"({"resource":"deployments","responseKind":{"group":"","version":"","kind":"Deployment"},"scope":"Namespaced",)"
          R"("singularResource":"deployment","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],)"
          R"("shortNames":["deploy"],"categories":["all"],"subresources":[{"subresource":"scale","responseKind":{"group":"autoscaling",)"
          R"("version":"v1","kind":"Scale"},"verbs":["get","patch","update"]},{"subresource":"status","responseKind":{"group":"",)"
          R"("version":"","kind":"Deployment"},"verbs":["get","patch","update"]}]})");
      return;
    }
  }
  FAIL() << "deployments not found";
}

TEST(DiscoveryTest, VersionsOrderAsKubernetesOrdersThem) {
  std::vector<std::string_view> versions = {"v1alpha1", "foo",     "v1",       "v10",       "v2",
                                            "v11beta2", "v3beta1", "v10beta3", "v12alpha1", "v1x"};
  std::sort(versions.begin(), versions.end(), version_precedes);
  EXPECT_EQ(versions, (std::vector<std::string_view>{"v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1",
                                                     "v1alpha1", "foo", "v1x"}));
}

}  // namespace
}  // namespace holdfast::discovery
