// The texts at the start of every FieldsV2 name table. Part of the format (docs/formats/fieldsv2.md): a position never
// changes, and new texts need a new version byte. The first 64 take one byte, the rest two.
#pragma once

#include <string_view>

namespace holdfast::ownership {

inline constexpr std::string_view kFieldsV2Names[] = {
    // clang-format off
    // 0-63
    "name", "type", "metadata", "spec", "status", "labels", "annotations", "conditions",
    "lastTransitionTime", "message", "reason", "lastProbeTime", "observedGeneration", "lastUpdateTime", "ownerReferences", "uid",
    "generateName", "finalizers", "containers", "env", "value", "valueFrom", "image", "imagePullPolicy",
    "resources", "requests", "limits", "cpu", "memory", "terminationMessagePath", "terminationMessagePolicy", "volumeMounts",
    "mountPath", "ports", "containerPort", "protocol", "port", "targetPort", "volumes", "configMap",
    "secret", "defaultMode", "secretName", "dnsPolicy", "restartPolicy", "schedulerName", "securityContext", "terminationGracePeriodSeconds",
    "selector", "template", "replicas", "podIP", "podIPs", "ip", "hostIP", "hostIPs",
    "startTime", "phase", "containerStatuses", "initContainers", "key", "TCP", "fieldRef", "resourceFieldRef",
    // 64-271
    "initContainerStatuses", "enableServiceLinks", "tolerations", "nodeName", "serviceAccount", "serviceAccountName", "affinity", "nodeSelector",
    "allocatedResources", "ContainersReady", "Initialized", "PodReadyToStartContainers", "PodScheduled", "Ready", "Available", "Progressing",
    "args", "command", "envFrom", "secretKeyRef", "configMapKeyRef", "configMapRef", "secretRef", "optional",
    "readOnly", "subPath", "livenessProbe", "readinessProbe", "startupProbe", "httpGet", "tcpSocket", "exec",
    "grpc", "path", "scheme", "initialDelaySeconds", "periodSeconds", "timeoutSeconds", "successThreshold", "failureThreshold",
    "lifecycle", "preStop", "postStart", "capabilities", "add", "drop", "privileged", "runAsUser",
    "runAsGroup", "runAsNonRoot", "readOnlyRootFilesystem", "allowPrivilegeEscalation", "seccompProfile", "fsGroup", "supplementalGroups", "emptyDir",
    "hostPath", "persistentVolumeClaim", "claimName", "projected", "sources", "downwardAPI", "items", "sizeLimit",
    "medium", "hostNetwork", "hostPID", "hostAliases", "priority", "priorityClassName", "topologySpreadConstraints", "imagePullSecrets",
    "automountServiceAccountToken", "strategy", "rollingUpdate", "maxSurge", "maxUnavailable", "revisionHistoryLimit", "progressDeadlineSeconds", "minReadySeconds",
    "matchLabels", "matchExpressions", "availableReplicas", "readyReplicas", "updatedReplicas", "unavailableReplicas", "fullyLabeledReplicas", "terminatingReplicas",
    "collisionCount", "currentRevision", "updateRevision", "currentReplicas", "podManagementPolicy", "serviceName", "updateStrategy", "volumeClaimTemplates",
    "persistentVolumeClaimRetentionPolicy", "clusterIP", "clusterIPs", "internalTrafficPolicy", "externalTrafficPolicy", "ipFamilies", "ipFamilyPolicy", "sessionAffinity",
    "nodePort", "loadBalancer", "ingress", "externalIPs", "data", "stringData", "binaryData", "immutable",
    "rules", "host", "http", "paths", "pathType", "backend", "service", "number",
    "tls", "ingressClassName", "roleRef", "subjects", "secrets", "completions", "parallelism", "backoffLimit",
    "completionMode", "suspend", "active", "succeeded", "failed", "completionTime", "ttlSecondsAfterFinished", "schedule",
    "jobTemplate", "concurrencyPolicy", "lastScheduleTime", "lastSuccessfulTime", "failedJobsHistoryLimit", "successfulJobsHistoryLimit", "scaleTargetRef", "minReplicas",
    "maxReplicas", "metrics", "currentMetrics", "desiredReplicas", "lastScaleTime", "behavior", "holderIdentity", "leaseDurationSeconds",
    "renewTime", "acquireTime", "leaseTransitions", "addressType", "endpoints", "addresses", "subsets", "capacity",
    "allocatable", "nodeInfo", "images", "podCIDR", "podCIDRs", "taints", "providerID", "volumesAttached",
    "volumesInUse", "daemonEndpoints", "accessModes", "storageClassName", "volumeName", "volumeMode", "claimRef", "persistentVolumeReclaimPolicy",
    "currentNumberScheduled", "desiredNumberScheduled", "numberAvailable", "numberMisscheduled", "numberReady", "updatedNumberScheduled", "qosClass", "ephemeral-storage",
    "app", "app.kubernetes.io/component", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/name", "app.kubernetes.io/part-of", "app.kubernetes.io/version", "helm.sh/chart",
    "k8s-app", "pod-template-hash", "controller-revision-hash", "kubectl.kubernetes.io/last-applied-configuration", "kubectl.kubernetes.io/restartedAt", "deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas", "deployment.kubernetes.io/revision",
    "prometheus.io/path", "prometheus.io/port", "prometheus.io/scrape", "checksum/config", "meta.helm.sh/release-name", "meta.helm.sh/release-namespace", "kubernetes.io/description", "kubernetes.io/metadata.name",
    // clang-format on
};

}  // namespace holdfast::ownership
