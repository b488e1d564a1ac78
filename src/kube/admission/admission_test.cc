#include "admission/admission.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "admission/testing.h"
#include "codec/json.h"

namespace holdfast::admission {
namespace {

using testing::Objects;

Objects cluster() {
  Objects objects;
  for (const char* ns : {"plain", "base", "strict", "old", "warned", "limited"}) {
    objects.add("", "serviceaccounts", ns, R"({"metadata":{"name":"default"},"automountServiceAccountToken":false})");
  }
  objects.add("", "serviceaccounts", "plain",
              R"({"metadata":{"name":"runner"},"imagePullSecrets":[{"name":"registry"}]})");
  objects.add("", "serviceaccounts", "plain",
              R"({"metadata":{"name":"careful","annotations":{"kubernetes.io/enforce-mountable-secrets":"true"}},)"
              R"("automountServiceAccountToken":false,"secrets":[{"name":"known"}]})");
  objects.add("", "namespaces", "", R"({"metadata":{"name":"plain"},"status":{"phase":"Active"}})");
  objects.add("", "namespaces", "", R"({"metadata":{"name":"term"},"status":{"phase":"Terminating"}})");
  objects.add("", "namespaces", "",
              R"({"metadata":{"name":"base","labels":{"pod-security.kubernetes.io/enforce":"baseline"}}})");
  objects.add("", "namespaces", "",
              R"({"metadata":{"name":"strict","labels":{"pod-security.kubernetes.io/enforce":"restricted"}}})");
  objects.add("", "namespaces", "",
              R"({"metadata":{"name":"old","labels":{"pod-security.kubernetes.io/enforce":"baseline",)"
              R"("pod-security.kubernetes.io/enforce-version":"v1.18"}}})");
  objects.add("", "namespaces", "",
              R"({"metadata":{"name":"warned","labels":{"pod-security.kubernetes.io/warn":"restricted",)"
              R"("pod-security.kubernetes.io/warn-version":"v1.30"}}})");
  objects.add("", "namespaces", "", R"({"metadata":{"name":"limited"}})");
  objects.add("", "limitranges", "limited",
              R"({"metadata":{"name":"l"},"spec":{"limits":[{"type":"Container","default":{"cpu":"1"},)"
              R"("defaultRequest":{"cpu":"500m"},"min":{"cpu":"100m"},"max":{"cpu":"2"},)"
              R"("maxLimitRequestRatio":{"cpu":"4"}},{"type":"Pod","max":{"cpu":"1500m"}},)"
              R"({"type":"PersistentVolumeClaim","min":{"storage":"1Gi"}}]}})");
  objects.add("scheduling.k8s.io", "priorityclasses", "",
              R"({"metadata":{"name":"hi"},"value":100,"preemptionPolicy":"Never"})");
  objects.add("storage.k8s.io", "storageclasses", "",
              R"({"metadata":{"name":"old","creationTimestamp":"2026-01-01T00:00:00Z",)"
              R"("annotations":{"storageclass.kubernetes.io/is-default-class":"true"}},"allowVolumeExpansion":false})");
  objects.add("storage.k8s.io", "storageclasses", "",
              R"({"metadata":{"name":"new","creationTimestamp":"2026-02-01T00:00:00Z",)"
              R"("annotations":{"storageclass.kubernetes.io/is-default-class":"true"}},"allowVolumeExpansion":true})");
  objects.add("networking.k8s.io", "ingressclasses", "",
              R"({"metadata":{"name":"web","annotations":{"ingressclass.kubernetes.io/is-default-class":"true"}}})");
  objects.add("node.k8s.io", "runtimeclasses", "",
              R"({"metadata":{"name":"box"},"overhead":{"podFixed":{"cpu":"100m"}},)"
              R"("scheduling":{"nodeSelector":{"box":"yes"},"tolerations":[{"key":"box","operator":"Exists"}]}})");
  objects.add("", "nodes", "", R"({"metadata":{"name":"n","labels":{"topology.kubernetes.io/zone":"z","other":"o"}}})");
  objects.add(
      "", "nodes", "",
      R"({"metadata":{"name":"small","labels":{"kubernetes.io/os":"linux"}},"status":)"
      R"({"allocatable":{"cpu":"2","memory":"2Gi"},"declaredFeatures":["InPlacePodLevelResourcesVerticalScaling"]}})");
  objects.add("", "nodes", "", R"({"metadata":{"name":"panes","labels":{"kubernetes.io/os":"windows"}}})");
  return objects;
}

struct Case {
  const char* name;
  const char* group = "";
  const char* plural = "pods";
  const char* ns = "plain";
  const char* object = "";
  const char* old = nullptr;
  const char* subresource = "";
  const char* want = "";     // Members that the result must include, as JSON; or empty.
  const char* error = "";    // The error message.
  const char* warning = "";  // The first warning.
  Operation operation = Operation::Create;
};

void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

// Whether `got` includes every member of `want`; lists are compared as a whole.
bool includes(const Value& got, const Value& want) {
  if (!want.is_map()) return equal(got, want);
  for (const Member& member : want.members()) {
    const Value* found = got.find(member.key);
    if (found == nullptr || !includes(*found, member.value)) return false;
  }
  return true;
}

class AdmissionTest : public ::testing::TestWithParam<Case> {};

TEST_P(AdmissionTest, MatchesKubernetes) {
  const Case& c = GetParam();
  Arena arena;
  const Objects objects = cluster();
  std::string plural = c.plural;
  const types::Resource* resource = types::find_resource(c.group, "v1", plural);
  ASSERT_NE(resource, nullptr);
  const Value object = *c.object == 0 ? Value::null() : *codec::decode_json(arena, c.object);
  const Value old = c.old == nullptr ? Value::null() : *codec::decode_json(arena, c.old);
  std::vector<std::string> warnings;
  Attributes attributes{.operation = c.operation,
                        .resource = *resource,
                        .subresource = c.subresource,
                        .ns = resource->namespaced ? c.ns : "",
                        .name = object.is_null() ? "default" : object.text_at("metadata", "name"),
                        .old = c.old == nullptr ? nullptr : &old,
                        .arena = arena,
                        .lookup = objects,
                        .warnings = warnings};
  const Chain chain;
  EXPECT_TRUE(chain.handles(*resource, c.subresource, c.operation));
  Draft draft(arena, object);
  Result<Unit> done = chain.admit(attributes, draft.root());
  const Value result = draft.value();
  if (done) done = chain.validate(attributes, result);
  if (*c.error != 0) {
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, c.error);
    return;
  }
  ASSERT_TRUE(done) << done.error().message;
  if (*c.want != 0) {
    EXPECT_TRUE(includes(result, *codec::decode_json(arena, c.want))) << codec::encode_json(result);
  }
  EXPECT_EQ(warnings.empty() ? "" : warnings[0], c.warning);
}

constexpr Case kCases[] = {
    {.name = "missing namespace is rejected",
     .plural = "configmaps",
     .ns = "nosuch",
     .object = R"({"metadata":{"name":"c"}})",
     .error = R"(namespaces "nosuch" not found)"},
    {.name = "terminating namespace is rejected",
     .plural = "configmaps",
     .ns = "term",
     .object = R"({"metadata":{"name":"y"}})",
     .error =
         R"(configmaps "y" is forbidden: unable to create new content in namespace term because it is being terminated)"},
    {.name = "default namespace cannot be deleted",
     .plural = "namespaces",
     .error = R"(namespaces "default" is forbidden: this namespace may not be deleted)",
     .operation = Operation::Delete},
    {.name = "pod tolerates an unreachable node for five minutes",
     .object = R"({"metadata":{"name":"p"},"spec":{"containers":[]}})",
     .want =
         R"({"spec":{"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute",)"
         R"("tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists",)"
         R"("effect":"NoExecute","tolerationSeconds":300}],"priority":0,"preemptionPolicy":"PreemptLowerPriority"}})"},
    {.name = "pod gets the priority of its class",
     .object = R"({"metadata":{"name":"p"},"spec":{"priorityClassName":"hi"}})",
     .want = R"({"spec":{"priority":100,"preemptionPolicy":"Never"}})"},
    {.name = "missing priority class is rejected",
     .object = R"({"metadata":{"name":"p"},"spec":{"priorityClassName":"zz"}})",
     .error = R"(pods "p" is forbidden: no PriorityClass with name zz was found)"},
    {.name = "priority that differs from the class is rejected",
     .object = R"({"metadata":{"name":"p"},"spec":{"priority":5}})",
     .error = R"(pods "p" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority )"
              R"(admission controller computed 0 from the given PriorityClass name)"},
    {.name = "error shows the generateName prefix",
     .object = R"({"metadata":{"generateName":"y-"},"spec":{"priorityClassName":"zz"}})",
     .error = R"(pods "y-" is forbidden: no PriorityClass with name zz was found)"},
    {.name = "new node is tainted as not ready",
     .plural = "nodes",
     .object = R"({"metadata":{"name":"n"}})",
     .want = R"({"spec":{"taints":[{"key":"node.kubernetes.io/not-ready","effect":"NoSchedule"}]}})"},
    {.name = "claim is protected and gets the newest default class",
     .plural = "persistentvolumeclaims",
     .object = R"({"metadata":{"name":"c"},"spec":{}})",
     .want = R"({"metadata":{"finalizers":["kubernetes.io/pvc-protection"]},"spec":{"storageClassName":"new"}})"},
    {.name = "empty class is kept",
     .plural = "persistentvolumeclaims",
     .object = R"({"metadata":{"name":"c"},"spec":{"storageClassName":""}})",
     .want = R"({"spec":{"storageClassName":""}})"},
    {.name = "ingress gets the default class",
     .group = "networking.k8s.io",
     .plural = "ingresses",
     .object = R"({"metadata":{"name":"i"},"spec":{}})",
     .want = R"({"spec":{"ingressClassName":"web"}})"},
    {.name = "claim can be resized only if its class allows it",
     .plural = "persistentvolumeclaims",
     .object =
         R"({"metadata":{"name":"c"},"spec":{"storageClassName":"old","resources":{"requests":{"storage":"2Gi"}}}})",
     .old =
         R"({"spec":{"storageClassName":"old","resources":{"requests":{"storage":"1Gi"}}},"status":{"phase":"Bound"}})",
     .error = R"(persistentvolumeclaims "c" is forbidden: only dynamically provisioned pvc can be resized and the )"
              R"(storageclass that provisions the pvc must support resize)",
     .operation = Operation::Update},
    {.name = "class of a claim is its annotation, even if that is empty",
     .plural = "persistentvolumeclaims",
     .object = R"({"metadata":{"name":"c","annotations":{"volume.beta.kubernetes.io/storage-class":""}},)"
               R"("spec":{"storageClassName":"new","resources":{"requests":{"storage":"2Gi"}}}})",
     .old =
         R"({"metadata":{"annotations":{"volume.beta.kubernetes.io/storage-class":""}},)"
         R"("spec":{"storageClassName":"new","resources":{"requests":{"storage":"1Gi"}}},"status":{"phase":"Bound"}})",
     .error = R"(persistentvolumeclaims "c" is forbidden: only dynamically provisioned pvc can be resized and the )"
              R"(storageclass that provisions the pvc must support resize)",
     .operation = Operation::Update},
    {.name = "runtime class adds overhead, labels and tolerations",
     .object = R"({"metadata":{"name":"p"},"spec":{"runtimeClassName":"box","tolerations":[{"operator":"Exists"}]}})",
     .want = R"({"spec":{"overhead":{"cpu":"100m"},"nodeSelector":{"box":"yes"},)"
             R"("tolerations":[{"operator":"Exists"},{"key":"box","operator":"Exists"}]}})"},
    {.name = "missing runtime class is rejected",
     .object = R"({"metadata":{"name":"p"},"spec":{"runtimeClassName":"zz"}})",
     .error = R"(pods "p" is forbidden: pod rejected: RuntimeClass "zz" not found)"},
    {.name = "overhead without a runtime class is rejected",
     .object = R"({"metadata":{"name":"p"},"spec":{"overhead":{"cpu":"1"}}})",
     .error =
         R"(pods "p" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead)"},
    {.name = "limit range defaults are set and annotated",
     .ns = "limited",
     .object = R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}],"initContainers":[{"name":"i"}]}})",
     .want =
         R"({"metadata":{"annotations":{"kubernetes.io/limit-ranger":"LimitRanger plugin set: cpu request for )"
         R"(container c; cpu limit for container c; cpu request for init container i; cpu limit for init container i"}},)"
         R"("spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1"},"requests":{"cpu":"500m"}}}]}})"},
    {.name = "request below minimum and limit ratio exceeded",
     .ns = "limited",
     .object = R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"50m"},)"
               R"("limits":{"cpu":"450m"}}}]}})",
     .error =
         R"(pods "p" is forbidden: [minimum cpu usage per Container is 100m, but request is 50m, cpu max limit to )"
         R"(request ratio per Container is 4, but provided ratio is 9.000000])"},
    {.name = "sum of container limits exceeds the pod maximum",
     .ns = "limited",
     .object =
         R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"900m"},)"
         R"("limits":{"cpu":"900m"}}},{"name":"b","resources":{"requests":{"cpu":"900m"},"limits":{"cpu":"900m"}}}]}})",
     .error = R"(pods "p" is forbidden: maximum cpu usage per Pod is 1500m, but limit is 1800m)"},
    {.name = "claim below the minimum is rejected",
     .plural = "persistentvolumeclaims",
     .ns = "limited",
     .object = R"({"metadata":{"name":"c"},"spec":{"storageClassName":"","resources":{"requests":{"storage":"1Mi"}}}})",
     .error =
         R"(persistentvolumeclaims "c" is forbidden: minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi)"},
    {.name = "baseline rejects a privileged pod",
     .ns = "base",
     .object = R"({"metadata":{"name":"b"},"spec":{"hostNetwork":true,"containers":[{"name":"a","securityContext":)"
               R"({"privileged":true,"capabilities":{"add":["NET_ADMIN"]}}},{"name":"b","ports":[{"hostPort":80}]}],)"
               R"("volumes":[{"name":"h","hostPath":{"path":"/"}}]}})",
     .error =
         R"(pods "b" is forbidden: violates PodSecurity "baseline:latest": non-default capabilities (container "a" )"
         R"(must not include "NET_ADMIN" in securityContext.capabilities.add), host namespaces (hostNetwork=true), )"
         R"(hostPath volumes (volume "h"), hostPort (container "b" uses hostPort 80), privileged (container "a" must )"
         R"(not set securityContext.privileged=true))"},
    {.name = "restricted rejects a plain pod",
     .ns = "strict",
     .object = R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}]}})",
     .error =
         R"(pods "p" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false )"
         R"((container "c" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities )"
         R"((container "c" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or )"
         R"(container "c" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "c" must set )"
         R"(securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"))"},
    {.name = "old versions check profile annotations",
     .ns = "old",
     .object =
         R"({"metadata":{"name":"p","annotations":{"seccomp.security.alpha.kubernetes.io/pod":"unconfined",)"
         R"("container.seccomp.security.alpha.kubernetes.io/c":"x","container.seccomp.security.alpha.kubernetes.io/d":)"
         R"("docker/default"}},"spec":{"containers":[{"name":"c"},{"name":"d"}]}})",
     .error = R"(pods "p" is forbidden: violates PodSecurity "baseline:v1.18": seccompProfile (forbidden annotations )"
              R"(container.seccomp.security.alpha.kubernetes.io/c="x", )"
              R"(seccomp.security.alpha.kubernetes.io/pod="unconfined"))"},
    {.name = "warn level only warns",
     .ns = "warned",
     .object = R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","securityContext":)"
               R"({"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},"runAsNonRoot":true}}]}})",
     .warning = R"(would violate PodSecurity "restricted:v1.30": seccompProfile (pod or container "c" must set )"
                R"(securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"))"},
    {.name = "controllers get warnings for their pod template",
     .group = "apps",
     .plural = "deployments",
     .ns = "base",
     .object = R"({"metadata":{"name":"d"},"spec":{"template":{"spec":{"hostPID":true,"containers":[{"name":"c"}]}}}})",
     .warning = R"(would violate PodSecurity "baseline:latest": host namespaces (hostPID=true))"},
    {.name = "invalid level is rejected",
     .plural = "namespaces",
     .object = R"({"metadata":{"name":"x","labels":{"pod-security.kubernetes.io/enforce":"foo"}}})",
     .error =
         R"(Namespace "x" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "foo": must )"
         R"(be one of privileged, baseline, restricted)"},
    {.name = "invalid version is rejected",
     .plural = "namespaces",
     .object = R"({"metadata":{"name":"x","labels":{"pod-security.kubernetes.io/warn-version":"v2"}}})",
     .error =
         R"(Namespace "x" is invalid: metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "v2": )"
         R"(must be "latest" or "v1.x")"},
    {.name = "approval requires permission",
     .group = "certificates.k8s.io",
     .plural = "certificatesigningrequests",
     .object = R"({"metadata":{"name":"r"},"spec":{"signerName":"example.com/s"}})",
     .old = R"({"metadata":{"name":"r"},"spec":{"signerName":"example.com/s"}})",
     .subresource = "approval",
     .error =
         R"(certificatesigningrequests.certificates.k8s.io "r" is forbidden: user not permitted to approve requests )"
         R"(with signerName "example.com/s")",
     .operation = Operation::Update},
    {.name = "bound pod gets the topology labels of its node",
     .object = R"({"metadata":{"name":"p"},"spec":{"nodeName":"n"}})",
     .want = R"({"metadata":{"labels":{"topology.kubernetes.io/zone":"z"}}})"},
    {.name = "resize that fits the node",
     .object = R"({"metadata":{"name":"p","generation":2},"spec":{"nodeName":"small","overhead":{"cpu":"1"},)"
               R"("containers":[{"name":"c","resources":{"requests":{"cpu":"1","memory":"2Gi"}}}]}})",
     .old = R"({"metadata":{"name":"p","generation":1},"spec":{"nodeName":"small","containers":[{"name":"c"}]}})",
     .subresource = "resize",
     .operation = Operation::Update},
    {.name = "resize beyond the node",
     .object = R"({"metadata":{"name":"p","generation":2},"spec":{"nodeName":"small","overhead":{"cpu":"1"},)"
               R"("containers":[{"name":"c","resources":{"requests":{"cpu":"1100m","memory":"3Gi"}}}]}})",
     .old = R"({"metadata":{"name":"p","generation":1},"spec":{"nodeName":"small","containers":[{"name":"c"}]}})",
     .subresource = "resize",
     .error =
         R"(pods "p" is forbidden: node didn't have enough allocatable resources: cpu, requested: 2100, allocatable: )"
         R"(2000; memory, requested: 3221225472, allocatable: 2147483648)",
     .operation = Operation::Update},
    {.name = "resize that changes nothing",
     .object = R"({"metadata":{"name":"p","generation":1},"spec":{"nodeName":"small",)"
               R"("containers":[{"name":"c","resources":{"requests":{"cpu":"9"}}}]}})",
     .old = R"({"metadata":{"name":"p","generation":1},"spec":{"nodeName":"small","containers":[{"name":"c"}]}})",
     .subresource = "resize",
     .operation = Operation::Update},
    {.name = "resize on another operating system",
     .object = R"({"metadata":{"name":"p","generation":2},"spec":{"nodeName":"panes"}})",
     .old = R"({"metadata":{"name":"p","generation":1},"spec":{"nodeName":"panes"}})",
     .subresource = "resize",
     .error = R"(pods "p" is forbidden: pod resize is only supported on linux nodes, node "panes" is "windows")",
     .operation = Operation::Update},
    {.name = "resize on a node that does not exist",
     .object = R"({"metadata":{"name":"p","generation":2},"spec":{"nodeName":"gone"}})",
     .old = R"({"metadata":{"name":"p","generation":1},"spec":{"nodeName":"gone"}})",
     .subresource = "resize",
     .error = R"(pods "p" is forbidden: node "gone" not found)",
     .operation = Operation::Update},
    {.name = "resize of a whole pod on a node with the feature",
     .object =
         R"({"metadata":{"name":"p","generation":2},"spec":{"nodeName":"small","resources":{"limits":{"cpu":"2"}}}})",
     .old =
         R"({"metadata":{"name":"p","generation":1},"spec":{"nodeName":"small","resources":{"limits":{"cpu":"1"}}}})",
     .subresource = "resize",
     .operation = Operation::Update},
    {.name = "resize of a whole pod and an init container on a node without the features",
     .object = R"({"metadata":{"name":"p","generation":2},"spec":{"nodeName":"n","resources":{"limits":{"cpu":"2"}},)"
               R"("initContainers":[{"name":"i","resources":{"limits":{"cpu":"1"}}}]}})",
     .old = R"({"metadata":{"name":"p","generation":1},"spec":{"nodeName":"n","resources":{"limits":{"cpu":"1"}},)"
            R"("initContainers":[{"name":"i"}]}})",
     .subresource = "resize",
     .error = R"(pods "p" is forbidden: pod update requires features InPlacePodLevelResourcesVerticalScaling, )"
              R"(InPlacePodVerticalScalingInitContainers which are not available on node "n")",
     .operation = Operation::Update},
    {.name = "other changes of a pod need no feature",
     .object =
         R"({"metadata":{"name":"p","generation":2},"spec":{"nodeName":"n","resources":{"limits":{"cpu":"1000m"}},)"
         R"("serviceAccountName":"default","containers":[{"name":"c","image":"b"}]}})",
     .old = R"({"metadata":{"name":"p","generation":1},"spec":{"nodeName":"n","resources":{"limits":{"cpu":"1"}},)"
            R"("containers":[{"name":"c","image":"a"}]}})",
     .operation = Operation::Update},
    {.name = "pod without an account runs as default",
     .object = R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}]}})",
     .want = R"({"spec":{"serviceAccountName":"default","serviceAccount":"default"}})"},
    {.name = "missing account is rejected",
     .object = R"({"metadata":{"name":"p"},"spec":{"serviceAccountName":"zz","containers":[{"name":"c"}]}})",
     .error = R"(pods "p" is forbidden: error looking up service account plain/zz: serviceaccount "zz" not found)"},
    {.name = "pod gets the pull secrets of its account",
     .object = R"({"metadata":{"name":"p"},"spec":{"serviceAccountName":"runner","containers":[]}})",
     .want = R"({"spec":{"imagePullSecrets":[{"name":"registry"}]}})"},
    {.name = "mirror pod must not have an account",
     .object = R"({"metadata":{"name":"p","annotations":{"kubernetes.io/config.mirror":"x"}},)"
               R"("spec":{"serviceAccountName":"runner"}})",
     .error = R"(pods "p" is forbidden: a mirror pod may not reference service accounts)"},
    {.name = "account with restricted secrets rejects others",
     .object = R"({"metadata":{"name":"p"},"spec":{"serviceAccountName":"careful","containers":[{"name":"c",)"
               R"("env":[{"name":"E","valueFrom":{"secretKeyRef":{"name":"other"}}}]}]}})",
     .error = R"(pods "p" is forbidden: container c with envVar E referencing secret.secretName="other" is not )"
              R"(allowed because service account careful does not reference that secret)"},
};

