// The life cycle of CustomResourceDefinitions and their objects, through the whole API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/testing.h"

namespace holdfast::api::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kDefinitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const std::string kServices = "/apis/apiregistration.k8s.io/v1/apiservices";
constexpr const char* kMerge = "application/merge-patch+json";
constexpr const char* kOpen = R"({"type":"object","x-kubernetes-preserve-unknown-fields":true})";

std::string version(const std::string& name, bool storage, const std::string& schema = kOpen,
                    const std::string& more = {}) {
  return R"({"name":")" + name + R"(","served":true,"storage":)" + (storage ? "true" : "false") +
         R"(,"schema":{"openAPIV3Schema":)" + schema + "}" + more + "}";
}
// A definition of PLURAL.example.com.
std::string definition(const std::string& plural, const std::string& kind, const std::string& versions,
                       const std::string& more = {}) {
  return R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":")" + plural +
         R"(.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":")" + plural +
         R"(","kind":")" + kind + R"("},"versions":[)" + versions + "]" + more + "}}";
}
std::string things(const std::string& version = "v1") {
  return "/apis/example.com/" + version + "/namespaces/default/things";
}
std::string thing(const std::string& name, const std::string& rest = R"("spec":{})",
                  const std::string& version = "v1") {
  return R"({"apiVersion":"example.com/)" + version + R"(","kind":"Thing","metadata":{"name":")" + name + R"("},)" +
         rest + "}";
}

class CustomTest : public ::testing::Test {
 protected:
  void define(const std::string& text) {
    const Answer made = server.call("POST", kDefinitions, text);
    ASSERT_EQ(made.status, 201) << made.body;
  }
  // Replaces the spec of things.example.com.
  Answer redefine(const std::string& text) {
    const Answer live = server.call("GET", kDefinitions + "/things.example.com");
    std::string body = text;
    const std::string name = R"("name":"things.example.com")";
    body.insert(body.find(name) + name.size(),
                R"(,"resourceVersion":")" + std::string(live.text("metadata", "resourceVersion")) + "\"");
    return server.call("PUT", kDefinitions + "/things.example.com", body);
  }
  // The status of a condition, followed by its reason.
  std::string condition(const std::string& name, std::string_view type) {
    const Answer found = server.call("GET", kDefinitions + "/" + name);
    for (const Value& one : found.json.items_at("status", "conditions")) {
      if (one.text_at("type") == type) {
        return std::string(one.text_at("status")) + " " + std::string(one.text_at("reason"));
      }
    }
    return {};
  }
  int status_of(const std::string& path) { return server.call("GET", path).status; }
  void wait_for(const std::string& path, int status) {
    while (status_of(path) != status) std::this_thread::yield();
  }

  InProcess server;
};

TEST_F(CustomTest, IsServedWhenItsDefinitionHasBeenCreated) {
  EXPECT_EQ(status_of(things()), 404);
  define(definition("things", "Thing", version("v1", true)));
  EXPECT_EQ(server.call("POST", things(), thing("a")).status, 201);
  EXPECT_EQ(condition("things.example.com", "NamesAccepted"), "True NoConflicts");
  EXPECT_EQ(condition("things.example.com", "Established"), "True InitialNamesAccepted");
  const Answer live = server.call("GET", kDefinitions + "/things.example.com");
  EXPECT_EQ(live.json.text_at("status", "acceptedNames", "listKind"), "ThingList");
  EXPECT_EQ(live.json.text_at("status", "acceptedNames", "singular"), "thing");
  ASSERT_EQ(live.json.items_at("status", "storedVersions").size(), 1u);
  EXPECT_EQ(live.json.items_at("status", "storedVersions")[0].as_string(), "v1");
}

