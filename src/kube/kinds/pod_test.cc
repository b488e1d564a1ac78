// Pods.

#include <gmock/gmock.h>

#include <random>

#include "codec/codec.h"
#include "kinds/testing.h"

namespace holdfast::kinds {
namespace {

// 63 characters; four of them plus "library/" are too long.
#define LONG "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

constexpr Case kPods[] = {
    {.name = "pod starts Pending with its QoS class",
     .plural = "pods",
     .object = "{" POD_SPEC "}",
     .want = R"({"metadata":{"generation":1},"status":{"phase":"Pending","qosClass":"BestEffort"}})"},
    {.name = "requests default to limits",
     .plural = "pods",
     .object =
         R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"1","memory":"1Gi"}}}]}})",
     .want = R"({"status":{"qosClass":"Guaranteed"}})"},
    {.name = "gated pod has a PodScheduled condition",
     .plural = "pods",
     .object = R"({"spec":{"schedulingGates":[{"name":"a/b"}],"containers":[{"name":"c","image":"i"}]}})",
     .want = R"({"status":{"conditions":[{"type":"PodScheduled","status":"False","lastProbeTime":null,)"
             R"("lastTransitionTime":"2026-01-01T00:00:00Z","reason":"SchedulingGated",)"
             R"("message":"Scheduling is blocked due to non-empty scheduling gates"}]}})"},
    {.name = "image may change and increments generation",
     .plural = "pods",
     .object = "{" POD_SPEC "}",
     .update = R"({"spec":{"containers":[{"name":"c","image":"i:2"}]}})",
     .want = R"({"metadata":{"generation":2}})"},
    {.name = "containers cannot be added",
     .plural = "pods",
     .object = "{" POD_SPEC "}",
     .update = R"({"spec":{"containers":[{"name":"c","image":"i:1"},{"name":"d","image":"i"}]}})",
     .error = "spec.containers: Forbidden: pod updates may not add or remove containers"},
    {.name = "active deadline cannot be increased",
     .plural = "pods",
     .object = R"({"spec":{"activeDeadlineSeconds":5,"containers":[{"name":"c","image":"i"}]}})",
     .update = R"({"spec":{"activeDeadlineSeconds":9}})",
     .error = "spec.activeDeadlineSeconds: Invalid value: 9: must be less than or equal to previous value"},
    {.name = "existing tolerations cannot be removed",
     .plural = "pods",
     .object = R"({"spec":{"tolerations":[{"key":"a","operator":"Exists"}],"containers":[{"name":"c","image":"i"}]}})",
     .update = R"({"spec":{"tolerations":null}})",
     .error = "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"},
    {.name = "status sent to the main endpoint is dropped",
     .plural = "pods",
     .object = "{" POD_SPEC "}",
     .update = R"({"status":{"phase":"Running"}})",
     .want = R"({"status":{"phase":"Pending"}})"},
    {.name = "status endpoint keeps the spec",
     .plural = "pods",
     .object = "{" POD_SPEC "}",
     .update = R"({"spec":{"nodeName":"n"},"status":{"phase":"Running"}})",
     .endpoint = Endpoint::Status,
     .want =
         R"({"spec":{"nodeName":null},"status":{"phase":"Running","qosClass":"BestEffort"},"metadata":{"generation":1}})"},
    {.name = "QoS class is immutable",
     .plural = "pods",
     .object = "{" POD_SPEC "}",
     .update = R"({"status":{"qosClass":"Guaranteed"}})",
     .endpoint = Endpoint::Status,
     .error = R"(status.qosClass: Invalid value: "Guaranteed": field is immutable)"},
    {.name = "resize must not change the QoS class",
     .plural = "pods",
     .object = R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1","memory":"1Gi"},)"
               R"("limits":{"cpu":"1","memory":"1Gi"}}}]}})",
     .update =
         R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"500m","memory":"1Gi"},)"
         R"("limits":{"cpu":"1","memory":"1Gi"}}}]}})",
     .endpoint = Endpoint::Resize,
     .error = R"(spec: Invalid value: "Guaranteed": Pod QOS Class may not change as a result of resizing)"},
    {.name = "ephemeral containers cannot be set on create",
     .plural = "pods",
     .object = R"({"spec":{"containers":[{"name":"c","image":"i"}],"ephemeralContainers":[{"name":"e","image":"i"}]}})",
     .error = "spec.ephemeralContainers: Forbidden: cannot be set on create"},
    {.name = "environment variable with an empty valueFrom",
     .plural = "pods",
     .object = R"({"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"A","valueFrom":{}}]}]}})",
     .error = R"(spec.containers[0].env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, )"
              R"(`resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`)"},
    {.name = "fieldRef to an unknown field",
     .plural = "pods",
     .object = R"({"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"A","valueFrom":{"fieldRef":)"
               R"({"fieldPath":"spec.nope"}}}]}]}})",
     .error = R"(spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.nope": error converting )"
              R"(fieldPath: field label not supported: spec.nope)"},
    {.name = "mount of an unknown volume",
     .plural = "pods",
     .object = R"({"spec":{"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"v","mountPath":"/m"}]}]}})",
     .error = R"(spec.containers[0].volumeMounts[0].name: Not found: "v")"},
    {.name = "volume with two sources",
     .plural = "pods",
     .object = R"({"spec":{"containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","emptyDir":{},)"
               R"("configMap":{"name":"m"}}]}})",
     .error = "spec.volumes[0].configMap: Forbidden: may not specify more than 1 volume type"},
    {.name = "requests above limits",
     .plural = "pods",
     .object =
         R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"2"},"limits":{"cpu":"1"}}}]}})",
     .error =
         R"(spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1)"},
    {.name = "unknown resource name",
     .plural = "pods",
     .object = R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"gpu":"1"}}}]}})",
     .error =
         R"([spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a standard resource type or )"
         R"(fully qualified, spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a standard )"
         R"(resource for containers])"},
    {.name = "probe without a handler",
     .plural = "pods",
     .object = R"({"spec":{"containers":[{"name":"c","image":"i","livenessProbe":{"successThreshold":2}}]}})",
     .error = R"([spec.containers[0].livenessProbe: Required value: must specify a handler type, )"
              R"(spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1])"},
    {.name = "image name that is too long has no tag",
     .plural = "pods",
     .object = R"({"spec":{"containers":[{"name":"c","image":")" LONG LONG LONG LONG R"("}]}})",
     .want = R"({"spec":{"containers":[{"name":"c","image":")" LONG LONG LONG LONG
             R"(","imagePullPolicy":"IfNotPresent","resources":{},"terminationMessagePath":"/dev/termination-log",)"
             R"("terminationMessagePolicy":"File"}]}})"},
    {.name = "init container with a lifecycle",
     .plural = "pods",
     .object = R"({"spec":{"containers":[{"name":"c","image":"i"}],"initContainers":[{"name":"i","image":"i",)"
               R"("lifecycle":{"preStop":{"exec":{"command":["x"]}}}}]}})",
     .error = "spec.initContainers[0].lifecycle: Forbidden: may not be set for init containers without "
              "restartPolicy=Always"},
    {.name = "host port on the host network",
     .plural = "pods",
     .object =
         R"({"spec":{"hostNetwork":true,"containers":[{"name":"c","image":"i","ports":[{"containerPort":80,"hostPort":81}]}]}})",
     .error = "spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` "
              "is true"},
    {.name = "toleration without a key requires Exists",
     .plural = "pods",
     .object = R"({"spec":{"tolerations":[{"tolerationSeconds":5}],"containers":[{"name":"c","image":"i"}]}})",
     .error = R"([spec.tolerations[0].operator: Invalid value: "": operator must be Exists when `key` is empty, which )"
              R"(means "match all values and all keys", spec.tolerations[0].effect: Invalid value: "": effect must be )"
              R"('NoExecute' when `tolerationSeconds` is set])"},
    {.name = "invalid topology spread constraint",
     .plural = "pods",
     .object = R"({"spec":{"topologySpreadConstraints":[{"maxSkew":0,"topologyKey":"","whenUnsatisfiable":"x",)"
               R"("labelSelector":{}}],"containers":[{"name":"c","image":"i"}]}})",
     .error = R"([spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero, )"
              R"(spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty, )"
              R"(spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "x": supported values: )"
              R"("DoNotSchedule", "ScheduleAnyway"])"},
    {.name = "invalid pod annotations",
     .plural = "pods",
     .object = R"({"metadata":{"annotations":{"kubernetes.io/config.mirror":"m",)"
               R"("controller.kubernetes.io/pod-deletion-cost":"+1","seccomp.security.alpha.kubernetes.io/pod":"x",)"
               R"("container.apparmor.security.beta.kubernetes.io/d":"y"}},)" POD_SPEC "}",
     .error =
         R"([metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "m": must set spec.nodeName if )"
         R"(mirror pod annotation is set, metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid )"
         R"(value: "+1": must be a 32bit integer, metadata.annotations.seccomp.security.alpha.kubernetes.io/pod: )"
         R"(Invalid value: "x": must be a valid seccomp profile, )"
         R"(metadata.annotations[container.apparmor.security.beta.kubernetes.io/d]: Invalid value: "d": container )"
         R"(not found, metadata.annotations[container.apparmor.security.beta.kubernetes.io/d]: Invalid value: "y": )"
         R"(invalid AppArmor profile name: "y"])"},
    {.name = "AppArmor annotations cannot be added",
     .plural = "pods",
     .object = "{" POD_SPEC "}",
     .update = R"({"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/c":"unconfined"}}})",
     .error = R"(metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: Forbidden: may not add )"
              R"(AppArmor annotations)"},
    {.name = "seccomp annotation and field must match",
     .plural = "pods",
     .object = R"({"metadata":{"annotations":{"container.seccomp.security.alpha.kubernetes.io/c":"localhost/a"}},)"
               R"("spec":{"containers":[{"name":"c","image":"i","securityContext":{"seccompProfile":)"
               R"({"type":"Localhost","localhostProfile":"b"}}}]}})",
     .error = "spec.containers[0].securityContext.seccompProfile.localhostProfile: Forbidden: seccomp profile in "
              "annotation and field must match"},
    {.name = "invalid Windows options",
     .plural = "pods",
     .object = R"({"spec":{"securityContext":{"windowsOptions":{"runAsUserName":"a.b_c\\x;y",)"
               R"("gmsaCredentialSpec":""}},"containers":[{"name":"c","image":"i"}]}})",
     .error =
         R"([spec.securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: "": gmsaCredentialSpec cannot be an )"
         R"(empty string, spec.securityContext.windowsOptions.runAsUserName: Invalid value: "a.b_c\\x;y": )"
         R"(runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]])"},
    {.name = "sysctls of host namespaces are rejected",
     .plural = "pods",
     .object = R"({"spec":{"hostNetwork":true,"hostIPC":true,"securityContext":{"sysctls":[{"name":"net/ipv4.x"},)"
               R"({"name":"kernel.sem"}]},"containers":[{"name":"c","image":"i"}]}})",
     .error = R"([spec.securityContext.sysctls[0].name: Invalid value: "net/ipv4.x": may not be specified when )"
              R"('hostNetwork' is true, spec.securityContext.sysctls[1].name: Invalid value: "kernel.sem": may not be )"
              R"(specified when 'hostIPC' is true])"},
    {.name = "pod level requests below those of the containers",
     .plural = "pods",
     .object =
         R"({"spec":{"resources":{"requests":{"cpu":"1"},"limits":{"cpu":"1"}},"initContainers":[{"name":"i","image":"i",)"
         R"("restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}}],"containers":[{"name":"c","image":"i",)"
         R"("resources":{"requests":{"cpu":"1"},"limits":{"cpu":"2"}}}]}})",
     .error =
         R"([spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container )"
         R"(requests of 2, spec.resources.containers[0][cpu].limits: Invalid value: "2": must be less than or equal )"
         R"(to pod limits of 1])"},
    {.name = "block devices need a claim and fileKeyRef needs an emptyDir",
     .plural = "pods",
     .object = R"({"spec":{"volumes":[{"name":"h","hostPath":{"path":"/x"}}],"containers":[{"name":"c","image":"i",)"
               R"("volumeDevices":[{"name":"h","devicePath":"/d"}],"env":[{"name":"A","valueFrom":{"fileKeyRef":)"
               R"({"volumeName":"h","path":"p","key":"k"}}},{"name":"B","valueFrom":{"fileKeyRef":)"
               R"({"volumeName":"none","path":"p","key":"k"}}}]}]}})",
     .error =
         R"([spec.containers[0].volumeDevices[0].name: Invalid value: "h": can only use volume source type of )"
         R"(PersistentVolumeClaim or Ephemeral for block mode, )"
         R"(spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Invalid value: "h": referenced volume must be of )"
         R"(type emptyDir, spec.containers[0].env[1].valueFrom.fileKeyRef.volumeName: Not found: "none"])"},
    {.name = "fileKeyRef is not optional by default",
     .plural = "pods",
     .object = R"({"spec":{"volumes":[{"name":"e"}],"containers":[{"name":"c","image":"i","env":[{"name":"A",)"
               R"("valueFrom":{"fileKeyRef":{"volumeName":"e","path":"p","key":"k"}}}],"imagePullPolicy":"Always",)"
               R"("terminationMessagePath":"/t","terminationMessagePolicy":"File"}]}})",
     .want = R"({"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"A","valueFrom":{"fileKeyRef":)"
             R"({"volumeName":"e","path":"p","key":"k","optional":false}}}],"resources":{},)"
             R"("terminationMessagePath":"/t","terminationMessagePolicy":"File","imagePullPolicy":"Always"}]}})"},
    {.name = "all but the last of equal topology spread constraints are duplicates",
     .plural = "pods",
     .object =
         R"({"spec":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"DoNotSchedule"},)"
         R"({"maxSkew":2,"topologyKey":"z","whenUnsatisfiable":"DoNotSchedule"},)"
         R"({"maxSkew":3,"topologyKey":"z","whenUnsatisfiable":"ScheduleAnyway"},)"
         R"({"maxSkew":4,"topologyKey":"z","whenUnsatisfiable":"DoNotSchedule"}],"containers":[{"name":"c","image":"i"}]}})",
     .error = R"([spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "{z, )"
              R"(DoNotSchedule}", spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: Duplicate )"
              R"(value: "{z, DoNotSchedule}"])"},
    {.name = "matchLabelKeys must not repeat the selector",
     .plural = "pods",
     .object =
         R"({"metadata":{"labels":{"a":"b"}},"spec":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"z",)"
         R"("whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"a":"b"}},)"
         R"("matchLabelKeys":["a"]}],"containers":[{"name":"c","image":"i"}]}})",
     .error = R"(spec.topologySpreadConstraints[0][0]: Invalid value: "a": exists in both matchLabelKeys and )"
              R"(labelSelector)"},
    {.name = "node selector of a gated pod only allows additions",
     .plural = "pods",
     .object = R"({"spec":{"schedulingGates":[{"name":"g"}],"nodeSelector":{"a":"b"},)"
               R"("containers":[{"name":"c","image":"i"}]}})",
     .update = R"({"spec":{"nodeSelector":{"a":"c"}}})",
     .error = R"(spec.nodeSelector: Invalid value: {"a":"c"}: only additions to spec.nodeSelector are allowed (no )"
              R"(mutations or deletions))"},
    {.name = "resize only changes cpu and memory",
     .plural = "pods",
     .object = R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}})",
     .update = R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"2"}},)"
               R"("resizePolicy":[{"resourceName":"cpu","restartPolicy":"NotRequired"}]}]}})",
     .endpoint = Endpoint::Resize,
     .error = "spec: Forbidden: only cpu and memory resources are mutable"},
    {.name = "pod level resources determine the QoS class",
     .plural = "pods",
     .object =
         R"({"spec":{"resources":{},"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}})",
     .want = R"({"status":{"qosClass":"BestEffort"}})"},
    {.name = "containers cannot be renamed in a resize",
     .plural = "pods",
     .object = "{" POD_SPEC "}",
     .update = R"({"spec":{"containers":[{"name":"d","image":"i:1"}]}})",
     .endpoint = Endpoint::Resize,
     .error = "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"},
    {.name = "invalid container statuses",
     .plural = "pods",
     .object = "{" POD_SPEC "}",
     .update = R"({"status":{"containerStatuses":[{"name":"c","user":{"linux":{"uid":-1,"gid":0}},)"
               R"("allocatedResourcesStatus":[{"name":"claim:a","resources":[{"resourceID":"r","health":"x"},)"
               R"({"resourceID":"r","health":"Healthy"}]}],"volumeMounts":[{"name":"v","mountPath":"/m",)"
               R"("volumeStatus":{"image":{"imageRef":""}}}]}]}})",
     .endpoint = Endpoint::Status,
     .error =
         R"([status.containerStatuses[0].user.linux.uid: Invalid value: -1: must be between 0 and 2147483647, inclusive, )"
         R"(status.containerStatuses[0].allocatedResourcesStatus[0].name: Invalid value: "claim:a": must match one of )"
         R"(the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request )"
         R"(is empty, status.containerStatuses[0].allocatedResourcesStatus[0].resources[0].health: Unsupported value: )"
         R"("x": supported values: "Healthy", "Unhealthy", "Unknown", )"
         R"(status.containerStatuses[0].allocatedResourcesStatus[0].resources[1].resourceID: Duplicate value: "r"])"},
};

