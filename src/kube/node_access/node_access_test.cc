#include "node_access/node_access.h"

#include <gtest/gtest.h>

#include "codec/codec.h"

namespace holdfast::node_access {
namespace {

class GraphTest : public ::testing::Test {
 protected:
  void put(Kind kind, std::string_view key, std::string_view json) {
    Arena arena;
    const Result<Value> object = codec::decode_json(arena, json);
    ASSERT_TRUE(object.ok()) << json;
    graph_.put(kind, key, *object);
  }
  Graph graph_;
};

TEST_F(GraphTest, APodGivesItsNodeWhatItRefersTo) {
  put(Kind::Pod, "ns/web", R"({"metadata":{"name":"web"},"spec":{"nodeName":"n1","serviceAccountName":"robot",
    "imagePullSecrets":[{"name":"pull"}],
    "initContainers":[{"name":"i","envFrom":[{"secretRef":{"name":"from"}},{"configMapRef":{"name":"settings"}}]}],
    "containers":[{"name":"c","env":[{"valueFrom":{"secretKeyRef":{"name":"key"}}},
                                     {"valueFrom":{"configMapKeyRef":{"name":"entry"}}}]}],
    "ephemeralContainers":[{"name":"e","envFrom":[{"secretRef":{"name":"late"}}]}],
    "volumes":[{"name":"a","secret":{"secretName":"mounted"}},{"name":"b","configMap":{"name":"files"}},
               {"name":"c","projected":{"sources":[{"secret":{"name":"part"}},{"configMap":{"name":"piece"}}]}},
               {"name":"d","azureFile":{"secretName":"azure"}},{"name":"e","cephfs":{"secretRef":{"name":"ceph"}}},
               {"name":"f","csi":{"nodePublishSecretRef":{"name":"csi"}}},
               {"name":"g","persistentVolumeClaim":{"claimName":"disk"}},{"name":"tmp","ephemeral":{}}],
    "resourceClaims":[{"name":"gpu","resourceClaimName":"card"},{"name":"made","resourceClaimTemplateName":"t"},
                      {"name":"later","resourceClaimTemplateName":"t"}]},
    "status":{"resourceClaimStatuses":[{"name":"made","resourceClaimName":"web-made-1"}],
              "extendedResourceClaimStatus":{"resourceClaimName":"extended"}}})");
  struct Expected {
    Kind kind;
    const char* name;
  };
  const Expected expected[] = {{Kind::ServiceAccount, "robot"},
                               {Kind::Secret, "pull"},
                               {Kind::Secret, "from"},
                               {Kind::Secret, "key"},
                               {Kind::Secret, "late"},
                               {Kind::Secret, "mounted"},
                               {Kind::Secret, "part"},
                               {Kind::Secret, "azure"},
                               {Kind::Secret, "ceph"},
                               {Kind::Secret, "csi"},
                               {Kind::ConfigMap, "settings"},
                               {Kind::ConfigMap, "entry"},
                               {Kind::ConfigMap, "files"},
                               {Kind::ConfigMap, "piece"},
                               {Kind::Claim, "disk"},
                               {Kind::Claim, "web-tmp"},
                               {Kind::ResourceClaim, "card"},
                               {Kind::ResourceClaim, "web-made-1"},
                               {Kind::ResourceClaim, "extended"}};
  for (const Expected& one : expected) {
    EXPECT_TRUE(graph_.related("n1", one.kind, "ns", one.name)) << one.name;
    EXPECT_FALSE(graph_.related("n2", one.kind, "ns", one.name)) << one.name;
    EXPECT_FALSE(graph_.related("n1", one.kind, "other", one.name)) << one.name;
  }
  EXPECT_EQ(graph_.size(), std::size(expected));
  EXPECT_TRUE(graph_.related("n1", Kind::Pod, "ns", "web"));
  EXPECT_FALSE(graph_.related("n2", Kind::Pod, "ns", "web"));
  EXPECT_FALSE(graph_.related("n1", Kind::ConfigMap, "ns", "pull"));  // A secret's name.
  graph_.erase(Kind::Pod, "ns/web");
  for (const Expected& one : expected) EXPECT_FALSE(graph_.related("n1", one.kind, "ns", one.name)) << one.name;
  EXPECT_EQ(graph_.size(), 0U);
}

