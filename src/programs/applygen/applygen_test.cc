#include "applygen/applygen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/codec.h"

namespace holdfast::applygen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct NameCase {
  const char* json;
  const char* want;
};

TEST(Names, AreSnakeCase) {
  const NameCase cases[] = {
      {"replicas", "replicas"},
      {"minReadySeconds", "min_ready_seconds"},
      {"clusterIP", "cluster_ip"},
      {"clusterIPs", "cluster_ips"},
      {"podIPsByNode", "pod_ips_by_node"},
      {"externalIPs", "external_ips"},
      {"podCIDRBlock", "pod_cidr_block"},
      {"x-kubernetes-list-type", "x_kubernetes_list_type"},
      {"$ref", "ref"},
      {"HorizontalPodAutoscaler", "horizontal_pod_autoscaler"},
      {"CSIDriver", "csi_driver"},
  };
  for (const NameCase& c : cases) EXPECT_EQ(snake_case(c.json), c.want) << c.json;
}

const Package* find(const std::vector<Package>& packages, std::string_view name) {
  for (const Package& package : packages) {
    if (package.name == name) return &package;
  }
  return nullptr;
}

TEST(Catalog, KindsHaveBuilders) {
  const std::vector<Package> packages = packages_of_catalog();
  const Package* core = find(packages, "core_v1");
  ASSERT_NE(core, nullptr);
  const std::string text = header_of(*core, "");
  EXPECT_THAT(text, HasSubstr("class Pod : public apply::Kind<Pod> {"));
  EXPECT_THAT(text, HasSubstr("PodSpec& with_node_name(std::string_view value) { return set(\"nodeName\", value); }"));
  EXPECT_THAT(text, HasSubstr("PodSpec& unset_containers_item(std::string_view name)"));
  EXPECT_THAT(text, HasSubstr("unset_ports_item(int32_t container_port, std::string_view protocol = \"TCP\")"));
  EXPECT_THAT(text, HasSubstr("unset_node_selector_key(std::string_view key)"));
  EXPECT_THAT(text, HasSubstr("extract_pod("));
  EXPECT_THAT(text, Not(HasSubstr("managed_fields")));
  EXPECT_THAT(text, HasSubstr("\n// What a pod runs, where, and how.\nclass PodSpec : "));
  EXPECT_THAT(text, HasSubstr("\n  // Node that the pod runs on, set by the scheduler."));
  ASSERT_NE(find(packages, "apiextensions_v1"), nullptr);  // Its schemas are recursive.
}

constexpr const char* kDefinition = R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, format: int32, description: "Number of\n\nparts, as in C:\\\\"}
              limit: {x-kubernetes-int-or-string: true}
              colors: {type: array, items: {type: string}}
              tags: {type: object, additionalProperties: {type: string}}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name, protocol]
                items:
                  type: object
                  properties:
                    name: {type: string}
                    protocol: {type: string, default: TCP}
                    port: {type: integer}
  - {name: v1alpha1, served: false, storage: false}
)";

TEST(Crd, GeneratesOneHeaderPerServedVersion) {
  Arena arena;
  const Result<Value> definition = codec::decode_yaml(arena, kDefinition);
  ASSERT_TRUE(definition);
  const Result<std::vector<Package>> packages = packages_of_crd(*definition);
  ASSERT_TRUE(packages) << packages.error().message;
  ASSERT_EQ(packages->size(), 1u);
  EXPECT_EQ(packages->front().name, "example_v1");
  const std::string text = header_of(packages->front(), "holdfast/");
  EXPECT_THAT(text, HasSubstr("#include \"holdfast/client/apply.h\""));
  EXPECT_THAT(text, HasSubstr("class Widget : public apply::Kind<Widget> {"));
  EXPECT_THAT(text, HasSubstr("\n  // Number of parts, as in C:\n  WidgetSpec& with_size(int32_t value)"));
  EXPECT_THAT(text, HasSubstr("WidgetSpec& with_limit(const apply::IntOrString& value)"));
  EXPECT_THAT(text, HasSubstr("WidgetSpec& with_colors(std::initializer_list<std::string_view> values)"));
  EXPECT_THAT(text, HasSubstr("WidgetSpec& with_tags(std::string_view key, std::string_view value)"));
  EXPECT_THAT(text, HasSubstr("WidgetSpec& with_free(const Value& value)"));
  EXPECT_THAT(text, HasSubstr("unset_ports_item(std::string_view name, std::string_view protocol = \"TCP\")"));
  EXPECT_THAT(text, HasSubstr("Widget& unset_spec()"));
}

TEST(OpenApi, GeneratesOwnTypesAndReferencesOthers) {
  Arena arena;
  const Result<Value> document = codec::decode_json(arena, R"({"openapi":"3.0.0","paths":{
    "/apis/apps/v1/namespaces/{namespace}/deployments/{name}":
      {"patch":{"x-kubernetes-group-version-kind":{"group":"apps","kind":"Deployment","version":"v1"}}}},
    "components":{"schemas":{
      "io.k8s.api.apps.v1.Deployment":{"type":"object","properties":{
        "spec":{"allOf":[{"$ref":"#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec"}],"default":{}}},
        "x-kubernetes-group-version-kind":[{"group":"apps","kind":"Deployment","version":"v1"}]},
      "io.k8s.api.apps.v1.DeploymentSpec":{"type":"object","properties":{
        "replicas":{"type":"integer","format":"int32"},
        "template":{"$ref":"#/components/schemas/io.k8s.api.core.v1.PodTemplateSpec"}}}}}})");
  ASSERT_TRUE(document) << document.error().message;
  const Result<std::vector<Package>> packages = packages_of_openapi(*document);
  ASSERT_TRUE(packages) << packages.error().message;
  ASSERT_EQ(packages->size(), 1u);
  const std::string text = header_of(packages->front(), "");
  EXPECT_THAT(text, HasSubstr("class DeploymentSpec : public apply::Struct<DeploymentSpec> {"));
  EXPECT_THAT(text, HasSubstr("Deployment& with_spec(const DeploymentSpec& value) {"));
  EXPECT_THAT(text, HasSubstr("with_template(const core_v1::PodTemplateSpec& value)"));
  EXPECT_THAT(text, HasSubstr("#include \"apply/core_v1.h\""));
  EXPECT_THAT(text, HasSubstr("kPlural = \"deployments\""));
}

TEST(Crd, RejectsOtherDocuments) {
  Arena arena;
  EXPECT_THAT(packages_of_crd(*codec::decode_yaml(arena, "kind: ConfigMap")).error().message,
              HasSubstr("not a CustomResourceDefinition"));
}

}  // namespace
}  // namespace holdfast::applygen
