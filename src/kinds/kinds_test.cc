#include "kinds/kinds.h"

#include <gtest/gtest.h>

#include "codec/json.h"
#include "codec/typed.h"

namespace holdfast::kinds {
namespace {

struct Case {
  const char* name;
  const char* group = "";
  const char* plural = "";
  const char* object = "{}";     // Completed with apiVersion, kind, name and namespace if they are missing.
  const char* stored = nullptr;  // Merged into the stored object, which need not be valid by the current rules.
  const char* update = nullptr;  // A merge patch of the created object, written as an update.
  Endpoint endpoint = Endpoint::Main;
  const char* want = nullptr;   // Members that the result must have.
  const char* error = nullptr;  // The message of the error, after `Kind "x" is invalid: `.
};

void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

Value merged(Arena& arena, const Value& to, const Value& patch) {
  if (!patch.is_map()) return patch;
  Value result = to.is_map() ? to : Value::empty_map();
  for (const Member& member : patch.members()) {
    const Value* before = result.find(member.key);
    result = member.value.is_null()
                 ? without_member(arena, result, member.key)
                 : with_member(arena, result, member.key,
                               merged(arena, before == nullptr ? Value::null() : *before, member.value));
  }
  return result;
}

bool includes(const Value& got, const Value& want) {
  if (!want.is_map()) return equal(got, want);
  for (const Member& member : want.members()) {
    const Value* found = got.find(member.key);
    if (member.value.is_null() ? found != nullptr : found == nullptr || !includes(*found, member.value)) return false;
  }
  return true;
}

Value defaulted(Arena& arena, const types::Resource& resource, const Value& object) {
  Result<Value> typed = codec::to_typed(arena, *resource.type, object);
  EXPECT_TRUE(typed) << typed.error().message;
  Draft draft(arena, *typed);
  set_defaults(arena, resource, draft.root());
  return draft.value();
}

class KindTest : public testing::TestWithParam<Case> {};

TEST_P(KindTest, BehavesLikeKubernetes) {
  const Case& c = GetParam();
  Arena arena;
  const types::Resource* resource = types::find_resource(c.group, "v1", c.plural);
  if (resource == nullptr) resource = types::find_resource(c.group, "v2", c.plural);
  ASSERT_NE(resource, nullptr);
  const std::string frame = R"({"kind":")" + std::string(resource->kind) + R"(","apiVersion":")" +
                            (*c.group == 0 ? "" : std::string(c.group) + "/") + std::string(resource->version) +
                            R"(","metadata":{"name":"x","uid":"u-1","resourceVersion":"7",)"
                            R"("creationTimestamp":"2026-01-01T00:00:00Z")" +
                            (resource->namespaced ? R"(,"namespace":"ns")" : "") + "}}";
  const Value sent = merged(arena, *codec::decode_json(arena, frame), *codec::decode_json(arena, c.object));
  const std::string_view families[] = {"IPv4"};
  const Caller caller{.name = "alice", .uid = "", .groups = {}, .extra = {}};
  Context context{.arena = arena,
                  .resource = *resource,
                  .now = {1767225600, 0},
                  .caller = &caller,
                  .service_ip_families = families,
                  .sent = sent};
  Draft draft(arena, defaulted(arena, *resource, sent));
  Result<Unit> valid = Unit{};
  if (resource->plural == "services") {
    Result<ServiceClaims> claims = claims_of_create(context, draft.root());
    if (claims) {
      const std::vector<std::string> ips(claims->ips.size(), "10.0.0.9");
      std::vector<int32_t> ports;
      for (size_t i = 0; i < claims->ports.size(); ++i) ports.push_back(30100 + static_cast<int32_t>(i));
      fill_claims(arena, draft.root(), *claims, ips, ports);
    } else {
      valid = claims.take_error();
    }
  }
  prepare_for_create(context, draft.root());
  Value result = draft.value();
  if (valid) valid = validate_create(context, result);
  if (c.update != nullptr) {
    ASSERT_TRUE(valid) << valid.error().message;
    const Value old = c.stored == nullptr ? result : merged(arena, result, *codec::decode_json(arena, c.stored));
    Draft next(arena, defaulted(arena, *resource, merged(arena, old, *codec::decode_json(arena, c.update))));
    if (resource->plural == "services" && c.endpoint == Endpoint::Main) {
      ASSERT_TRUE(claims_of_update(context, next.root(), old));
    }
    prepare_for_update(context, c.endpoint, next.root(), old);
    result = next.value();
    valid = validate_update(context, c.endpoint, result, old);
  }
  if (c.error != nullptr) {
    ASSERT_FALSE(valid);
    const std::string& message = valid.error().message;
    const size_t at = message.find(" is invalid: ");
    ASSERT_NE(at, std::string::npos) << message;
    EXPECT_EQ(message.substr(at + 13), c.error);
    return;
  }
  ASSERT_TRUE(valid) << valid.error().message;
  if (c.want != nullptr) {
    EXPECT_TRUE(includes(result, *codec::decode_json(arena, c.want))) << codec::encode_json(result);
  }
}

#define POD_SPEC R"("spec":{"containers":[{"name":"c","image":"i:1"}]})"
#define TEMPLATE R"("template":{"metadata":{"labels":{"a":"b"}},)" POD_SPEC "}"
#define SELECTED R"("selector":{"matchLabels":{"a":"b"}},)" TEMPLATE

#define LABEL                                                                                                    \
  R"(a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and )" \
  R"(end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is )"          \
  R"('[a-z0-9]([-a-z0-9]*[a-z0-9])?'))"

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

// Sources shared by volumes of pods and PersistentVolumes, and their differences.
#define POD_VOLUME(source) R"({"spec":{"containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v",)" source "}]}}"
#define VOLUME(source) R"({"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],)" source "}}"
constexpr Case kVolumes[] = {
    {.name = "Flocker dataset with name and UUID",
     .plural = "persistentvolumes",
     .object = VOLUME(R"("flocker":{"datasetName":"a/b","datasetUUID":"u"})"),
     .error = R"([spec.flocker: Invalid value: "resource": datasetName and datasetUUID can not be specified )"
              R"(simultaneously, spec.flocker.datasetName: Invalid value: "a/b": must not contain '/'])"},
    {.name = "invalid iSCSI name in a pod",
     .plural = "pods",
     .object = POD_VOLUME(R"("iscsi":{"targetPortal":"p","iqn":"x","lun":256,"initiatorName":"iqn.2001-04.com:a"})"),
     .error = R"([spec.volumes[0].iscsi.iqn: Invalid value: "x": must be valid format starting with iqn, eui, or naa, )"
              R"(spec.volumes[0].iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive])"},
    {.name = "CHAP requires a secret",
     .plural = "persistentvolumes",
     .object = VOLUME(R"("iscsi":{"targetPortal":"p","iqn":"eui.02004567A425678D","chapAuthSession":true,)"
                      R"("initiatorName":"naa.1"})"),
     .error = R"([spec.iscsi.secretRef: Required value, spec.iscsi.initiatorname: Invalid value: "naa.1": must be )"
              R"(valid format])"},
    {.name = "fibre channel with both targets and ids",
     .plural = "persistentvolumes",
     .object = VOLUME(R"("fc":{"targetWWNs":["a"],"wwids":["b"]})"),
     .error = R"([spec.fc.targetWWNs: Invalid value: ["a"]: targetWWNs and wwids can not be specified simultaneously, )"
              R"(spec.fc.lun: Required value: lun is required if targetWWNs is specified])"},
    {.name = "Flex volume options with reserved names",
     .plural = "pods",
     .object = POD_VOLUME(R"("flexVolume":{"driver":"d","options":{"a.K8s.io/b":"c","notk8s.io":"d"}})"),
     .error =
         R"(spec.volumes[0].flexVolume.options[a.K8s.io/b]: Invalid value: "a.K8s.io/b": kubernetes.io and k8s.io )"
         R"(namespaces are reserved)"},
    {.name = "managed Azure disk requires a subscription URI",
     .plural = "pods",
     .object = POD_VOLUME(R"("azureDisk":{"diskName":"d","diskURI":"https://x","kind":"Managed","cachingMode":"x"})"),
     .error =
         R"([spec.volumes[0].azureDisk.cachingMode: Unsupported value: "x": supported values: "None", "ReadOnly", )"
         R"("ReadWrite", spec.volumes[0].azureDisk.diskURI: Unsupported value: "https://x": supported values: )"
         R"("/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"])"},
    {.name = "Quobyte registry requires hosts and ports",
     .plural = "pods",
     .object = POD_VOLUME(R"("quobyte":{"registry":"[::1]:1,a","volume":"v"})"),
     .error = R"(spec.volumes[0].quobyte.registry: Invalid value: "[::1]:1,a": must be a host:port pair or multiple )"
              R"(pairs separated by commas)"},
    {.name = "secret of a PersistentVolume requires a namespace",
     .plural = "persistentvolumes",
     .object = VOLUME(R"("csi":{"driver":"","volumeHandle":"h","nodeExpandSecretRef":{"name":"A"}})"),
     .error =
         R"([spec.csi.driver: Required value, spec.csi.nodeExpandSecretRef.name: Invalid value: "A": a lowercase )"
         R"(RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and )"
         R"(end with an alphanumeric character (e.g. 'example.com', regex used for validation is )"
         R"('[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'), )"
         R"(spec.csi.nodeExpandSecretRef.namespace: Required value])"},
    {.name = "hostPath of the root directory cannot be recycled",
     .plural = "persistentvolumes",
     .object = VOLUME(R"("hostPath":{"path":"//","type":"x"},"persistentVolumeReclaimPolicy":"Recycle")"),
     .error = R"([spec.hostPath.type: Unsupported value: "x": supported values: "", "BlockDevice", "CharDevice", )"
              R"("Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket", )"
              R"(spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'])"},
    {.name = "gitRepo directory must stay inside the volume",
     .plural = "pods",
     .object = POD_VOLUME(R"("gitRepo":{"repository":"r","directory":"/a/.."})"),
     .error = R"([spec.volumes[0].gitRepo.directory: Invalid value: "/a/..": must be a relative path, )"
              R"(spec.volumes[0].gitRepo.directory: Invalid value: "/a/..": must not contain '..'])"},
    {.name = "ephemeral claim template with a name",
     .plural = "pods",
     .object = POD_VOLUME(R"("ephemeral":{"volumeClaimTemplate":{"metadata":{"uid":"u","name":"n"},"spec":)"
                          R"({"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}})"),
     .error = R"([spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set, )"
              R"(spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.uID: Forbidden: cannot be set])"},
    {.name = "node affinity may change to the current label names",
     .plural = "persistentvolumes",
     .object = VOLUME(R"("local":{"path":"/l"},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":)"
                      R"([{"key":"failure-domain.beta.kubernetes.io/zone","operator":"Exists"}]}]}})"),
     .update = R"({"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":)"
               R"([{"key":"topology.kubernetes.io/zone","operator":"Exists"}]}]}}}})",
     .want = R"({"spec":{"local":{"path":"/l"}}})"},
    {.name = "phase change sets the transition time",
     .plural = "persistentvolumes",
     .object = VOLUME(R"("nfs":{"server":"s","path":"/p"})"),
     .update = R"({"status":{"phase":"Bound","lastPhaseTransitionTime":null}})",
     .endpoint = Endpoint::Status,
     .want = R"({"status":{"phase":"Bound","lastPhaseTransitionTime":"2026-01-01T00:00:00Z"}})"},
    {.name = "inline volume of a VolumeAttachment",
     .group = "storage.k8s.io",
     .plural = "volumeattachments",
     .object = R"({"spec":{"attacher":"a","nodeName":"n","source":{"inlineVolumeSpec":{"capacity":{"storage":"1Gi"},)"
               R"("accessModes":["ReadWriteOnce"],"volumeMode":"Block","storageClassName":"s",)"
               R"("persistentVolumeReclaimPolicy":"Delete","local":{"path":"/x"}}}}})",
     .error =
         R"([spec.source.inlineVolumeSpec.capacity: Forbidden: may not be specified in the context of inline volumes, )"
         R"(spec.source.inlineVolumeSpec.csi: Required value: has to be specified in the context of inline volumes, )"
         R"(spec.source.inlineVolumeSpec.persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the context )"
         R"(of inline volumes, spec.source.inlineVolumeSpec.nodeAffinity: Required value: Local volume requires node )"
         R"(affinity, spec.source.inlineVolumeSpec.storageClassName: Forbidden: may not be specified in the context of )"
         R"(inline volumes, spec.source.inlineVolumeSpec.volumeMode: Forbidden: may not specify volumeMode other than )"
         R"(Filesystem in the context of inline volumes])"},
    {.name = "attach error code out of range",
     .group = "storage.k8s.io",
     .plural = "volumeattachments",
     .object = R"({"spec":{"attacher":"a","nodeName":"n","source":{"persistentVolumeName":"v"}}})",
     .update = R"({"status":{"attached":false,"attachError":{"errorCode":-1}}})",
     .endpoint = Endpoint::Status,
     .error = "status.attachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive"},
    {.name = "duplicate topologies are found in any order",
     .group = "storage.k8s.io",
     .plural = "storageclasses",
     .object = R"({"provisioner":"p","allowedTopologies":[{"matchLabelExpressions":[{"key":"a","values":["1","2"]},)"
               R"({"key":"b","values":["1"]}]},{"matchLabelExpressions":[{"key":"b","values":["1"]},)"
               R"({"key":"a","values":["2","1"]}]}]})",
     .error = R"(allowedTopologies[1].matchLabelExpressions: Duplicate value: "")"},
    {.name = "data source reference to another namespace excludes dataSource",
     .plural = "persistentvolumeclaims",
     .object = R"({"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}},)"
               R"("dataSource":{"kind":"PersistentVolumeClaim","name":"a"}}})",
     .update = R"({"spec":{"dataSourceRef":{"namespace":"A"}}})",
     .error =
         R"([spec.dataSourceRef.namespace: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case )"
         R"(alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or )"
         R"('123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?'), spec: Invalid value: {}: may not be )"
         R"(specified when dataSourceRef.namespace is specified, spec: Forbidden: spec is immutable after creation )"
         R"(except resources.requests and volumeAttributesClassName for bound claims)"
         "\n@@ -21,7 +21,7 @@\n   \"APIGroup\": null,\n   \"Kind\": \"PersistentVolumeClaim\",\n   \"Name\": \"a\",\n"
         "-  \"Namespace\": null\n+  \"Namespace\": \"A\"\n  },\n  \"VolumeAttributesClassName\": null\n }\n]"},
    {.name = "invalid resize status of a claim",
     .plural = "persistentvolumeclaims",
     .object = R"({"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})",
     .update = R"({"status":{"allocatedResourceStatuses":{"cpu":"x"},"allocatedResources":{"storage":"-500m"}}})",
     .endpoint = Endpoint::Status,
     .error = R"([status.allocatedResourceStatuses: Unsupported value: "cpu": supported values: "storage", )"
              R"(status.allocatedResourceStatuses: Unsupported value: "cpu": supported values: )"
              R"("ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", )"
              R"("NodeResizeInfeasible", "NodeResizePending", status.allocatedResources[storage]: Invalid value: -1: )"
              R"(must be a valid resource quantity])"},
};