INSTANTIATE_TEST_SUITE_P(Plugins, AdmissionTest, ::testing::ValuesIn(kCases), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name) {
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
});

TEST(ChainTest, TokenIsMountedUnlessItsPathIsTaken) {
  Arena arena;
  const Objects objects = cluster();
  std::vector<std::string> warnings;
  const Value pod = *codec::decode_json(
      arena, R"({"metadata":{"name":"p"},"spec":{"serviceAccountName":"runner","containers":[{"name":"a"},{"name":"b",)"
             R"("volumeMounts":[{"name":"own","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}]}]}})");
  Attributes attributes{.resource = *types::find_resource("", "v1", "pods"),
                        .ns = "plain",
                        .name = "p",
                        .arena = arena,
                        .lookup = objects,
                        .warnings = warnings};
  Draft draft(arena, pod);
  ASSERT_TRUE(Chain().admit(attributes, draft.root()));
  const Value result = draft.value();
  const std::span<const Value> volumes = result.items_at("spec", "volumes");
  ASSERT_EQ(volumes.size(), 1u);
  const std::string_view name = volumes[0].text_at("name");
  EXPECT_EQ(name.size(), std::string_view("kube-api-access-").size() + 5);
  EXPECT_EQ(
      codec::encode_json(*volumes[0].find("projected")),
      R"({"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420})");
  const std::span<const Value> containers = result.items_at("spec", "containers");
  ASSERT_EQ(containers[0].items_at("volumeMounts").size(), 1u);
  EXPECT_EQ(containers[0].items_at("volumeMounts")[0].text_at("name"), name);
  EXPECT_EQ(containers[1].items_at("volumeMounts").size(), 1u);
}