constexpr const char* kWeb = R"({"metadata":{"name":"web"},"spec":{"nodeName":"n1","volumes":[
  {"name":"d","persistentVolumeClaim":{"claimName":"disk"}},{"name":"s","secret":{"secretName":"key"}}]}})";
constexpr const char* kVolume = R"({"metadata":{"name":"v"},"spec":{"claimRef":{"namespace":"ns","name":"disk"},
  "csi":{"nodeStageSecretRef":{"namespace":"storage","name":"stage"},
         "controllerPublishSecretRef":{"namespace":"storage","name":"controller"}}}})";

TEST_F(GraphTest, AVolumeAndItsSecretsFollowTheClaimInAnyOrder) {
  for (const bool pod_first : {true, false}) {
    if (pod_first) put(Kind::Pod, "ns/web", kWeb);
    put(Kind::Volume, "v", kVolume);
    if (!pod_first) put(Kind::Pod, "ns/web", kWeb);
    EXPECT_TRUE(graph_.related("n1", Kind::Volume, "", "v"));
    EXPECT_TRUE(graph_.related("n1", Kind::Secret, "storage", "stage"));
    EXPECT_FALSE(graph_.related("n1", Kind::Secret, "storage", "controller"));
    EXPECT_FALSE(graph_.related("n2", Kind::Volume, "", "v"));
    if (pod_first) {
      graph_.erase(Kind::Volume, "v");
      EXPECT_TRUE(graph_.related("n1", Kind::Claim, "ns", "disk"));
      EXPECT_FALSE(graph_.related("n1", Kind::Volume, "", "v"));
      EXPECT_FALSE(graph_.related("n1", Kind::Secret, "storage", "stage"));
      graph_.erase(Kind::Pod, "ns/web");
    } else {
      graph_.erase(Kind::Pod, "ns/web");
      EXPECT_FALSE(graph_.related("n1", Kind::Volume, "", "v"));
      graph_.erase(Kind::Volume, "v");
    }
    EXPECT_EQ(graph_.size(), 0U);
  }
}

TEST_F(GraphTest, AVolumeThatIsBoundToAnotherClaimLeavesTheFirst) {
  put(Kind::Pod, "ns/web", kWeb);
  put(Kind::Volume, "v", kVolume);
  put(Kind::Volume, "v", R"({"spec":{"claimRef":{"namespace":"ns","name":"other"}}})");
  EXPECT_FALSE(graph_.related("n1", Kind::Volume, "", "v"));
  EXPECT_FALSE(graph_.related("n1", Kind::Secret, "storage", "stage"));
  put(Kind::Volume, "v", kVolume);
  EXPECT_TRUE(graph_.related("n1", Kind::Volume, "", "v"));
  put(Kind::Volume, "v", R"({"spec":{}})");
  EXPECT_FALSE(graph_.related("n1", Kind::Volume, "", "v"));
}

TEST_F(GraphTest, OlderVolumesMeanTheNamespaceOfTheirClaim) {
  put(Kind::Pod, "ns/web", kWeb);
  put(Kind::Volume, "v", R"({"spec":{"claimRef":{"namespace":"ns","name":"disk"},
    "rbd":{"secretRef":{"name":"old"}},"cinder":{"secretRef":{"name":"none"}}}})");
  EXPECT_TRUE(graph_.related("n1", Kind::Secret, "ns", "old"));
  EXPECT_FALSE(graph_.related("n1", Kind::Secret, "ns", "none"));
}

TEST_F(GraphTest, AnObjectIsGivenUntilTheLastPodThatNeedsItIsGone) {
  put(Kind::Pod, "ns/web", kWeb);
  put(Kind::Pod, "ns/twin", kWeb);
  graph_.erase(Kind::Pod, "ns/web");
  EXPECT_TRUE(graph_.related("n1", Kind::Secret, "ns", "key"));
  graph_.erase(Kind::Pod, "ns/twin");
  EXPECT_FALSE(graph_.related("n1", Kind::Secret, "ns", "key"));
}