constexpr Case kWorkloads[] = {
    {.name = "deployment without a selector",
     .group = "apps",
     .plural = "deployments",
     .object = R"({"spec":{)" TEMPLATE "}}",
     .error =
         R"([spec.selector: Required value, spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does )"
         R"(not match template `labels`])"},
    {.name = "unknown deployment strategy",
     .group = "apps",
     .plural = "deployments",
     .object = R"({"spec":{"strategy":{"type":"Foo"},)" SELECTED "}}",
     .error = R"(spec.strategy: Unsupported value: {"Type":"Foo","RollingUpdate":null}: supported values: "Recreate", )"
              R"("RollingUpdate")"},
    {.name = "rolling update that cannot progress",
     .group = "apps",
     .plural = "deployments",
     .object = R"({"spec":{"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":0}},)" SELECTED "}}",
     .error = "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"},
    {.name = "deployment pods must restart always",
     .group = "apps",
     .plural = "deployments",
     .object =
         R"({"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},)"
         R"("spec":{"restartPolicy":"Never","activeDeadlineSeconds":1,"containers":[{"name":"c","image":"i"}]}}}})",
     .error =
         R"([spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always", )"
         R"(spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported])"},
    {.name = "deployment annotations increment generation",
     .group = "apps",
     .plural = "deployments",
     .object = R"({"spec":{)" SELECTED "}}",
     .update = R"({"metadata":{"annotations":{"a":"b"}}})",
     .want = R"({"metadata":{"generation":2},"spec":{"replicas":1}})"},
    {.name = "deployment labels do not increment generation",
     .group = "apps",
     .plural = "deployments",
     .object = R"({"spec":{)" SELECTED "}}",
     .update = R"({"metadata":{"labels":{"a":"b"}}})",
     .want = R"({"metadata":{"generation":1}})"},
    {.name = "deployment status endpoint keeps labels",
     .group = "apps",
     .plural = "deployments",
     .object = R"({"spec":{)" SELECTED "}}",
     .update = R"({"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}},"status":{"replicas":2}})",
     .endpoint = Endpoint::Status,
     .want = R"({"metadata":{"labels":null,"annotations":{"c":"d"}},"status":{"replicas":2}})"},
    {.name = "ready replicas above replicas",
     .group = "apps",
     .plural = "deployments",
     .object = R"({"spec":{)" SELECTED "}}",
     .update = R"({"status":{"readyReplicas":2,"replicas":1}})",
     .endpoint = Endpoint::Status,
     .error = "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"},
    {.name = "most of a StatefulSet spec is immutable",
     .group = "apps",
     .plural = "statefulsets",
     .object = R"({"spec":{"serviceName":"s",)" SELECTED "}}",
     .update = R"({"spec":{"serviceName":"t"}})",
     .error = "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
              "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' "
              "are forbidden"},
    {.name = "DaemonSet counts template changes",
     .group = "apps",
     .plural = "daemonsets",
     .object = R"({"spec":{)" SELECTED "}}",
     .update = R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i:2"}]}}}})",
     .want = R"({"metadata":{"generation":2,"annotations":{"deprecated.daemonset.template.generation":"2"}}})"},
    {.name = "DaemonSet with both maxSurge and maxUnavailable",
     .group = "apps",
     .plural = "daemonsets",
     .object = R"({"spec":{"updateStrategy":{"rollingUpdate":{"maxSurge":1}},)" SELECTED "}}",
     .error = "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is "
              "non-zero"},
    {.name = "DaemonSet status cannot change the template counter",
     .group = "apps",
     .plural = "daemonsets",
     .object = R"({"spec":{)" SELECTED "}}",
     .update = R"({"metadata":{"annotations":{"deprecated.daemonset.template.generation":"7"}}})",
     .endpoint = Endpoint::Status,
     .want = R"({"metadata":{"annotations":{"deprecated.daemonset.template.generation":"1"}}})"},
    {.name = "invalid success policy of a job",
     .group = "batch",
     .plural = "jobs",
     .object = R"({"spec":{"completionMode":"Indexed","completions":4,"successPolicy":{"rules":[{},)"
               R"({"succeededIndexes":"0,3-2"},{"succeededIndexes":"1-2","succeededCount":3}]},)"
               R"("template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})",
     .error =
         R"([spec.successPolicy.rules[0]: Required value: at least one of succeededCount or succeededIndexes must be )"
         R"(specified, spec.successPolicy.rules[1].succeededIndexes: Invalid value: "0,3-2": error parsing )"
         R"(succeededIndexes: non-increasing order, previous: 3, current: 2, )"
         R"(spec.successPolicy.rules[2].succeededCount: Invalid value: 3: must be less than or equal to 2 (the number )"
         R"(of indexes in the specified succeededIndexes field)])"},
    {.name = "job generates its selector",
     .group = "batch",
     .plural = "jobs",
     .object = R"({"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})",
     .want =
         R"({"spec":{"selector":{"matchLabels":{"batch.kubernetes.io/controller-uid":"u-1"}},"template":{"metadata":)"
         R"({"labels":{"job-name":"x","batch.kubernetes.io/job-name":"x","controller-uid":"u-1"}}}}})"},
    {.name = "job pods must not restart always",
     .group = "batch",
     .plural = "jobs",
     .object = R"({"spec":{"template":{)" POD_SPEC "}}}",
     .error = R"(spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never")"},
    {.name = "finished job requires start and completion time",
     .group = "batch",
     .plural = "jobs",
     .object = R"({"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})",
     .update = R"({"status":{"conditions":[{"type":"Complete","status":"True"}]}})",
     .endpoint = Endpoint::Status,
     .error =
         R"([status.completionTime: Required value: completionTime is required for Complete jobs, status.conditions: )"
         R"(Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition, )"
         R"(status.startTime: Required value: startTime is required for finished job])"},
    {.name = "cron schedule with one field",
     .group = "batch",
     .plural = "cronjobs",
     .object = R"({"spec":{"schedule":"x","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never",)"
               R"("containers":[{"name":"c","image":"i"}]}}}}}})",
     .error = R"(spec.schedule: Invalid value: "x": expected exactly 5 fields, found 1: [x])"},
    {.name = "cron schedule out of range",
     .group = "batch",
     .plural = "cronjobs",
     .object =
         R"({"spec":{"schedule":"61 * * * *","concurrencyPolicy":"Maybe","jobTemplate":{"spec":{"template":{"spec":)"
         R"({"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}}})",
     .error = R"([spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61, )"
              R"(spec.concurrencyPolicy: Unsupported value: "Maybe": supported values: "Allow", "Forbid", "Replace"])"},
    {.name = "autoscaler without a target",
     .group = "autoscaling",
     .plural = "horizontalpodautoscalers",
     .object = R"({"spec":{"maxReplicas":0,"minReplicas":0,"scaleTargetRef":{"kind":"","name":"d","apiVersion":""}}})",
     .error =
         R"([spec.minReplicas: Invalid value: 0: must be greater than or equal to 1, spec.maxReplicas: Required )"
         R"(value: must be set and greater than 0, spec.scaleTargetRef.kind: Required value, )"
         R"(spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group, spec.metrics: Forbidden: must )"
         R"(specify at least one Object or External metric to support scaling to zero replicas])"},
    {.name = "disruption budget with both bounds",
     .group = "policy",
     .plural = "poddisruptionbudgets",
     .object = R"({"spec":{"minAvailable":1,"maxUnavailable":"50%"}})",
     .error = R"(spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":"50%",)"
              R"("UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set)"},
    {.name = "job without labels shares those of its template",
     .group = "batch",
     .plural = "jobs",
     .object = R"({"spec":{"template":{"metadata":{"labels":{"a":"b"}},"spec":{"restartPolicy":"Never","containers":)"
               R"([{"name":"c","image":"i"}]}}}})",
     .want = R"({"metadata":{"labels":{"a":"b","job-name":"x","controller-uid":"u-1"}}})"},
    {.name = "job with labels keeps them",
     .group = "batch",
     .plural = "jobs",
     .object = R"({"metadata":{"labels":{"a":"b"}},"spec":{"template":{"metadata":{"labels":{"a":"b"}},)"
               R"("spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})",
     .want = R"({"metadata":{"labels":{"a":"b","job-name":null}}})"},
    {.name = "invalid job selector is not compared",
     .group = "batch",
     .plural = "jobs",
     .object = R"({"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"Foo"}]},)"
               R"("template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})",
     .error = R"(spec.selector.matchExpressions[0].operator: Invalid value: "Foo": not a valid selector operator)"},
    {.name = "invalid indexes in a job status",
     .group = "batch",
     .plural = "jobs",
     .object = R"({"spec":{"completionMode":"Indexed","completions":4,"backoffLimitPerIndex":1,)"
               R"("template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})",
     .update = R"({"status":{"completedIndexes":"0,x,2-3","failedIndexes":"3,1",)"
               R"("uncountedTerminatedPods":{"succeeded":["p","p"],"failed":["","p"]}}})",
     .endpoint = Endpoint::Status,
     .error = R"([status.uncountedTerminatedPods.succeeded[1]: Duplicate value: "p", )"
              R"(status.uncountedTerminatedPods.failed[0]: Invalid value: "": must not be empty, )"
              R"(status.uncountedTerminatedPods.failed[1]: Duplicate value: "p", status.completedIndexes: Invalid )"
              R"(value: "0,x,2-3": error parsing completedIndexes: cannot convert string to integer for index: "x", )"
              R"(status.failedIndexes: Invalid value: "3,1": error parsing failedIndexes: non-increasing order, )"
              R"(previous: 3, current: 1, status.failedIndexes: Invalid value: "3,1": failedIndexes and )"
              R"(completedIndexes overlap at index: 3])"},
    {.name = "StatefulSet with an invalid selector must restart always",
     .group = "apps",
     .plural = "statefulsets",
     .object = R"({"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"Foo"}]},"template":{"spec":)"
               R"({"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})",
     .error = R"([spec.selector.matchExpressions[0].operator: Invalid value: "Foo": not a valid selector operator, )"
              R"(spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Foo"}]}, )"
              R"(spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"])"},
};