INSTANTIATE_TEST_SUITE_P(Pods, KindTest, testing::ValuesIn(kPods), test_name);

// --- Files of one volume in the same place ---

std::vector<std::string> pod_warnings(const std::string& volumes) {
  Arena arena;
  const std::string text =
      R"({"metadata":{"name":"p","namespace":"n"},"spec":{"containers":[{"name":"c","image":"i"}],"volumes":[)" +
      volumes + "]}}";
  Context context{.arena = arena, .resource = *types::find_resource("", "v1", "pods"), .now = {}};
  Warnings warnings;
  add_warnings(context, *codec::decode_json(arena, text), nullptr, Endpoint::Main, warnings);
  return {warnings.texts().begin(), warnings.texts().end()};
}

std::string items(std::span<const std::string> paths) {
  std::string text;
  for (const std::string& path : paths) text += (text.empty() ? "" : ",") + (R"({"key":"k","path":")" + path + "\"}");
  return text;
}
std::string config_map(std::span<const std::string> paths) {
  return R"({"name":"v","configMap":{"name":"c","items":[)" + items(paths) + "]}}";
}

TEST(PodWarningsTest, NameEachPairOfFilesInTheSamePlace) {
  const std::string start = "volume \"v\" (ConfigMap \"c\"): overlapping paths: ";
  const std::string paths[] = {"a/b", "a", "b", "a-", "a/", "a/b/c"};
  EXPECT_THAT(pod_warnings(config_map(paths)),
              testing::ElementsAre(start + R"("a" with "a/b")", start + R"("a" with "a")",
                                   start + R"("a/b/c" with "a/b")", start + R"("a/b/c" with "a")"));
}

