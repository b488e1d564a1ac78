// Volumes of pods, PersistentVolumes and claims.

#include "kinds/testing.h"

namespace holdfast::kinds {
namespace {

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

INSTANTIATE_TEST_SUITE_P(Volumes, KindTest, testing::ValuesIn(kVolumes), test_name);

}  // namespace
}  // namespace holdfast::kinds
