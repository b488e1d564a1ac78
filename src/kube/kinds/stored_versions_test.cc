#include "kinds/stored_versions.h"

#include <gtest/gtest.h>

#include "base/api_version.h"
#include "codec/codec.h"

namespace holdfast::kinds {
namespace {

struct Case {
  const char *name, *api_version, *kind, *stored, *want;  // Without apiVersion, kind and metadata.name.
};

constexpr Case kCases[] = {
    {.name = "an empty selector of a budget selected nothing",
     .api_version = "policy/v1beta1",
     .kind = "PodDisruptionBudget",
     .stored = R"({"spec":{"selector":{}}})",
     .want =
         R"({"spec":{"selector":{"matchExpressions":[{"key":"pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match","operator":"Exists"}]}}})"},
    {.name = "a budget for all pods",
     .api_version = "policy/v1beta1",
     .kind = "PodDisruptionBudget",
     .stored =
         R"({"spec":{"selector":{"matchExpressions":[{"key":"pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match","operator":"DoesNotExist"}]}}})",
     .want = R"({"spec":{"selector":{}}})"},
    {.name = "the label of a budget next to other requirements",
     .api_version = "policy/v1beta1",
     .kind = "PodDisruptionBudget",
     .stored =
         R"({"spec":{"selector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match","operator":"Exists"}]}}})",
     .want = R"({"spec":{"selector":{"matchLabels":{"a":"b"}}}})"},
    {.name = "backends of an Ingress",
     .api_version = "extensions/v1beta1",
     .kind = "Ingress",
     .stored =
         R"({"spec":{"backend":{"serviceName":"a","servicePort":"http"},"rules":[{"host":"h","http":{"paths":[{"path":"/","backend":{"serviceName":"b","servicePort":80}},{"pathType":"Exact","backend":{"resource":{"kind":"K","name":"n"}}}]}},{"host":"none"}]}})",
     .want =
         R"({"spec":{"rules":[{"host":"h","http":{"paths":[{"path":"/","backend":{"service":{"name":"b","port":{"number":80}}},"pathType":"ImplementationSpecific"},{"pathType":"Exact","backend":{"resource":{"kind":"K","name":"n"}}}]}},{"host":"none"}],"defaultBackend":{"service":{"name":"a","port":{"name":"http"}}}}})"},
    {.name = "topology of endpoints",
     .api_version = "discovery.k8s.io/v1beta1",
     .kind = "EndpointSlice",
     .stored =
         R"({"endpoints":[{"addresses":["1.2.3.4"],"nodeName":"n","topology":{"topology.kubernetes.io/zone":"z","kubernetes.io/hostname":"n","x":"y"}},{"addresses":["1.2.3.5"],"topology":{"kubernetes.io/hostname":"m"}}]})",
     .want =
         R"({"endpoints":[{"addresses":["1.2.3.4"],"nodeName":"n","zone":"z","deprecatedTopology":{"x":"y"}},{"addresses":["1.2.3.5"],"deprecatedTopology":{"kubernetes.io/hostname":"m"}}]})"},
    {.name = "the spec of a RuntimeClass",
     .api_version = "node.k8s.io/v1alpha1",
     .kind = "RuntimeClass",
     .stored = R"({"spec":{"runtimeHandler":"h","scheduling":{"nodeSelector":{"a":"b"}}}})",
     .want = R"({"handler":"h","scheduling":{"nodeSelector":{"a":"b"}}})"},
    {.name = "subjects of a binding",
     .api_version = "rbac.authorization.k8s.io/v1alpha1",
     .kind = "RoleBinding",
     .stored =
         R"({"subjects":[{"kind":"User","apiVersion":"rbac.authorization.k8s.io/v1alpha1","name":"*"},{"kind":"ServiceAccount","apiVersion":"v1","name":"s","namespace":"n"},{"kind":"Other","apiVersion":"x.io/v1","name":"o"}],"roleRef":{"kind":"Role","name":"r"}})",
     .want =
         R"({"subjects":[{"kind":"Group","name":"system:authenticated","apiGroup":"rbac.authorization.k8s.io"},{"kind":"ServiceAccount","name":"s","namespace":"n"},{"kind":"Other","name":"o","apiGroup":"x.io"}],"roleRef":{"kind":"Role","name":"r","apiGroup":"rbac.authorization.k8s.io"}})"},
    {.name = "shares of a priority level",
     .api_version = "flowcontrol.apiserver.k8s.io/v1beta1",
     .kind = "PriorityLevelConfiguration",
     .stored = R"({"spec":{"type":"Limited","limited":{"assuredConcurrencyShares":7}}})",
     .want = R"({"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":7}}})"},
    {.name = "shares that were the default",
     .api_version = "flowcontrol.apiserver.k8s.io/v1beta3",
     .kind = "PriorityLevelConfiguration",
     .stored = R"({"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":0}}})",
     .want = R"({"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":30}}})"},
    {.name = "no shares at all",
     .api_version = "flowcontrol.apiserver.k8s.io/v1beta3",
     .kind = "PriorityLevelConfiguration",
     .stored =
         R"({"metadata":{"annotations":{"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares":""}},"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":0}}})",
     .want = R"({"metadata":{},"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":0}}})"},
    {.name = "the labels of a template select its pods",
     .api_version = "apps/v1beta1",
     .kind = "StatefulSet",
     .stored = R"({"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}})",
     .want =
         R"({"spec":{"template":{"metadata":{"labels":{"a":"b"}}},"selector":{"matchLabels":{"a":"b"}},"updateStrategy":{"type":"OnDelete"}},"metadata":{"labels":{"a":"b"}}})"},
    {.name = "a Deployment that returns to a revision",
     .api_version = "apps/v1beta1",
     .kind = "Deployment",
     .stored = R"({"spec":{"revisionHistoryLimit":4,"rollbackTo":{"revision":3}}})",
     .want =
         R"({"spec":{"revisionHistoryLimit":4},"metadata":{"annotations":{"deprecated.deployment.rollback.to":"3"}}})"},
    {.name = "changes of a DaemonSet's template",
     .api_version = "extensions/v1beta1",
     .kind = "DaemonSet",
     .stored = R"({"spec":{"templateGeneration":5,"updateStrategy":{"type":"RollingUpdate"}}})",
     .want =
         R"({"spec":{"updateStrategy":{"type":"RollingUpdate"}},"metadata":{"annotations":{"deprecated.daemonset.template.generation":"5"}}})"},
    {.name = "requests for devices",
     .api_version = "resource.k8s.io/v1beta1",
     .kind = "ResourceClaim",
     .stored =
         R"({"spec":{"devices":{"requests":[{"name":"a","deviceClassName":"c"},{"name":"b","firstAvailable":[{"name":"s","deviceClassName":"d","allocationMode":"All"}]}]}}})",
     .want =
         R"({"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"c","allocationMode":"ExactCount","count":1}},{"name":"b","firstAvailable":[{"name":"s","deviceClassName":"d","allocationMode":"All"}]}]}}})"},
    {.name = "devices of a slice",
     .api_version = "resource.k8s.io/v1beta1",
     .kind = "ResourceSlice",
     .stored =
         R"({"spec":{"driver":"d","nodeName":"n","allNodes":false,"devices":[{"name":"a","basic":{"attributes":{"x":{"int":1}}}}]}})",
     .want = R"({"spec":{"driver":"d","nodeName":"n","devices":[{"name":"a","attributes":{"x":{"int":1}}}]}})"},
    {.name = "a request for a certificate",
     .api_version = "certificates.k8s.io/v1beta1",
     .kind = "CertificateSigningRequest",
     .stored = R"({"spec":{"request":"eA=="},"status":{"conditions":[{"type":"Approved"}]}})",
     .want =
         R"({"spec":{"request":"eA==","usages":["digital signature","key encipherment"],"signerName":"kubernetes.io/legacy-unknown"},"status":{"conditions":[{"type":"Approved","status":"True"}]}})"},
};