TEST(PodWarningsTest, ProjectedFilesAreNamedWithTheirSource) {
  const std::string one[] = {"a"}, two[] = {"a/b", "a"};
  EXPECT_THAT(
      pod_warnings(R"({"name":"v","projected":{"sources":[{"configMap":{"name":"c","items":[)" + items(one) +
                   R"(]}},{"secret":{"name":"s","items":[)" + items(two) + "]}}]}}"),
      testing::ElementsAre(R"(volume "v" (Projected): overlapping paths: "a/b" (Secret "s") with "a" (ConfigMap "c"))",
                           R"(volume "v" (Projected): overlapping paths: "a" (Secret "s") with "a" (ConfigMap "c"))",
                           R"(volume "v" (Projected): overlapping paths: "a" (Secret "s") with "a/b" (Secret "s"))"));
}

// The definition: each file with all before it, every text once.
std::vector<std::string> pairwise(std::span<const std::string> paths) {
  Warnings found;
  const auto inside = [](const std::string& path, const std::string& directory) {
    return (path + "/").starts_with(directory + "/");
  };
  for (size_t i = 0; i < paths.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!inside(paths[i], paths[j]) && !inside(paths[j], paths[i])) continue;
      found.add("volume \"v\" (ConfigMap \"c\"): overlapping paths: \"" + paths[i] + "\" with \"" + paths[j] + "\"");
    }
  }
  return {found.texts().begin(), found.texts().end()};
}

