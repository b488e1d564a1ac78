#include "admission/quota.h"

#include <gtest/gtest.h>

#include "codec/codec.h"

namespace holdfast::admission::quota {
namespace {

const types::Resource& resource(std::string_view group, std::string_view version, std::string_view plural) {
  return *types::find_resource(group, version, plural);
}

struct Case {
  const char* name;
  const char* plural = "pods";
  const char* object;
  const char* quota;
  const char* old = nullptr;
  const char* want;  // The error, or the new usage as JSON; "-" if nothing changes.
};

constexpr Case kCases[] = {
    {.name = "pod is charged for its requests",
     .object = R"({"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"500m","memory":"1Gi"}}},
                  {"name":"b","resources":{"requests":{"cpu":"250m","memory":"1Gi"}}}]}})",
     .quota = R"({"status":{"hard":{"pods":"2","requests.cpu":"1","memory":"4Gi"},
                 "used":{"pods":"1","requests.cpu":"0","memory":"1Gi"}}})",
     .want = R"({"memory":"3Gi","pods":"2","requests.cpu":"750m"})"},
    {.name = "error names only the exceeded resources",
     .object = R"({"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"500m"}}}]}})",
     .quota = R"({"metadata":{"name":"q"},"status":{"hard":{"pods":"2","requests.cpu":"1"},
                 "used":{"pods":"2","requests.cpu":"800m"}}})",
     .want = "exceeded quota: q, requested: pods=1,requests.cpu=500m, used: pods=2,requests.cpu=800m, limited: "
             "pods=2,requests.cpu=1"},
    {.name = "every container must specify limited resources",
     .object = R"({"spec":{"containers":[{"name":"b"},{"name":"a"}],"initContainers":[{"name":"i","resources":
                  {"limits":{"cpu":"1"}}}]}})",
     .quota = R"({"metadata":{"name":"q"},"status":{"hard":{"limits.cpu":"1","limits.memory":"1Gi","pods":"1"}}})",
     .want = "failed quota: q: must specify limits.cpu for: a,b; limits.memory for: a,b,i"},
    {.name = "quota without computed usage rejects writes",
     .object = R"({"spec":{"containers":[{"name":"a"}]}})",
     .quota = R"({"metadata":{"name":"q"},"status":{"hard":{"pods":"1","count/pods":"1"}}})",
     .want = "status unknown for quota: q, resources: count/pods,pods"},
    {.name = "quota without status is not enforced",
     .object = R"({"spec":{}})",
     .quota = R"({"spec":{"hard":{"pods":"0"}}})",
     .want = "-"},
    {.name = "pods with a deadline are Terminating",
     .object = R"({"spec":{"activeDeadlineSeconds":5,"containers":[{"name":"a"}]}})",
     .quota = R"({"spec":{"scopes":["NotTerminating"]},"status":{"hard":{"pods":"0"},"used":{"pods":"0"}}})",
     .want = "-"},
    {.name = "pods without requests are BestEffort",
     .object = R"({"spec":{"containers":[{"name":"a"}]}})",
     .quota =
         R"({"metadata":{"name":"q"},"spec":{"scopes":["BestEffort"]},"status":{"hard":{"pods":"0"},"used":{"pods":"0"}}})",
     .want = "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"},
    {.name = "a priority class is selected by name",
     .object = R"({"spec":{"priorityClassName":"high","containers":[{"name":"a"}]}})",
     .quota =
         R"({"spec":{"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"In","values":["low"]}]}},
                 "status":{"hard":{"pods":"0"},"used":{"pods":"0"}}})",
     .want = "-"},
    {.name = "cross-namespace affinity has a scope",
     .object = R"({"spec":{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
                  [{"namespaceSelector":{},"topologyKey":"x"}]}},"containers":[{"name":"a"}]}})",
     .quota = R"({"metadata":{"name":"q"},"spec":{"scopeSelector":{"matchExpressions":
                 [{"scopeName":"CrossNamespacePodAffinity","operator":"Exists"}]}},
                 "status":{"hard":{"pods":"0"},"used":{"pods":"0"}}})",
     .want = "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"},
    {.name = "extended resources are counted by their requests",
     .object =
         R"({"spec":{"containers":[{"name":"a","resources":{"requests":{"example.com/gpu":"2"},"limits":{"example.com/gpu":"2"}}}]}})",
     .quota = R"({"status":{"hard":{"requests.example.com/gpu":"4"},"used":{"requests.example.com/gpu":"1"}}})",
     .want = R"({"requests.example.com/gpu":"3"})"},
    {.name = "terminated pod only uses its object count",
     .object =
         R"({"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]},"status":{"phase":"Succeeded"}})",
     .quota = R"({"status":{"hard":{"count/pods":"4","cpu":"1"},"used":{"count/pods":"1","cpu":"1"}}})",
     .want = R"({"count/pods":"2","cpu":"1"})"},
    {.name = "update is charged for the increase",
     .plural = "services",
     .object = R"({"spec":{"type":"NodePort","ports":[{"port":1},{"port":2}]}})",
     .quota =
         R"({"status":{"hard":{"services":"1","services.nodeports":"2"},"used":{"services":"1","services.nodeports":"0"}}})",
     .old = R"({"spec":{"type":"ClusterIP","ports":[{"port":1}]}})",
     .want = R"({"services":"1","services.nodeports":"2"})"},
    {.name = "claims are also counted by storage class",
     .plural = "persistentvolumeclaims",
     .object = R"({"spec":{"storageClassName":"fast","resources":{"requests":{"storage":"3Gi"}}}})",
     .quota =
         R"({"metadata":{"name":"q"},"status":{"hard":{"fast.storageclass.storage.k8s.io/requests.storage":"4Gi","requests.storage":"9Gi"},
                 "used":{"fast.storageclass.storage.k8s.io/requests.storage":"2Gi","requests.storage":"2Gi"}}})",
     .want = "exceeded quota: q, requested: fast.storageclass.storage.k8s.io/requests.storage=3Gi, used: "
             "fast.storageclass.storage.k8s.io/requests.storage=2Gi, limited: "
             "fast.storageclass.storage.k8s.io/requests.storage=4Gi"},
    {.name = "config maps count under both names",
     .plural = "configmaps",
     .object = R"({})",
     .quota =
         R"({"status":{"hard":{"configmaps":"4","count/configmaps":"4"},"used":{"configmaps":"1","count/configmaps":"1"}}})",
     .want = R"({"configmaps":"2","count/configmaps":"2"})"},
    {.name = "pod-only scope excludes other resources",
     .plural = "configmaps",
     .object = R"({})",
     .quota = R"({"spec":{"scopes":["BestEffort"]},"status":{"hard":{"configmaps":"0"},"used":{"configmaps":"0"}}})",
     .want = "-"},
};

