// Services.

#include "kinds/testing.h"

namespace holdfast::kinds {
namespace {

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

INSTANTIATE_TEST_SUITE_P(Services, KindTest, testing::ValuesIn(kServices), test_name);

}  // namespace
}  // namespace holdfast::kinds
