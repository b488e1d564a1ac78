// The table of all built-in kinds with their own rules.

#include <algorithm>

#include "kinds/all.h"

namespace holdfast::kinds {
namespace {

constexpr std::string_view kApps = "apps", kBatch = "batch", kNetworking = "networking.k8s.io";
constexpr std::string_view kRbac = "rbac.authorization.k8s.io", kStorage = "storage.k8s.io";
constexpr std::string_view kRegistration = "admissionregistration.k8s.io", kDevices = "resource.k8s.io";
constexpr std::string_view kFlow = "flowcontrol.apiserver.k8s.io";

constexpr Rules kRules[] = {
    {.group = "", .plural = "configmaps", .hooks = &kConfigMapHooks},
    {.group = "", .plural = "endpoints", .hooks = &kEndpointsHooks, .put_creates = true},
    {.group = "",
     .plural = "events",
     .hooks = &kEventHooks,
     .put_creates = true,
     .expires = true,
     .watch_cached = false,
     .propagation = Propagation::None},
    {.group = "events.k8s.io",
     .plural = "events",
     .hooks = &kEventHooks,
     .put_creates = true,
     .expires = true,
     .watch_cached = false,
     .propagation = Propagation::None},
    {.group = "", .plural = "limitranges", .hooks = &kLimitRangeHooks, .put_creates = true, .name_may_be_empty = true},
    {.group = "",
     .plural = "namespaces",
     .hooks = &kNamespaceHooks,
     .has_status = true,
     .delete_returns_object = true,
     .deletion = Deletion::Namespace},
    {.group = "", .plural = "nodes", .hooks = &kNodeHooks, .has_status = true},
    {.group = "",
     .plural = "persistentvolumeclaims",
     .hooks = &kPersistentVolumeClaimHooks,
     .has_status = true,
     .delete_returns_object = true},
    {.group = "",
     .plural = "persistentvolumes",
     .hooks = &kPersistentVolumeHooks,
     .has_status = true,
     .delete_returns_object = true},
    {.group = "",
     .plural = "pods",
     .hooks = &kPodHooks,
     .has_status = true,
     .delete_returns_object = true,
     .deletion = Deletion::Graceful},
    {.group = "", .plural = "podtemplates", .hooks = &kPodTemplateHooks, .delete_returns_object = true},
    {.group = "",
     .plural = "replicationcontrollers",
     .hooks = &kReplicationControllerHooks,
     .has_status = true,
     .propagation = Propagation::Orphan},
    {.group = "",
     .plural = "resourcequotas",
     .hooks = &kResourceQuotaHooks,
     .has_status = true,
     .delete_returns_object = true},
    {.group = "", .plural = "secrets", .hooks = &kSecretHooks},
    {.group = "", .plural = "serviceaccounts", .hooks = &kServiceAccountHooks, .delete_returns_object = true},
    {.group = "",
     .plural = "services",
     .hooks = &kServiceHooks,
     .has_status = true,
     .put_creates = true,
     .delete_returns_object = true},

    {.group = kApps, .plural = "controllerrevisions", .hooks = &kControllerRevisionHooks},
    {.group = kApps, .plural = "daemonsets", .hooks = &kDaemonSetHooks, .has_status = true},
    {.group = kApps, .plural = "deployments", .hooks = &kDeploymentHooks, .has_status = true},
    {.group = kApps, .plural = "replicasets", .hooks = &kReplicaSetHooks, .has_status = true},
    {.group = kApps, .plural = "statefulsets", .hooks = &kStatefulSetHooks, .has_status = true},
    {.group = kBatch, .plural = "cronjobs", .hooks = &kCronJobHooks, .has_status = true},
    {.group = kBatch, .plural = "jobs", .hooks = &kJobHooks, .has_status = true, .propagation = Propagation::Orphan},
    {.group = "autoscaling",
     .plural = "horizontalpodautoscalers",
     .hooks = &kHorizontalPodAutoscalerHooks,
     .has_status = true},
    {.group = "policy",
     .plural = "poddisruptionbudgets",
     .hooks = &kPodDisruptionBudgetHooks,
     .has_status = true,
     .unconditional_update = false},

    {.group = kNetworking, .plural = "ingressclasses", .hooks = &kIngressClassHooks},
    {.group = kNetworking, .plural = "ingresses", .hooks = &kIngressHooks, .has_status = true},
    {.group = kNetworking, .plural = "ipaddresses", .hooks = &kIpAddressHooks, .generates_names = false},
    {.group = kNetworking, .plural = "networkpolicies", .hooks = &kNetworkPolicyHooks},
    {.group = kNetworking, .plural = "servicecidrs", .hooks = &kServiceCidrHooks, .has_status = true},
    {.group = "discovery.k8s.io", .plural = "endpointslices", .hooks = &kEndpointSliceHooks},

    {.group = kRbac, .plural = "clusterrolebindings", .hooks = &kClusterRoleBindingHooks, .put_creates = true},
    {.group = kRbac, .plural = "clusterroles", .hooks = &kClusterRoleHooks, .put_creates = true},
    {.group = kRbac, .plural = "rolebindings", .hooks = &kRoleBindingHooks, .put_creates = true},
    {.group = kRbac, .plural = "roles", .hooks = &kRoleHooks, .put_creates = true},

    {.group = kStorage,
     .plural = "csidrivers",
     .hooks = &kCsiDriverHooks,
     .unconditional_update = false,
     .delete_returns_object = true},
    {.group = kStorage,
     .plural = "csinodes",
     .hooks = &kCsiNodeHooks,
     .unconditional_update = false,
     .delete_returns_object = true},
    {.group = kStorage,
     .plural = "csistoragecapacities",
     .hooks = &kCsiStorageCapacityHooks,
     .unconditional_update = false},
    {.group = kStorage, .plural = "storageclasses", .hooks = &kStorageClassHooks, .delete_returns_object = true},
    {.group = kStorage,
     .plural = "volumeattachments",
     .hooks = &kVolumeAttachmentHooks,
     .has_status = true,
     .unconditional_update = false,
     .delete_returns_object = true},
    {.group = kStorage,
     .plural = "volumeattributesclasses",
     .hooks = &kVolumeAttributesClassHooks,
     .delete_returns_object = true},

    {.group = kRegistration,
     .plural = "mutatingadmissionpolicies",
     .hooks = &kMutatingPolicyHooks,
     .unconditional_update = false},
    {.group = kRegistration,
     .plural = "mutatingadmissionpolicybindings",
     .hooks = &kPolicyBindingHooks,
     .unconditional_update = false},
    {.group = kRegistration,
     .plural = "mutatingwebhookconfigurations",
     .hooks = &kMutatingWebhookHooks,
     .unconditional_update = false},
    {.group = kRegistration,
     .plural = "validatingadmissionpolicies",
     .hooks = &kValidatingPolicyHooks,
     .has_status = true,
     .unconditional_update = false},
    {.group = kRegistration,
     .plural = "validatingadmissionpolicybindings",
     .hooks = &kPolicyBindingHooks,
     .unconditional_update = false},
    {.group = kRegistration,
     .plural = "validatingwebhookconfigurations",
     .hooks = &kValidatingWebhookHooks,
     .unconditional_update = false},
    {.group = "apiextensions.k8s.io",
     .plural = "customresourcedefinitions",
     .hooks = &kCustomResourceDefinitionHooks,
     .has_status = true,
     .unconditional_update = false},
    {.group = "apiregistration.k8s.io",
     .plural = "apiservices",
     .hooks = &kApiServiceHooks,
     .has_status = true,
     .unconditional_update = false},

    {.group = "certificates.k8s.io",
     .plural = "certificatesigningrequests",
     .hooks = &kCertificateSigningRequestHooks,
     .has_status = true},
    {.group = "coordination.k8s.io",
     .plural = "leases",
     .hooks = &kLeaseHooks,
     .put_creates = true,
     .unconditional_update = false},
    {.group = "node.k8s.io",
     .plural = "runtimeclasses",
     .hooks = &kRuntimeClassHooks,
     .put_creates = true,
     .unconditional_update = false},
    {.group = "scheduling.k8s.io", .plural = "priorityclasses", .hooks = &kPriorityClassHooks},
    {.group = kFlow, .plural = "flowschemas", .hooks = &kFlowSchemaHooks, .has_status = true},
    {.group = kFlow,
     .plural = "prioritylevelconfigurations",
     .hooks = &kPriorityLevelConfigurationHooks,
     .has_status = true},

    {.group = "ownership.holdfast.dev", .plural = "fieldprotections", .hooks = &kFieldProtectionHooks},

    {.group = kDevices, .plural = "deviceclasses", .hooks = &kDeviceClassHooks, .delete_returns_object = true},
    {.group = kDevices,
     .plural = "resourceclaims",
     .hooks = &kResourceClaimHooks,
     .has_status = true,
     .delete_returns_object = true},
    {.group = kDevices,
     .plural = "resourceclaimtemplates",
     .hooks = &kResourceClaimTemplateHooks,
     .delete_returns_object = true},
    {.group = kDevices, .plural = "resourceslices", .hooks = &kResourceSliceHooks, .delete_returns_object = true},
};

constexpr std::string_view kStatus[] = {"status"};
constexpr std::string_view kSpec[] = {"spec"};
constexpr std::string_view kSpecAndMetadata[] = {"spec", "metadata"};
constexpr std::string_view kDeploymentStatus[] = {"spec", "metadata.labels"};
constexpr std::string_view kPodStatus[] = {"spec", "metadata.deletionTimestamp", "metadata.ownerReferences"};
constexpr std::string_view kRequestMain[] = {"spec", "status"};
constexpr std::string_view kRequestStatus[] = {"spec", "status.conditions"};
constexpr std::string_view kRequestApproval[] = {"spec", "status.certificate"};

}  // namespace

const Rules& rules_of(std::string_view group, std::string_view plural) {
  static constexpr Rules kPlain;
  for (const Rules& rules : kRules) {
    if (rules.plural == plural && rules.group == group) return rules;
  }
  return kPlain;
}

ResetFields reset_fields(const types::Resource& resource, Endpoint endpoint) {
  const Rules& rules = rules_of(resource);
  const bool request = rules.plural == "certificatesigningrequests";
  switch (endpoint) {
    case Endpoint::Main:
      if (request) return {.reset = kRequestMain};
      if (!rules.has_status) return {};
      return {.reset = kStatus};
    case Endpoint::Status:
      if (request) return {.reset = kRequestStatus};
      if (rules.plural == "pods") return {.reset = kPodStatus};
      if (rules.plural == "deployments") return {.reset = kDeploymentStatus};
      // Kinds that keep labels, annotations, finalizers and owners.
      if (rules.hooks != nullptr && rules.hooks->status_metadata >= StatusMetadata::KeepObject) {
        return {.reset = kSpecAndMetadata};
      }
      return {.reset = kSpec};
    case Endpoint::Finalize:
      return {.reset = kStatus};
    case Endpoint::Approval:
      return {.reset = kRequestApproval};
    case Endpoint::EphemeralContainers:
    case Endpoint::Resize:
      return {};  // Upstream has filters for these, but nothing uses them.
  }
  return {};
}

}  // namespace holdfast::kinds