class Quotas : public testing::TestWithParam<Case> {};

TEST_P(Quotas, CheckAndUsage) {
  const Case& c = GetParam();
  Arena arena;
  const Value object = *codec::decode_json(arena, c.object), quota = *codec::decode_json(arena, c.quota);
  const Value old = c.old == nullptr ? Value::null() : *codec::decode_json(arena, c.old);
  const types::Resource& pods = resource("", "v1", c.plural);
  const Operation operation = c.old == nullptr ? Operation::Create : Operation::Update;
  ASSERT_TRUE(handles(pods, "", operation, object, c.old == nullptr ? nullptr : &old));
  const Verdict verdict = check(pods, operation, object, c.old == nullptr ? nullptr : &old, quota, {});
  std::string got = verdict.refusal;
  if (got.empty()) got = verdict.changes ? codec::encode_json(to_value(arena, verdict.used)) : "-";
  EXPECT_EQ(got, c.want) << c.name;
}

INSTANTIATE_TEST_SUITE_P(Cases, Quotas, testing::ValuesIn(kCases));

struct LimitCase {
  const char* name;
  const char* plural = "pods";
  const char* object;
  const char* old = nullptr;
  const char* quotas = "[]";
  const char* want;  // Why it is not covered; "" if it is.
};

constexpr LimitCase kLimitCases[] = {
    {.name = "limited resource needs a quota",
     .object = R"({"spec":{"containers":[{"name":"a"}]}})",
     .want = "insufficient quota to consume: count/pods,pods"},
    {.name = "quota may cover only a part",
     .object = R"({"spec":{"containers":[{"name":"a"}]}})",
     .quotas = R"([{"status":{"hard":{"pods":"1"},"used":{"pods":"0"}}}])",
     .want = "insufficient quota to consume: count/pods"},
    {.name = "several quotas together can cover it",
     .object = R"({"spec":{"containers":[{"name":"a"}]}})",
     .quotas = R"([{"status":{"hard":{"pods":"1"}}},{"status":{"hard":{"count/pods":"1"}}}])",
     .want = ""},
    {.name = "quota for other pods does not cover it",
     .object = R"({"spec":{"containers":[{"name":"a"}]}})",
     .quotas = R"([{"spec":{"scopes":["NotBestEffort"]},"status":{"hard":{"pods":"1","count/pods":"1"}}}])",
     .want = "insufficient quota to consume: count/pods,pods"},
    {.name = "unused resource needs no quota",
     .plural = "services",
     .object = R"({"spec":{"type":"ClusterIP","ports":[{"port":80}]}})",
     .want = ""},
    {.name = "increased usage needs a quota",
     .plural = "services",
     .object = R"({"spec":{"type":"LoadBalancer","ports":[{"port":80}]}})",
     .old = R"({"spec":{"type":"ClusterIP","ports":[{"port":80}]}})",
     .want = "insufficient quota to consume: services.loadbalancers"},
    {.name = "unchanged usage needs no quota",
     .plural = "services",
     .object = R"({"spec":{"type":"LoadBalancer","ports":[{"port":81}]}})",
     .old = R"({"spec":{"type":"LoadBalancer","ports":[{"port":80}]}})",
     .want = ""},
    {.name = "unlimited resources need no quota", .plural = "configmaps", .object = R"({})", .want = ""},
    {.name = "limited scope needs a quota with that scope",
     .object = R"({"spec":{"priorityClassName":"high","containers":[{"name":"a"}]}})",
     .quotas = R"([{"status":{"hard":{"pods":"1","count/pods":"1"}}}])",
     .want = "insufficient quota to match these scopes: [{PriorityClass In [high higher]}]"},
    {.name = "quota with the scope covers it regardless of its resources",
     .object = R"({"spec":{"priorityClassName":"high","containers":[{"name":"a"}]}})",
     .quotas = R"([{"status":{"hard":{"pods":"1","count/pods":"1"}}},{"spec":{"scopeSelector":{"matchExpressions":
                  [{"scopeName":"PriorityClass","operator":"Exists"}]}},"status":{"hard":{"services":"1"}}}])",
     .want = ""},
};

