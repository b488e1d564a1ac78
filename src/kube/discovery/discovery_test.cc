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

TEST(DiscoveryTest, CoreVersionsHaveNoApiVersion) {
  Arena arena;
  EXPECT_EQ(
      codec::encode_json(core_versions(arena, "10.0.0.1:6443")),
      R"({"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"10.0.0.1:6443"}]})");
}

TEST(DiscoveryTest, GroupListsPreferredVersionFirst) {
  Arena arena;
  const auto resources = builtin();
  EXPECT_EQ(
      codec::encode_json(group(arena, resources, "autoscaling")),
      R"({"kind":"APIGroup","apiVersion":"v1","name":"autoscaling","versions":[{"groupVersion":"autoscaling/v2","version":"v2"},)"
      R"({"groupVersion":"autoscaling/v1","version":"v1"}],"preferredVersion":{"groupVersion":"autoscaling/v2","version":"v2"}})");
  EXPECT_TRUE(group(arena, resources, "nothing").is_null());
}

TEST(DiscoveryTest, StorageVersionHashesIdentifyTheStoredKind) {
  EXPECT_EQ(storage_version_hash(*types::find_resource("apps", "v1", "controllerrevisions")), "85nkx63pcBU=");
  EXPECT_EQ(storage_version_hash(*types::find_resource("", "v1", "pods")), "xPOwRZ+Yhw8=");
  EXPECT_EQ(storage_version_hash(*types::find_resource("events.k8s.io", "v1", "events")), "r2yiGXH7wu8=");
  EXPECT_EQ(storage_version_hash(*types::find_resource("autoscaling", "v1", "horizontalpodautoscalers")),
            "qwQve8ut294=");
  EXPECT_EQ(storage_version_hash(*types::find_resource("", "v1", "bindings")), "");
}

