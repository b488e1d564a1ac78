// The embedded controllers on the API in the test process.
#include "controllers/controllers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/testing.h"

namespace holdfast::controllers {
namespace {

using api::testing::Answer;
using api::testing::InProcess;
using ::testing::HasSubstr;
using std::chrono_literals::operator""s;

constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";
constexpr const char* kMerge = "application/merge-patch+json";

bool is_gone(const Answer& answer) { return answer.status == 404; }

// A server with controllers.
struct Cluster : ::testing::Test {
  ~Cluster() override { stop(); }

  void start(std::vector<std::string> chosen = {"*"}) {
    controllers = std::make_unique<Controllers>(server.api(), server.loop(), server.clock,
                                                Options{.controllers = std::move(chosen), .root_ca_pem = "the CA"});
    controllers->start();
  }
  void stop() {
    if (controllers) block_on(server.loop(), controllers->close(server.loop()));
    controllers.reset();
  }

  std::string uid_of(const std::string& target) {
    return std::string(server.call("GET", target).text("metadata", "uid"));
  }
  // Returns the uid.
  std::string make_map(const std::string& name, const std::string& more = "") {
    const Answer made = server.call("POST", kMaps, R"({"metadata":{"name":")" + name + "\"" + more + "}}");
    EXPECT_EQ(made.status, 201) << made.body;
    return std::string(made.text("metadata", "uid"));
  }
  static std::string owned_by(const std::string& name, const std::string& uid, bool blocks = false) {
    return R"(,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":")" + name + R"(","uid":")" + uid +
           R"(","blockOwnerDeletion":)" + (blocks ? "true" : "false") + "}]";
  }
  static std::string path(const std::string& name) { return std::string(kMaps) + "/" + name; }

  InProcess server;
  std::unique_ptr<Controllers> controllers;
};

// --- Garbage collection ---

using GarbageCollection = Cluster;

TEST_F(GarbageCollection, DependentsOfADeletedOwnerAreDeleted) {
  start();
  const std::string uid = make_map("owner");
  make_map("child", owned_by("owner", uid));
  make_map("other");
  EXPECT_EQ(server.call("DELETE", path("owner")).status, 200);
  server.get_until(path("child"), is_gone);
  EXPECT_EQ(server.call("GET", path("other")).status, 200);
}

TEST_F(GarbageCollection, ObjectsWhoseOwnerWasReplacedAreDeleted) {
  make_map("owner");
  make_map("child", owned_by("owner", "00000000-0000-0000-0000-000000000001"));
  start();
  server.get_until(path("child"), is_gone);
  EXPECT_EQ(server.call("GET", path("owner")).status, 200);
}

TEST_F(GarbageCollection, OneRemainingOwnerKeepsAnObject) {
  start();
  const std::string first = make_map("first"), second = make_map("second");
  make_map("child", R"(,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"first","uid":")" + first +
                        R"("},{"apiVersion":"v1","kind":"ConfigMap","name":"second","uid":")" + second + "\"}]");
  server.call("DELETE", path("first"));
  const Answer left = server.get_until(path("child"), [](const Answer& child) {
    return child.json.items_at("metadata", "ownerReferences").size() == 1;
  });
  EXPECT_EQ(left.json.items_at("metadata", "ownerReferences")[0].text_at("name"), "second");
}

TEST_F(GarbageCollection, ForegroundDeletionWaitsForDependentsThatBlockIt) {
  start();
  const std::string uid = make_map("owner");
  make_map("child", owned_by("owner", uid, true) + R"(,"finalizers":["example.com/hold"])");
  EXPECT_EQ(server.call("DELETE", path("owner") + "?propagationPolicy=Foreground").status, 200);
  server.get_until(path("child"),
                   [](const Answer& child) { return !child.text("metadata", "deletionTimestamp").empty(); });
  EXPECT_EQ(server.call("GET", path("owner")).json.items_at("metadata", "finalizers")[0].as_string(),
            "foregroundDeletion");
  server.call("PATCH", path("child"), R"({"metadata":{"finalizers":null}})", kMerge);
  server.get_until(path("owner"), is_gone);
}

