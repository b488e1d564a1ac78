// Privilege escalation, and RBAC and flow control over the watch caches, through the whole API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "access/access.h"
#include "api/testing.h"

namespace holdfast::api::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kRbac = "/apis/rbac.authorization.k8s.io/v1";
const std::string kRoles = kRbac + "/namespaces/default/roles";
const std::string kClusterRoles = kRbac + "/clusterroles";
const std::string kBindings = kRbac + "/namespaces/default/rolebindings";
const std::string kClusterBindings = kRbac + "/clusterrolebindings";

constexpr const char* kMerge = "application/merge-patch+json";
constexpr const char* kStrategic = "application/strategic-merge-patch+json";
constexpr const char* kJsonPatch = "application/json-patch+json";
constexpr const char* kApply = "application/apply-patch+yaml";

const std::string kGetPods = R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}])";
const std::string kGetSecrets = R"([{"verbs":["get"],"apiGroups":[""],"resources":["secrets"]}])";
const std::string kGetBoth = R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods","secrets"]}])";
const std::string kCreateRoles =
    R"([{"verbs":["create"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","clusterroles"]}])";
const std::string kAllResources = R"([{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}])";
const std::string kEverything =
    R"([{"verbs":["*"],"apiGroups":["*"],"resources":["*"]},{"verbs":["*"],"nonResourceURLs":["*"]}])";

std::string rbac_object(const std::string& kind, const std::string& name, const std::string& rest) {
  return R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":")" + kind + R"(","metadata":{"name":")" + name +
         R"("},)" + rest + "}";
}
std::string role(const std::string& name, const std::string& rules) {
  return rbac_object("Role", name, R"("rules":)" + rules);
}
std::string cluster_role(const std::string& name, const std::string& rules) {
  return rbac_object("ClusterRole", name, R"("rules":)" + rules);
}
std::string binding(const std::string& kind, const std::string& name, const std::string& role_kind,
                    const std::string& role, const std::string& user) {
  return rbac_object(kind, name,
                     R"("roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":")" + role_kind + R"(","name":")" +
                         role + R"("},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":")" +
                         user + R"("}])");
}

class AccessTest : public ::testing::Test {
 protected:
  AccessTest() { server.become("bob", {"devs"}); }

  Answer as_master(const std::string& method, const std::string& path, const std::string& body = {},
                   const std::string& type = "application/json") {
    server.become("root", {"system:masters"});
    Answer answer = server.call(method, path, body, type);
    server.become("bob", {"devs"});
    return answer;
  }
  void made(const std::string& path, const std::string& body) {
    const Answer answer = as_master("POST", path, body);
    ASSERT_EQ(answer.status, 201) << answer.body;
  }
  // Grants a user these rules: everywhere if the namespace is empty.
  void hold(const std::string& rules, const std::string& ns = "", const std::string& user = "bob") {
    const std::string name = "held" + std::to_string(++grants_);
    const bool everywhere = ns.empty();
    made(kClusterRoles, cluster_role(name, rules));
    made(everywhere ? kClusterBindings : kRbac + "/namespaces/" + ns + "/rolebindings",
         binding(everywhere ? "ClusterRoleBinding" : "RoleBinding", name, "ClusterRole", name, user));
    // Something that nothing else grants tells when the index has the binding: the authorizer looks at the caches
    // again after a moment.
    const std::string mark = "mark" + std::to_string(grants_);
    made(kClusterRoles,
         cluster_role(mark, R"([{"verbs":[")" + mark + R"("],"apiGroups":["marks"],"resources":["marks"]}])"));
    made(kClusterBindings, binding("ClusterRoleBinding", mark, "ClusterRole", mark, user));
    while (!allowed(mark, "marks", "marks", "", user)) std::this_thread::yield();
  }
  bool allowed(std::string_view verb, std::string_view group, std::string_view resource, std::string_view ns = "",
               const std::string& user = "bob") {
    const auth::UserInfo who{.name = user, .uid = {}, .groups = {}, .extra = {}};
    return server.api().authorizer().allows({&who, verb, {.group = group, .resource = resource, .ns = ns}});
  }

