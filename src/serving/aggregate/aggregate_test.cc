#include "aggregate/aggregate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/testing.h"

namespace holdfast::aggregate {
namespace {

using api::testing::Answer;
using api::testing::InProcess;
using ::testing::ElementsAre;

std::vector<std::string> names(std::span<const Value> items, std::string_view member = "name") {
  std::vector<std::string> all;
  for (const Value& item : items) all.emplace_back(item.text_at(member));
  return all;
}

Value parse(Arena& arena, std::string_view json) {
  Result<Value> value = codec::decode_json(arena, json);
  EXPECT_TRUE(value) << json;
  return value ? *value : Value();
}

RemoteApi remote(const std::string& group, const std::string& version, int64_t group_priority = 100,
                 int64_t version_priority = 10) {
  RemoteApi made;
  made.name = version + "." + group;
  made.group = group;
  made.version = version;
  made.group_priority = group_priority;
  made.version_priority = version_priority;
  return made;
}

RemoteApis with_priorities(std::vector<RemoteApi> all) {
  RemoteApis remotes;
  for (RemoteApi& one : all) {
    RemoteApis::Priorities& priorities = remotes.priorities[one.group];
    priorities.group = std::max(priorities.group, one.group_priority);
    priorities.versions[one.version] = one.version_priority;
    remotes.push_back(std::move(one));
  }
  return remotes;
}

TEST(Priorities, GroupsWithoutAnAPIServiceHaveThoseOfCustomResources) {
  const RemoteApis remotes = with_priorities({remote("metrics", "v1", 100, 7), remote("metrics", "v2", 200, 8)});
  EXPECT_EQ(remotes.group_priority("metrics"), 200);
  EXPECT_EQ(remotes.group_priority("example.com"), 1000);
  EXPECT_EQ(remotes.group_priority("apiregistration.k8s.io"), 20000);
  EXPECT_EQ(remotes.version_priority("metrics", "v2"), 8);
  EXPECT_EQ(remotes.version_priority("metrics", "v3"), 100);
}

TEST(RemoteGroups, AreSortedByPriorityAmongOurs) {
  Arena arena;
  const Value own =
      parse(arena, R"({"kind":"APIGroupList","groups":[{"name":"example.com","versions":[{"groupVersion":)"
                   R"("example.com/v1","version":"v1"}]}]})");
  const RemoteApis remotes = with_priorities({remote("low", "v1", 10), remote("high", "v1", 2000)});
  const Value merged = with_remote_groups(arena, own, remotes);
  EXPECT_THAT(names(merged.items_at("groups")), ElementsAre("high", "example.com", "low"));
}

TEST(RemoteGroups, VersionsOfOneGroupAreMergedAndTheHighestPriorityIsPreferred) {
  Arena arena;
  const Value own =
      parse(arena, R"({"groups":[{"name":"shared","versions":[{"groupVersion":"shared/v1","version":"v1"},)"
                   R"({"groupVersion":"shared/v2","version":"v2"}]}]})");
  const RemoteApis remotes = with_priorities({remote("shared", "v2", 10, 5), remote("shared", "v3", 10, 500)});
  const Value group = with_remote_groups(arena, own, remotes).items_at("groups")[0];
  // v1 is custom, with priority 100; v2 belongs to the other server, although a definition has it too.
  EXPECT_THAT(names(group.items_at("versions"), "version"), ElementsAre("v3", "v1", "v2"));
  EXPECT_EQ(group.text_at("preferredVersion", "version"), "v3");
}

TEST(RemoteGroups, AGroupThatNobodyHasIsNull) {
  Arena arena;
  const RemoteApis remotes = with_priorities({remote("metrics", "v1")});
  EXPECT_TRUE(with_remote_versions(arena, Value::null(), "other", remotes).is_null());
  const Value group = with_remote_versions(arena, Value::null(), "metrics", remotes);
  EXPECT_EQ(group.text_at("kind"), "APIGroup");
  EXPECT_THAT(names(group.items_at("versions"), "groupVersion"), ElementsAre("metrics/v1"));
}

TEST(RemoteDiscovery, SubresourcesOfAPlainListAreNested) {
  Arena arena;
  RemoteApi server = remote("metrics", "v1");
  server.fresh = true;
  server.resources = std::make_shared<const std::string>(
      R"({"resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"PodMetrics","verbs":["get"]},)"
      R"({"name":"pods/log","singularName":"","namespaced":true,"kind":"Log","verbs":["get"]},)"
      R"({"name":"pods","singularName":"twice","namespaced":false,"kind":"PodMetrics","verbs":["list"]}]})");
  const Value merged = with_remote_discovery(arena, parse(arena, R"({"items":[]})"), with_priorities({server}));
  ASSERT_EQ(merged.items_at("items").size(), 1u);
  const Value version = merged.items_at("items")[0].items_at("versions")[0];
  EXPECT_EQ(version.text_at("freshness"), "Current");
  const auto resources = version.items_at("resources");
  ASSERT_EQ(resources.size(), 2u);
  EXPECT_EQ(resources[0].text_at("scope"), "Namespaced");
  EXPECT_THAT(names(resources[0].items_at("subresources"), "subresource"), ElementsAre("log"));
  EXPECT_EQ(resources[1].text_at("scope"), "Cluster");
  EXPECT_TRUE(resources[1].items_at("subresources").empty());
}