constexpr Case kServices[] = {
    {.name = "conflicting service annotations and invalid source ranges",
     .plural = "services",
     .object = R"({"metadata":{"annotations":{"service.kubernetes.io/topology-mode":"Auto",)"
               R"("service.kubernetes.io/topology-aware-hints":"x",)"
               R"("service.beta.kubernetes.io/load-balancer-source-ranges":"10.0.0.0/8, y"}},)"
               R"("spec":{"type":"LoadBalancer","ports":[{"port":80}]}})",
     .error =
         R"([metadata.annotations[service.kubernetes.io/topology-mode]: Invalid value: "Auto": must match )"
         R"(annotations[service.kubernetes.io/topology-aware-hints] when both are specified, )"
         R"(metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]: Invalid value: "y": must be a )"
         R"(valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)])"},
    {.name = "service is single stack by default",
     .plural = "services",
     .object = R"({"spec":{"ports":[{"port":80}]}})",
     .want =
         R"({"spec":{"clusterIP":"10.0.0.9","clusterIPs":["10.0.0.9"],"ipFamilies":["IPv4"],)"
         R"("ipFamilyPolicy":"SingleStack","type":"ClusterIP","internalTrafficPolicy":"Cluster","sessionAffinity":"None",)"
         R"("ports":[{"protocol":"TCP","port":80,"targetPort":80}]}})"},
    {.name = "headless service without a selector is dual stack",
     .plural = "services",
     .object = R"({"spec":{"clusterIP":"None"}})",
     .want = R"({"spec":{"clusterIPs":["None"],"ipFamilies":["IPv4","IPv6"],"ipFamilyPolicy":"RequireDualStack"}})"},
    {.name = "two protocols of one port share a node port",
     .plural = "services",
     .object =
         R"({"spec":{"type":"NodePort","ports":[{"name":"a","port":53},{"name":"b","port":53,"protocol":"UDP"}]}})",
     .want =
         R"({"spec":{"externalTrafficPolicy":"Cluster","ports":[{"name":"a","protocol":"TCP","port":53,"targetPort":53,)"
         R"("nodePort":30100},{"name":"b","protocol":"UDP","port":53,"targetPort":53,"nodePort":30100}]}})"},
    {.name = "dual stack is not configured",
     .plural = "services",
     .object = R"({"spec":{"ipFamilyPolicy":"RequireDualStack","ports":[{"port":80}]}})",
     .error =
         R"(spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services)"},
    {.name = "IP family is not configured",
     .plural = "services",
     .object = R"({"spec":{"ipFamilies":["IPv6"],"ports":[{"port":80}]}})",
     .error = R"(spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster)"},
    {.name = "duplicate ports",
     .plural = "services",
     .object = R"({"spec":{"ports":[{"name":"a","port":1},{"name":"b","port":1}]}})",
     .error =
         R"(spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":1,"TargetPort":0,"NodePort":0})"},
    {.name = "node port of a ClusterIP service",
     .plural = "services",
     .object = R"({"spec":{"ports":[{"port":1,"nodePort":30001}]}})",
     .error = "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"},
    {.name = "existing addresses of a service are accepted in forms that new ones may not have",
     .plural = "services",
     .object = R"({"spec":{"type":"LoadBalancer","ports":[{"port":1}]}})",
     .stored = R"({"spec":{"externalIPs":["010.1.2.3"],"loadBalancerSourceRanges":["010.0.0.0/8"]}})",
     .update = R"({"metadata":{"labels":{"a":"b"}},"spec":{"externalIPs":["010.1.2.3","010.1.2.4"]}})",
     .error = R"(spec.externalIPs[1]: Invalid value: "010.1.2.4": must not have leading 0s)"},
    {.name = "existing CIDRs of a network policy are accepted in forms that new ones may not have",
     .group = "networking.k8s.io",
     .plural = "networkpolicies",
     .object = R"({"spec":{"podSelector":{}}})",
     .stored = R"({"spec":{"ingress":[{"from":[{"ipBlock":{"cidr":"010.0.0.0/8"}}]}]}})",
     .update = R"({"spec":{"egress":[{"to":[{"ipBlock":{"cidr":"010.0.0.0/8","except":["010.1.0.0/16"]}}]}]}})",
     .error =
         R"(spec.egress[0].to[0].ipBlock.except[0]: Invalid value: "010.1.0.0/16": must not have leading 0s in IP or prefix length)"},
    {.name = "ExternalName service without a name",
     .plural = "services",
     .object = R"({"spec":{"type":"ExternalName"}})",
     .error = "spec.externalName: Required value"},
    {.name = "update without allocated values keeps them",
     .plural = "services",
     .object = R"({"spec":{"type":"NodePort","ports":[{"port":80}]}})",
     .update = R"({"spec":{"clusterIP":null,"clusterIPs":null,"ports":[{"port":81,"targetPort":81}]}})",
     .want =
         R"({"spec":{"clusterIP":"10.0.0.9","ports":[{"protocol":"TCP","port":81,"targetPort":81,"nodePort":30100}]}})"},
    {.name = "change to ExternalName releases the address",
     .plural = "services",
     .object = R"({"spec":{"ports":[{"port":80}]}})",
     .update = R"({"spec":{"type":"ExternalName","externalName":"example.com"}})",
     .want = R"({"spec":{"clusterIP":null,"clusterIPs":null,"ipFamilies":null,"ipFamilyPolicy":null}})"},
    {.name = "cluster IP is immutable",
     .plural = "services",
     .object = R"({"spec":{"ports":[{"port":80}]}})",
     .update = R"({"spec":{"clusterIP":"10.0.0.8","clusterIPs":["10.0.0.8"]}})",
     .error = R"(spec.clusterIPs[0]: Invalid value: ["10.0.0.8"]: may not change once set)"},
};