TEST(ChainTest, DisabledPluginsDoNothing) {
  Arena arena;
  const Objects objects = cluster();
  const Chain chain({.enabled = {}, .disabled = {"DefaultTolerationSeconds", "Priority", "ServiceAccount"}});
  std::vector<std::string> warnings;
  const types::Resource& pods = *types::find_resource("", "v1", "pods");
  Attributes attributes{
      .resource = pods, .ns = "plain", .name = "p", .arena = arena, .lookup = objects, .warnings = warnings};
  const Value pod = *codec::decode_json(arena, R"({"metadata":{"name":"p"},"spec":{}})");
  Draft draft(arena, pod);
  ASSERT_TRUE(chain.admit(attributes, draft.root()));
  EXPECT_TRUE(equal(draft.value(), pod));
}

// The effect of a plugin that is off by default on a pod or service, once it is enabled.
struct EnabledCase {
  const char* name;
  const char* plugin;
  const char* plural = "pods";
  const char* object = "";
  const char* old = nullptr;
  const char* want = "";
  const char* error = "";
  const char* ns = "plain";
};

void PrintTo(const EnabledCase& c, std::ostream* os) { *os << c.name; }

class EnabledPluginTest : public ::testing::TestWithParam<EnabledCase> {};

TEST_P(EnabledPluginTest, ActsOnlyWhenEnabled) {
  const EnabledCase& c = GetParam();
  const Objects objects = cluster();
  const types::Resource& resource = *types::find_resource("", "v1", c.plural);
  for (const bool enabled : {false, true}) {
    Arena arena;
    const Value object = *codec::decode_json(arena, c.object);
    const Value old = c.old == nullptr ? Value::null() : *codec::decode_json(arena, c.old);
    std::vector<std::string> warnings;
    Attributes attributes{.operation = c.old == nullptr ? Operation::Create : Operation::Update,
                          .resource = resource,
                          .ns = c.ns,
                          .name = "o",
                          .old = c.old == nullptr ? nullptr : &old,
                          .arena = arena,
                          .lookup = objects,
                          .warnings = warnings};
    PluginChoice choice{.enabled = {}, .disabled = {"NamespaceLifecycle", "ServiceAccount"}};
    if (enabled) choice.enabled.emplace_back(c.plugin);
    const Chain chain(choice);
    EXPECT_EQ(chain.has(c.plugin), enabled);
    Draft draft(arena, object);
    Result<Unit> done = chain.admit(attributes, draft.root());
    if (done) done = chain.validate(attributes, draft.value());
    if (*c.error != 0) {
      EXPECT_EQ(bool(done), !enabled);
      if (!done) EXPECT_EQ(done.error().message, c.error);
    }
    if (*c.want != 0) {
      ASSERT_TRUE(done);
      EXPECT_EQ(includes(draft.value(), *codec::decode_json(arena, c.want)), enabled)
          << codec::encode_json(draft.value());
    }
  }
}