class StoredVersionTest : public ::testing::TestWithParam<Case> {};

TEST_P(StoredVersionTest, BecomesTodaysVersion) {
  const Case& row = GetParam();
  const StoredVersion* version = find_stored_version(row.api_version, row.kind);
  ASSERT_NE(version, nullptr);
  Arena arena;
  Result<Value> stored = codec::decode_json(arena, row.stored);
  ASSERT_TRUE(stored) << stored.error().message;
  const Value named = with_member(arena, *stored, "apiVersion", Value::string(row.api_version));
  const Value now = upgraded(arena, *version, named);
  EXPECT_EQ(now.text_at("apiVersion"), version->served_as);
  EXPECT_EQ(codec::encode_json(without_member(arena, now, "apiVersion")), row.want);
}
INSTANTIATE_TEST_SUITE_P(Versions, StoredVersionTest, testing::ValuesIn(kCases), [](const auto& info) {
  std::string name;
  for (const char* c = info.param.name; *c != 0; ++c) name += std::isalnum(static_cast<unsigned char>(*c)) ? *c : '_';
  return name;
});

TEST(StoredVersions, EachBecomesAServedKind) {
  for (const StoredVersion& version : stored_versions()) {
    SCOPED_TRACE(std::string(version.api_version) + " " + std::string(version.kind));
    const GroupVersion now = split_api_version(version.served_as), then = split_api_version(version.api_version);
    ASSERT_NE(types::find_kind(now.group, now.version, version.kind), nullptr);
    EXPECT_EQ(types::find_kind(then.group, then.version, version.kind) == nullptr ||
                  version.kind.starts_with("MutatingAdmissionPolicy"),
              true);
    if (!version.type.empty()) {
      ASSERT_NE(types::find_type(version.type), nullptr);
    }
  }
}