#define CERTIFICATE_REQUEST                                      \
  "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUFBPQotLS0t" \
  "LUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K"

constexpr Case kOthers[] = {
    {.name = "invalid declared features of a node",
     .plural = "nodes",
     .object = R"({"status":{"nodeInfo":{"swap":{"capacity":0}},"declaredFeatures":["B/a","A","A","b"]}})",
     .error =
         R"([metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than zero, status.declaredFeatures[1]: )"
         R"(Invalid value: "A": list must be sorted alphabetically, status.declaredFeatures[2]: Duplicate value: "A", )"
         R"(status.declaredFeatures[3]: Invalid value: "b": invalid feature name "b": must start with an UpperCamelCase )"
         R"(segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain )"
         R"(only alphanumeric characters and slashes])"},
    {.name = "stringData of a secret becomes data",
     .plural = "secrets",
     .object = R"({"stringData":{"a":"hello"}})",
     .want = R"({"type":"Opaque","data":{"a":"aGVsbG8="},"stringData":null})"},
    {.name = "TLS secret requires certificate and key",
     .plural = "secrets",
     .object = R"({"type":"kubernetes.io/tls"})",
     .error = "[data[tls.crt]: Required value, data[tls.key]: Required value]"},
    {.name = "Docker config must be a JSON object",
     .plural = "secrets",
     .object = R"({"type":"kubernetes.io/dockerconfigjson","stringData":{".dockerconfigjson":"[]"}})",
     .error =
         R"(data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": json: cannot unmarshal array into )"
         R"(Go value of type map[string]interface {})"},
    {.name = "namespace starts Active with a name label",
     .plural = "namespaces",
     .want = R"({"metadata":{"labels":{"kubernetes.io/metadata.name":"x"}},"spec":{"finalizers":["kubernetes"]},)"
             R"("status":{"phase":"Active"}})"},
    {.name = "namespace update keeps the finalizers",
     .plural = "namespaces",
     .update = R"({"spec":{"finalizers":null}})",
     .want = R"({"spec":{"finalizers":["kubernetes"]}})"},
    {.name = "finalize endpoint removes namespace finalizers",
     .plural = "namespaces",
     .update = R"({"spec":{"finalizers":null}})",
     .endpoint = Endpoint::Finalize,
     .want = R"({"spec":{"finalizers":null},"status":{"phase":"Active"}})"},
    {.name = "namespace phase cannot be set to Terminating",
     .plural = "namespaces",
     .update = R"({"status":{"phase":"Terminating"}})",
     .endpoint = Endpoint::Status,
     .error = R"(status.Phase: Invalid value: "Terminating": may only be 'Active' if `deletionTimestamp` is empty)"},
    {.name = "duplicate taints of a node",
     .plural = "nodes",
     .object = R"({"spec":{"taints":[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoSchedule"}]}})",
     .error =
         R"(metadata.taints[1]: Duplicate value: {"Key":"a","Value":"","Effect":"NoSchedule","TimeAdded":null}: taints )"
         R"(must be unique by key and effect pair)"},
    {.name = "claim without access modes and storage",
     .plural = "persistentvolumeclaims",
     .error = "[spec.accessModes: Required value: at least 1 access mode is required, spec.resources[storage]: "
              "Required value]"},
    {.name = "volume without a source",
     .plural = "persistentvolumes",
     .object = R"({"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"]}})",
     .error = "spec: Required value: must specify a volume type"},
    {.name = "LimitRange with min above max",
     .plural = "limitranges",
     .object = R"({"spec":{"limits":[{"type":"Container","min":{"cpu":"2"},"max":{"cpu":"1"}}]}})",
     .error =
         R"([spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1, )"
         R"(spec.limits[0].defaultRequest[cpu]: Invalid value: "1": min value 2 is greater than default request value 1, )"
         R"(spec.limits[0].default[cpu]: Invalid value: "2": min value 2 is greater than default value 1])"},
    {.name = "quota with conflicting scopes",
     .plural = "resourcequotas",
     .object = R"({"spec":{"hard":{"pods":"1"},"scopes":["BestEffort","NotBestEffort"]}})",
     .error = R"(spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes)"},
    {.name = "event for an object in another namespace",
     .plural = "events",
     .object = R"({"involvedObject":{"namespace":"other"}})",
     .error = R"(involvedObject.namespace: Invalid value: "other": does not match event.namespace)"},
    {.name = "endpoints without addresses",
     .plural = "endpoints",
     .object = R"({"subsets":[{}]})",
     .error = "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"},
    {.name = "IPv6 addresses of an EndpointSlice are in canonical form, and names of ports unique",
     .group = "discovery.k8s.io",
     .plural = "endpointslices",
     .object =
         R"({"addressType":"IPv6","endpoints":[{"addresses":["2001:0DB8::1"]}],"ports":[{"name":"a"},{"name":"a"}]})",
     .error = R"([ports[1].name: Duplicate value: "a", endpoints[0].addresses[0]: Invalid value: "2001:0DB8::1": )"
              R"(must be in canonical form ("2001:db8::1")])"},
    {.name = "unchanged endpoints of an EndpointSlice are not checked again",
     .group = "discovery.k8s.io",
     .plural = "endpointslices",
     .object = R"({"addressType":"IPv4","endpoints":[{"addresses":["10.1.2.3"]}]})",
     .update = R"({"addressType":"IPv6"})",
     .error = R"(addressType: Invalid value: "IPv6": field is immutable)"},
    {.name = "networks of a ServiceCIDR are in canonical form",
     .group = "networking.k8s.io",
     .plural = "servicecidrs",
     .object = R"({"spec":{"cidrs":["2001:DB8::/64"]}})",
     .error = R"(spec.cidrs[0]: Invalid value: "2001:DB8::/64": must be in canonical form ("2001:db8::/64"))"},
    {.name = "an IPv4-mapped network counts its prefix from the start of the IPv6 address",
     .group = "networking.k8s.io",
     .plural = "servicecidrs",
     .object = R"({"spec":{"cidrs":["::ffff:10.0.0.0/120"]}})",
     .error = R"(spec.cidrs[0]: Invalid value: "::ffff:10.0.0.0/120": must not have an IPv4-mapped IPv6 address)"},
    {.name = "the error about the bundle of a local APIService names its size",
     .group = "apiregistration.k8s.io",
     .plural = "apiservices",
     .object = R"({"metadata":{"name":"v1.example.com"},"spec":{"group":"example.com","version":"v1",)"
               R"("groupPriorityMinimum":1,"versionPriority":1,"caBundle":"YQ=="}})",
     .error = R"(spec.caBundle: Invalid value: "1 bytes": local APIServices may not have a caBundle)"},
    {.name = "metadata of the template of a suspended job may be changed",
     .group = "batch",
     .plural = "jobs",
     .object = R"({"spec":{"suspend":true,"manualSelector":true,"selector":{"matchLabels":{"a":"b"}},)"
               R"("template":{"metadata":{"labels":{"a":"b"}},"spec":{"restartPolicy":"Never",)"
               R"("containers":[{"name":"c","image":"i"}]}}}})",
     .update = R"({"spec":{"template":{"metadata":{"finalizers":["example.com/x"]}}}})",
     .want = R"({"spec":{"template":{"metadata":{"finalizers":["example.com/x"]}}}})"},
    {.name = "overhead of a RuntimeClass is not rounded to thousandths, unlike that of a Pod",
     .group = "node.k8s.io",
     .plural = "runtimeclasses",
     .object = R"({"handler":"h","overhead":{"podFixed":{"cpu":"100u"}}})",
     .want = R"({"overhead":{"podFixed":{"cpu":"100u"}}})"},
    {.name = "address type of an EndpointSlice is immutable",
     .group = "discovery.k8s.io",
     .plural = "endpointslices",
     .object = R"({"addressType":"IPv4","endpoints":[]})",
     .update = R"({"addressType":"IPv6"})",
     .error = R"(addressType: Invalid value: "IPv6": field is immutable)"},
    {.name = "ingress without backend and rules",
     .group = "networking.k8s.io",
     .plural = "ingresses",
     .error = "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"},
    {.name = "ingress path without a type",
     .group = "networking.k8s.io",
     .plural = "ingresses",
     .object = R"({"spec":{"rules":[{"host":"1.2.3.4","http":{"paths":[{"path":"/"}]}}]}})",
     .error = R"([spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address, )"
              R"(spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified])"},
    {.name = "egress rules add the Egress policy type",
     .group = "networking.k8s.io",
     .plural = "networkpolicies",
     .object = R"({"spec":{"podSelector":{},"egress":[{}]}})",
     .want = R"({"spec":{"policyTypes":["Ingress","Egress"]}})"},
    {.name = "empty network policy peer",
     .group = "networking.k8s.io",
     .plural = "networkpolicies",
     .object = R"({"spec":{"podSelector":{},"ingress":[{"from":[{}]}]}})",
     .error = "spec.ingress[0].from[0]: Required value: must specify a peer"},
    {.name = "role rule without verbs",
     .group = "rbac.authorization.k8s.io",
     .plural = "roles",
     .object = R"({"rules":[{"nonResourceURLs":["/x"]}]})",
     .error =
         R"([rules[0].verbs: Required value: verbs must contain at least one value, rules[0].nonResourceURLs: Invalid )"
         R"(value: ["/x"]: namespaced rules cannot apply to non-resource URLs])"},
    {.name = "roleRef of a binding is immutable",
     .group = "rbac.authorization.k8s.io",
     .plural = "clusterrolebindings",
     .object = R"({"roleRef":{"kind":"ClusterRole","name":"view"}})",
     .update = R"({"roleRef":{"name":"edit"}})",
     .error =
         R"(roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"edit"}: cannot change roleRef)"},
    {.name = "provisioner of a storage class is immutable",
     .group = "storage.k8s.io",
     .plural = "storageclasses",
     .object = R"({"provisioner":"a/b"})",
     .update = R"({"provisioner":"a/c"})",
     .error = R"(provisioner: Invalid value: "a/c": field is immutable)"},
    {.name = "reserved priority class name",
     .group = "scheduling.k8s.io",
     .plural = "priorityclasses",
     .object = R"({"metadata":{"name":"system-foo"},"value":1})",
     .error = "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. "
              "error: system-foo is not a known system priority class"},
    {.name = "lease with zero duration",
     .group = "coordination.k8s.io",
     .plural = "leases",
     .object = R"({"spec":{"leaseDurationSeconds":0}})",
     .error = "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"},
    {.name = "webhook with a short name",
     .group = "admissionregistration.k8s.io",
     .plural = "validatingwebhookconfigurations",
     .object = R"({"webhooks":[{"name":"a.b","clientConfig":{},"admissionReviewVersions":[]}]})",
     .error =
         R"([webhooks[0].name: Invalid value: "a.b": should be a domain with at least three segments separated by )"
         R"(dots, webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun, )"
         R"(webhooks[0].clientConfig: Required value: exactly one of url or service is required, )"
         R"(webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1])"},
    {.name = "certificate request without a PEM block",
     .group = "certificates.k8s.io",
     .plural = "certificatesigningrequests",
     .object = R"({"spec":{"request":"eA==","username":"root","usages":["client auth"],"signerName":"example.com/s"}})",
     .error = R"(spec.request: Invalid value: "eA==": PEM block type must be CERTIFICATE REQUEST)"},
    {.name = "device request defaults to one device",
     .group = "resource.k8s.io",
     .plural = "resourceclaims",
     .object = R"({"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}})",
     .want =
         R"({"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","allocationMode":"ExactCount","count":1}}]}}})"},
    {.name = "device selectors may be bool or of unknown type",
     .group = "resource.k8s.io",
     .plural = "deviceclasses",
     .object =
         R"j({"spec":{"selectors":[{"cel":{"expression":"device.driver == 'd' && device.attributes['d'].a > 1"}},)j"
         R"j({"cel":{"expression":"cel.bind(d, device.attributes['d'], d.x && d.y)"}},)j"
         R"j({"cel":{"expression":"device.attributes['d'].flag"}}]}})j",
     .want = "{}"},
    {.name = "device selector that does not compile",
     .group = "resource.k8s.io",
     .plural = "deviceclasses",
     .object = R"j({"spec":{"selectors":[{"cel":{"expression":"device.nope"}}]}})j",
     .error = "spec.selectors[0].cel.expression: Invalid value: \"device.nope\": compilation failed: "
              "ERROR: <input>:1:7: undefined field 'nope'\n | device.nope\n | ......^"},
    {.name = "device selector of another type",
     .group = "resource.k8s.io",
     .plural = "deviceclasses",
     .object = R"j({"spec":{"selectors":[{"cel":{"expression":"device.driver"}}]}})j",
     .error =
         "spec.selectors[0].cel.expression: Invalid value: \"device.driver\": must evaluate to bool or the unknown "
         "type, not string"},
    {.name = "device selector that is too expensive",
     .group = "resource.k8s.io",
     .plural = "resourceclaims",
     .object = R"j({"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","selectors":[{"cel":)j"
               R"j({"expression":"device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, )j"
               R"j(device.attributes.all(d, a + b + c + d != ''))))"}}]}}]}}})j",
     .error =
         "spec.devices.requests[0].exactly.selectors[0].cel.expression: Forbidden: too complex, exceeds cost limit"},
    {.name = "signer name requires a domain",
     .group = "certificates.k8s.io",
     .plural = "certificatesigningrequests",
     .object = R"({"spec":{"request":")" CERTIFICATE_REQUEST R"(","usages":["any"],"signerName":"../x"}})",
     .error = R"(spec.signerName: Invalid value: "..": validating label "": )" LABEL},
    {.name = "signer domain requires two segments",
     .group = "certificates.k8s.io",
     .plural = "certificatesigningrequests",
     .object = R"({"spec":{"request":")" CERTIFICATE_REQUEST R"(","usages":["any"],"signerName":"x/A"}})",
     .error = R"([spec.signerName: Invalid value: "x": should be a domain with at least two segments separated by )"
              R"(dots, spec.signerName: Invalid value: "A": validating label "A": a lowercase RFC 1123 subdomain must )"
              R"(consist of lower case alphanumeric characters, '-' or '.', and must start and end with an )"
              R"(alphanumeric character (e.g. 'example.com', regex used for validation is )"
              R"('[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')])"},
    {.name = "signer path must be one segment",
     .group = "certificates.k8s.io",
     .plural = "certificatesigningrequests",
     .object = R"({"spec":{"request":")" CERTIFICATE_REQUEST R"(","usages":["any"],"signerName":"a.b/c/d"}})",
     .error = R"(spec.signerName: Invalid value: "a.b/c/d": must be a fully qualified domain and path of the form )"
              R"('example.com/signer-name')"},
    {.name = "issued certificate with another PEM block type",
     .group = "certificates.k8s.io",
     .plural = "certificatesigningrequests",
     .object = R"({"spec":{"request":")" CERTIFICATE_REQUEST R"(","usages":["any"],"signerName":"a.b/c"}})",
     .update =
         R"({"status":{"certificate":"LS0tLS1CRUdJTiBQVUJMSUMgS0VZLS0tLS0KTUFBPQotLS0tLUVORCBQVUJMSUMgS0VZLS0tLS0K"}})",
     .endpoint = Endpoint::Status,
     .error = R"(status.certificate: Invalid value: "<certificate data>": only CERTIFICATE PEM blocks are allowed, )"
              R"(found "PUBLIC KEY")"},
    {.name = "issued certificate with PEM headers",
     .group = "certificates.k8s.io",
     .plural = "certificatesigningrequests",
     .object = R"({"spec":{"request":")" CERTIFICATE_REQUEST R"(","usages":["any"],"signerName":"a.b/c"}})",
     .update =
         R"({"status":{"certificate":"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkE6IGIKCk1BQT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="}})",
     .endpoint = Endpoint::Status,
     .error = R"(status.certificate: Invalid value: "<certificate data>": no PEM block headers are permitted)"},
    {.name = "invalid paths of a FlowSchema",
     .group = "flowcontrol.apiserver.k8s.io",
     .plural = "flowschemas",
     .object = R"({"spec":{"priorityLevelConfiguration":{"name":"p"},"rules":[{"subjects":[{"kind":"User","user":)"
               R"({"name":"u"}}],"nonResourceRules":[{"verbs":["get"],"nonResourceURLs":)"
               R"(["","/","x","/a b","/a//b","/a*","/a/*"]}]}]}})",
     .error =
         R"([spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: "": must not be empty, )"
         R"(spec.rules[0].nonResourceRules[0].nonResourceURLs[2]: Invalid value: "x": must start with slash, )"
         R"(spec.rules[0].nonResourceRules[0].nonResourceURLs[3]: Invalid value: "/a b": must not contain white-space, )"
         R"(spec.rules[0].nonResourceRules[0].nonResourceURLs[4]: Invalid value: "/a//b": must not contain double )"
         R"(slash, spec.rules[0].nonResourceRules[0].nonResourceURLs[5]: Invalid value: "/a*": wildcard can only do )"
         R"(suffix matching])"},
    {.name = "mandatory FlowSchema has a fixed spec",
     .group = "flowcontrol.apiserver.k8s.io",
     .plural = "flowschemas",
     .object = R"({"metadata":{"name":"catch-all"},"spec":{"priorityLevelConfiguration":{"name":"p"}}})",
     .error = R"(spec: Invalid value: {"PriorityLevelConfiguration":{"Name":"p"},"MatchingPrecedence":1000,)"
              R"("DistinguisherMethod":null,"Rules":null}: spec of 'catch-all' must equal the fixed value)"},
    {.name = "hand size that is too large",
     .group = "flowcontrol.apiserver.k8s.io",
     .plural = "prioritylevelconfigurations",
     .object = R"({"metadata":{"annotations":{"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares":""}},)"
               R"("spec":{"type":"Limited","limited":{"limitResponse":{"type":"Queue","queuing":{"queues":1024,)"
               R"("handSize":7}}}}})",
     .error = R"([metadata.annotations: Forbidden: annotation )"
              R"('flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares' is forbidden, )"
              R"(spec.limited.limitResponse.queuing.handSize: Invalid value: 7: required entropy bits of deckSize )"
              R"(1024 and handSize 7 should not be greater than 60])"},
    {.name = "invalid shares of the exempt level",
     .group = "flowcontrol.apiserver.k8s.io",
     .plural = "prioritylevelconfigurations",
     .object = R"({"metadata":{"name":"exempt"},"spec":{"type":"Exempt","exempt":{"lendablePercent":101,)"
               R"("nominalConcurrencyShares":-1}}})",
     .error = R"([spec.exempt.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer, )"
              R"(spec.exempt.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive])"},
    {.name = "duplicate tolerations of a runtime class",
     .group = "node.k8s.io",
     .plural = "runtimeclasses",
     .object = R"({"handler":"h","scheduling":{"tolerations":[{"key":"a","operator":"Exists"},)"
               R"({"key":"a","operator":"Exists","tolerationSeconds":5,"effect":""}]}})",
     .error = R"([scheduling.tolerations[1].effect: Invalid value: "": effect must be 'NoExecute' when )"
              R"(`tolerationSeconds` is set, scheduling.tolerations[1]: Duplicate value: {"Key":"a",)"
              R"("Operator":"Exists","Value":"","Effect":"","TolerationSeconds":5}])"},
    {.name = "generateName of a device class is not validated",
     .group = "resource.k8s.io",
     .plural = "deviceclasses",
     .object = R"({"metadata":{"generateName":"A_"}})",
     .want = "{}"},
    {.name = "claim template metadata allows only labels and annotations",
     .group = "resource.k8s.io",
     .plural = "resourceclaimtemplates",
     .object = R"({"spec":{"metadata":{"finalizers":[],"name":"x"},"spec":{"devices":{}}}})",
     .error = R"([spec.metadata.name: Forbidden: cannot be set, spec.metadata.finalizers: Forbidden: cannot be set])"},
    {.name = "invalid request policies of shared devices",
     .group = "resource.k8s.io",
     .plural = "resourceslices",
     .object = R"({"spec":{"driver":"d","pool":{"name":"p","resourceSliceCount":1},"allNodes":true,"devices":[)"
               R"({"name":"a","capacity":{"c":{"value":"4","requestPolicy":{"default":"1"}}}},)"
               R"({"name":"b","allowMultipleAllocations":true,"capacity":{"c":{"value":"4","requestPolicy":)"
               R"({"default":"3","validValues":["2","1","1","5"]}}}},)"
               R"({"name":"c","allowMultipleAllocations":true,"capacity":{"c":{"value":"4","requestPolicy":)"
               R"({"default":"3","validRange":{"min":"2","max":"5","step":"2"}}}}},)"
               R"({"name":"e","attributes":{"a":{"int":1,"bool":true},"!":{"int":1}}}]}})",
     .error =
         R"([spec.devices[0].capacity[c].requestPolicy: Forbidden: allowMultipleAllocations must be true, )"
         R"(spec.devices[1].capacity[c].requestPolicy.validValues[1]: Invalid value: "1": values must be sorted in )"
         R"(ascending order, spec.devices[1].capacity[c].requestPolicy.validValues[3]: Invalid value: "5": option is )"
         R"(larger than capacity value: 4, spec.devices[1].capacity[c].requestPolicy.validValues[2]: Duplicate value: )"
         R"("1", spec.devices[1].capacity[c].requestPolicy.validValues: Invalid value: "3": default value is not )"
         R"(valid according to the requestPolicy, spec.devices[2].capacity[c].requestPolicy.validRange.max: Invalid )"
         R"(value: "5": max is larger than capacity value: 4, )"
         R"(spec.devices[2].capacity[c].requestPolicy.validRange.step: Invalid value: "3": value is not a multiple )"
         R"(of a given step (2) from (2), spec.devices[2].capacity[c].requestPolicy.validRange.step: Invalid value: )"
         R"("5": value is not a multiple of a given step (2) from (2), spec.devices[3].attributes: Invalid value: )"
         R"("!": a valid C identifier must start with alphabetic character or '_', followed by a string of )"
         R"(alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is )"
         R"('[A-Za-z_][A-Za-z0-9_]*'), spec.devices[3].attributes[a]: Invalid value: {"IntValue":1,"BoolValue":true,)"
         R"("StringValue":null,"VersionValue":null,"IntValues":null,"BoolValues":null,"StringValues":null,)"
         R"("VersionValues":null}: exactly one value must be specified])"},
    {.name = "fields of disabled gates increment the generation of a slice",
     .group = "resource.k8s.io",
     .plural = "resourceslices",
     .object = R"({"spec":{"driver":"d","pool":{"name":"p","resourceSliceCount":1},"allNodes":true,)"
               R"("devices":[{"name":"a"}]}})",
     .update = R"({"spec":{"devices":[{"name":"a","nodeAllocatableResourceMappings":{"cpu":{"capacityKey":"c"}}}]}})",
     .want = R"({"metadata":{"generation":2},"spec":{"devices":[{"name":"a"}]}})"},
    {.name = "invalid device status of a claim",
     .group = "resource.k8s.io",
     .plural = "resourceclaims",
     .object = R"({"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}})",
     .update = R"({"status":{"allocation":{"devices":{"results":[{"request":"r","driver":"d","pool":"p","device":"v",)"
               R"("shareID":"X"}]}},"devices":[{"driver":"d","pool":"p","device":"v","shareID":"X","data":[],)"
               R"("networkData":{"ips":["1.2.3.4","10.0.0.1/08","10.0.0.1/8","10.0.0.1/8"]}}]}})",
     .endpoint = Endpoint::Status,
     .error =
         R"([status.devices[0].shareID: Invalid value: "X": error validating uid: invalid UUID length: 1, )"
         R"(status.devices[0].data: Invalid value: "<value omitted>": must be a valid JSON object, )"
         R"(status.devices[0].networkData.ips[0]: Invalid value: "1.2.3.4": must be a valid address in CIDR form, )"
         R"((e.g. 10.9.8.7/24 or 2001:db8::1/64), status.devices[0].networkData.ips[1]: Invalid value: "10.0.0.1/08": )"
         R"(must be in canonical form ("10.0.0.1/8"), status.devices[0].networkData.ips[3]: Duplicate value: )"
         R"("10.0.0.1/8", status.allocation.devices.results[0].shareID: Invalid value: "X": error validating uid: )"
         R"(invalid UUID length: 1])"},
};