TEST(PodWarningsTest, AreThoseOfAPairwiseComparison) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::string> paths(random() % 12);
    for (std::string& path : paths) {
      for (size_t parts = 1 + random() % 4; parts > 0; --parts) {
        path += path.empty() ? "" : "/";
        path += std::array{"a", "b", "a-", ".c"}[random() % 4];
      }
    }
    EXPECT_EQ(pod_warnings(config_map(paths)), pairwise(paths)) << config_map(paths);
  }
}

// Work and memory are linear: with each pair looked at, these would take minutes and gigabytes.
TEST(PodWarningsTest, DoNotCompareEachPairOfManyFiles) {
  constexpr size_t kFiles = 30'000;
  std::vector<std::string> same(kFiles, "a"), below, alternating, deep;
  for (size_t i = 0; i < kFiles; ++i) {
    below.push_back(i == 0 ? "a" : "a/" + std::to_string(i));
    alternating.push_back(i % 2 == 0 ? "a" : std::to_string(i));
  }
  for (size_t i = 0; i < 1000; ++i) deep.push_back(deep.empty() ? "a" : deep.back() + "/a");
  EXPECT_EQ(pod_warnings(config_map(same)).size(), 1u);
  EXPECT_LT(pod_warnings(config_map(below)).size(), 100u);
  EXPECT_EQ(pod_warnings(config_map(alternating)).size(), 1u);
  EXPECT_LT(pod_warnings(config_map(deep)).size(), 100u);
}

}  // namespace
}  // namespace holdfast::kinds