struct ServiceCase {
  const char *name, *stored, *want;
};
constexpr ServiceCase kServices[] = {
    {"one address", R"({"clusterIP":"10.0.0.1"})",
     R"({"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack"})"},
    {"an address of IPv6", R"({"clusterIP":"fd00::1"})",
     R"({"clusterIP":"fd00::1","clusterIPs":["fd00::1"],"ipFamilies":["IPv6"],"ipFamilyPolicy":"SingleStack"})"},
    {"headless", R"({"clusterIP":"None","selector":{"a":"b"}})",
     R"({"clusterIP":"None","selector":{"a":"b"},"clusterIPs":["None"],"ipFamilies":["IPv6"],"ipFamilyPolicy":"SingleStack"})"},
    {"headless without a selector", R"({"clusterIP":"None"})",
     R"({"clusterIP":"None","clusterIPs":["None"],"ipFamilies":["IPv6","IPv4"],"ipFamilyPolicy":"RequireDualStack"})"},
    {"another name", R"({"type":"ExternalName","externalName":"x","internalTrafficPolicy":"Cluster"})",
     R"({"type":"ExternalName","externalName":"x"})"},
    {"complete",
     R"({"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"PreferDualStack"})",
     R"({"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"PreferDualStack"})"},
};

TEST(StoredVersions, OldServicesAreCompleted) {
  for (const ServiceCase& row : kServices) {
    SCOPED_TRACE(row.name);
    Arena arena;
    Result<Value> spec = codec::decode_json(arena, row.stored);
    ASSERT_TRUE(spec) << spec.error().message;
    Draft draft(arena, with_member(arena, Value::empty_map(), "spec", *spec));
    complete_stored_service(arena, draft.root(), "IPv6");
    EXPECT_EQ(codec::encode_json(*draft.value().find("spec")), row.want);
  }
}

}  // namespace
}  // namespace holdfast::kinds
