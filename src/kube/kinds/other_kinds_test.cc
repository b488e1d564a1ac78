// The kinds that are neither pods, volumes, workloads nor Services.

#include "codec/codec.h"
#include "kinds/testing.h"

namespace holdfast::kinds {
namespace {

#define LABEL                                                                                                    \
  R"(a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and )" \
  R"(end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is )"          \
  R"('[a-z0-9]([-a-z0-9]*[a-z0-9])?'))"

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

INSTANTIATE_TEST_SUITE_P(Others, KindTest, testing::ValuesIn(kOthers), test_name);

// Each error shows the whole list.
TEST(QuotaTest, ErrorsOfManyScopesAreBounded) {
  std::string scopes;
  for (int i = 0; i < 3000; ++i) scopes += (i > 0 ? ",\"x" : "\"x") + std::to_string(i) + "\"";
  Arena arena;
  const std::string text =
      R"({"metadata":{"name":"q","namespace":"n"},"spec":{"hard":{"pods":"1"},"scopes":[)" + scopes + "]}}";
  Context context{.arena = arena, .resource = *types::find_resource("", "v1", "resourcequotas"), .now = {}};
  const Result<Unit> valid = validate_create(context, *codec::decode_json(arena, text));
  ASSERT_FALSE(valid);
  EXPECT_LT(valid.error().message.size(), 4u << 20);
  EXPECT_TRUE(valid.error().causes.back().message.ends_with(" more errors"))
      << valid.error().causes.back().message.substr(0, 200);
}

// One for each pair of them.
TEST(StorageClassTest, ErrorsOfManyEqualTopologiesAreBounded) {
  std::string terms;
  for (int i = 0; i < 2000; ++i) {
    terms += (i > 0 ? "," : "") +
             std::string(i % 2 == 0 ? "{}" : R"({"matchLabelExpressions":[{"key":"k","values":["v"]}]})");
  }
  Arena arena;
  const std::string text = R"({"metadata":{"name":"s"},"provisioner":"a.b/c","reclaimPolicy":"Delete",)"
                           R"("volumeBindingMode":"Immediate","allowedTopologies":[)" +
                           terms + "]}";
  Context context{
      .arena = arena, .resource = *types::find_resource("storage.k8s.io", "v1", "storageclasses"), .now = {}};
  const Result<Unit> valid = validate_create(context, *codec::decode_json(arena, text));
  ASSERT_FALSE(valid);
  EXPECT_LT(valid.error().causes.size(), 50'000u);
  EXPECT_TRUE(valid.error().causes.back().message.ends_with(" more errors"));
}

}  // namespace
}  // namespace holdfast::kinds
