// The hooks of every kind, each defined in the file of its kind or family. Private to the module.
#pragma once

#include "kinds/hooks.h"
#include "kinds/internal.h"

namespace holdfast::kinds {

// Where autoscaling/v1 stores what only v2 has fields for.
inline constexpr std::string_view kAutoscalerAnnotations[] = {
    "autoscaling.alpha.kubernetes.io/metrics", "autoscaling.alpha.kubernetes.io/current-metrics",
    "autoscaling.alpha.kubernetes.io/conditions", "autoscaling.alpha.kubernetes.io/behavior"};
// Where a DaemonSet counts the changes of its template: apps/v1 has no field for it.
inline constexpr std::string_view kTemplateGeneration = "deprecated.daemonset.template.generation";

extern const Hooks kApiServiceHooks;
extern const Hooks kCertificateSigningRequestHooks;
extern const Hooks kClusterRoleBindingHooks;
extern const Hooks kClusterRoleHooks;
extern const Hooks kConfigMapHooks;
extern const Hooks kControllerRevisionHooks;
extern const Hooks kCronJobHooks;
extern const Hooks kCsiDriverHooks;
extern const Hooks kCsiNodeHooks;
extern const Hooks kCsiStorageCapacityHooks;
extern const Hooks kCustomResourceDefinitionHooks;
extern const Hooks kDaemonSetHooks;
extern const Hooks kDeploymentHooks;
extern const Hooks kDeviceClassHooks;
extern const Hooks kEndpointSliceHooks;
extern const Hooks kEndpointsHooks;
extern const Hooks kEventHooks;
extern const Hooks kFlowSchemaHooks;
extern const Hooks kHorizontalPodAutoscalerHooks;
extern const Hooks kIngressClassHooks;
extern const Hooks kIngressHooks;
extern const Hooks kIpAddressHooks;
extern const Hooks kJobHooks;
extern const Hooks kLeaseHooks;
extern const Hooks kLimitRangeHooks;
extern const Hooks kMutatingPolicyHooks;
extern const Hooks kMutatingWebhookHooks;
extern const Hooks kNamespaceHooks;
extern const Hooks kNetworkPolicyHooks;
extern const Hooks kNodeHooks;
extern const Hooks kPersistentVolumeClaimHooks;
extern const Hooks kPersistentVolumeHooks;
extern const Hooks kPodDisruptionBudgetHooks;
extern const Hooks kPodHooks;
extern const Hooks kPodTemplateHooks;
extern const Hooks kPolicyBindingHooks;
extern const Hooks kPriorityClassHooks;
extern const Hooks kFieldProtectionHooks;
extern const Hooks kPriorityLevelConfigurationHooks;
extern const Hooks kReplicaSetHooks;
extern const Hooks kReplicationControllerHooks;
extern const Hooks kResourceClaimHooks;
extern const Hooks kResourceClaimTemplateHooks;
extern const Hooks kResourceQuotaHooks;
extern const Hooks kResourceSliceHooks;
extern const Hooks kRoleBindingHooks;
extern const Hooks kRoleHooks;
extern const Hooks kRuntimeClassHooks;
extern const Hooks kSecretHooks;
extern const Hooks kServiceAccountHooks;
extern const Hooks kServiceCidrHooks;
extern const Hooks kServiceHooks;
extern const Hooks kStatefulSetHooks;
extern const Hooks kStorageClassHooks;
extern const Hooks kValidatingPolicyHooks;
extern const Hooks kValidatingWebhookHooks;
extern const Hooks kVolumeAttachmentHooks;
extern const Hooks kVolumeAttributesClassHooks;

}  // namespace holdfast::kinds
