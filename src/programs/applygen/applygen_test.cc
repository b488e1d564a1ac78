#include "applygen/applygen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apply/core_v1.h"
#include "codec/codec.h"
#include "core_x_io_v1.h"

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
              size: {type: integer, format: int32, description: "Number of\n\nparts,\u202E as in C:\\\\"}
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
  Documents documents;
  ASSERT_TRUE(documents.add_crd(*definition));
  const Result<std::vector<Package>> packages = documents.packages();
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
  Documents documents;
  ASSERT_TRUE(documents.add_openapi(*document));
  const Result<std::vector<Package>> packages = documents.packages();
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
  EXPECT_THAT(Documents().add_crd(*codec::decode_yaml(arena, "kind: ConfigMap")).error().message,
              HasSubstr("not a CustomResourceDefinition"));
}

std::string crd(std::string_view group, std::string_view kind) {
  return "{kind: CustomResourceDefinition, spec: {group: " + std::string(group) +
         ", names: {kind: " + std::string(kind) + "}, versions: [{name: v1}]}}";
}

struct PackageCase {
  const char* name;
  std::vector<std::pair<const char*, const char*>> kinds;  // Group and kind.
  std::vector<std::string> want;
};

TEST(Packages, AreNamedAfterTheirGroups) {
  const PackageCase cases[] = {
      {"two kinds of one group are one package", {{"a.io", "A"}, {"a.io", "B"}}, {"a_v1"}},
      {"a group that begins like a built-in one", {{"core.x.io", "A"}}, {"core_x_io_v1"}},
      {"another one", {{"apps.x.io", "A"}}, {"apps_x_io_v1"}},
      {"two groups that begin alike", {{"a.x.io", "A"}, {"a.y.io", "A"}}, {"a_x_io_v1", "a_y_io_v1"}},
      {"a group that begins with a digit", {{"3scale.net", "A"}}, {"x3scale_v1"}},
  };
  for (const PackageCase& c : cases) {
    Arena arena;
    Documents documents;
    for (const auto& [group, kind] : c.kinds) {
      ASSERT_TRUE(documents.add_crd(*codec::decode_yaml(arena, crd(group, kind)))) << c.name;
    }
    const Result<std::vector<Package>> packages = documents.packages();
    ASSERT_TRUE(packages) << c.name;
    std::vector<std::string> names;
    for (const Package& package : *packages) names.push_back(package.name);
    EXPECT_EQ(names, c.want) << c.name;
  }
}

TEST(Packages, KindIsDefinedOnce) {
  Arena arena;
  Documents documents;
  ASSERT_TRUE(documents.add_crd(*codec::decode_yaml(arena, crd("a.io", "A"))));
  EXPECT_EQ(documents.add_crd(*codec::decode_yaml(arena, crd("a.io", "A"))).error().message,
            "A of a.io/v1 is defined twice");
}

// --- Using generated types

template <class T>
std::string json(const T& config) {
  Arena arena;
  return codec::encode_json(config.to_value(arena));
}

constexpr std::string_view kUnset = R"({"k8s_io__value":"unset"})";

TEST(Generated, HardNamesCompileAndAreKept) {
  namespace x = client::core_x_io_v1;
  const x::Widget widget =
      x::Widget("w", "n")
          .with_labels("real", "label")
          .with_labels_({"field"})
          .with_spec(x::WidgetSpec2()
                         .with_bar_baz(x::WidgetSpec2BarBaz2().with_one("1"))
                         .with_bar(x::WidgetSpec2Bar().with_baz(x::WidgetSpec2BarBaz().with_two(2)))
                         .with_class(true)
                         .with_new(3)
                         .with_errno(1.5)
                         .with_fields("k", "v")
                         .with_set({1, 2})
                         .with_say_hi_now("hi")
                         .with_x9lives(9)
                         .with_entries(x::WidgetSpec2Entries().with_class("c").with_v("set")));
  EXPECT_EQ(json(widget),
            R"({"apiVersion":"core.x.io/v1","kind":"Widget","metadata":{"name":"w","namespace":"n",)"
            R"("labels":{"real":"label"}},"labels":["field"],"spec":{"barBaz":{"one":"1"},"bar":{"baz":{"two":2}},)"
            R"("class":true,"new":3,"errno":1.5,"fields":{"k":"v"},"set":[1,2],"say \"hi\" \\ now":"hi",)"
            R"("9lives":9,"entries":[{"class":"c","v":"set"}]}})");
  EXPECT_EQ(json(x::ObjectKind("o")), R"({"apiVersion":"core.x.io/v1","kind":"Object","metadata":{"name":"o"}})");
  EXPECT_EQ(json(x::WidgetSpec("s")), R"({"apiVersion":"core.x.io/v1","kind":"WidgetSpec","metadata":{"name":"s"}})");
  EXPECT_TRUE(codec::parse_json(std::string(x::Widget::source().crd_schema)));
}

