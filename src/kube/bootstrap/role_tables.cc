// The roles of a newly started, empty server, in the order in which they are created.
//
// A rule is written group/resources[names]:verbs. Groups: core is "", others may be abbreviations of a k8s.io group;
// "+" joins several. Verbs: c create, d delete, x deletecollection, g get, l list, p patch, u update, w watch; R stands
// for glw, W for cdxpu; other verbs are spelled out. url:PATHS:verbs is a rule for non-resource paths. E: writing
// events of both groups.
#include "bootstrap/roles.h"

namespace holdfast::bootstrap {

const RoleRow kClusterRoles[] = {
    {"cluster-admin", "*/*:* url:*:*"},
    {"system:discovery",
     "url:/api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,/readyz,/version,/version/:g"},
    {"system:monitoring",
     "url:/flagz,/healthz,/healthz/*,/livez,/livez/*,/metrics,/metrics/slis,/readyz,/readyz/*,/statusz:g "
     "core/nodes/metrics:g"},
    {"system:basic-user", "authz/selfsubjectaccessreviews,selfsubjectrulesreviews:c authn/selfsubjectreviews:c"},
    {"system:public-info-viewer", "url:/healthz,/livez,/readyz,/version,/version/:g"},
    {"admin", ""},
    {"edit", ""},
    {"view", ""},
    {"system:aggregate-to-admin", "authz/localsubjectaccessreviews:c rbac/rolebindings,roles:RW"},
    {"system:aggregate-to-edit",
     "core/pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy:R "
     "core/serviceaccounts:impersonate "
     "core/pods,pods/attach,pods/exec,pods/portforward,pods/proxy:W core/pods/eviction:c "
     "core/configmaps,persistentvolumeclaims,replicationcontrollers,replicationcontrollers/"
     "scale,secrets,serviceaccounts,services,services/proxy:W "
     "core/serviceaccounts/token:c core+events/events:W "
     "apps/daemonsets,deployments,deployments/rollback,deployments/scale,replicasets,replicasets/"
     "scale,statefulsets,statefulsets/scale:W "
     "autoscaling/horizontalpodautoscalers:W batch/cronjobs,jobs:W "
     "extensions/daemonsets,deployments,deployments/rollback,deployments/"
     "scale,ingresses,networkpolicies,replicasets,replicasets/scale,replicationcontrollers/scale:W "
     "policy/poddisruptionbudgets:W net/ingresses,networkpolicies:W coord/leases:RW "
     "resource/resourceclaims,resourceclaimtemplates:W"},
    {"system:aggregate-to-view",
     "core/configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/"
     "status,pods,replicationcontrollers,replicationcontrollers/scale,serviceaccounts,services,services/status:R "
     "core/bindings,limitranges,namespaces/status,pods/log,pods/status,replicationcontrollers/"
     "status,resourcequotas,resourcequotas/status:R "
     "core/namespaces:R core+events/events:R disc/endpointslices:R "
     "apps/controllerrevisions,daemonsets,daemonsets/status,deployments,deployments/scale,deployments/"
     "status,replicasets,replicasets/scale,replicasets/status,statefulsets,statefulsets/scale,statefulsets/status:R "
     "autoscaling/horizontalpodautoscalers,horizontalpodautoscalers/status:R "
     "batch/cronjobs,cronjobs/status,jobs,jobs/status:R "
     "extensions/daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,ingresses,ingresses/"
     "status,networkpolicies,replicasets,replicasets/scale,replicasets/status,replicationcontrollers/scale:R "
     "policy/poddisruptionbudgets,poddisruptionbudgets/status:R "
     "net/ingresses,ingresses/status,networkpolicies:R "
     "resource/resourceclaims,resourceclaims/status,resourceclaimtemplates:R"},
    {"system:heapster", "core/events,namespaces,nodes,pods:R extensions/deployments:R"},
    {"system:node",
     "authn/tokenreviews:c authz/localsubjectaccessreviews,subjectaccessreviews:c core/services:R "
     "core/nodes:cglw core/nodes/status:pu core/nodes:pu E core/pods:R core/pods:cd "
     "core/pods/status:pu core/pods/eviction:c core/configmaps,secrets:R "
     "core/persistentvolumeclaims,persistentvolumes:g core/endpoints:g "
     "certs/certificatesigningrequests:cglw coord/leases:cdgpu storage/volumeattachments:g "
     "core/serviceaccounts/token:c core/persistentvolumeclaims/status:gpu storage/csidrivers:R "
     "storage/csinodes:cdgpu node.k8s.io/runtimeclasses:R resource/resourceclaims:g "
     "resource/resourceslices:x core/serviceaccounts:g"},
    {"system:node-problem-detector", "core/nodes:g core/nodes/status:p E"},
    {"system:node-bootstrapper", "certs/certificatesigningrequests:cglw"},
    {"system:auth-delegator", "authn/tokenreviews:c authz/subjectaccessreviews:c"},
    {"system:kube-aggregator", "core/endpoints,services:R"},
    {"system:kube-controller-manager",
     "E coord/leases:c coord/leases[kube-controller-manager]:gu core/secrets,serviceaccounts:c "
     "core/secrets:d core/configmaps,namespaces,secrets,serviceaccounts:g "
     "core/secrets,serviceaccounts:u authn/tokenreviews:c authz/subjectaccessreviews:c */*:lw "
     "core/serviceaccounts/token:c"},
    {"system:kube-dns", "core/endpoints,services:lw"},
    {"system:persistent-volume-provisioner",
     "core/persistentvolumes:cdglw core/persistentvolumeclaims:gluw storage/storageclasses:R "
     "core/events:w E"},
    {"system:certificates.k8s.io:certificatesigningrequests:nodeclient",
     "certs/certificatesigningrequests/nodeclient:c"},
    {"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
     "certs/certificatesigningrequests/selfnodeclient:c"},
    {"system:volume-scheduler",
     "core/persistentvolumes:glpuw storage/storageclasses:R core/persistentvolumeclaims:glpuw"},
    {"system:certificates.k8s.io:legacy-unknown-approver", "certs/signers[k/legacy-unknown]:approve"},
    {"system:certificates.k8s.io:kubelet-serving-approver", "certs/signers[k/kubelet-serving]:approve"},
    {"system:certificates.k8s.io:kube-apiserver-client-approver", "certs/signers[k/kube-apiserver-client]:approve"},
    {"system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
     "certs/signers[k/kube-apiserver-client-kubelet]:approve"},
    {"system:service-account-issuer-discovery",
     "url:/.well-known/openid-configuration,/.well-known/openid-configuration/,/openid/v1/jwks,/openid/v1/jwks/:g"},
    {"system:kubelet-api-admin",
     "core/nodes:R core/nodes:proxy core/nodes/log,nodes/metrics,nodes/proxy,nodes/stats:* "
     "core/nodes/configz,nodes/healthz,nodes/pods:*"},
    {"system:node-proxier", "core/endpoints,services:lw core/nodes:R E net/servicecidrs:lw disc/endpointslices:lw"},
    {"system:kube-scheduler",
     "E coord/leases:c coord/leases[kube-scheduler]:gluw coord/leasecandidates:RW core/nodes:R "
     "core/pods:dglw core/bindings,pods/binding:c core/pods/status:pu "
     "core/replicationcontrollers,services:R apps+extensions/replicasets:R apps/statefulsets:R "
     "policy/poddisruptionbudgets:R core/persistentvolumeclaims,persistentvolumes:R "
     "authn/tokenreviews:c authz/subjectaccessreviews:c storage/csinodes:R "
     "storage/volumeattachments:R core/namespaces:R storage/csidrivers:R "
     "storage/csistoragecapacities:R resource/deviceclasses:R resource/resourceclaims:glpuw "
     "resource/resourceclaims/status:glpuw core/pods/finalizers:u resource/resourceslices:R "
     "resource/resourceclaims:cd resource/resourceclaims/binding:pu"},
};

// Each is named system:controller:NAME and bound to the service account kube-system/NAME.
const RoleRow kControllerRoles[] = {
    {"attachdetach-controller",
     "core/persistentvolumeclaims,persistentvolumes:lw core/nodes:R core/nodes/status:pu "
     "core/pods:lw E storage/volumeattachments:cdglw storage/csidrivers:R storage/csinodes:R"},
    {"clusterrole-aggregation-controller", "rbac/clusterroles:glpuw+escalate"},
    {"cronjob-controller",
     "batch/cronjobs:gluw batch/jobs:cdglpuw batch/cronjobs/status:u batch/cronjobs/finalizers:u "
     "core/pods:dlw E"},
    {"daemon-set-controller",
     "apps+extensions/daemonsets:R apps+extensions/daemonsets/status:u "
     "apps+extensions/daemonsets/finalizers:u core/nodes:lw core/pods:cdlpw core/pods/binding:c "
     "apps/controllerrevisions:cdglpuw E"},
    {"deployment-controller",
     "apps+extensions/deployments:gluw apps+extensions/deployments/status:u "
     "apps+extensions/deployments/finalizers:u apps+extensions/replicasets:cdglpuw core/pods:gluw "
     "E"},
    {"disruption-controller",
     "apps+extensions/deployments:R apps+extensions/replicasets:R core/replicationcontrollers:R "
     "policy/poddisruptionbudgets:R apps/statefulsets:R policy/poddisruptionbudgets/status:u "
     "core/pods/status:pu */*/scale:g E"},
    {"endpoint-controller", "core/pods,services:R core/endpoints:cdgluw core/endpoints/restricted:c E"},
    {"endpointslice-controller", "core/nodes,pods,services:R core/services/finalizers:u disc/endpointslices:cdgluw E"},
    {"endpointslicemirroring-controller",
     "core/endpoints,services:R core/services/finalizers:u core/endpoints/finalizers:u "
     "disc/endpointslices:cdgluw E"},
    {"expand-controller",
     "core/persistentvolumes:glpuw core/persistentvolumeclaims/status:pu "
     "core/persistentvolumeclaims:R E"},
    {"ephemeral-volume-controller", "core/pods:R core/pods/finalizers:u core/persistentvolumeclaims:cglw E"},
    {"resource-claim-controller",
     "core/pods:R core/pods/finalizers:u resource/resourceclaims:cdglw "
     "resource/resourceclaims,resourceclaims/status:pu core/pods/status:pu E "
     "resource/resourceclaims/binding:pu"},
    {"device-taint-eviction-controller",
     "core/pods:dglw core/pods/status:pu resource/resourceclaims:R resource/resourceslices:R "
     "resource/deviceclasses:R E"},
    {"generic-garbage-collector", "*/*:dglpuw E"},
    {"horizontal-pod-autoscaler",
     "autoscaling/horizontalpodautoscalers:R autoscaling/horizontalpodautoscalers/status:u "
     "*/*/scale:gu core/pods:lw metrics.k8s.io/pods:lw custom.metrics.k8s.io/*:R "
     "external.metrics.k8s.io/*:R E"},
    {"job-controller", "batch/jobs:glpuw batch/jobs/status:u batch/jobs/finalizers:u core/pods:cdlpw E"},
    {"namespace-controller", "core/namespaces:dglw core/namespaces/finalize,namespaces/status:u */*:dxglw"},
    {"node-controller", "core/nodes:dglpuw core/nodes/status:pu core/pods/status:pu core/pods:dglw E"},
    {"persistent-volume-binder",
     "core/persistentvolumes:cdgluw core/persistentvolumes/status:u "
     "core/persistentvolumeclaims:gluw core/persistentvolumeclaims/status:u core/pods:cdglw "
     "storage/storageclasses:R core/nodes:lw E core/events:w"},
    {"pod-garbage-collector", "core/pods:dlw core/nodes:R core/pods/status:p"},
    {"replicaset-controller",
     "apps+extensions/replicasets:gluw apps+extensions/replicasets/status:u "
     "apps+extensions/replicasets/finalizers:u core/pods:cdlpw E"},
    {"replication-controller",
     "core/replicationcontrollers:gluw core/replicationcontrollers/status:u "
     "core/replicationcontrollers/finalizers:u core/pods:cdlpw E"},
    {"resourcequota-controller", "*/*:lw core/resourcequotas/status:u E"},
    {"route-controller", "core/nodes:lw core/nodes/status:p E"},
    {"service-account-controller", "core/serviceaccounts:c E"},
    {"service-controller", "core/services:R core/services/status:pu core/nodes:lw E"},
    {"service-cidrs-controller",
     "net/servicecidrs:glpuw net/servicecidrs/finalizers:pu net/servicecidrs/status:pu "
     "net/ipaddresses:R E"},
    {"statefulset-controller",
     "core/pods:lw apps/statefulsets:R apps/statefulsets/status:u apps/statefulsets/finalizers:u "
     "core/pods:cdgpu apps/controllerrevisions:cdglpuw core/persistentvolumeclaims:cglw "
     "core/persistentvolumeclaims:du core/pods/finalizers:u E"},
    {"ttl-controller", "core/nodes:lpuw E"},
    {"certificate-controller",
     "certs/certificatesigningrequests:dglw "
     "certs/certificatesigningrequests/approval,certificatesigningrequests/status:u "
     "certs/signers[k/kube-apiserver-client-kubelet]:approve "
     "certs/signers[k/kube-apiserver-client,k/kube-apiserver-client-kubelet,k/kubelet-serving,k/legacy-unknown]:sign "
     "authz/subjectaccessreviews:c E"},
    {"pvc-protection-controller",
     "core/persistentvolumeclaims:gluw core/persistentvolumeclaims/status:u core/pods:R E"},
    {"pv-protection-controller", "core/persistentvolumes:gluw E"},
    {"volumeattributesclass-protection-controller",
     "core/persistentvolumeclaims:R core/persistentvolumes:R storage/volumeattributesclasses:gluw "
     "E"},
    {"ttl-after-finished-controller", "batch/jobs:dglw E"},
    {"root-ca-cert-publisher", "core/configmaps:cu E"},
    {"validatingadmissionpolicy-status-controller",
     "admreg/validatingadmissionpolicies:R admreg/validatingadmissionpolicies/status:gpu E"},
    {"legacy-service-account-token-cleaner",
     "core/configmaps[kube-apiserver-legacy-service-account-token-tracking]:g core/secrets:dp"},
    {"selinux-warning-controller",
     "E core/persistentvolumes:R core/persistentvolumeclaims:R core/pods:R storage/csidrivers:R"},
};

std::span<const RoleRow> cluster_roles() { return kClusterRoles; }
std::span<const RoleRow> controller_roles() { return kControllerRoles; }

}  // namespace holdfast::bootstrap
