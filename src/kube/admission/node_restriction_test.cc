#include <gtest/gtest.h>

#include "admission/admission.h"
#include "admission/testing.h"
#include "codec/json.h"

namespace holdfast::admission {
namespace {

// CN=system:node:n1
constexpr const char* kRequest =
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIck1JR1NBZ0VBTURBeEZUQVRCZ05WQkFvTURITjVjM1JsYlRw"
    "dWIyUmxjekVYTUJVR0ExVUVBd3dPYzNsegpkR1Z0T201dlpHVTZiakV3V1RBVEJnY3Foa2pPUFFJQkJnZ3Foa2pPUFFNQkJ3TkNB"
    "QVN4amovdGtCaE9CL1YvCjNqeE1BVDZFanR4S3lwNzRxem0yUmF4VEN6VjFqek5oSjYvVE8zM2pYWGViUFlLdFNrM3hjS2hXajZ4"
    "eUw3b1EKZmRUVzk2aG9vQUF3Q2dZSUtvWkl6ajBFQXdJRFNBQXdSUUlnSVNMRmNodmJMK2ZwVU16ZHJ4T2Z2eEw4VVhsVQoxTzIv"
    "TnF1ekYzSCt5RTBDSVFDYlozYzhIUmVHY2Q4V01pK3VwVjFpU2w2QjlvRC9HZ01saEg2eVFQdEFWdz09Ci0tLS0tRU5EIENFUlRJ"
    "RklDQVRFIFJFUVVFU1QtLS0tLQo=";

struct Case {
  const char* name;
  const char* plural;
  Operation operation = Operation::Create;
  const char* object = nullptr;
  const char* old = nullptr;
  const char* want = "";  // The message of the error.
  const char* group = "";
  const char* subresource = "";
  const char* ns = "ns";
  const char* called = nullptr;  // The name of the object, if it is not in it.
  const char* node = "n1";
};

void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

class NodeRestrictionTest : public ::testing::TestWithParam<Case> {};

testing::Objects cluster() {
  testing::Objects objects;
  objects.add("", "nodes", "", R"({"metadata":{"name":"n1","uid":"u1"}})");
  objects.add("", "pods", "ns", R"({"metadata":{"name":"mine","uid":"p1"},"spec":{"nodeName":"n1","volumes":[
    {"name":"t","projected":{"sources":[{"serviceAccountToken":{"audience":"vault"}}]}},
    {"name":"disk","persistentVolumeClaim":{"claimName":"data"}}]}})");
  objects.add("", "pods", "ns", R"({"metadata":{"name":"lost","uid":"p3"},"spec":{"nodeName":"n1","volumes":[
    {"name":"scratch","ephemeral":{"volumeClaimTemplate":{}}}]}})");
  objects.add("", "pods", "ns", R"({"metadata":{"name":"other","uid":"p2"},"spec":{"nodeName":"n2"}})");
  objects.add("", "persistentvolumeclaims", "ns", R"({"metadata":{"name":"data"},"spec":{"volumeName":"v"}})");
  objects.add("", "persistentvolumes", "", R"({"metadata":{"name":"v"},"spec":{"gcePersistentDisk":{"pdName":"d"}}})");
  objects.add("storage.k8s.io", "csidrivers", "",
              R"({"metadata":{"name":"pd.csi.storage.gke.io"},"spec":{"tokenRequests":[{"audience":"cloud"}]}})");
  objects.allow("request-serviceaccounts-token-audience allowed robot");
  return objects;
}

TEST_P(NodeRestrictionTest, MatchesKubernetes) {
  const Case& c = GetParam();
  Arena arena;
  const testing::Objects objects = cluster();
  const types::Resource* resource = types::find_resource(c.group, "v1", c.plural);
  ASSERT_NE(resource, nullptr);
  const Value object = c.object == nullptr ? Value::null() : *codec::decode_json(arena, c.object);
  const Value old = c.old == nullptr ? Value::null() : *codec::decode_json(arena, c.old);
  std::vector<std::string> warnings;
  Attributes attributes{
      .operation = c.operation,
      .resource = *resource,
      .subresource = c.subresource,
      .ns = resource->namespaced ? c.ns : "",
      .name = c.called != nullptr ? c.called : (object.is_map() ? object : old).text_at("metadata", "name"),
      .user = "system:node:n1",
      .node = c.node,
      .old = c.old == nullptr ? nullptr : &old,
      .arena = arena,
      .lookup = objects,
      .warnings = warnings};
  const Chain chain(
      PluginChoice{.enabled = {"NodeRestriction"},
                   .disabled = {"NamespaceLifecycle", "LimitRanger", "ServiceAccount", "TaintNodesByCondition",
                                "PodSecurity", "Priority", "DefaultTolerationSeconds", "DefaultStorageClass",
                                "StorageObjectInUseProtection", "RuntimeClass", "PodTopologyLabels"}});
  Draft draft(arena, object);
  const Result<Unit> done = chain.admit(attributes, draft.root());
  EXPECT_EQ(done ? "" : done.error().message, c.want);
  attributes.node = std::nullopt;
  EXPECT_TRUE(chain.admit(attributes, draft.root()).ok()) << "only nodes are restricted";
}