TEST(Generated, LastCallForAnItemWins) {
  using client::core_v1::Container;
  using client::core_v1::ContainerPort;
  const ContainerPort port = ContainerPort().with_container_port(80);
  const std::string set = R"({"ports":[{"containerPort":80}]})";
  const std::string unset = R"({"ports":[{"containerPort":80,"protocol":"TCP","k8s_io__value":"unset"}]})";
  EXPECT_EQ(json(Container().with_ports(port).unset_ports_item(80)), unset);
  EXPECT_EQ(json(Container().unset_ports_item(80).with_ports(port)), set);
  EXPECT_EQ(json(Container().unset_ports_item(80).unset_ports_item(80, "TCP")), unset);
  const ContainerPort udp = ContainerPort().with_container_port(80).with_protocol("UDP");
  EXPECT_EQ(json(Container().with_ports(udp).with_ports(port)),
            R"({"ports":[{"containerPort":80,"protocol":"UDP"},{"containerPort":80}]})");
  namespace x = client::core_x_io_v1;
  EXPECT_EQ(json(x::WidgetSpec2()
                     .with_entries(x::WidgetSpec2Entries().with_class("c").with_a_b(true).with_a_b_("d"))
                     .unset_entries_item("c", true, "d")),
            R"({"entries":[{"class":"c","new":7,"value":"say \"hi\" \\\n\u001b now","a \"b\"":true,"a-b":"d",)"
            R"("k8s_io__value":"unset"}]})");
}

TEST(Generated, CommonFieldsOfObjectsCanBeUnset) {
  const client::core_v1::ConfigMap unset =
      client::core_v1::ConfigMap("a").unset_labels().unset_annotations().unset_finalizers().unset_owner_references();
  const std::string marker(kUnset);
  EXPECT_EQ(json(unset), R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":)" + marker +
                             R"(,"annotations":)" + marker + R"(,"finalizers":)" + marker + R"(,"ownerReferences":)" +
                             marker + "}}");
  const client::core_v1::ConfigMap one = client::core_v1::ConfigMap("a").unset_owner_references_item("u");
  EXPECT_THAT(json(one), HasSubstr(R"("ownerReferences":[{"uid":"u","k8s_io__value":"unset"}])"));
}

client::Object object(std::string_view text) {
  return client::Object(std::move(*codec::parse_json(std::string(text))));
}

TEST(Generated, TypesAreRead) {
  const client::core_v1::Pod pod = client::core_v1::Pod::of(object(R"({"metadata":{"name":"p","namespace":"n","uid":"u",
    "labels":{"a":"b"},"finalizers":["x/y"]},"spec":{"nodeName":"node","terminationGracePeriodSeconds":30,
    "nodeSelector":{"k":"v"},"containers":[{"name":"a","stdin":true,"args":["x","y"],"resources":{"limits":{"cpu":"1"}}},
    {"name":"b","livenessProbe":{"httpGet":{"port":"web"}},"readinessProbe":{"httpGet":{"port":80}}}]},
    "status":{"phase":"Running"}})"));
  EXPECT_EQ(pod.name() + pod.space() + pod.uid(), "pnu");
  EXPECT_EQ(pod.labels().at("a"), "b");
  EXPECT_TRUE(pod.annotations().empty());
  EXPECT_EQ(pod.finalizers(), std::vector<std::string>{"x/y"});
  EXPECT_EQ(pod.status()->phase(), "Running");
  const client::core_v1::PodSpec spec = *pod.spec();
  EXPECT_EQ(spec.node_name(), "node");
  EXPECT_EQ(spec.termination_grace_period_seconds(), 30);
  EXPECT_EQ(spec.host_network(), std::nullopt);
  EXPECT_EQ(spec.node_selector().at("k"), "v");
  ASSERT_EQ(spec.containers().size(), 2u);
  EXPECT_EQ(spec.containers()[0].stdin_(), true);
  EXPECT_EQ(spec.containers()[0].args(), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(spec.containers()[0].resources()->limits().at("cpu"), "1");
  EXPECT_EQ(spec.containers()[1].liveness_probe()->http_get()->port()->text(), "web");
  EXPECT_EQ(spec.containers()[1].readiness_probe()->http_get()->port()->number(), 80);
  EXPECT_EQ(client::core_v1::Secret::of(object(R"({"data":{"k":"AAEC"}})")).data().at("k").raw,
            std::string("\0\1\2", 3));
  // What is set and unset is read the same way; what has another type is absent.
  EXPECT_EQ(client::core_v1::PodSpec().with_node_name("x").unset_node_name().node_name(), std::nullopt);
  EXPECT_EQ(client::core_v1::Pod::of(object(R"({"spec":{"nodeName":7}})")).spec()->node_name(), std::nullopt);
  namespace x = client::core_x_io_v1;
  const x::Widget widget = x::Widget::of(object(R"({"spec":{"class":true,"deep":[[{"x":"1"}],[]],"fields":{"a":"b"},
    "named":{"n":{"w":"2"}},"free":{"any":1},"errno":3}})"));
  EXPECT_EQ(widget.spec()->class_(), true);
  EXPECT_EQ(widget.spec()->deep()[0][0].x(), "1");
  EXPECT_EQ(widget.spec()->fields_().at("a"), "b");
  EXPECT_EQ(widget.spec()->named().at("n").w(), "2");
  EXPECT_EQ(widget.spec()->errno_(), 3.0);
  EXPECT_TRUE(widget.spec()->free());
}

}  // namespace
}  // namespace holdfast::applygen