TEST_F(GraphTest, AnUpdateReplacesWhatThePodRefersTo) {
  put(Kind::Pod, "ns/web", kWeb);
  put(Kind::Pod, "ns/web", kWeb);
  EXPECT_TRUE(graph_.related("n1", Kind::Secret, "ns", "key"));
  put(Kind::Pod, "ns/web", R"({"metadata":{"name":"web"},"spec":{"nodeName":"n2","imagePullSecrets":[{"name":"p"}]}})");
  EXPECT_FALSE(graph_.related("n1", Kind::Secret, "ns", "key"));
  EXPECT_FALSE(graph_.related("n1", Kind::Pod, "ns", "web"));
  EXPECT_TRUE(graph_.related("n2", Kind::Secret, "ns", "p"));
  EXPECT_EQ(graph_.size(), 1U);
}

TEST_F(GraphTest, PodsWithoutNodeAndMirrorPodsGiveNothing) {
  put(Kind::Pod, "ns/web", R"({"spec":{"imagePullSecrets":[{"name":"p"}]}})");
  put(Kind::Pod, "ns/mirror", R"({"metadata":{"annotations":{"kubernetes.io/config.mirror":""}},
    "spec":{"nodeName":"n1","imagePullSecrets":[{"name":"p"}]}})");
  EXPECT_TRUE(graph_.related("n1", Kind::Pod, "ns", "mirror"));
  EXPECT_FALSE(graph_.related("n1", Kind::Secret, "ns", "p"));
  EXPECT_FALSE(graph_.related("", Kind::Secret, "ns", "p"));
  EXPECT_EQ(graph_.size(), 0U);
}

TEST_F(GraphTest, AttachmentsAndSlicesBelongToTheirNode) {
  put(Kind::Attachment, "a", R"({"spec":{"nodeName":"n1"}})");
  put(Kind::Slice, "s", R"({"spec":{"nodeName":"n1"}})");
  put(Kind::Slice, "everywhere", R"({"spec":{"allNodes":true}})");
  EXPECT_TRUE(graph_.related("n1", Kind::Attachment, "", "a"));
  EXPECT_TRUE(graph_.related("n1", Kind::Slice, "", "s"));
  EXPECT_FALSE(graph_.related("n2", Kind::Slice, "", "s"));
  EXPECT_FALSE(graph_.related("n1", Kind::Slice, "", "everywhere"));
  graph_.erase(Kind::Attachment, "a");
  EXPECT_FALSE(graph_.related("n1", Kind::Attachment, "", "a"));
}

TEST_F(GraphTest, WhatAnotherListDoesNotHaveIsGone) {
  graph_.begin_list(Kind::Pod);
  put(Kind::Pod, "ns/web", kWeb);
  put(Kind::Pod, "ns/gone", R"({"spec":{"nodeName":"n2","imagePullSecrets":[{"name":"p"}]}})");
  graph_.end_list(Kind::Pod);
  graph_.begin_list(Kind::Volume);
  put(Kind::Volume, "v", kVolume);
  graph_.end_list(Kind::Volume);
  graph_.begin_list(Kind::Pod);
  put(Kind::Pod, "ns/web", kWeb);
  EXPECT_TRUE(graph_.related("n2", Kind::Secret, "ns", "p"));  // Until the list is complete.
  graph_.end_list(Kind::Pod);
  EXPECT_FALSE(graph_.related("n2", Kind::Secret, "ns", "p"));
  EXPECT_TRUE(graph_.related("n1", Kind::Volume, "", "v"));
  graph_.begin_list(Kind::Volume);
  graph_.end_list(Kind::Volume);
  EXPECT_FALSE(graph_.related("n1", Kind::Volume, "", "v"));
}

