// The steps of a write, through the whole API: bodies, admission, quotas, ownership, conflicts.
#include "write/write.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "api/testing.h"

namespace holdfast::write {
namespace {

using api::testing::Answer;
using api::testing::InProcess;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using std::chrono_literals::operator""s;

constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";
constexpr const char* kApply = "application/apply-patch+yaml";
constexpr const char* kMerge = "application/merge-patch+json";

std::string path(const std::string& name) { return std::string(kMaps) + "/" + name; }

std::vector<std::string> warnings(const Answer& answer) {
  std::vector<std::string> found;
  for (const auto& [name, value] : answer.headers) {
    if (name == "warning") found.push_back(value);
  }
  return found;
}

struct Write : ::testing::Test {
  Answer create(const std::string& body, const std::string& query = "") {
    return server.call("POST", kMaps + query, body);
  }
  InProcess server;
};

// --- Bodies ---

TEST_F(Write, UnknownFieldsAreIgnoredReportedOrRefused) {
  const std::string body = R"({"metadata":{"name":"a"},"dada":{}})";
  const Answer warned = create(body, "?fieldValidation=Warn&dryRun=All");
  EXPECT_EQ(warned.status, 201);
  ASSERT_EQ(warnings(warned).size(), 1u);
  EXPECT_THAT(warnings(warned)[0], HasSubstr("unknown field \\\"dada\\\""));
  EXPECT_TRUE(warnings(create(body, "?fieldValidation=Ignore&dryRun=All")).empty());
  const Answer refused = create(body, "?fieldValidation=Strict");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("strict decoding error: unknown field \"dada\""));
}

TEST_F(Write, ADuplicateFieldIsReported) {
  const Answer refused = create(R"({"metadata":{"name":"a"},"data":{"k":"1","k":"2"}})", "?fieldValidation=Strict");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("duplicate field \"data.k\""));
}

TEST_F(Write, TheBodyHasToFitTheRequest) {
  EXPECT_EQ(create(R"({"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}})").status, 400);
  EXPECT_EQ(create(R"({"metadata":{"name":"a","namespace":"other"}})").message(),
            "the namespace of the provided object does not match the namespace sent on the request");
  EXPECT_EQ(create(R"([])").status, 400);
  EXPECT_EQ(create(R"({"metadata":)").status, 400);
  ASSERT_EQ(create(R"({"metadata":{"name":"a"}})").status, 201);
  EXPECT_EQ(server.call("PUT", path("a"), R"({"metadata":{"name":"b"}})").message(),
            "the name of the object (b) does not match the name on the URL (a)");
  EXPECT_EQ(server.call("POST", kMaps, "x", "text/plain").status, 415);
}

TEST_F(Write, NamesAreGeneratedAndNeverTakenTwice) {
  std::set<std::string, std::less<>> names;
  for (int i = 0; i < 50; ++i) {
    const Answer made = create(R"({"metadata":{"generateName":"a-"}})");
    ASSERT_EQ(made.status, 201);
    EXPECT_THAT(std::string(made.text("metadata", "name")), StartsWith("a-"));
    EXPECT_TRUE(names.emplace(made.text("metadata", "name")).second);
  }
}

TEST_F(Write, ValidationNamesEveryField) {
  const Answer refused = create(R"({"metadata":{"name":"A","labels":{"a b":"c"}},"data":{"x y":""}})");
  EXPECT_EQ(refused.status, 422);
  std::vector<std::string> fields;
  for (const Value& cause : refused.json.items_at("details", "causes")) fields.emplace_back(cause.text_at("field"));
  EXPECT_THAT(fields, ::testing::IsSupersetOf({"metadata.name", "metadata.labels"}));
}

// --- Metadata belongs to the server ---

TEST_F(Write, ClientsCannotSetWhatTheServerSets) {
  const Answer made = create(R"({"metadata":{"name":"a","uid":"mine","creationTimestamp":"2001-01-01T00:00:00Z",)"
                             R"("deletionTimestamp":"2001-01-01T00:00:00Z"}})");
  ASSERT_EQ(made.status, 201);
  EXPECT_NE(made.text("metadata", "uid"), "mine");
  EXPECT_EQ(made.text("metadata", "creationTimestamp"), "2027-01-15T08:00:00Z");
  EXPECT_EQ(made.json.get("metadata", "deletionTimestamp"), nullptr);
  const Answer refused = server.call("PUT", path("a"), R"({"metadata":{"name":"a","uid":"other"}})");
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("Precondition failed: UID in precondition: other"));
}