  InProcess server{{}, InProcess::Begin::Ready, InProcess::Authorization::Rbac};

 private:
  int grants_ = 0;
};

using EscalationTest = AccessTest;

TEST_F(EscalationTest, RoleMayGrantWhatItsAuthorHolds) {
  hold(kGetPods);
  EXPECT_EQ(server.call("POST", kRoles, role("a", kGetPods)).status, 201);
  EXPECT_EQ(server.call("POST", kClusterRoles, cluster_role("a", kGetPods)).status, 201);
}

TEST_F(EscalationTest, RefusalListsWhatTheAuthorLacks) {
  hold(kGetPods);
  const Answer refused = server.call("POST", kRoles, role("a", kGetBoth));
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.reason(), "Forbidden");
  EXPECT_EQ(
      refused.message(),
      "roles.rbac.authorization.k8s.io \"a\" is forbidden: user \"bob\" (groups=[\"devs\"]) is attempting to grant "
      "RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}");
  EXPECT_EQ(server.call("GET", kRoles + "/a").status, 404);
}

TEST_F(EscalationTest, RefusalNamesRolesThatCouldNotBeResolved) {
  made(kClusterBindings, binding("ClusterRoleBinding", "dangling", "ClusterRole", "gone", "bob"));
  hold(kGetPods);
  EXPECT_THAT(std::string(server.call("POST", kRoles, role("a", kGetSecrets)).message()),
              HasSubstr("; resolution errors: [clusterrole.rbac.authorization.k8s.io \"gone\" not found]"));
}

TEST_F(EscalationTest, EveryWayToWriteRulesIsChecked) {
  hold(kGetPods);
  hold(kCreateRoles);  // Apply asks for it when it creates an object.
  for (const auto& [path, make] : {std::pair(kRoles, &role), std::pair(kClusterRoles, &cluster_role)}) {
    const std::string live = path + "/live";
    made(path, make("live", kGetPods));
    const struct {
      std::string name, method, path, body, type;
    } ways[] = {
        {"create", "POST", path, make("new", kGetSecrets), "application/json"},
        {"dry run", "POST", path + "?dryRun=All", make("new", kGetSecrets), "application/json"},
        {"update", "PUT", live, make("live", kGetSecrets), "application/json"},
        {"merge patch", "PATCH", live, R"({"rules":)" + kGetSecrets + "}", kMerge},
        {"strategic merge patch", "PATCH", live, R"({"rules":)" + kGetSecrets + "}", kStrategic},
        {"JSON patch", "PATCH", live, R"([{"op":"add","path":"/rules/0/resources/-","value":"secrets"}])", kJsonPatch},
        {"JSON patch of a verb", "PATCH", live, R"([{"op":"replace","path":"/rules/0/verbs/0","value":"*"}])",
         kJsonPatch},
        {"apply", "PATCH", live + "?fieldManager=bob&force=true", make("live", kGetSecrets), kApply},
        {"apply that creates", "PATCH", path + "/new?fieldManager=bob", make("new", kGetSecrets), kApply},
    };
    for (const auto& way : ways) {
      const Answer refused = server.call(way.method, way.path, way.body, way.type);
      EXPECT_EQ(refused.status, 403) << way.name << " of " << path << ": " << refused.body;
      EXPECT_THAT(refused.body, HasSubstr("attempting to grant RBAC permissions not currently held")) << way.name;
      EXPECT_THAT(server.call("GET", live).body, AllOf(Not(HasSubstr("secrets")), Not(HasSubstr("\"*\"")))) << way.name;
      EXPECT_EQ(server.call("GET", path + "/new").status, 404) << way.name;
    }
  }
}