std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name;
  for (char& c : name) {
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Pods, KindTest, testing::ValuesIn(kPods), test_name);
INSTANTIATE_TEST_SUITE_P(Volumes, KindTest, testing::ValuesIn(kVolumes), test_name);
INSTANTIATE_TEST_SUITE_P(Workloads, KindTest, testing::ValuesIn(kWorkloads), test_name);
INSTANTIATE_TEST_SUITE_P(Services, KindTest, testing::ValuesIn(kServices), test_name);
INSTANTIATE_TEST_SUITE_P(Others, KindTest, testing::ValuesIn(kOthers), test_name);

TEST(KindsTest, GeneratedNamesAreTruncatedAndGetFiveLetters) {
  EXPECT_EQ(generate_name("web-", 0), "web-bbbbb");
  EXPECT_EQ(generate_name(std::string(70, 'a'), 1).size(), 63u);
}

TEST(KindsTest, OnlyScheduledPodsHaveAGracePeriod) {
  Arena arena;
  const Rules& pods = rules_of("", "pods");
  const Value waiting = *codec::decode_json(arena, R"({"spec":{"terminationGracePeriodSeconds":30}})");
  const Value running = *codec::decode_json(
      arena, R"({"spec":{"nodeName":"n","terminationGracePeriodSeconds":30},"status":{"phase":"Running"}})");
  EXPECT_EQ(grace_period(pods, waiting, std::nullopt), 0);
  EXPECT_EQ(grace_period(pods, running, std::nullopt), 30);
  EXPECT_EQ(grace_period(pods, running, 5), 5);
  EXPECT_EQ(grace_period(pods, running, -1), 1);
}