class AuthorizeTest : public GraphTest {
 protected:
  AuthorizeTest() {
    put(Kind::Pod, "ns/web", R"({"metadata":{"name":"web"},"spec":{"nodeName":"n1","serviceAccountName":"robot",
      "volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"disk"}},{"name":"s","secret":{"secretName":"key"}}]}})");
    put(Kind::Slice, "s1", R"({"spec":{"nodeName":"n1"}})");
  }
  // "allowed", or the reason why not.
  std::string ask(std::string_view verb, const auth::ResourceAttributes& on) const {
    return ask_as({.name = "system:node:n1", .groups = {"system:nodes"}}, verb, on);
  }
  std::string ask_as(const auth::UserInfo& user, std::string_view verb, const auth::ResourceAttributes& on) const {
    const auth::Decision decision = authorize(graph_, rules_, auth::Attributes(&user, verb, on));
    return decision.allowed() ? "allowed" : decision.reason;
  }
  const std::vector<rbac::Rule> rules_ = {
      {.verbs = {"get", "list", "watch"}, .groups = {""}, .resources = {"services", "pods", "secrets"}}};
};

TEST_F(AuthorizeTest, OnlyNodesAreDecidedAbout) {
  const auth::ResourceAttributes services{.resource = "services"};
  EXPECT_EQ(ask("list", services), "allowed");
  EXPECT_EQ(ask("create", services), "");
  EXPECT_EQ(ask_as({.name = "system:node:n1"}, "list", services), "");
  EXPECT_EQ(ask_as({.name = "n1", .groups = {"system:nodes"}}, "list", services), "");
  EXPECT_EQ(ask_as({.name = "system:node:", .groups = {"system:nodes"}}, "list", services),
            "unknown node for user \"system:node:\"");
}

