#include "audit/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "base/test_folder.h"

namespace holdfast::audit {
namespace {

constexpr std::string_view kPolicy = R"(
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  users: ["system:kube-proxy"]
- level: Request
  userGroups: [devs]
  verbs: [create]
  resources:
  - group: ""
    resources: ["pods", "*/scale", "secrets/*"]
  omitManagedFields: false
  omitStages: [ResponseStarted]
- level: RequestResponse
  namespaces: [prod]
- level: Metadata
  nonResourceURLs: ["/healthz*"]
)";

auth::Attributes on(const auth::UserInfo& user, std::string_view verb, std::string_view ns, std::string_view resource,
                    std::string_view subresource = "") {
  return {&user, verb, {.resource = resource, .subresource = subresource, .ns = ns}};
}

TEST(AuditTest, TheFirstMatchingRuleDecides) {
  const Result<Policy> policy = Policy::parse(kPolicy, "policy.yaml");
  ASSERT_TRUE(policy) << policy.error().message;
  const auth::UserInfo proxy{.name = "system:kube-proxy"}, ann{.name = "ann", .groups = {"devs"}};
  auto level = [&](const auth::Attributes& a) { return to_string(policy->wanted(a).level); };
  EXPECT_EQ(level(on(proxy, "create", "prod", "pods")), "None");
  EXPECT_EQ(level(on(ann, "create", "x", "pods")), "Request");
  EXPECT_EQ(level(on(ann, "create", "x", "pods", "log")), "None");
  EXPECT_EQ(level(on(ann, "create", "x", "deployments", "scale")), "Request");
  EXPECT_EQ(level(on(ann, "create", "x", "secrets", "any")), "Request");
  EXPECT_EQ(level(on(ann, "get", "prod", "pods")), "RequestResponse");
  EXPECT_EQ(level(on(ann, "get", "x", "pods")), "None");
  auth::Attributes path(&ann, "get", "/healthz/etcd");
  EXPECT_EQ(level(path), "Metadata");
  path.user = nullptr;
  EXPECT_EQ(level(path), "Metadata");

  const Wanted request = policy->wanted(on(ann, "create", "x", "pods"));
  EXPECT_FALSE(request.at(Stage::RequestReceived));
  EXPECT_FALSE(request.at(Stage::ResponseStarted));
  EXPECT_TRUE(request.at(Stage::ResponseComplete));
  EXPECT_FALSE(request.omits_managed_fields);
  EXPECT_TRUE(policy->wanted(on(ann, "get", "prod", "pods")).omits_managed_fields);
}

TEST(AuditTest, AStarIsEveryGroup) {
  const Result<Policy> policy = Policy::parse(
      "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Request, resources: [{group: '*', resources: "
      "[deployments]}]}]}",
      "policy.yaml");
  ASSERT_TRUE(policy) << policy.error().message;
  const auth::UserInfo ann{.name = "ann"};
  for (const std::string_view group : {"", "apps", "example.com"}) {
    const auth::Attributes on_group{&ann, "get", {.group = group, .resource = "deployments", .ns = "x"}};
    EXPECT_EQ(policy->wanted(on_group).level, Level::Request) << group;
  }
  EXPECT_EQ(policy->wanted(on(ann, "get", "x", "pods")).level, Level::None);
}

TEST(AuditTest, ParseErrorsNameTheFileAndField) {
  struct Case {
    const char *text, *why;
  };
  for (const Case& one : {Case{"kind: Policy", "policy.yaml: is not a Policy of audit.k8s.io/v1"},
                          Case{"{apiVersion: audit.k8s.io/v1, kind: Policy}", "policy.yaml: a policy needs rules"},
                          Case{"{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: All}]}",
                               "policy.yaml: rules[0].level: Unsupported value: \"All\""}}) {
    const Result<Policy> policy = Policy::parse(one.text, "policy.yaml");
    ASSERT_FALSE(policy) << one.text;
    EXPECT_THAT(policy.error().message, testing::StartsWith(one.why));
  }
}

TEST(AuditTest, AnEventIsOneLineWithItsMembersInOrder) {
  Event event;
  event.level = Level::Request;
  event.audit_id = "id";
  event.request_uri = "/api/v1/namespaces/default/pods?watch=1&timeoutSeconds=1";
  event.verb = "create";
  event.user = std::make_shared<const auth::UserInfo>(auth::UserInfo{.name = "admin", .groups = {"g"}});
  event.source_ips = {"127.0.0.1"};
  event.object = Event::ObjectRef{.resource = "secrets", .ns = "default", .name = "au", .api_version = "v1"};
  event.code = 201;
  event.request_object = R"({"kind":"Secret"})";
  event.received = {1794720420, 689076000};
  event.annotations = {{"authorization.k8s.io/reason", ""}, {"authorization.k8s.io/decision", "allow"}};
  EXPECT_EQ(
      to_line(event, Stage::ResponseComplete, event.received),
      R"({"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Request","auditID":"id","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/default/pods?watch=1\u0026timeoutSeconds=1","verb":"create","user":{"username":"admin","groups":["g"]},"sourceIPs":["127.0.0.1"],"objectRef":{"resource":"secrets","namespace":"default","name":"au","apiVersion":"v1"},"responseStatus":{"metadata":{},"code":201},"requestObject":{"kind":"Secret"},"requestReceivedTimestamp":"2026-11-15T05:27:00.689076Z","stageTimestamp":"2026-11-15T05:27:00.689076Z","annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":""}})");
  EXPECT_THAT(to_line(event, Stage::RequestReceived, event.received),
              testing::Not(testing::HasSubstr("responseStatus")));
  EXPECT_EQ(without_managed_fields(R"({"items":[{"metadata":{"name":"a","managedFields":[]}}]})"),
            R"({"items":[{"metadata":{"name":"a"}}]})");
}

TEST(AuditTest, AFullLogIsRotated) {
  const TestFolder folder;
  const std::string path = folder.file("audit.log");
  MetricRegistry metrics;
  {
    Result<std::unique_ptr<Log>> log = Log::open({.path = path, .max_bytes = 20, .max_backups = 1}, metrics);
    ASSERT_TRUE(log) << log.error().message;
    for (int i = 0; i < 4; ++i) {
      (*log)->write("line number " + std::to_string(i));
      EXPECT_EQ(std::filesystem::file_size(path), 14u) << "it is there at once";
    }
  }
  EXPECT_THAT(metrics.render(), testing::HasSubstr("apiserver_audit_event_total 4"));
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 2u);
  EXPECT_EQ(*read_file(path), "line number 3\n");
}

}  // namespace
}  // namespace holdfast::audit