TEST(DiscoveryTest, CustomGroupsFollowBuiltInOnesWithSortedVersions) {
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

TEST(DiscoveryTest, CustomVersionsOfABuiltInGroupComeFirstButHaveNoResourceList) {
  Arena arena;
  const types::Resource own{.group = "apps", .version = "v2", .plural = "bolts", .singular = "bolt", .kind = "Bolt"};
  auto resources = builtin();
  resources.push_back(&own);
  EXPECT_EQ(codec::encode_json(*group(arena, resources, "apps").find("versions")),
            R"([{"groupVersion":"apps/v2","version":"v2"},{"groupVersion":"apps/v1","version":"v1"}])");
  EXPECT_TRUE(resource_list(arena, resources, "apps", "v2").is_null());
  const Value document = aggregated(arena, resources, Part::Groups);
  for (const Value& item : document.items_at("items")) {
    if (item.text_at("metadata", "name") != "apps") continue;
    const Value& bolts = item.items_at("versions")[0].items_at("resources")[0];
    EXPECT_EQ(codec::encode_json(*bolts.find("responseKind")), R"({"group":"apps","version":"v2","kind":"Bolt"})");
  }
}

TEST(DiscoveryTest, AggregatedResponseKindsOfBuiltInsHaveNoGroupVersionExceptForeignSubresources) {
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

TEST(DiscoveryTest, VersionsAreSortedLikeInKubernetes) {
  std::vector<std::string_view> versions = {"v1alpha1", "foo",     "v1",       "v10",       "v2",
                                            "v11beta2", "v3beta1", "v10beta3", "v12alpha1", "v1x"};
  std::sort(versions.begin(), versions.end(), version_precedes);
  EXPECT_EQ(versions, (std::vector<std::string_view>{"v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1",
                                                     "v1alpha1", "foo", "v1x"}));
}

// The resources of admissionregistration.k8s.io/v1beta1 served with these entries.
std::string served_beta(std::vector<std::string> entries) {
  const Result<RuntimeConfig> config = RuntimeConfig::parse(entries);
  if (!config) return config.error().message;
  std::string served;
  for (const types::Resource& resource : types::builtin_resources()) {
    if (is_stable(resource.version)) {
      EXPECT_TRUE(config->serves(resource)) << resource.plural;
    } else if (config->serves(resource)) {
      served += (served.empty() ? "" : " ") + std::string(resource.plural);
    }
  }
  EXPECT_EQ(config->serves("admissionregistration.k8s.io", "v1beta1"), !served.empty());
  return served;
}

TEST(RuntimeConfigTest, ServesBetaVersionsThatAreEnabled) {
  struct Row {
    const char* name;
    std::vector<std::string> entries;
    std::string served;
  };
  const std::string both = "mutatingadmissionpolicies mutatingadmissionpolicybindings";
  const std::string version = "admissionregistration.k8s.io/v1beta1", policies = version + "/mutatingadmissionpolicies";
  const std::string no = " is not supported by Holdfast: ";
  const Row rows[] = {
      {"no entries", {}, ""},
      {"a version", {version + "=true"}, both},
      {"a version without a value", {version}, both},
      {"one resource of a version", {policies + "=true"}, "mutatingadmissionpolicies"},
      {"a version without one of its resources",
       {policies + "=false", version + "=1"},
       "mutatingadmissionpolicybindings"},
      {"all versions", {"api/all=true"}, both},
      {"all beta versions", {"api/beta=true"}, both},
      {"alpha does not include beta", {"api/alpha=true"}, ""},
      {"beta overrides all", {"api/beta=false", "api/all=true"}, ""},
      {"a version overrides beta", {"api/beta=false", version + "=true"}, both},
      {"the last entry of a key wins", {version + "=true", version + "=false"}, ""},
      {"stable versions may be enabled", {"v1=true", "apps/v1", "api/ga=true"}, ""},
      {"an unknown version may be disabled", {"batch/v2alpha1=false"}, ""},
      {"a version that the server itself calls",
       {"rbac.authorization.k8s.io/v1=false"},
       "--runtime-config disables rbac.authorization.k8s.io/v1/clusterrolebindings, which this server needs itself"},
      {"all stable versions",
       {"api/ga=false"},
       "--runtime-config disables v1/bindings, which this server needs itself"},
      {"an unknown version",
       {"apps/v1", "batch/v2alpha1"},
       "--runtime-config batch/v2alpha1" + no + "there is no such version"},
      {"an unknown group", {"nothing/v1=true"}, "--runtime-config nothing/v1=true" + no + "there is no such group"},
      {"an unknown resource",
       {version + "/pods=true"},
       "--runtime-config " + version + "/pods=true" + no + "there is no such resource"},
      {"neither true nor false", {version + "=maybe"}, "--runtime-config: invalid value of " + version + ": maybe"},
  };
  for (const Row& row : rows) EXPECT_EQ(served_beta(row.entries), row.served) << row.name;
}

TEST(RuntimeConfigTest, StableVersionsAndResourcesCanBeDisabled) {
  const auto disabled = [](std::vector<std::string> entries) {
    const Result<RuntimeConfig> config = RuntimeConfig::parse(entries);
    if (!config) return config.error().message;
    std::string names;
    for (const types::Resource& resource : types::builtin_resources()) {
      if (!is_stable(resource.version) || config->serves(resource)) continue;
      names += (names.empty() ? "" : " ") + std::string(resource.plural) + "." + std::string(resource.group);
    }
    return names;
  };
  EXPECT_EQ(disabled({"batch/v1=false"}), "cronjobs.batch jobs.batch");
  EXPECT_EQ(disabled({"batch/v1=false", "batch/v1/jobs=true"}), "cronjobs.batch");
  EXPECT_EQ(disabled({"batch/v1/jobs=0"}), "jobs.batch");
  EXPECT_EQ(disabled({"batch/v1=true"}), "");
  EXPECT_FALSE(RuntimeConfig::parse(std::vector<std::string>{"batch/v1=false"})->serves("batch", "v1"));
}

}  // namespace
}  // namespace holdfast::discovery