constexpr EnabledCase kEnabledCases[] = {
    {.name = "every write is denied",
     .plugin = "AlwaysDeny",
     .object = R"({"metadata":{"name":"o"},"spec":{"containers":[]}})",
     .error = R"(pods "o" is forbidden: admission control is denying all modifications)"},
    {.name = "images are always pulled, including those of volumes",
     .plugin = "AlwaysPullImages",
     .object = R"({"metadata":{"name":"o"},"spec":{"containers":[{"name":"c","image":"i","imagePullPolicy":"Never"}],)"
               R"("volumes":[{"name":"v","image":{"reference":"r"}}]}})",
     .want = R"({"spec":{"containers":[{"name":"c","image":"i","imagePullPolicy":"Always"}],)"
             R"("volumes":[{"name":"v","image":{"reference":"r","pullPolicy":"Always"}}]}})"},
    {.name = "external IPs are denied",
     .plugin = "DenyServiceExternalIPs",
     .plural = "services",
     .object = R"({"metadata":{"name":"o"},"spec":{"externalIPs":["10.1.1.1","10.1.1.2"]}})",
     .old = R"({"metadata":{"name":"o"},"spec":{"externalIPs":["10.1.1.1"]}})",
     .error = R"(services "o" is forbidden: Use of external IPs is denied by admission control)"},
    {.name = "anti-affinity is limited to hostname topology",
     .plugin = "LimitPodHardAntiAffinityTopology",
     .object = R"({"metadata":{"name":"o"},"spec":{"containers":[],"affinity":{"podAntiAffinity":)"
               R"({"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone"}]}}}})",
     .error = R"(pods "o" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but )"
              R"(only key kubernetes.io/hostname is allowed)"},
    {.name = "namespace must exist",
     .plugin = "NamespaceExists",
     .plural = "configmaps",
     .object = R"({"metadata":{"name":"o"}})",
     .error = R"(namespaces "nosuch" not found)",
     .ns = "nosuch"},
    {.name = "taints of requested extended resources are tolerated, sorted and without limits of time",
     .plugin = "ExtendedResourceToleration",
     .object = R"({"metadata":{"name":"o"},"spec":{"tolerations":[{"key":"e.com/b","operator":"Exists",)"
               R"("effect":"NoSchedule","tolerationSeconds":3},{"operator":"Exists","effect":"NoExecute"}],)"
               R"("containers":[{"resources":{"requests":{"e.com/c":"1","e.com/b":"1","cpu":"1"}}}],)"
               R"("initContainers":[{"resources":{"requests":{"e.com/a":"1"},"limits":{"e.com/limited":"1"}}}]}})",
     .want = R"({"spec":{"tolerations":[{"key":"e.com/b","operator":"Exists","effect":"NoSchedule"},)"
             R"({"operator":"Exists","effect":"NoExecute"},)"
             R"({"key":"e.com/a","operator":"Exists","effect":"NoSchedule"},)"
             R"({"key":"e.com/c","operator":"Exists","effect":"NoSchedule"}]}})"},
};