TEST_F(CustomTest, SecondDefinitionOfAKindWaitsForTheFirstToGo) {
  define(definition("things", "Thing", version("v1", true)));
  define(definition("others", "Thing", version("v1", true)));
  EXPECT_EQ(condition("others.example.com", "NamesAccepted"), "False ListKindConflict");
  EXPECT_EQ(condition("others.example.com", "Established"), "False NotAccepted");
  EXPECT_EQ(status_of("/apis/example.com/v1/others"), 404);
  ASSERT_EQ(server.call("DELETE", kDefinitions + "/things.example.com").status, 200);
  wait_for("/apis/example.com/v1/others", 200);
  EXPECT_EQ(condition("others.example.com", "NamesAccepted"), "True NoConflicts");
}

TEST_F(CustomTest, DeletionRemovesTheObjectsThenTheDefinition) {
  define(definition("things", "Thing", version("v1", true)));
  ASSERT_EQ(server.call("POST", things(), thing("a")).status, 201);
  ASSERT_EQ(server.call("POST", things(), thing("b")).status, 201);
  ASSERT_EQ(server.call("DELETE", kDefinitions + "/things.example.com").status, 200);
  wait_for(kDefinitions + "/things.example.com", 404);
  wait_for(things(), 404);
  // A new definition of that name starts without objects.
  define(definition("things", "Thing", version("v1", true)));
  EXPECT_TRUE(server.call("GET", things()).json.items_at("items").empty());
}

TEST_F(CustomTest, DeletionWaitsForFinalizersAndAllowsNoNewObjects) {
  define(definition("things", "Thing", version("v1", true)));
  ASSERT_EQ(server
                .call("POST", things(),
                      R"({"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"held","finalizers":)"
                      R"(["example.com/hold"]}})")
                .status,
            201);
  ASSERT_EQ(server.call("DELETE", kDefinitions + "/things.example.com").status, 200);
  while (server.call("GET", things() + "/held").text("metadata", "deletionTimestamp").empty()) {
    std::this_thread::yield();
  }
  EXPECT_THAT(condition("things.example.com", "Terminating"), HasSubstr("True "));
  const Answer refused = server.call("POST", things(), thing("late"));
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(
      refused.message(),
      "things.example.com \"late\" is forbidden: create not allowed while custom resource definition is terminating");
  ASSERT_EQ(server.call("PATCH", things() + "/held", R"({"metadata":{"finalizers":null}})", kMerge).status, 200);
  // Deleting objects is retried after a while.
  while (status_of(kDefinitions + "/things.example.com") != 404) {
    server.clock.pass(std::chrono::seconds(1));
    std::this_thread::yield();
  }
}

TEST_F(CustomTest, ChangedSchemaTakesEffectWithItsResponse) {
  const std::string narrow = R"({"type":"object","properties":{"spec":{"type":"object","properties":)"
                             R"({"size":{"type":"integer","maximum":5}}}}})";
  const std::string wide = R"({"type":"object","properties":{"spec":{"type":"object","properties":)"
                           R"({"size":{"type":"integer","maximum":9},"color":{"type":"string","default":"red"}}}}})";
  define(definition("things", "Thing", version("v1", true, narrow)));
  const Answer made = server.call("POST", things(), thing("a", R"("spec":{"size":3,"color":"blue"})"));
  EXPECT_THAT(made.body, Not(HasSubstr("color")));
  EXPECT_EQ(server.call("POST", things(), thing("b", R"("spec":{"size":7})")).status, 422);
  ASSERT_EQ(redefine(definition("things", "Thing", version("v1", true, wide))).status, 200);
  EXPECT_EQ(server.call("POST", things(), thing("b", R"("spec":{"size":7,"color":"blue"})")).text("spec", "color"),
            "blue");
  // Stored objects get new defaults when they are read.
  EXPECT_EQ(server.call("GET", things() + "/a").text("spec", "color"), "red");
}