TEST_F(GarbageCollection, OrphansLoseTheirOwner) {
  start();
  const std::string uid = make_map("owner");
  make_map("child", owned_by("owner", uid));
  server.call("DELETE", path("owner") + "?propagationPolicy=Orphan");
  server.get_until(path("owner"), is_gone);
  const Answer child = server.call("GET", path("child"));
  EXPECT_EQ(child.status, 200);
  EXPECT_TRUE(child.json.items_at("metadata", "ownerReferences").empty());
}

TEST_F(GarbageCollection, OwnersInAnotherNamespaceAreReportedAndDoNotCount) {
  server.call("POST", "/api/v1/namespaces", R"({"metadata":{"name":"other"}})");
  const Answer owner = server.call("POST", "/api/v1/namespaces/other/configmaps", R"({"metadata":{"name":"owner"}})");
  make_map("child", owned_by("owner", std::string(owner.text("metadata", "uid"))));
  start({"garbage-collector"});
  server.get_until(path("child"), is_gone);
  const Answer events = server.get_until("/api/v1/namespaces/default/events",
                                         [](const Answer& list) { return !list.json.items_at("items").empty(); });
  EXPECT_EQ(events.json.items_at("items")[0].text_at("reason"), "OwnerRefInvalidNamespace");
}

TEST_F(GarbageCollection, AClusterScopedObjectIsNotDeletedForANamespacedOwner) {
  const std::string uid = make_map("owner");
  server.call("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
              R"({"metadata":{"name":"wrong")" + owned_by("owner", uid) + R"(},"rules":[]})");
  start({"garbage-collector"});
  server.get_until("/api/v1/namespaces/default/events",
                   [](const Answer& list) { return !list.json.items_at("items").empty(); });
  server.call("DELETE", path("owner"));
  make_map("orphan", owned_by("owner", uid));
  server.get_until(path("orphan"), is_gone);  // By now the deletion has been seen.
  EXPECT_EQ(server.call("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/wrong").status, 200);
}

// --- Namespaces ---

using Namespaces = Cluster;

TEST_F(Namespaces, EveryNamespaceGetsItsDefaultObjects) {
  start();
  server.call("POST", "/api/v1/namespaces", R"({"metadata":{"name":"new"}})");
  for (const std::string ns : {"default", "new"}) {
    const auto exists = [](const Answer& answer) { return answer.status == 200; };
    server.get_until("/api/v1/namespaces/" + ns + "/serviceaccounts/default", exists);
    const Answer map = server.get_until("/api/v1/namespaces/" + ns + "/configmaps/kube-root-ca.crt", exists);
    EXPECT_EQ(map.text("data", "ca.crt"), "the CA");
  }
}

TEST_F(Namespaces, ATerminatingNamespaceIsEmptiedAndRemoved) {
  start();
  server.call("POST", "/api/v1/namespaces", R"({"metadata":{"name":"old"}})");
  const std::string within = "/api/v1/namespaces/old/configmaps";
  server.call("POST", within, R"({"metadata":{"name":"plain"}})");
  server.call("POST", within, R"({"metadata":{"name":"held","finalizers":["example.com/hold"]}})");
  EXPECT_EQ(server.call("DELETE", "/api/v1/namespaces/old").text("status", "phase"), "Terminating");
  server.get_until(within + "/plain", is_gone);
  server.get_until(within + "/held",
                   [](const Answer& held) { return !held.text("metadata", "deletionTimestamp").empty(); });
  EXPECT_EQ(server.call("GET", "/api/v1/namespaces/old").status, 200);
  server.call("PATCH", within + "/held", R"({"metadata":{"finalizers":null}})", kMerge);
  server.get_until("/api/v1/namespaces/old", is_gone);
}

// --- Others ---

TEST_F(Cluster, QuotasShowWhatIsUsed) {
  make_map("before");
  start({"resourcequota"});
  const std::string quotas = "/api/v1/namespaces/default/resourcequotas";
  ASSERT_EQ(server.call("POST", quotas, R"({"metadata":{"name":"q"},"spec":{"hard":{"configmaps":"5"}}})").status, 201);
  const auto used = [](std::string_view wanted) {
    return [wanted](const Answer& quota) { return quota.json.text_at("status", "used", "configmaps") == wanted; };
  };
  server.get_until(quotas + "/q", used("1"));
  server.call("DELETE", path("before"));
  server.get_until(quotas + "/q", used("0"));
}