INSTANTIATE_TEST_SUITE_P(Plugins, EnabledPluginTest, ::testing::ValuesIn(kEnabledCases),
                         [](const auto& info) { return std::string(info.param.plugin); });

TEST(EnabledPluginTest, UpdateWithoutNewImagesKeepsPullPolicies) {
  Arena arena;
  const Objects objects = cluster();
  std::vector<std::string> warnings;
  const Value pod = *codec::decode_json(
      arena, R"({"metadata":{"name":"o"},"spec":{"containers":[{"name":"c","image":"i","imagePullPolicy":"Never"}]}})");
  Attributes attributes{.operation = Operation::Update,
                        .resource = *types::find_resource("", "v1", "pods"),
                        .ns = "plain",
                        .name = "o",
                        .old = &pod,
                        .arena = arena,
                        .lookup = objects,
                        .warnings = warnings};
  const Chain chain({.enabled = {"AlwaysPullImages"}, .disabled = {}});
  Draft draft(arena, pod);
  ASSERT_TRUE(chain.admit(attributes, draft.root()));
  ASSERT_TRUE(chain.validate(attributes, draft.value()));
  EXPECT_EQ(draft.value().items_at("spec", "containers")[0].text_at("imagePullPolicy"), "Never");
}

// --- The configuration of PodSecurity ---