constexpr const char* kMirror = R"({"metadata":{"name":"p","annotations":{"kubernetes.io/config.mirror":"x"},
  "ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n1","uid":"u1","controller":true}]},
  "spec":{"nodeName":"n1","volumes":[{"name":"h","hostPath":{"path":"/x"}},
    {"name":"i","projected":{"sources":[{"downwardAPI":{}}]}}]}})";

const Case kCases[] = {
    {.name = "a node without name changes nothing",
     .plural = "services",
     .object = R"({"metadata":{"name":"s"}})",
     .want = "services \"s\" is forbidden: could not determine node from user \"system:node:n1\"",
     .node = ""},
    {.name = "mirror pods are created", .plural = "pods", .object = kMirror},
    {.name = "other pods are not",
     .plural = "pods",
     .object = R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1"}})",
     .want = "pods \"p\" is forbidden: pod does not have \"kubernetes.io/config.mirror\" annotation, node \"n1\" can "
             "only create mirror pods"},
    {.name = "mirror pods belong to the node",
     .plural = "pods",
     .object =
         R"({"metadata":{"name":"p","annotations":{"kubernetes.io/config.mirror":"x"}},"spec":{"nodeName":"n2"}})",
     .want = "pods \"p\" is forbidden: node \"n1\" can only create pods with spec.nodeName set to itself"},
    {.name = "mirror pods have an owner",
     .plural = "pods",
     .object =
         R"({"metadata":{"name":"p","annotations":{"kubernetes.io/config.mirror":"x"}},"spec":{"nodeName":"n1"}})",
     .want = "pods \"p\" is forbidden: node \"n1\" can only create pods with an owner reference set to itself"},
    {.name = "the owner is a controller",
     .plural = "pods",
     .object = R"({"metadata":{"name":"p","annotations":{"kubernetes.io/config.mirror":"x"},
       "ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n1","uid":"u1"}]},"spec":{"nodeName":"n1"}})",
     .want =
         "pods \"p\" is forbidden: node \"n1\" can only create pods with a controller owner reference set to itself"},
    {.name = "the owner is this node",
     .plural = "pods",
     .object = R"({"metadata":{"name":"p","annotations":{"kubernetes.io/config.mirror":"x"},
       "ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n1","uid":"u9","controller":true}]},
       "spec":{"nodeName":"n1"}})",
     .want = "pods \"p\" is forbidden: node n1 UID mismatch: expected u9 got u1"},
    {.name = "mirror pods need nothing from the API",
     .plural = "pods",
     .object = R"({"metadata":{"name":"p","annotations":{"kubernetes.io/config.mirror":"x"},
       "ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n1","uid":"u1","controller":true}]},
       "spec":{"nodeName":"n1","volumes":[{"name":"c","persistentVolumeClaim":{"claimName":"c"}}]}})",
     .want = "pods \"p\" is forbidden: node \"n1\" can not create pods that reference persistentvolumeclaims"},
    {.name = "own pods are deleted",
     .plural = "pods",
     .operation = Operation::Delete,
     .old = R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1"}})"},
    {.name = "pods of others are not",
     .plural = "pods",
     .operation = Operation::Delete,
     .old = R"({"metadata":{"name":"p"},"spec":{"nodeName":"n2"}})",
     .want = "pods \"p\" is forbidden: node \"n1\" can only delete pods with spec.nodeName set to itself"},
    {.name = "pods are not updated",
     .plural = "pods",
     .operation = Operation::Update,
     .object = R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1"}})",
     .old = R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1"}})",
     .want = "pods \"p\" is forbidden: unexpected operation \"UPDATE\", node \"n1\" can only create and delete mirror "
             "pods"},
    {.name = "subresources of pods are not for nodes",
     .plural = "pods",
     .operation = Operation::Update,
     .object = R"({"metadata":{"name":"p"}})",
     .old = R"({"metadata":{"name":"p"}})",
     .want = "pods \"p\" is forbidden: unexpected pod subresource \"resize\", only 'status' and 'eviction' are allowed",
     .subresource = "resize"},
    {.name = "the status of own pods is updated",
     .plural = "pods",
     .operation = Operation::Update,
     .object = R"({"metadata":{"name":"p","labels":{}},"spec":{"nodeName":"n1"},"status":{"phase":"Running"}})",
     .old = R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1"}})",
     .subresource = "status"},
    {.name = "the status of other pods is not",
     .plural = "pods",
     .operation = Operation::Update,
     .object = R"({"metadata":{"name":"p"},"spec":{"nodeName":"n2"}})",
     .old = R"({"metadata":{"name":"p"},"spec":{"nodeName":"n2"}})",
     .want =
         "pods \"p\" is forbidden: node \"n1\" can only update pod status for pods with spec.nodeName set to itself",
     .subresource = "status"},
    {.name = "labels are not updated with the status",
     .plural = "pods",
     .operation = Operation::Update,
     .object = R"({"metadata":{"name":"p","labels":{"a":"b"}},"spec":{"nodeName":"n1"}})",
     .old = R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1"}})",
     .want = "pods \"p\" is forbidden: node \"n1\" cannot update labels through pod status",
     .subresource = "status"},
    {.name = "a node does not say which claims are its pods'",
     .plural = "pods",
     .operation = Operation::Update,
     .object =
         R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1"},"status":{"resourceClaimStatuses":[{"name":"c"}]}})",
     .old = R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1"}})",
     .want = "pods \"p\" is forbidden: node \"n1\" cannot update resource claim statues",
     .subresource = "status"},
    {.name = "own pods are evicted",
     .plural = "pods",
     .object = R"({"metadata":{"name":"mine"}})",
     .subresource = "eviction"},
    {.name = "other pods are not evicted",
     .plural = "pods",
     .object = R"({"metadata":{"name":"other"}})",
     .want = "pods \"other\" is forbidden: node n1 can only evict pods with spec.nodeName set to itself",
     .subresource = "eviction"},
    {.name = "a pod that does not exist is not evicted",
     .plural = "pods",
     .object = R"({"metadata":{"name":"none"}})",
     .want = "pod \"none\" not found",
     .subresource = "eviction"},
    {.name = "other nodes are not changed",
     .plural = "nodes",
     .operation = Operation::Update,
     .object = R"({"metadata":{"name":"n2"}})",
     .old = R"({"metadata":{"name":"n2"}})",
     .want = "nodes \"n2\" is forbidden: node \"n1\" is not allowed to modify node \"n2\"",
     .subresource = "status"},
    {.name = "a node registers with the labels of a kubelet",
     .plural = "nodes",
     .object = R"({"metadata":{"name":"n1","labels":{"kubernetes.io/hostname":"n1","a/b":"c","x":"y",
       "kubelet.kubernetes.io/a":"b","my.node.kubernetes.io/a":"b","beta.kubernetes.io/arch":"amd64"}}})"},
    {.name = "a node does not register with others",
     .plural = "nodes",
     .object = R"({"metadata":{"name":"n1","labels":{"node-role.kubernetes.io/master":"","k8s.io/b":"",
       "a.node-restriction.kubernetes.io/c":"","x":"y"}}})",
     .want = "nodes \"n1\" is forbidden: node \"n1\" is not allowed to set the following labels: "
             "a.node-restriction.kubernetes.io/c, k8s.io/b, node-role.kubernetes.io/master"},
    {.name = "labels that are removed are changed, too",
     .plural = "nodes",
     .operation = Operation::Update,
     .object = R"({"metadata":{"name":"n1","labels":{"x":"z","k8s.io/same":"a"}}})",
     .old = R"({"metadata":{"name":"n1","labels":{"x":"y","k8s.io/same":"a","node-role.kubernetes.io/master":""}}})",
     .want = "nodes \"n1\" is forbidden: is not allowed to modify labels: node-role.kubernetes.io/master"},
    {.name = "taints are not changed",
     .plural = "nodes",
     .operation = Operation::Update,
     .object = R"({"metadata":{"name":"n1"}})",
     .old = R"({"metadata":{"name":"n1"},"spec":{"taints":[{"key":"a"}]}})",
     .want = "nodes \"n1\" is forbidden: node \"n1\" is not allowed to modify taints"},
    {.name = "an empty list of taints is none",
     .plural = "nodes",
     .operation = Operation::Update,
     .object = R"({"metadata":{"name":"n1"},"spec":{"taints":[]}})",
     .old = R"({"metadata":{"name":"n1"}})"},
    {.name = "owners are not changed",
     .plural = "nodes",
     .operation = Operation::Update,
     .object = R"({"metadata":{"name":"n1","ownerReferences":[{"name":"x"}]}})",
     .old = R"({"metadata":{"name":"n1"}})",
     .want = "nodes \"n1\" is forbidden: node \"n1\" is not allowed to modify ownerReferences"},
    {.name = "the configuration source is not set",
     .plural = "nodes",
     .operation = Operation::Update,
     .object = R"({"metadata":{"name":"n1"},"spec":{"configSource":{"configMap":{}}}})",
     .old = R"({"metadata":{"name":"n1"}})",
     .want =
         "nodes \"n1\" is forbidden: node \"n1\" is not allowed to update configSource to a new non-nil configSource"},
    {.name = "capacity and conditions of claims are updated",
     .plural = "persistentvolumeclaims",
     .operation = Operation::Update,
     .object = R"({"metadata":{"name":"c"},"spec":{"a":1},"status":{"phase":"Bound","capacity":{"storage":"2Gi"},
       "conditions":[{"type":"x"}],"allocatedResources":{"storage":"2Gi"}}})",
     .old = R"({"metadata":{"name":"c","resourceVersion":"5"},"spec":{"a":1},"status":{"phase":"Bound"}})",
     .subresource = "status"},
    {.name = "nothing else of claims is",
     .plural = "persistentvolumeclaims",
     .operation = Operation::Update,
     .object = R"({"metadata":{"name":"c"},"status":{"phase":"Lost"}})",
     .old = R"({"metadata":{"name":"c"},"status":{"phase":"Bound"}})",
     .want = "persistentvolumeclaims \"c\" is forbidden: node \"n1\" is not allowed to update fields other than "
             "status.quantity and status.conditions: status differs",
     .subresource = "status"},
    {.name = "claims are not created",
     .plural = "persistentvolumeclaims",
     .object = R"({"metadata":{"name":"c"}})",
     .want = "persistentvolumeclaims \"c\" is forbidden: may only update PVC status"},
    {.name = "tokens are bound to a pod",
     .plural = "serviceaccounts",
     .object = R"({"spec":{"audiences":["vault"]}})",
     .want = "serviceaccounts \"robot\" is forbidden: node requested token not bound to a pod",
     .subresource = "token",
     .called = "robot"},
    {.name = "with its UID",
     .plural = "serviceaccounts",
     .object = R"({"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"mine"}}})",
     .want = "serviceaccounts \"robot\" is forbidden: node requested token with a pod binding without a uid",
     .subresource = "token",
     .called = "robot"},
    {.name = "which is the pod's",
     .plural = "serviceaccounts",
     .object = R"({"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"mine","uid":"p9"}}})",
     .want =
         "serviceaccounts \"robot\" is forbidden: the UID in the bound object reference (p9) does not match the UID "
         "in record. The object might have been deleted and then recreated",
     .subresource = "token",
     .called = "robot"},
    {.name = "which runs on the node",
     .plural = "serviceaccounts",
     .object = R"({"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"other","uid":"p2"}}})",
     .want =
         "serviceaccounts \"robot\" is forbidden: node requested token bound to a pod scheduled on a different node",
     .subresource = "token",
     .called = "robot"},
    {.name = "tokens are for audiences of the pod's volumes",
     .plural = "serviceaccounts",
     .object =
         R"({"spec":{"audiences":["vault"],"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"mine","uid":"p1"}}})",
     .subresource = "token",
     .called = "robot"},
    {.name = "for those of the drivers of its volumes",
     .plural = "serviceaccounts",
     .object =
         R"({"spec":{"audiences":["cloud"],"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"mine","uid":"p1"}}})",
     .subresource = "token",
     .called = "robot"},
    {.name = "for those that the node may request anyway",
     .plural = "serviceaccounts",
     .object =
         R"({"spec":{"audiences":["allowed"],"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"mine","uid":"p1"}}})",
     .subresource = "token",
     .called = "robot"},
    {.name = "but not for others",
     .plural = "serviceaccounts",
     .object =
         R"({"spec":{"audiences":["bank"],"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"mine","uid":"p1"}}})",
     .want =
         "serviceaccounts \"robot\" is forbidden: audience \"bank\" not found in pod spec volume, system:node:n1 is "
         "not authorized to request tokens for this audience",
     .subresource = "token",
     .called = "robot"},
    {.name = "nor for several",
     .plural = "serviceaccounts",
     .object =
         R"({"spec":{"audiences":["vault","cloud"],"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"mine","uid":"p1"}}})",
     .want = "serviceaccounts \"robot\" is forbidden: node may only request 0 or 1 audiences",
     .subresource = "token",
     .called = "robot"},
    {.name = "nor while a claim is missing",
     .plural = "serviceaccounts",
     .object =
         R"({"spec":{"audiences":["bank"],"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"lost","uid":"p3"}}})",
     .want = "serviceaccounts \"robot\" is forbidden: error validating audience \"bank\": persistentvolumeclaim "
             "\"lost-scratch\" not found",
     .subresource = "token",
     .called = "robot"},
    {.name = "leases are those of nodes",
     .plural = "leases",
     .object = R"({"metadata":{"name":"n1"}})",
     .want = "leases.coordination.k8s.io \"n1\" is forbidden: can only access leases in the \"kube-node-lease\" system "
             "namespace",
     .group = "coordination.k8s.io"},
    {.name = "namely of this one",
     .plural = "leases",
     .object = R"({"metadata":{"name":"n2"}})",
     .want = "leases.coordination.k8s.io \"n2\" is forbidden: can only access node lease with the same name as the "
             "requesting node",
     .group = "coordination.k8s.io",
     .ns = "kube-node-lease"},
    {.name = "its own lease",
     .plural = "leases",
     .object = R"({"metadata":{"name":"n1"}})",
     .group = "coordination.k8s.io",
     .ns = "kube-node-lease"},
    {.name = "the CSINode of another node is not created",
     .plural = "csinodes",
     .object = R"({"metadata":{"name":"n2"}})",
     .want = "csinodes.storage.k8s.io \"n2\" is forbidden: can only access CSINode with the same name as the "
             "requesting node",
     .group = "storage.k8s.io"},
    {.name = "slices of others are not created",
     .plural = "resourceslices",
     .object = R"({"metadata":{"name":"s"},"spec":{"allNodes":true}})",
     .want =
         "resourceslices.resource.k8s.io \"s\" is forbidden: can only create ResourceSlice with the same NodeName as "
         "the requesting node",
     .group = "resource.k8s.io"},
    {.name = "slices of others are not deleted",
     .plural = "resourceslices",
     .operation = Operation::Delete,
     .old = R"({"metadata":{"name":"s"},"spec":{"nodeName":"n2"}})",
     .want =
         "resourceslices.resource.k8s.io \"s\" is forbidden: can only delete ResourceSlice with the same NodeName as "
         "the requesting node",
     .group = "resource.k8s.io"},
};