TEST_F(Write, GenerationGrowsOnlyWithTheSpec) {
  const std::string deployments = "/apis/apps/v1/namespaces/default/deployments";
  const std::string pods =
      R"("selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[)"
      R"({"name":"c","image":"i"}]}})";
  const Answer made = server.call("POST", deployments, R"({"metadata":{"name":"d"},"spec":{)" + pods + "}}");
  ASSERT_EQ(made.status, 201) << made.body;
  const auto generation = [](const Answer& answer) { return answer.json.int_at_or(0, "metadata", "generation"); };
  EXPECT_EQ(generation(made), 1);
  EXPECT_EQ(generation(server.call("PATCH", deployments + "/d", R"({"metadata":{"labels":{"x":"y"}}})", kMerge)), 1);
  EXPECT_EQ(generation(server.call("PATCH", deployments + "/d", R"({"spec":{"replicas":3}})", kMerge)), 2);
  // The status has its own endpoint; either side ignores the other's fields.
  const Answer status =
      server.call("PATCH", deployments + "/d/status", R"({"spec":{"replicas":9},"status":{"replicas":3}})", kMerge);
  EXPECT_EQ(status.json.int_at_or(0, "spec", "replicas"), 3);
  EXPECT_EQ(status.json.int_at_or(0, "status", "replicas"), 3);
  EXPECT_EQ(generation(status), 2);
  EXPECT_EQ(server.call("PATCH", deployments + "/d", R"({"status":{"replicas":8}})", kMerge)
                .json.int_at_or(0, "status", "replicas"),
            3);
}

TEST_F(Write, DuplicateOwnersAreRemovedWithAWarning) {
  const std::string owner = R"({"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"})";
  const Answer made = create(R"({"metadata":{"name":"a","ownerReferences":[)" + owner + "," + owner + "]}}");
  EXPECT_EQ(made.json.items_at("metadata", "ownerReferences").size(), 1u);
  ASSERT_EQ(warnings(made).size(), 1u);
  EXPECT_THAT(warnings(made)[0], HasSubstr("duplicate"));
}

// --- Ownership ---

TEST_F(Write, EveryWriteRecordsItsManager) {
  ASSERT_EQ(create(R"({"metadata":{"name":"a"},"data":{"k":"v"}})", "?fieldManager=one").status, 201);
  const Answer applied =
      server.call("PATCH", path("a") + "?fieldManager=two",
                  R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"l":"w"}})", kApply);
  ASSERT_EQ(applied.status, 200);
  std::map<std::string, std::string, std::less<>> operations;
  for (const Value& entry : applied.json.items_at("metadata", "managedFields")) {
    operations.emplace(entry.text_at("manager"), entry.text_at("operation"));
  }
  EXPECT_EQ(operations, (std::map<std::string, std::string, std::less<>>{{"one", "Update"}, {"two", "Apply"}}));
}

TEST_F(Write, TheManagerOfAnUpdateIsTheUserAgentUnlessItIsNamed) {
  const Answer made = create(R"({"metadata":{"name":"a"},"data":{"k":"v"}})");
  EXPECT_EQ(made.json.items_at("metadata", "managedFields")[0].text_at("manager"), "test");
}

TEST_F(Write, AnApplyNeedsAManager) {
  const Answer refused =
      server.call("PATCH", path("a"), R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}})", kApply);
  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("fieldManager"));
}

TEST_F(Write, AnEmptyListOfManagedFieldsResetsOwnership) {
  ASSERT_EQ(create(R"({"metadata":{"name":"a"},"data":{"k":"v"}})", "?fieldManager=one").status, 201);
  const Answer reset = server.call("PATCH", path("a"), R"({"metadata":{"managedFields":[{}]}})", kMerge);
  EXPECT_EQ(reset.status, 200);
  EXPECT_TRUE(reset.json.items_at("metadata", "managedFields").empty());
}

TEST_F(Write, AnApplyThatChangesNothingWritesNothing) {
  const std::string config = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}})";
  const Answer first = server.call("PATCH", path("a") + "?fieldManager=m", config, kApply);
  server.clock.pass(60s);
  const Answer second = server.call("PATCH", path("a") + "?fieldManager=m", config, kApply);
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(second.body, first.body);
}

// --- Admission ---

TEST_F(Write, NothingIsCreatedInANamespaceThatIsMissingOrTerminates) {
  EXPECT_EQ(server.call("POST", "/api/v1/namespaces/none/configmaps", R"({"metadata":{"name":"a"}})").message(),
            "namespaces \"none\" not found");
  server.call("POST", "/api/v1/namespaces", R"({"metadata":{"name":"old"}})");
  server.call("DELETE", "/api/v1/namespaces/old");
  const Answer refused = server.call("POST", "/api/v1/namespaces/old/configmaps", R"({"metadata":{"name":"a"}})");
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("unable to create new content in namespace old because it is being terminated"));
}