TEST_F(AuthorizeTest, ReasonsAreThoseOfKubernetes) {
  constexpr std::string_view kUnrelated = "no relationship found between node 'n1' and this object";
  constexpr std::string_view kStorage = "storage.k8s.io", kLeases = "coordination.k8s.io", kDevices = "resource.k8s.io";
  struct Case {
    std::string_view verb;
    auth::ResourceAttributes on;
    std::string_view want;
  };
  const Case cases[] = {
      {"get", {.resource = "secrets", .ns = "ns", .name = "key"}, "allowed"},
      {"watch", {.resource = "secrets", .ns = "ns", .name = "key"}, "allowed"},
      {"get", {.resource = "secrets", .ns = "ns", .name = "foreign"}, kUnrelated},
      {"list", {.resource = "secrets", .ns = "ns"}, "No Object name found"},
      {"list", {.resource = "secrets"}, "can only read namespaced object of this type"},
      {"update", {.resource = "secrets", .ns = "ns", .name = "key"}, "can only read resources of this type"},
      {"get", {.resource = "configmaps", .subresource = "x", .ns = "ns", .name = "key"}, "cannot read subresource"},
      {"get", {.resource = "persistentvolumeclaims", .ns = "ns", .name = "disk"}, "allowed"},
      {"list",
       {.resource = "persistentvolumeclaims", .ns = "ns", .name = "disk"},
       "can only get individual resources of this type"},
      {"patch", {.resource = "persistentvolumeclaims", .subresource = "status", .ns = "ns", .name = "disk"}, "allowed"},
      {"get",
       {.resource = "persistentvolumeclaims", .subresource = "status", .ns = "ns", .name = "disk"},
       "can only get/update/patch this type"},
      {"get", {.resource = "persistentvolumes", .name = "v"}, kUnrelated},
      {"get", {.resource = "persistentvolumes", .subresource = "status", .name = "v"}, "cannot get subresource"},
      {"get", {.group = kStorage, .resource = "volumeattachments", .name = "a"}, kUnrelated},
      {"get", {.group = kDevices, .resource = "resourceclaims", .ns = "ns", .name = "c"}, kUnrelated},
      {"get", {.resource = "serviceaccounts", .ns = "ns", .name = "robot"}, "allowed"},
      {"create", {.resource = "serviceaccounts", .subresource = "token", .ns = "ns", .name = "robot"}, "allowed"},
      {"create", {.resource = "serviceaccounts", .subresource = "token", .ns = "ns", .name = "other"}, kUnrelated},
      {"create", {.resource = "serviceaccounts", .ns = "ns"}, "can only create tokens for individual service accounts"},
      {"create",
       {.resource = "serviceaccounts", .subresource = "x", .ns = "ns", .name = "robot"},
       "can only create token subresource of serviceaccount"},
      {"list", {.resource = "serviceaccounts", .ns = "ns"}, "can only create tokens for individual service accounts"},
      {"create", {.group = kLeases, .resource = "leases", .ns = "kube-node-lease"}, "allowed"},
      {"update", {.group = kLeases, .resource = "leases", .ns = "kube-node-lease", .name = "n1"}, "allowed"},
      {"update",
       {.group = kLeases, .resource = "leases", .ns = "kube-node-lease", .name = "n2"},
       "can only access node lease with the same name as the requesting node"},
      {"get",
       {.group = kLeases, .resource = "leases", .ns = "kube-system", .name = "n1"},
       "can only access leases in the \"kube-node-lease\" system namespace"},
      {"list",
       {.group = kLeases, .resource = "leases", .ns = "kube-node-lease"},
       "can only get, create, update, patch, or delete a node lease"},
      {"create", {.group = kStorage, .resource = "csinodes"}, "allowed"},
      {"get",
       {.group = kStorage, .resource = "csinodes", .name = "n2"},
       "can only access CSINode with the same name as the requesting node"},
      {"watch",
       {.group = kStorage, .resource = "csinodes"},
       "can only get, create, update, patch, or delete a CSINode"},
      {"get",
       {.group = kStorage, .resource = "csinodes", .subresource = "x", .name = "n1"},
       "cannot authorize CSINode subresources"},
      {"create", {.group = kDevices, .resource = "resourceslices"}, "allowed"},
      {"update", {.group = kDevices, .resource = "resourceslices", .name = "s1"}, "allowed"},
      {"update", {.group = kDevices, .resource = "resourceslices", .name = "s2"}, kUnrelated},
      {"deletecollection", {.group = kDevices, .resource = "resourceslices", .selected_node = "n1"}, "allowed"},
      {"list",
       {.group = kDevices, .resource = "resourceslices", .selected_node = "n2"},
       "can only list/watch/deletecollection resourceslices with nodeName field selector"},
      {"bind",
       {.group = kDevices, .resource = "resourceslices"},
       "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, "
       "deletecollection"},
      {"get", {.resource = "nodes", .name = "n1"}, "allowed"},
      {"get", {.resource = "nodes", .name = "n2"}, "node 'n1' cannot read 'n2', only its own Node object"},
      {"list", {.resource = "nodes"}, "node 'n1' cannot read all nodes, only its own Node object"},
      {"patch", {.resource = "nodes", .subresource = "status", .name = "n2"}, "allowed"},  // NodeRestriction decides.
      {"delete", {.resource = "nodes", .name = "n1"}, ""},
      {"get", {.resource = "pods", .ns = "ns", .name = "web"}, "allowed"},
      {"get", {.resource = "pods", .ns = "ns", .name = "other"}, kUnrelated},
      {"list", {.resource = "pods", .selected_node = "n1"}, "allowed"},
      {"watch", {.resource = "pods", .ns = "ns", .name = "web"}, "allowed"},
      {"list", {.resource = "pods"}, "can only list/watch pods with spec.nodeName field selector"},
      {"create", {.resource = "pods", .subresource = "eviction", .ns = "ns", .name = "web"}, "allowed"},
      {"get", {.resource = "pods", .subresource = "log", .ns = "ns", .name = "web"}, ""},
      {"get", {.group = "certificates.k8s.io", .resource = "podcertificaterequests", .ns = "ns", .name = "p"}, ""},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ask(c.verb, c.on), c.want) << c.verb << " " << c.on.resource << "/" << c.on.subresource << " "
                                         << c.on.name;
  }
}

}  // namespace
}  // namespace holdfast::node_access