TEST(Limits, LimitedResourcesRequireAQuota) {
  const LimitedResource limited[] = {
      {.group = "", .resource = "pods", .contains = {"pods"}, .scopes = {}},
      {.group = "apps", .resource = "configmaps", .contains = {"configmaps"}, .scopes = {}},
      // In Kubernetes, scopes apply to any resource.
      {.group = "",
       .resource = "services",
       .contains = {"loadbalancers"},
       .scopes = {{.name = "PriorityClass", .op = "In", .values = {"high", "higher"}}}}};
  for (const LimitCase& c : kLimitCases) {
    Arena arena;
    const Value object = *codec::decode_json(arena, c.object);
    const Value old = c.old == nullptr ? Value::null() : *codec::decode_json(arena, c.old);
    const Value quotas = *codec::decode_json(arena, c.quotas);
    const std::optional<Uncovered> uncovered =
        find_uncovered(resource("", "v1", c.plural), c.old == nullptr ? Operation::Create : Operation::Update, object,
                       c.old == nullptr ? nullptr : &old, quotas.items(), limited, {});
    EXPECT_EQ(uncovered ? uncovered->why : "", c.want) << c.name;
    if (uncovered) EXPECT_EQ(uncovered->by_scope, uncovered->why.find("scopes") != std::string::npos) << c.name;
  }
}

TEST(QuotaNames, KindsAreCountedByGroup) {
  const Usage hard = {{"count/deployments.apps", {}}, {"count/deployments", {}}, {"pods", {}}};
  EXPECT_EQ(counted_names(resource("apps", "v1", "deployments"), hard),
            std::vector<std::string>{"count/deployments.apps"});
}

}  // namespace
}  // namespace holdfast::admission::quota