struct ConfiguredCase {
  const char* name;
  const char* user = "alice";
  const char* ns = "plain";
  const char* plural = "pods";
  const char* object;
  const char* old = nullptr;
  const char* error = "";       // The error message.
  const char* warning = "";     // The first warning.
  const char* annotation = "";  // An audit annotation: key=value.
};

constexpr char kRoot[] = R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i",)"
                         R"("securityContext":{"privileged":true}}]}})";
constexpr char kBoxedRoot[] = R"({"metadata":{"name":"p"},"spec":{"runtimeClassName":"box","containers":[)"
                              R"({"name":"c","image":"i","securityContext":{"privileged":true}}]}})";
constexpr char kReplicaSet[] = R"({"metadata":{"name":"r"},"spec":{"template":{"spec":{"containers":[)"
                               R"({"name":"c","image":"i","securityContext":{"privileged":true}}]}}}})";

constexpr ConfiguredCase kConfiguredCases[] = {
    {.name = "namespace without labels uses the defaults",
     .object = kRoot,
     .error = R"(pods "p" is forbidden: violates PodSecurity "baseline:v1.30": privileged (container "c" must not set )"
              R"(securityContext.privileged=true))"},
    {.name = "labels override only the settings they name",
     .ns = "warned",
     .object = kRoot,
     .error = R"(pods "p" is forbidden: violates PodSecurity "baseline:v1.30": privileged (container "c" must not set )"
              R"(securityContext.privileged=true))"},
    {.name = "controllers get warnings only",
     .plural = "replicationcontrollers",
     .object = kReplicaSet,
     .warning = R"(would violate PodSecurity "baseline:latest": privileged (container "c" must not set )"
                R"(securityContext.privileged=true))"},
    {.name = "exempt user", .user = "root", .object = kRoot, .annotation = "exempt=user"},
    {.name = "exempt namespace", .ns = "strict", .object = kRoot, .annotation = "exempt=namespace"},
    {.name = "exempt runtime class", .object = kBoxedRoot, .annotation = "exempt=runtimeClass"},
    {.name = "controller created by an exempt user",
     .user = "root",
     .plural = "replicationcontrollers",
     .object = kReplicaSet,
     .annotation = "exempt=user"},
    {.name = "labels of an exempt namespace cause a warning",
     .plural = "namespaces",
     .object =
         R"({"metadata":{"name":"strict","labels":{"pod-security.kubernetes.io/enforce":"restricted",)"
         R"("pod-security.kubernetes.io/audit":"privileged","pod-security.kubernetes.io/warn-version":"v1.29"}}})",
     .warning = R"(namespace "strict" is exempt from Pod Security, and the policy (enforce=restricted:v1.30, )"
                R"(warn=restricted:v1.29) will be ignored)"},
    {.name = "exempt namespace with default labels",
     .plural = "namespaces",
     .object = R"({"metadata":{"name":"strict","labels":{"pod-security.kubernetes.io/enforce":"baseline"}}})"},
    {.name = "exempt namespace made stricter",
     .plural = "namespaces",
     .object = R"({"metadata":{"name":"strict","labels":{"pod-security.kubernetes.io/enforce":"restricted"}}})",
     .old = R"({"metadata":{"name":"strict"}})",
     .warning = R"(namespace "strict" is exempt from Pod Security, and the policy (enforce=restricted:v1.30) will be )"
                R"(ignored)"},
};

