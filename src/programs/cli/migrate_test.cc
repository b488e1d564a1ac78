#include "cli/migrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/codec.h"

namespace holdfast::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::string_view kObject = R"(
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  resourceVersion: "7"
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", keep: "1"}
  managedFields:
  - {manager: kubectl, operation: Apply, apiVersion: apps/v1, time: "2026-01-01T00:00:00Z", fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}}}}
  - {manager: kubectl-client-side-apply, operation: Update, apiVersion: apps/v1, time: "2026-01-02T00:00:00Z", fieldsType: FieldsV1, fieldsV1: {
      "f:metadata": {"f:annotations": {".": {}, "f:kubectl.kubernetes.io/last-applied-configuration": {}}},
      "f:spec": {"f:replicas": {}, "f:paused": {}, "f:template": {"f:spec": {"f:containers": {
        "k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}}}}}}}
  - {manager: other, operation: Apply, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:paused": {}}}}
  - {manager: kubectl, operation: Update, apiVersion: apps/v1, subresource: status, fieldsType: FieldsV1, fieldsV1: {"f:status": {"f:replicas": {}}}}
)";

struct Planned {
  codec::Document document = std::move(*codec::parse_yaml(std::string(kObject)));
  Arena arena;
  Result<Migration> plan;
  explicit Planned(const MigrationRequest& request) : plan(plan_migration(arena, document.root(), request)) {}
  std::string fields_of(std::string_view manager, ownership::Operation operation, std::string_view subresource = "") {
    for (const ownership::ManagerEntry& entry : plan->managers) {
      if (entry.manager == manager && entry.operation == operation && entry.subresource == subresource) {
        return ownership::to_fields_v1(entry.fields);
      }
    }
    return "none";
  }
};

TEST(Migrate, ClientSideApplyBecomesServerSide) {
  Planned done({{"kubectl-client-side-apply", "kubectl"}, "kubectl", true});
  ASSERT_TRUE(done.plan) << done.plan.error().message;
  EXPECT_THAT(done.plan->sources, ElementsAre("kubectl-client-side-apply (Update)"));
  const std::string fields = done.fields_of("kubectl", ownership::Operation::Apply);
  EXPECT_THAT(fields, HasSubstr(R"("f:paused":{})"));
  EXPECT_THAT(fields, HasSubstr(R"(k:{\"containerPort\":80,\"protocol\":\"TCP\"})"));
  EXPECT_EQ(fields.find("last-applied"), std::string::npos);
  EXPECT_EQ(done.fields_of("kubectl-client-side-apply", ownership::Operation::Update), "none");
  EXPECT_NE(done.fields_of("kubectl", ownership::Operation::Update, "status"), "none") << "subresources stay";
  EXPECT_TRUE(done.plan->drops_annotation);
}

TEST(Migrate, ReportsMovedAndStuckFields) {
  Planned done({{"kubectl-client-side-apply"}, "kubectl", true});
  const std::string port =
      ".spec.template.spec.containers[name=\"web\"].ports[containerPort=80,protocol=\"TCP\"].containerPort";
  const std::string name = ".spec.template.spec.containers[name=\"web\"].name";
  EXPECT_THAT(done.plan->moved, UnorderedElementsAre(".metadata.annotations", ".spec.paused", name, port));
  EXPECT_THAT(done.plan->stuck, UnorderedElementsAre(".metadata.annotations", name, port))
      << "paused is another's by Apply";
}

TEST(Migrate, MergesApplyAndUpdateOfOneManagerIntoAnother) {
  Planned done({{"other", "kubectl-client-side-apply"}, "new", false});
  EXPECT_THAT(done.plan->sources, UnorderedElementsAre("other (Apply)", "kubectl-client-side-apply (Update)"));
  EXPECT_THAT(done.fields_of("new", ownership::Operation::Apply), HasSubstr("last-applied"));
  EXPECT_EQ(done.fields_of("kubectl", ownership::Operation::Apply), R"({"f:spec":{"f:replicas":{}}})") << "untouched";
}

TEST(Migrate, LeavesObjectsOfOtherManagersAlone) {
  Planned done({{"nobody"}, "new", false});
  EXPECT_TRUE(done.plan->empty());
  EXPECT_THAT(done.plan->moved, IsEmpty());
}

TEST(Migrate, RefusesToMixVersions) {
  codec::Document document = std::move(*codec::parse_yaml(R"(
metadata:
  managedFields:
  - {manager: a, operation: Apply, apiVersion: x/v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:x": {}}}}
  - {manager: b, operation: Update, apiVersion: x/v2, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:w": {}}}}
)"));
  Arena arena;
  Result<Migration> plan = plan_migration(arena, document.root(), {{"b"}, "a", false});
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().message, HasSubstr("x/v2"));
}

TEST(Migrate, PatchAppliesOnlyToTheVersionRead) {
  Planned done({{"kubectl-client-side-apply"}, "kubectl", true});
  const std::string patch = migration_patch(done.arena, done.document.root(), *done.plan);
  EXPECT_THAT(patch, HasSubstr(R"({"op":"test","path":"/metadata/resourceVersion","value":"7"})"));
  EXPECT_THAT(
      patch,
      HasSubstr(R"({"op":"remove","path":"/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration"})"));
}

}  // namespace
}  // namespace holdfast::cli