INSTANTIATE_TEST_SUITE_P(Rules, NodeRestrictionTest, ::testing::ValuesIn(kCases), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
});

TEST(NodeRestriction, CertificatesAreForTheNodeItself) {
  Arena arena;
  const testing::Objects objects;
  const Chain chain(PluginChoice{.enabled = {"NodeRestriction"}});
  const types::Resource* resource = types::find_resource("certificates.k8s.io", "v1", "certificatesigningrequests");
  const auto admit = [&](std::string_view node, std::string_view signer, std::string_view request) {
    const std::string json = R"({"metadata":{"name":"c"},"spec":{"signerName":")" + std::string(signer) +
                             R"(","request":")" + std::string(request) + R"("}})";
    std::vector<std::string> warnings;
    Attributes attributes{
        .resource = *resource, .name = "c", .node = node, .arena = arena, .lookup = objects, .warnings = warnings};
    Draft draft(arena, *codec::decode_json(arena, arena.copy(json)));
    const Result<Unit> done = chain.admit(attributes, draft.root());
    return done ? std::string() : done.error().message;
  };
  const std::string refused = "certificatesigningrequests.certificates.k8s.io \"c\" is forbidden: ";
  EXPECT_EQ(admit("n1", "kubernetes.io/kubelet-serving", kRequest), "");
  EXPECT_EQ(admit("n1", "kubernetes.io/kube-apiserver-client-kubelet", kRequest), "");
  EXPECT_EQ(admit("n2", "kubernetes.io/kubelet-serving", kRequest),
            refused + "can only create a node CSR with CN=system:node:n2");
  EXPECT_EQ(admit("n2", "example.com/any", kRequest), "");
  for (size_t length = 0; length < std::string_view(kRequest).size(); length += 4) {
    EXPECT_NE(admit("n2", "kubernetes.io/kubelet-serving", std::string_view(kRequest).substr(0, length)), "");
  }
}

}  // namespace
}  // namespace holdfast::admission