TEST(PodSecurityConfigurationTest, AppliesDefaultsAndExemptions) {
  PluginChoice choice{.enabled = {}, .disabled = {"ServiceAccount", "Priority", "RuntimeClass"}};
  choice.configuration.pod_security = {
      .defaults = {.enforce = {Level::Baseline, 30}, .audit = {}, .warn = {Level::Baseline, -1}},
      .exempt_users = {"root"},
      .exempt_namespaces = {"strict"},
      .exempt_runtime_classes = {"box"}};
  const Chain chain(choice);
  for (const ConfiguredCase& c : kConfiguredCases) {
    Arena arena;
    const Objects objects = cluster();
    const types::Resource& resource = *types::find_resource("", "v1", c.plural);
    const Value object = *codec::decode_json(arena, c.object);
    const Value old = c.old == nullptr ? Value::null() : *codec::decode_json(arena, c.old);
    std::vector<std::string> warnings;
    Attributes attributes{.operation = c.old == nullptr ? Operation::Create : Operation::Update,
                          .resource = resource,
                          .ns = resource.namespaced ? c.ns : "",
                          .name = object.text_at("metadata", "name"),
                          .user = c.user,
                          .old = c.old == nullptr ? nullptr : &old,
                          .arena = arena,
                          .lookup = objects,
                          .warnings = warnings};
    const Result<Unit> done = chain.validate(attributes, object);
    EXPECT_EQ(done ? "" : done.error().message, c.error) << c.name;
    EXPECT_EQ(warnings.empty() ? "" : warnings[0], c.warning) << c.name;
    if (*c.annotation == 0) continue;
    std::string found;
    for (const auto& [key, value] : attributes.annotations) found += key.substr(key.find('/') + 1) + "=" + value;
    EXPECT_EQ(found, c.annotation) << c.name;
  }
}