TEST(KindsTest, APodIsBoundOnlyOnce) {
  Arena arena;
  const types::Resource& pods = *types::find_resource("", "v1", "pods");
  Context context{.arena = arena, .resource = pods, .now = {1767225600, 0}};
  Draft draft(arena, *codec::decode_json(arena, R"({"metadata":{"name":"p"},"spec":{},"status":{"phase":"Pending"}})"));
  const Value binding =
      *codec::decode_json(arena, R"({"metadata":{"name":"p","annotations":{"a":"b"}},"target":{"name":"n"}})");
  ASSERT_TRUE(bind_pod(context, draft.root(), binding));
  EXPECT_EQ(draft.value().text_at("spec", "nodeName"), "n");
  EXPECT_EQ(draft.value().text_at("metadata", "annotations", "a"), "b");
  EXPECT_EQ(draft.value().items_at("status", "conditions")[0].text_at("type"), "PodScheduled");
  const Result<Unit> again = bind_pod(context, draft.root(), binding);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().message,
            R"(Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n")");
}

TEST(KindsTest, AnEmptyMapIsShownAsItWasSent) {
  Arena arena;
  const types::Resource& sets = *types::find_resource("apps", "v1", "daemonsets");
  const auto message_for = [&](std::string_view labels) {
    const std::string text = R"({"kind":"DaemonSet","apiVersion":"apps/v1","metadata":{"name":"x","namespace":"ns"},)"
                             R"("spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{)" +
                             std::string(labels) + R"(},"spec":{"containers":[{"name":"c","image":"i"}]}}}})";
    const Value sent = *codec::decode_json(arena, arena.copy(text));
    Context context{.arena = arena, .resource = sets, .now = {1767225600, 0}, .sent = sent};
    Draft draft(arena, defaulted(arena, sets, sent));
    prepare_for_create(context, draft.root());
    const Result<Unit> valid = validate_create(context, draft.value());
    return valid ? std::string() : valid.error().causes.at(0).message + "\n" + valid.error().message;
  };
  const auto expected = [](std::string_view shown) {
    const std::string message =
        "Invalid value: " + std::string(shown) + ": `selector` does not match template `labels`";
    return message + "\n" + R"(DaemonSet.apps "x" is invalid: spec.template.metadata.labels: )" + message;
  };
  EXPECT_EQ(message_for(R"("labels":{})"), expected("{}"));
  EXPECT_EQ(message_for(R"("labels":null)"), expected("null"));
  EXPECT_EQ(message_for(""), expected("null"));
}