TEST_F(EscalationTest, PermissionsInANamespaceCountThereOnly) {
  made("/api/v1/namespaces", R"({"metadata":{"name":"other"}})");
  hold(kGetPods, "default");
  EXPECT_EQ(server.call("POST", kRoles, role("a", kGetPods)).status, 201);
  EXPECT_EQ(server.call("POST", kRbac + "/namespaces/other/roles", role("a", kGetPods)).status, 403);
  EXPECT_EQ(server.call("POST", kClusterRoles, cluster_role("a", kGetPods)).status, 403);
}

TEST_F(EscalationTest, PartOfAPermissionIsNotAllOfIt) {
  const struct {
    std::string name, held, wanted;
    int status;
  } cases[] = {
      {"named objects do not allow all",
       R"([{"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["a"]}])", kGetSecrets, 403},
      {"named objects allow the same names",
       R"([{"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["a","b"]}])",
       R"([{"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["b"]}])", 201},
      {"all objects allow named ones", kGetSecrets,
       R"([{"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["b"]}])", 201},
      {"a resource does not allow its subresources", kGetPods,
       R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods/log"]}])", 403},
      {"another group is another resource", kGetPods,
       R"([{"verbs":["get"],"apiGroups":["metrics.k8s.io"],"resources":["pods"]}])", 403},
      {"all verbs of a resource are more than those that exist",
       R"([{"verbs":["get","list","watch","create","update","patch","delete","deletecollection"],"apiGroups":[""],"resources":["pods"]}])",
       R"([{"verbs":["*"],"apiGroups":[""],"resources":["pods"]}])", 403},
      {"all resources do not include paths", R"([{"verbs":["get"],"apiGroups":["*"],"resources":["*"]}])",
       R"([{"verbs":["get"],"nonResourceURLs":["/metrics"]}])", 403},
      {"a path with a star includes those below it", R"([{"verbs":["get"],"nonResourceURLs":["/debug/*"]}])",
       R"([{"verbs":["get"],"nonResourceURLs":["/debug/pprof"]}])", 201},
      {"two rules together allow what neither does",
       R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods"]},)"
       R"({"verbs":["list"],"apiGroups":[""],"resources":["pods"]}])",
       R"([{"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]}])", 201},
  };
  for (const auto& one : cases) {
    const std::string user = "user" + std::to_string(&one - cases);
    hold(one.held, "", user);
    server.become(user);
    EXPECT_EQ(server.call("POST", kClusterRoles, cluster_role(user, one.wanted)).status, one.status) << one.name;
  }
}

TEST_F(EscalationTest, EscalateAllowsAnyRulesInTheRolesThatItNames) {
  hold(kCreateRoles);
  hold(
      R"([{"verbs":["escalate"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"resourceNames":["a"]}])");
  EXPECT_EQ(server.call("PATCH", kRoles + "/a?fieldManager=bob", role("a", kGetSecrets), kApply).status, 201);
  EXPECT_EQ(server.call("PATCH", kRoles + "/b?fieldManager=bob", role("b", kGetSecrets), kApply).status, 403);
  EXPECT_EQ(server.call("PATCH", kClusterRoles + "/a?fieldManager=bob", cluster_role("a", kGetSecrets), kApply).status,
            403);
}

TEST_F(EscalationTest, EscalateDoesNotAllowBinding) {
  hold(R"([{"verbs":["escalate"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["*"]}])");
  made(kRoles, role("secrets", kGetSecrets));
  EXPECT_EQ(server.call("POST", kBindings, binding("RoleBinding", "a", "Role", "secrets", "bob")).status, 403);
}

TEST_F(EscalationTest, MastersPass) {
  made(kRoles, role("a", kAllResources));
  made(kBindings, binding("RoleBinding", "a", "Role", "a", "eve"));
}

TEST_F(EscalationTest, ChangesForGarbageCollectionNeedNoPermission) {
  made(kRoles, role("a", kGetSecrets));
  EXPECT_EQ(server.call("PATCH", kRoles + "/a", R"({"metadata":{"finalizers":["example.com/hold"]}})", kMerge).status,
            200);
  EXPECT_EQ(
      server
          .call("PATCH", kRoles + "/a",
                R"({"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"c","uid":"u"}]}})",
                kMerge)
          .status,
      200);
  EXPECT_EQ(server.call("PATCH", kRoles + "/a", R"({"metadata":{"finalizers":null}})", kMerge).status, 200);
  // Anything else takes the permissions that the role grants.
  EXPECT_EQ(server.call("PATCH", kRoles + "/a", R"({"metadata":{"labels":{"a":"b"}}})", kMerge).status, 403);
  EXPECT_EQ(server
                .call("PATCH", kRoles + "/a", R"({"metadata":{"finalizers":["example.com/hold"],"labels":{"a":"b"}}})",
                      kMerge)
                .status,
            403);
}

TEST_F(EscalationTest, TakingPermissionsAwayNeedsTheRemainingOnes) {
  hold(kGetPods);
  made(kRoles, role("a", kGetBoth));
  EXPECT_EQ(server.call("PUT", kRoles + "/a", role("a", kGetPods)).status, 200);
  EXPECT_EQ(server.call("DELETE", kRoles + "/a").status, 200);
}

TEST_F(EscalationTest, AggregatedRoleNeedsEverything) {
  const std::string aggregated = rbac_object(
      "ClusterRole", "sum", R"("aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]},"rules":[])");
  hold(kGetPods);
  const Answer refused = server.call("POST", kClusterRoles, aggregated);
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(
      refused.message(),
      "clusterroles.rbac.authorization.k8s.io \"sum\" is forbidden: must have cluster-admin privileges to use the "
      "aggregationRule");
  // Also where only the live object has one: the rules that were aggregated stay.
  made(kClusterRoles, aggregated);
  EXPECT_EQ(server.call("PATCH", kClusterRoles + "/sum", R"({"aggregationRule":null})", kMerge).status, 403);
  hold(kEverything);
  EXPECT_EQ(server.call("PATCH", kClusterRoles + "/sum", R"({"aggregationRule":null})", kMerge).status, 200);
  EXPECT_EQ(server.call("PUT", kClusterRoles + "/sum", aggregated).status, 200);
}

TEST_F(EscalationTest, BindingNeedsThePermissionsOfItsRole) {
  hold(kGetPods);
  made(kRoles, role("pods", kGetPods));
  made(kRoles, role("secrets", kGetSecrets));
  EXPECT_EQ(server.call("POST", kBindings, binding("RoleBinding", "a", "Role", "pods", "bob")).status, 201);
  const Answer refused = server.call("POST", kBindings, binding("RoleBinding", "b", "Role", "secrets", "bob"));
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(
      refused.message(),
      "rolebindings.rbac.authorization.k8s.io \"b\" is forbidden: user \"bob\" (groups=[\"devs\"]) is attempting to "
      "grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}");
  EXPECT_EQ(server.call("GET", kBindings + "/b").status, 404);
}

TEST_F(EscalationTest, NewSubjectsOfABindingNeedThePermissionsOfItsRole) {
  made(kClusterRoles, cluster_role("secrets", kGetSecrets));
  made(kBindings, binding("RoleBinding", "a", "ClusterRole", "secrets", "eve"));
  made(kClusterBindings, binding("ClusterRoleBinding", "a", "ClusterRole", "secrets", "eve"));
  const std::string mine = R"({"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"bob"}]})";
  for (const std::string& path : {kBindings, kClusterBindings}) {
    EXPECT_EQ(server.call("PATCH", path + "/a", mine, kMerge).status, 403);
    EXPECT_EQ(
        server.call("PATCH", path + "/a", R"([{"op":"replace","path":"/subjects/0/name","value":"bob"}])", kJsonPatch)
            .status,
        403);
    EXPECT_THAT(server.call("GET", path + "/a").body, Not(HasSubstr("\"bob\"")));
    EXPECT_EQ(server.call("PATCH", path + "/a", R"({"metadata":{"finalizers":["example.com/hold"]}})", kMerge).status,
              200);
  }
}

TEST_F(EscalationTest, ClusterRoleBoundInANamespaceNeedsItsPermissionsThere) {
  hold(kGetPods, "default");
  made(kClusterRoles, cluster_role("pods", kGetPods));
  EXPECT_EQ(server.call("POST", kBindings, binding("RoleBinding", "a", "ClusterRole", "pods", "bob")).status, 201);
  EXPECT_EQ(
      server.call("POST", kClusterBindings, binding("ClusterRoleBinding", "a", "ClusterRole", "pods", "bob")).status,
      403);
}

TEST_F(EscalationTest, BindAllowsBindingTheRolesThatItNames) {
  made(kClusterRoles, cluster_role("secrets", kGetSecrets));
  made(kClusterRoles, cluster_role("all", kEverything));
  hold(R"([{"verbs":["bind"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],)"
       R"("resourceNames":["secrets"]}])",
       "default");
  EXPECT_EQ(server.call("POST", kBindings, binding("RoleBinding", "a", "ClusterRole", "secrets", "eve")).status, 201);
  EXPECT_EQ(server.call("POST", kBindings, binding("RoleBinding", "b", "ClusterRole", "all", "eve")).status, 403);
  // The permission to bind was granted in the namespace only, and for cluster roles only.
  EXPECT_EQ(
      server.call("POST", kClusterBindings, binding("ClusterRoleBinding", "a", "ClusterRole", "secrets", "eve")).status,
      403);
  made(kRoles, role("secrets", kGetSecrets));
  EXPECT_EQ(server.call("POST", kBindings, binding("RoleBinding", "c", "Role", "secrets", "eve")).status, 403);
}

TEST_F(EscalationTest, RoleThatDoesNotExistCannotBeBoundWithoutBind) {
  const Answer refused = server.call("POST", kBindings, binding("RoleBinding", "a", "Role", "later", "bob"));
  EXPECT_EQ(refused.status, 404);
  EXPECT_EQ(refused.message(), "rolebindings.rbac.authorization.k8s.io \"later\" not found");
  hold(R"([{"verbs":["bind"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"]}])");
  EXPECT_EQ(server.call("POST", kBindings, binding("RoleBinding", "a", "Role", "later", "bob")).status, 201);
}

// Not when the index has it: a role that was just created or extended must not slip through.
TEST_F(EscalationTest, RulesOfABoundRoleAreReadFromTheStore) {
  for (int i = 0; i < 20; ++i) {
    const std::string name = "r" + std::to_string(i);
    made(kRoles, role(name, "[]"));
    ASSERT_EQ(as_master("PATCH", kRoles + "/" + name, R"({"rules":)" + kGetSecrets + "}", kMerge).status, 200);
    ASSERT_EQ(server.call("POST", kBindings, binding("RoleBinding", name, "Role", name, "bob")).status, 403);
  }
}

TEST_F(EscalationTest, ObjectIsCheckedAfterMutation) {
  hold(kGetPods);
  const std::string admission = "/apis/admissionregistration.k8s.io/v1";
  made(
      admission + "/mutatingadmissionpolicies",
      R"({"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingAdmissionPolicy","metadata":{"name":"widen"},"spec":{)"
      R"("matchConstraints":{"resourceRules":[{"operations":["CREATE"],"apiGroups":["rbac.authorization.k8s.io"],)"
      R"("apiVersions":["v1"],"resources":["roles"]}]},"reinvocationPolicy":"Never","mutations":[{"patchType":"JSONPatch",)"
      R"("jsonPatch":{"expression":"[JSONPatch{op: 'add', path: '/rules/0/resources/-', value: 'secrets'}]"}}]}})");
  made(
      admission + "/mutatingadmissionpolicybindings",
      R"({"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingAdmissionPolicyBinding","metadata":{"name":"widen"},)"
      R"("spec":{"policyName":"widen"}})");
  // Policies take effect a moment after they are stored; dry runs show when.
  while (as_master("POST", kRoles + "?dryRun=All", role("a", kGetPods)).body.find("secrets") == std::string::npos) {
    std::this_thread::yield();
  }
  const Answer refused = server.call("POST", kRoles, role("a", kGetPods));
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.body, HasSubstr("not currently held"));
}

TEST_F(EscalationTest, OtherKindsPass) {
  EXPECT_EQ(server.call("POST", "/api/v1/namespaces/default/secrets", R"({"metadata":{"name":"a"}})").status, 201);
}

TEST(EscalationWithoutRbacTest, EverythingPasses) {
  InProcess server;
  EXPECT_EQ(server.call("POST", kClusterRoles, cluster_role("a", kEverything)).status, 201);
  EXPECT_EQ(
      server.call("POST", kClusterBindings, binding("ClusterRoleBinding", "a", "ClusterRole", "gone", "bob")).status,
      201);
}

using AuthorizerTest = AccessTest;

TEST_F(AuthorizerTest, GrantsAndRevocationsTakeEffect) {
  EXPECT_FALSE(allowed("get", "", "pods", "default"));
  hold(kGetPods, "default");
  EXPECT_TRUE(allowed("get", "", "pods", "default"));
  EXPECT_FALSE(allowed("get", "", "pods", "other"));
  EXPECT_FALSE(allowed("list", "", "pods", "default"));
  ASSERT_EQ(as_master("DELETE", kBindings + "/held1").status, 200);
  while (allowed("get", "", "pods", "default")) std::this_thread::yield();
}

TEST_F(AuthorizerTest, ChangedRulesOfABoundRoleTakeEffect) {
  hold(kGetPods);
  ASSERT_EQ(as_master("PATCH", kClusterRoles + "/held1", R"({"rules":)" + kGetSecrets + "}", kMerge).status, 200);
  while (!allowed("get", "", "secrets")) std::this_thread::yield();
  EXPECT_FALSE(allowed("get", "", "pods"));
}

TEST(AuthorizerStartTest, OnlyMastersAreAllowedUntilTheCachesAreReady) {
  InProcess server{{}, InProcess::Begin::NotStarted, InProcess::Authorization::Rbac};
  const auth::UserInfo bob{.name = "bob", .uid = {}, .groups = {}, .extra = {}};
  const auth::UserInfo root{.name = "root", .uid = {}, .groups = {"system:masters"}, .extra = {}};
  EXPECT_FALSE(server.api().authorizer().allows({&bob, "get", {.resource = "pods"}}));
  EXPECT_TRUE(server.api().authorizer().allows({&root, "get", {.resource = "pods"}}));
}

class FlowControlTest : public ::testing::Test {
 protected:
  // Creates ConfigMaps of this size; the cache has them all afterwards.
  void fill(int count, size_t bytes) {
    for (int i = 0; i < count; ++i) {
      const std::string body =
          R"({"metadata":{"name":"a)" + std::to_string(i) + R"("},"data":{"k":")" + std::string(bytes, 'x') + R"("}})";
      ASSERT_EQ(server.call("POST", maps, body).status, 201);
    }
    ASSERT_EQ(server.call("GET", maps + "?limit=1").status, 200);  // Waits for the cache.
  }
  int64_t seats(const std::string& method, const std::string& path, const std::string& query = {}) {
    return flow.seats_of(request::RequestInfo(method, path, query), "busy");
  }

  const std::string maps = "/api/v1/namespaces/default/configmaps";
  InProcess server;
  MetricRegistry metrics;
  access::FlowControl flow{{.seats = 600}, metrics, server.api().registry()};
};

TEST_F(FlowControlTest, ConfigurationTakesEffectOnceALevelAndASchemaExist) {
  const std::string group = "/apis/flowcontrol.apiserver.k8s.io/v1";
  EXPECT_EQ(flow.schemas(), nullptr);
  ASSERT_EQ(
      server
          .call("POST", group + "/prioritylevelconfigurations",
                R"({"metadata":{"name":"busy"},"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":30,)"
                R"("limitResponse":{"type":"Reject"}}}})")
          .status,
      201);
  ASSERT_EQ(server
                .call("POST", group + "/flowschemas",
                      R"({"metadata":{"name":"all"},"spec":{"priorityLevelConfiguration":{"name":"busy"},)"
                      R"("matchingPrecedence":100,"rules":[{"subjects":[{"kind":"User","user":{"name":"bob"}}],)"
                      R"("resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"namespaces":["*"]}]}]}})")
                .status,
            201);
  while (flow.schemas() == nullptr) std::this_thread::yield();
  const auth::UserInfo bob{.name = "bob", .uid = {}, .groups = {}, .extra = {}};
  const auth::UserInfo eve{.name = "eve", .uid = {}, .groups = {}, .extra = {}};
  const std::shared_ptr<const flow::Schemas> schemas = flow.schemas();
  const std::optional<flow::Flow> his = schemas->classify({&bob, "get", {.resource = "pods", .ns = "default"}});
  ASSERT_TRUE(his.has_value());
  EXPECT_EQ(his->level->name, "busy");
  EXPECT_FALSE(schemas->classify({&eve, "get", {.resource = "pods", .ns = "default"}}).has_value());
  ASSERT_EQ(server.call("DELETE", group + "/flowschemas/all").status, 200);
  ASSERT_EQ(server
                .call("POST", group + "/flowschemas",
                      R"({"metadata":{"name":"other"},"spec":{"priorityLevelConfiguration":{"name":"busy"},)"
                      R"("matchingPrecedence":100,"rules":[{"subjects":[{"kind":"User","user":{"name":"eve"}}],)"
                      R"("resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"namespaces":["*"]}]}]}})")
                .status,
            201);
  while (!flow.schemas()->classify({&eve, "get", {.resource = "pods", .ns = "default"}})) std::this_thread::yield();
  EXPECT_FALSE(flow.schemas()->classify({&bob, "get", {.resource = "pods", .ns = "default"}}).has_value());
}

TEST_F(FlowControlTest, ListsTakeSeatsByTheDataTheyRead) {
  fill(30, 10'000);
  // 30 objects of 10 KB at 100 KB per seat.
  EXPECT_EQ(seats("GET", maps), 4);
  EXPECT_EQ(seats("GET", maps, "limit=5"), 1);
  EXPECT_EQ(seats("GET", maps, "limit=15"), 2);
  EXPECT_EQ(seats("GET", maps, "fieldSelector=metadata.name%3Da1"), 1);
  // Read from the store: half of the objects are expected to be needed for a selector.
  EXPECT_EQ(seats("GET", maps, "resourceVersion=5&resourceVersionMatch=Exact"), 4);
  EXPECT_EQ(seats("GET", maps, "resourceVersion=5&resourceVersionMatch=Exact&limit=1&labelSelector=a"), 2);
  EXPECT_EQ(seats("GET", maps, "watch=true"), 1);
  EXPECT_EQ(seats("GET", maps + "/a1"), 1);
  EXPECT_EQ(seats("POST", maps), 1);
  EXPECT_EQ(seats("GET", "/apis/example.com/v1/things"), 1);
  EXPECT_EQ(seats("GET", "/version"), 1);
}

TEST_F(FlowControlTest, LargeListsFromTheCacheTakeTheSeatsOfWhatIsStreamed) {
  fill(12, 200'000);
  EXPECT_EQ(seats("GET", maps), 10);
  EXPECT_EQ(seats("GET", maps, "resourceVersion=5&resourceVersionMatch=Exact"), 25);
}

}  // namespace
}  // namespace holdfast::api::testing