TEST_F(Write, QuotasChargeCreationsOnceAndNotDryRuns) {
  const std::string quotas = "/api/v1/namespaces/default/resourcequotas";
  ASSERT_EQ(server.call("POST", quotas, R"({"metadata":{"name":"q"},"spec":{"hard":{"configmaps":"2"}}})").status, 201);
  ASSERT_EQ(server
                .call("PATCH", quotas + "/q/status",
                      R"({"status":{"hard":{"configmaps":"2"},"used":{"configmaps":"0"}}})", kMerge)
                .status,
            200);
  const auto used = [&] {
    return std::string(server.call("GET", quotas + "/q").json.text_at("status", "used", "configmaps"));
  };
  // The quota is known once its cache has seen it.
  EXPECT_EQ(create(R"({"metadata":{"name":"dry"}})", "?dryRun=All").status, 201);
  EXPECT_EQ(used(), "0");
  EXPECT_EQ(create(R"({"metadata":{"name":"a"}})").status, 201);
  EXPECT_EQ(used(), "1");
  EXPECT_EQ(create(R"({"metadata":{"name":"b"}})").status, 201);
  EXPECT_EQ(create(R"({"metadata":{"name":"a"}})").status, 403);
  const Answer refused = create(R"({"metadata":{"name":"c"}})");
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.message(),
            "configmaps \"c\" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=2, limited: "
            "configmaps=2");
  EXPECT_EQ(server.call("PATCH", path("a"), R"({"data":{"k":"v"}})", kMerge).status, 200);
  EXPECT_EQ(used(), "2");
}

TEST_F(Write, PoliciesSeeTheObjectAsItWillBeStored) {
  const std::string group = "/apis/admissionregistration.k8s.io/v1";
  ASSERT_EQ(server
                .call("POST", group + "/validatingadmissionpolicies",
                      R"({"metadata":{"name":"p"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],)"
                      R"("apiVersions":["v1"],"operations":["CREATE","UPDATE"],"resources":["configmaps"]}]},)"
                      R"("validations":[{"expression":"has(object.data) && 'bad' in object.data ? false : true",)"
                      R"("message":"no bad data"}]}})")
                .status,
            201);
  ASSERT_EQ(server
                .call("POST", group + "/validatingadmissionpolicybindings",
                      R"({"metadata":{"name":"b"},"spec":{"policyName":"p","validationActions":["Deny"]}})")
                .status,
            201);
  ASSERT_EQ(create(R"({"metadata":{"name":"a"},"data":{"good":"1"}})").status, 201);
  const Answer created = create(R"({"metadata":{"name":"b"},"data":{"bad":"1"}})");
  EXPECT_EQ(created.status, 422);
  EXPECT_THAT(std::string(created.message()),
              HasSubstr("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no bad data"));
  // Whichever way the data comes.
  EXPECT_EQ(server.call("PATCH", path("a"), R"({"data":{"bad":"1"}})", kMerge).status, 422);
  EXPECT_EQ(server
                .call("PATCH", path("a") + "?fieldManager=m",
                      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"bad":"1"}})", kApply)
                .status,
            422);
  EXPECT_EQ(server.call("GET", path("a")).json.find("data")->count(), 1u);
}

// --- Conflicts ---

TEST_F(Write, PreconditionsOfAPatchAreChecked) {
  const Answer made = create(R"({"metadata":{"name":"a"}})");
  ASSERT_EQ(server.call("PATCH", path("a"), R"({"data":{"k":"1"}})", kMerge).status, 200);
  const std::string old(made.text("metadata", "resourceVersion"));
  EXPECT_EQ(
      server.call("PATCH", path("a"), R"({"metadata":{"resourceVersion":")" + old + R"("},"data":{"k":"2"}})", kMerge)
          .status,
      409);
  EXPECT_EQ(server.call("GET", path("a")).text("data", "k"), "1");
}

TEST_F(Write, APutOfAMissingObjectCreatesNothingUnlessItsKindSaysSo) {
  EXPECT_EQ(server.call("PUT", path("a"), R"({"metadata":{"name":"a"}})").status, 404);
  EXPECT_EQ(
      server.call("PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/a", R"({"metadata":{"name":"a"}})")
          .status,
      201);
  EXPECT_EQ(server.call("PATCH", path("a"), R"({"data":{}})", kMerge).status, 404);
}

TEST_F(Write, ImmutableDataStaysAsItIs) {
  ASSERT_EQ(create(R"({"metadata":{"name":"a"},"data":{"k":"v"},"immutable":true})").status, 201);
  const Answer refused = server.call("PATCH", path("a"), R"({"data":{"k":"w"}})", kMerge);
  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("field is immutable when `immutable` is set"));
  EXPECT_EQ(server.call("PATCH", path("a"), R"({"metadata":{"labels":{"a":"b"}}})", kMerge).status, 200);
}

}  // namespace
}  // namespace holdfast::write