TEST_F(CustomTest, UnknownFieldsAreDroppedWarnedOfOrRefused) {
  define(definition("things", "Thing",
                    version("v1", true, R"({"type":"object","properties":{"spec":{"type":"object"}}})")));
  const std::string body = thing("a", R"("spec":{"nope":1})");
  const Answer refused = server.call("POST", things() + "?fieldValidation=Strict", body);
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("unknown field \"spec.nope\""));
  const auto warnings = [](const Answer& answer) {
    std::string all;
    for (const auto& [name, value] : answer.headers) {
      if (name == "warning" || name == "Warning") all += value;
    }
    return all;
  };
  const Answer warned = server.call("POST", things() + "?dryRun=All&fieldValidation=Warn", body);
  EXPECT_EQ(warned.status, 201);
  EXPECT_THAT(warnings(warned), HasSubstr("unknown field \\\"spec.nope\\\""));
  const Answer ignored = server.call("POST", things() + "?fieldValidation=Ignore", body);
  EXPECT_EQ(ignored.status, 201);
  EXPECT_EQ(warnings(ignored), "");
  EXPECT_THAT(ignored.body, Not(HasSubstr("nope")));
}

TEST_F(CustomTest, VersionsShareTheirObjects) {
  define(definition("things", "Thing", version("v1", true) + "," + version("v2", false)));
  ASSERT_EQ(server.call("POST", things("v1"), thing("a", R"("spec":{"size":1})")).status, 201);
  const Answer second = server.call("GET", things("v2") + "/a");
  EXPECT_EQ(second.json.text_at("apiVersion"), "example.com/v2");
  EXPECT_THAT(second.body, HasSubstr(R"("spec":{"size":1})"));
  ASSERT_EQ(server.call("POST", things("v2"), thing("b", R"("spec":{})", "v2")).status, 201);
  EXPECT_EQ(server.call("GET", things("v1")).json.items_at("items").size(), 2u);
  EXPECT_EQ(server.call("POST", things("v2"), thing("c")).status, 400);
}

TEST_F(CustomTest, StoredVersionsAreRememberedUntilTheyAreRemoved) {
  define(definition("things", "Thing", version("v1", true)));
  ASSERT_EQ(redefine(definition("things", "Thing", version("v1", false) + "," + version("v2", true))).status, 200);
  const Answer both = server.call("GET", kDefinitions + "/things.example.com");
  ASSERT_EQ(both.json.items_at("status", "storedVersions").size(), 2u);
  // While objects may be stored in it, a version cannot be removed.
  const Answer refused = redefine(definition("things", "Thing", version("v2", true)));
  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("status.storedVersions[0]: Invalid value: \"v1\""));
  ASSERT_EQ(
      server
          .call("PATCH", kDefinitions + "/things.example.com/status", R"({"status":{"storedVersions":["v2"]}})", kMerge)
          .status,
      200);
  ASSERT_EQ(redefine(definition("things", "Thing", version("v2", true))).status, 200);
  EXPECT_EQ(status_of(things("v1")), 404);
  EXPECT_EQ(status_of(things("v2")), 200);
}

TEST_F(CustomTest, VersionThatIsNotServedIsNotFound) {
  define(definition("things", "Thing", version("v1", true) + "," + version("v2", false)));
  std::string hidden = version("v2", false);
  hidden.replace(hidden.find(R"("served":true)"), 13, R"("served":false)");
  ASSERT_EQ(redefine(definition("things", "Thing", version("v1", true) + "," + hidden)).status, 200);
  EXPECT_EQ(status_of(things("v2")), 404);
  EXPECT_EQ(status_of(things("v1")), 200);
}

TEST_F(CustomTest, StatusIsASubresourceOnlyWhereItIsDeclared) {
  define(definition("things", "Thing", version("v1", true, kOpen, R"(,"subresources":{"status":{}})")));
  const Answer made = server.call("POST", things(), thing("a", R"("spec":{"size":1},"status":{"ready":true})"));
  EXPECT_THAT(made.body, Not(HasSubstr("ready")));
  EXPECT_EQ(made.json.get("metadata", "generation")->as_int(), 1);
  const Answer status =
      server.call("PATCH", things() + "/a/status", R"({"spec":{"size":2},"status":{"ready":true}})", kMerge);
  EXPECT_EQ(status.status, 200);
  EXPECT_THAT(status.body, AllOf(HasSubstr(R"("size":1)"), HasSubstr(R"("ready":true)")));
  EXPECT_EQ(status.json.get("metadata", "generation")->as_int(), 1);
  const Answer spec = server.call("PATCH", things() + "/a", R"({"spec":{"size":2},"status":{"ready":false}})", kMerge);
  EXPECT_THAT(spec.body, AllOf(HasSubstr(R"("size":2)"), HasSubstr(R"("ready":true)")));
  EXPECT_EQ(spec.json.get("metadata", "generation")->as_int(), 2);
  ASSERT_EQ(redefine(definition("things", "Thing", version("v1", true))).status, 200);
  EXPECT_EQ(status_of(things() + "/a/status"), 404);
}