TEST_F(Cluster, AggregatedRolesFollowTheRolesThatTheySelect) {
  start({"clusterrole-aggregation-controller"});
  const std::string roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
  ASSERT_EQ(server
                .call("POST", roles,
                      R"({"metadata":{"name":"all"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":)"
                      R"({"part":"yes"}}]}})")
                .status,
            201);
  for (const std::string name : {"a", "b"}) {
    ASSERT_EQ(server
                  .call("POST", roles,
                        R"({"metadata":{"name":")" + name +
                            R"(","labels":{"part":"yes"}},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":[")" +
                            name + "\"]}]}")
                  .status,
              201);
  }
  const auto rules = [](size_t count) {
    return [count](const Answer& role) { return role.json.items_at("rules").size() == count; };
  };
  server.get_until(roles + "/all", rules(2));
  server.call("DELETE", roles + "/b");
  server.get_until(roles + "/all", rules(1));
}

TEST_F(Cluster, ExpiredLeasesOfServersAreDeleted) {
  server.call("POST", "/api/v1/namespaces", R"({"metadata":{"name":"kube-system"}})");
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
  const auto make = [&](const std::string& name, const std::string& renewed, const std::string& identity) {
    ASSERT_EQ(server
                  .call("POST", leases,
                        R"({"metadata":{"name":")" + name + R"(","labels":{"apiserver.kubernetes.io/identity":")" +
                            identity + R"("}},"spec":{"leaseDurationSeconds":3600,"renewTime":")" + renewed + "\"}}")
                  .status,
              201);
  };
  make("expired", "2027-01-15T06:00:00.000000Z", "kube-apiserver");
  make("alive", "2027-01-15T07:30:00.000000Z", "kube-apiserver");
  make("other", "2027-01-15T06:00:00.000000Z", "somebody");
  start({"lease-cleanup"});
  server.get_until(leases + "/expired", is_gone);
  EXPECT_EQ(server.call("GET", leases + "/alive").status, 200);
  EXPECT_EQ(server.call("GET", leases + "/other").status, 200);
}

// The status of FlowSchemas is always maintained, so it shows that the controllers have had their turn.
TEST_F(Cluster, ControllersAreOnStandbyWhileAnotherManagerHoldsItsLease) {
  server.call("POST", "/api/v1/namespaces", R"({"metadata":{"name":"kube-system"}})");
  ASSERT_EQ(server
                .call("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
                      R"({"metadata":{"name":"kube-controller-manager"},"spec":{"holderIdentity":"m",)"
                      R"("leaseDurationSeconds":15,"renewTime":"2027-01-15T08:00:00.000000Z"}})")
                .status,
            201);
  make_map("child", owned_by("gone", "00000000-0000-0000-0000-000000000001"));
  start();
  const std::string schemas = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
  ASSERT_EQ(
      server.call("POST", schemas, R"({"metadata":{"name":"s"},"spec":{"priorityLevelConfiguration":{"name":"none"}}})")
          .status,
      201);
  server.get_until(schemas + "/s",
                   [](const Answer& schema) { return !schema.json.items_at("status", "conditions").empty(); });
  EXPECT_EQ(server.call("GET", path("child")).status, 200);
  server.clock.pass(60s);
  server.get_until(path("child"), is_gone);
}

TEST_F(Cluster, OnlyChosenControllersRun) {
  make_map("child", owned_by("gone", "00000000-0000-0000-0000-000000000001"));
  start({"*", "-garbage-collector"});
  server.get_until("/api/v1/namespaces/default/serviceaccounts/default",
                   [](const Answer& account) { return account.status == 200; });
  EXPECT_EQ(server.call("GET", path("child")).status, 200);
}

TEST(ControllerNames, UnknownNamesAreErrors) {
  EXPECT_TRUE(check({.controllers = {"*", "-namespace"}}));
  EXPECT_TRUE(check({.controllers = {"none"}}));
  const Result<Unit> unknown = check({.controllers = {"-namespaces"}});
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("\"-namespaces\" is not a controller; there are *, none, namespace"));
}

}  // namespace
}  // namespace holdfast::controllers
