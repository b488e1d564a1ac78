#include "bootstrap/bootstrap.h"

#include <gtest/gtest.h>

#include <map>

#include "bootstrap/roles.h"
#include "codec/codec.h"

namespace holdfast::bootstrap {
namespace {

TEST(RulesTest, ParsesTheNotationIntoPolicyRules) {
  Arena arena;
  EXPECT_EQ(
      codec::encode_json(parse_rules(
          arena,
          "coord/leases[kube-scheduler]:gu E url:/version,/api:g */*/scale:g certs/signers[k/legacy-unknown]:approve")),
      R"([{"verbs":["get","update"],"apiGroups":["coordination.k8s.io"],"resources":["leases"],"resourceNames":["kube-scheduler"]},)"
      R"({"verbs":["create","patch","update"],"apiGroups":["","events.k8s.io"],"resources":["events"]},{"verbs":["get"],"nonResourceURLs":["/api","/version"]},)"
      R"({"verbs":["get"],"apiGroups":["*"],"resources":["*/scale"]},)"
      R"({"verbs":["approve"],"apiGroups":["certificates.k8s.io"],"resources":["signers"],"resourceNames":["kubernetes.io/legacy-unknown"]}])");
}

TEST(BootstrapTest, CreatesAsManyObjectsOfEachKindAsKubernetes) {
  Arena arena;
  Options options;
  options.client_ca_pem = "PEM";
  std::map<std::string, int> counts;
  for (const Step& step : steps(arena, options, {1767323045, 0})) ++counts[std::string(step.resource->plural)];
  const std::map<std::string, int> want = {{"namespaces", 4},
                                           {"servicecidrs", 1},
                                           {"apiservices", 21},
                                           {"configmaps", 2},
                                           {"prioritylevelconfigurations", 8},
                                           {"flowschemas", 11},
                                           {"priorityclasses", 2},
                                           {"clusterroles", 69},
                                           {"clusterrolebindings", 50},
                                           {"roles", 7},
                                           {"rolebindings", 7},
                                           {"ipaddresses", 1},
                                           {"services", 1},
                                           {"endpoints", 1},
                                           {"endpointslices", 1}};
  EXPECT_EQ(counts, want);
}

TEST(BootstrapTest, TheOwnershipApiAddsARoleForEveryone) {
  Arena arena;
  Options options;
  options.ownership_api = true;
  std::vector<std::string> added;
  for (const Step& step : steps(arena, options, {1767323045, 0})) {
    if (step.object.text_at("metadata", "name") != "holdfast:ownership-user") continue;
    added.push_back(codec::encode_json(*step.object.find(added.empty() ? "rules" : "subjects")));
  }
  EXPECT_EQ(
      added,
      (std::vector<std::string>{
          R"([{"verbs":["create"],"apiGroups":["ownership.holdfast.dev"],"resources":["ownershipreleases","ownershipreviews","ownershiptransfers"]}])",
          R"([{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:authenticated"}])"}));
}

}  // namespace
}  // namespace holdfast::bootstrap