TEST(PluginChoiceTest, RejectsUnknownAndUnsupportedPlugins) {
  const auto message = [](PluginChoice choice) {
    Result<Unit> checked = check_plugin_choice(choice);
    return checked ? std::string() : checked.error().message;
  };
  EXPECT_EQ(message({{"Priority", "ResourceQuota", "AlwaysPullImages"}, {"ServiceAccount", "NodeRestriction"}}), "");
  EXPECT_EQ(message({{"Nope"}, {}}), R"(enable-admission-plugins plugin "Nope" is unknown)");
  EXPECT_EQ(message({{}, {"Nope"}}), R"(disable-admission-plugins plugin "Nope" is unknown)");
  EXPECT_EQ(message({{"A"}, {"B"}}), R"([enable-admission-plugins plugin "A" is unknown, )"
                                     R"(disable-admission-plugins plugin "B" is unknown])");
  EXPECT_EQ(message({{"RuntimeClass", "Priority"}, {"Priority", "RuntimeClass"}}),
            "[Priority RuntimeClass] in enable-admission-plugins and disable-admission-plugins overlapped");
  EXPECT_EQ(message({{"ImagePolicyWebhook"}, {}}),
            R"(enable-admission-plugins plugin "ImagePolicyWebhook" is not supported by Holdfast)");
}

}  // namespace
}  // namespace holdfast::admission