TEST(RemoteDiscovery, AServerThatNeverAnsweredIsStale) {
  Arena arena;
  const Value merged =
      with_remote_discovery(arena, parse(arena, R"({"items":[]})"), with_priorities({remote("metrics", "v1")}));
  const Value version = merged.items_at("items")[0].items_at("versions")[0];
  EXPECT_EQ(version.text_at("freshness"), "Stale");
  EXPECT_FALSE(version.has("resources"));
}

TEST(RemoteDiscovery, DocumentsThatAreNoListsAreIgnored) {
  Arena arena;
  for (const char* document : {"[]", "{\"items\":7}", "not JSON",
                               R"({"items":[{"metadata":{"name":"metrics"},)"
                               R"("versions":[{"version":"v1","resources":"x"}]}]})"}) {
    RemoteApi server = remote("metrics", "v1");
    server.discovery = std::make_shared<const std::string>(document);
    const Value merged = with_remote_discovery(arena, parse(arena, R"({"items":[]})"), with_priorities({server}));
    EXPECT_FALSE(merged.items_at("items")[0].items_at("versions")[0].has("resources")) << document;
  }
}

// --- Through the API ---

constexpr const char* kServices = "/apis/apiregistration.k8s.io/v1/apiservices";

std::string api_service(const std::string& port = "443") {
  return R"({"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.metrics"},"spec":)"
         R"({"group":"metrics","version":"v1","groupPriorityMinimum":100,"versionPriority":10,)"
         R"("insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"remote","port":)" +
         port + "}}}";
}

std::string_view reason(const Answer& service) {
  for (const Value& condition : service.json.items_at("status", "conditions")) {
    if (condition.text_at("type") == "Available") return condition.text_at("reason");
  }
  return {};
}

TEST(Aggregation, AServiceThatIsMissingOrDoesNotListenMakesTheAPIUnavailable) {
  InProcess server;
  const std::string path = std::string(kServices) + "/v1.metrics";
  ASSERT_EQ(server.call("POST", kServices, api_service()).status, 201);
  server.get_until(path, [](const Answer& service) { return reason(service) == "ServiceNotFound"; });
  const Answer refused = server.call("GET", "/apis/metrics/v1/pods");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.body, "service unavailable\n");

  ASSERT_EQ(server
                .call("POST", "/api/v1/namespaces/default/services",
                      R"({"metadata":{"name":"remote"},"spec":{"ports":[{"port":80}]}})")
                .status,
            201);
  // An unavailable server is examined again every second.
  server.get_until(path, [](const Answer& service) { return reason(service) == "ServicePortError"; });
}

TEST(Aggregation, OtherGroupsAreNotProxied) {
  InProcess server;
  ASSERT_EQ(server.call("POST", kServices, api_service()).status, 201);
  server.get_until(std::string(kServices) + "/v1.metrics",
                   [](const Answer& service) { return reason(service) == "ServiceNotFound"; });
  EXPECT_EQ(server.call("GET", "/apis/metrics/v2/pods").status, 404);
  EXPECT_EQ(server.call("GET", "/api/v1/namespaces/default/configmaps").status, 200);
  server.call("DELETE", std::string(kServices) + "/v1.metrics");
  server.get_until("/apis/metrics/v1/pods", [](const Answer& answer) { return answer.status == 404; });
}

}  // namespace
}  // namespace holdfast::aggregate