// kube-apiserver reports each error as two causes; the message contains it once.
TEST(KindsTest, LabelsOfAStatefulSetTemplateAreValidatedTwice) {
  Arena arena;
  const types::Resource* resource = types::find_resource("apps", "v1", "statefulsets");
  const Value sent = *codec::decode_json(
      arena,
      R"({"kind":"StatefulSet","apiVersion":"apps/v1","metadata":{"name":"x","namespace":"ns"},"spec":)"
      R"({"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b","c":"d!"}},)" POD_SPEC "}}}");
  Context context{.arena = arena, .resource = *resource, .sent = sent};
  const Result<Unit> valid = validate_create(context, defaulted(arena, *resource, sent));
  ASSERT_FALSE(valid);
  ASSERT_EQ(valid.error().causes.size(), 2u);
  for (const Cause& cause : valid.error().causes) EXPECT_EQ(cause.field, "spec.template.labels");
}

TEST(KindsTest, ResetFieldsDependOnTheEndpoint) {
  const types::Resource& deployments = *types::find_resource("apps", "v1", "deployments");
  EXPECT_EQ(reset_fields(deployments, Endpoint::Main).reset[0], "status");
  EXPECT_EQ(reset_fields(deployments, Endpoint::Status).reset.size(), 2u);
  const types::Resource& pods = *types::find_resource("", "v1", "pods");
  EXPECT_TRUE(reset_fields(pods, Endpoint::EphemeralContainers).reset.empty());
}

}  // namespace
}  // namespace holdfast::kinds
