#include "table/table.h"

#include <gtest/gtest.h>

#include "codec/codec.h"
#include "table/json_path.h"

namespace holdfast::table {
namespace {

constexpr UnixTime kNow{1767323045, 0};  // 2026-01-02T03:04:05Z

struct RowCase {
  const char* name;
  const char* group;
  const char* version;
  const char* resource;
  const char* object;
  const char* want;
};

const RowCase kRows[] = {
    {"a config map counts text and binary data", "", "v1", "configmaps",
     R"({"metadata":{"name":"c","creationTimestamp":"2026-01-02T03:02:05Z"},"data":{"a":"1"},"binaryData":{"b":"eA=="}})",
     R"(["c",2,"2m"])"},
    {"an empty pod", "", "v1", "pods", R"({"metadata":{}})",
     R"(["","0/0","","0","<unknown>","<none>","<none>","<none>","<none>"])"},
    {"a crashing pod shows its waiting reason and last termination", "", "v1", "pods",
     R"({"metadata":{"name":"p","creationTimestamp":"2026-01-02T03:00:00Z"},"spec":{"containers":[{"name":"a"},{"name":"b"}],"nodeName":"n"},
         "status":{"phase":"Running","podIPs":[{"ip":"10.1.1.1"}],"containerStatuses":[
           {"name":"a","restartCount":3,"state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"finishedAt":"2026-01-02T03:03:05Z"}}},
           {"name":"b","ready":true,"restartCount":0,"state":{"running":{}}}]}})",
     R"J(["p","1/2","CrashLoopBackOff","3 (60s ago)","4m5s","10.1.1.1","n","<none>","<none>"])J"},
    {"a deleted pod is terminating", "", "v1", "pods",
     R"({"metadata":{"name":"p","deletionTimestamp":"2026-01-02T03:00:00Z"},"spec":{"containers":[{"name":"a"}]},"status":{"phase":"Running"}})",
     R"(["p","0/1","Terminating","0","<unknown>","<none>","<none>","<none>","<none>"])"},
    {"an init container that has not run yet", "", "v1", "pods",
     R"({"metadata":{"name":"p"},"spec":{"initContainers":[{"name":"i"},{"name":"j"}],"containers":[{"name":"a"}]},
         "status":{"phase":"Pending","initContainerStatuses":[{"name":"i","state":{"terminated":{"exitCode":0}}},{"name":"j","state":{"waiting":{"reason":"PodInitializing"}}}]}})",
     R"(["p","0/1","Init:1/2","0","<unknown>","<none>","<none>","<none>","<none>"])"},
    {"a node port shows both ports", "", "v1", "services",
     R"({"metadata":{"name":"s"},"spec":{"type":"NodePort","clusterIPs":["10.0.0.9"],"ports":[{"port":80,"nodePort":30001,"protocol":"TCP"},{"port":53,"protocol":"UDP"}],"selector":{"b":"2","a":"1"}}})",
     R"(["s","NodePort","10.0.0.9","<none>","80:30001/TCP,53/UDP","<unknown>","a=1,b=2"])"},
    {"a deployment shows ready and desired replicas", "apps", "v1", "deployments",
     R"({"metadata":{"name":"d"},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"x"}},"template":{"spec":{"containers":[{"name":"a","image":"i:1"},{"name":"b","image":"j:2"}]}}},"status":{"readyReplicas":1,"updatedReplicas":2}})",
     R"(["d","1/3",2,0,"<unknown>","a,b","i:1,j:2","app=x"])"},
    {"an address shows the resource of its parent in lower case", "networking.k8s.io", "v1", "ipaddresses",
     R"({"metadata":{"name":"10.0.0.1"},"spec":{"parentRef":{"group":"Example.com","resource":"Gateways","namespace":"NS","name":"G"}}})",
     R"(["10.0.0.1","gateways.example.com/NS/G","<unknown>"])"},
    {"a kind without a printer shows its creation time", "rbac.authorization.k8s.io", "v1", "roles",
     R"({"metadata":{"name":"r","creationTimestamp":"2026-01-02T03:00:00Z"}})", R"(["r","2026-01-02T03:00:00Z"])"},
    {"an autoscaler shows current and target metrics", "autoscaling", "v2", "horizontalpodautoscalers",
     R"({"metadata":{"name":"h"},"spec":{"scaleTargetRef":{"kind":"Deployment","name":"d"},"minReplicas":2,"maxReplicas":5,"metrics":[
          {"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":80}}},
          {"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"100Mi"}}},
          {"type":"Pods","pods":{"target":{"averageValue":"5"}}}]},
         "status":{"currentReplicas":2,"currentMetrics":[{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":10}}}]}})",
     R"(["h","Deployment/d","cpu: 10%/80%, memory: <unknown>/100Mi + 1 more...","2",5,2,"<unknown>"])"},
};

TEST(TableTest, CellsMatchKubernetes) {
  for (const RowCase& row : kRows) {
    SCOPED_TRACE(row.name);
    Arena arena;
    const auto object = codec::decode_json(arena, row.object);
    ASSERT_TRUE(object) << object.error().message;
    const types::Resource* resource = types::find_resource(row.group, row.version, row.resource);
    ASSERT_NE(resource, nullptr);
    EXPECT_EQ(codec::encode_json(cells(arena, *resource, *object, kNow)),
              codec::encode_json(*codec::decode_json(arena, row.want)));
  }
}

TEST(TableTest, EveryColumnHasACellForAnEmptyObject) {
  for (const types::Resource& resource : types::builtin_resources()) {
    if (resource.columns.empty()) continue;
    Arena arena;
    const size_t extra = resource.kind == "IPAddress" ? 1 : 0;  // Kubernetes prints an age without a column.
    EXPECT_EQ(cells(arena, resource, Value::empty_map(), kNow).count(), resource.columns.size() + extra)
        << resource.plural;
  }
}

TEST(TableTest, AgesAreAbbreviated) {
  const std::pair<int64_t, const char*> kAges[] = {
      {-5, "<invalid>"},
      {-1, "0s"},
      {0, "0s"},
      {119, "119s"},
      {120, "2m"},
      {605, "10m"},
      {123, "2m3s"},
      {3 * 3600, "3h"},
      {11100, "3h5m"},
      {47 * 3600, "47h"},
      {48 * 3600, "2d"},
      {49 * 3600, "2d1h"},
      {8 * 86400, "8d"},
      {729 * 86400, "729d"},
      {730 * 86400, "2y"},
      {731 * 86400, "2y1d"},
      {9ll * 365 * 86400, "9y"},
  };
  for (const auto& [seconds, text] : kAges) EXPECT_EQ(age_text(seconds), text) << seconds;
}

TEST(TableTest, CustomColumnsUseTheirJsonPathAndType) {
  const types::Column columns[] = {{"Name", "string", "name", "", 0, ".metadata.name"},
                                   {"Size", "integer", "", "", 0, ".spec.size"},
                                   {"Wrong", "integer", "", "", 0, ".spec.text"},
                                   {"Ready", "string", "", "", 0, ".status.conditions[?(@.type==\"Ready\")].status"},
                                   {"Any", "string", "", "", 0, ".spec.list"},
                                   {"Age", "date", "", "", 0, ".metadata.creationTimestamp"},
                                   {"Gone", "string", "", "", 0, ".spec.nothing"}};
  const types::Resource resource{
      .group = "example.com", .version = "v1", .plural = "widgets", .kind = "Widget", .columns = columns};
  Arena arena;
  const auto object = codec::decode_json(
      arena,
      R"({"metadata":{"name":"w","creationTimestamp":"2026-01-01T03:04:05Z"},"spec":{"size":3,"text":"x","list":[1,{"a":null}]},"status":{"conditions":[{"type":"A","status":"False"},{"type":"Ready","status":"True"}]}})");
  ASSERT_TRUE(object);
  EXPECT_EQ(codec::encode_json(cells(arena, resource, *object, kNow)),
            R"(["w",3,null,"True","[1,{\"a\":null}]","24h",null])");
}

struct PathCase {
  const char* path;
  const char* want;  // Null if it fails.
};

// A path can select each value of an object very often.
TEST(JsonPathTest, FailsIfItSelectsValuesTooOften) {
  std::string text = "1", twice, recursive = "$";
  for (int i = 0; i < 60; ++i) {
    text = R"({"a":)" + text + "}";
    twice += "['a','a']";
  }
  for (int i = 0; i < 6; ++i) recursive += "..*";
  Arena arena;
  const auto root = codec::decode_json(arena, text);
  ASSERT_TRUE(root);
  for (const std::string& path : {twice, recursive}) {
    std::vector<Value> found;
    EXPECT_FALSE(evaluate_json_path(path, *root, found)) << path;
    EXPECT_LT(found.size(), 20'000u);
  }
  std::vector<Value> found;
  EXPECT_TRUE(evaluate_json_path("$..*", *root, found, 1));
  EXPECT_EQ(found.size(), 1u);
}

TEST(JsonPathTest, FiltersAreNotNestedWithoutLimit) {
  std::string path = ".a";
  for (int i = 0; i < 100'000; ++i) path += "[?(@";
  EXPECT_FALSE(check_json_path(path));
}

TEST(JsonPathTest, SelectsTheSameValuesAsClientGo) {
  const PathCase kPaths[] = {
      {".a.b", "1"},
      {"{.a.b}", "1"},
      {".list[0].n", "x"},
      {".list[-1].n", "y"},
      {".list[*].n", "x y"},
      {".list[0:1].n", "x"},
      {".list[9].n", nullptr},
      {".labels.app\\.io/name", "web"},
      {".labels['app.io/name']", "web"},
      {".list[?(@.v>1)].n", "y"},
      {".list[?(@.n!=\"x\")].v", "2"},
      {"..n", "x y"},
      {".nul", "<no value>"},
      {".a.missing", ""},
      {".list[", nullptr},
      {".list[?(@.n=='x'].v", nullptr},
      {".a['b','b']", "1 1"},
      {".list..*.n", "x y"},
      {".list[0:2:9223372036854775807].n", "x"},
  };
  Arena arena;
  const auto root = codec::decode_json(
      arena, R"({"a":{"b":1},"list":[{"n":"x","v":1},{"n":"y","v":2}],"labels":{"app.io/name":"web"},"nul":null})");
  ASSERT_TRUE(root);
  for (const PathCase& item : kPaths) {
    std::vector<Value> found;
    const bool ok = evaluate_json_path(item.path, *root, found);
    EXPECT_EQ(ok, item.want != nullptr) << item.path;
    if (ok && item.want != nullptr) EXPECT_EQ(json_path_text(found), item.want) << item.path;
  }
}

}  // namespace
}  // namespace holdfast::table