TEST_F(CustomTest, ScaleReadsAndWritesTheDeclaredPaths) {
  define(definition("things", "Thing",
                    version("v1", true, kOpen,
                            R"(,"subresources":{"scale":{"specReplicasPath":".spec.count","statusReplicasPath":)"
                            R"(".status.count","labelSelectorPath":".status.selector"}})")));
  ASSERT_EQ(
      server.call("POST", things(), thing("a", R"("spec":{"count":2},"status":{"count":1,"selector":"app=a"})")).status,
      201);
  const Answer scale = server.call("GET", things() + "/a/scale");
  EXPECT_EQ(scale.json.get("spec", "replicas")->as_int(), 2);
  EXPECT_EQ(scale.json.get("status", "replicas")->as_int(), 1);
  EXPECT_EQ(scale.text("status", "selector"), "app=a");
  ASSERT_EQ(server.call("PATCH", things() + "/a/scale", R"({"spec":{"replicas":5}})", kMerge).status, 200);
  EXPECT_THAT(server.call("GET", things() + "/a").body, HasSubstr(R"("count":5)"));
  EXPECT_EQ(server.call("PATCH", things() + "/a/scale", R"({"spec":{"replicas":-1}})", kMerge).status, 422);
}

TEST_F(CustomTest, GroupVersionHasAnApiServiceAsLongAsADefinitionServesIt) {
  define(definition("things", "Thing", version("v1", true)));
  define(definition("others", "Other", version("v1", true)));
  const std::string service = kServices + "/v1.example.com";
  wait_for(service, 200);
  EXPECT_EQ(server.call("GET", service).json.text_at("spec", "group"), "example.com");
  ASSERT_EQ(server.call("DELETE", kDefinitions + "/things.example.com").status, 200);
  wait_for(kDefinitions + "/things.example.com", 404);
  EXPECT_EQ(status_of(service), 200);
  // One that somebody deletes is created again.
  ASSERT_EQ(server.call("DELETE", service).status, 200);
  wait_for(service, 200);
  ASSERT_EQ(server.call("DELETE", kDefinitions + "/others.example.com").status, 200);
  wait_for(service, 404);
}

TEST_F(CustomTest, WebhookThatCannotBeReachedFailsOnlyRequestsThatNeedIt) {
  define(definition("things", "Thing", version("v1", true) + "," + version("v2", false),
                    R"(,"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],)"
                    R"("clientConfig":{"url":"https://127.0.0.1:1/convert"}}})"));
  ASSERT_EQ(server.call("POST", things("v1"), thing("a")).status, 201);
  EXPECT_EQ(status_of(things("v1") + "/a"), 200);
  EXPECT_EQ(status_of(things("v1")), 200);
  for (const std::string& path : {things("v2") + "/a", things("v2")}) {
    const Answer failed = server.call("GET", path);
    EXPECT_EQ(failed.status, 500) << path;
    EXPECT_THAT(std::string(failed.message()), HasSubstr("conversion webhook for example.com/v1, Kind=Thing failed"));
  }
  EXPECT_EQ(server.call("POST", things("v2"), thing("b", R"("spec":{})", "v2")).status, 500);
  // Nothing was stored by the failed request.
  EXPECT_EQ(server.call("GET", things("v1")).json.items_at("items").size(), 1u);
  EXPECT_EQ(server.call("DELETE", things("v1") + "/a").status, 200);
}

}  // namespace
}  // namespace holdfast::api::testing
