// Tests every verb through the whole API, in process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/testing.h"

namespace holdfast::api {
namespace {

using testing::Answer;
using ::testing::HasSubstr;
using testing::InProcess;
using std::chrono_literals::operator""s;

constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";
constexpr const char* kApply = "application/apply-patch+yaml";
constexpr const char* kMerge = "application/merge-patch+json";

std::string config_map(const std::string& name, const std::string& data = "") {
  return R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")" + name + R"("})" +
         (data.empty() ? "" : R"(,"data":)" + data) + "}";
}
std::string path(const std::string& name) { return std::string(kMaps) + "/" + name; }

std::vector<std::string> names(const Answer& list) {
  std::vector<std::string> found;
  for (const Value& item : list.json.items_at("items")) found.emplace_back(item.text_at("metadata", "name"));
  return found;
}

TEST(VerbsTest, ApplyRejectsUnreadableManagedFields) {
  InProcess server;
  const Answer refused = server.call(
      "PATCH", path("a") + "?fieldManager=m",
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","managedFields":[{"time":"x"}]}})", kApply);
  EXPECT_EQ(refused.status, 500);
  EXPECT_THAT(refused.message(), HasSubstr(R"(parsing time "x" as)"));
  EXPECT_EQ(server.call("GET", path("a")).status, 404);
}

TEST(VerbsTest, AdminAccessToDevicesNeedsALabelOfTheNamespace) {
  InProcess server;
  const std::string claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
  const std::string claim =
      R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"a"},"spec":{"devices":{"requests":)"
      R"([{"name":"r","exactly":{"deviceClassName":"c","allocationMode":"All","adminAccess":true}}]}}})";
  const Answer refused = server.call("POST", claims, claim);
  EXPECT_EQ(refused.status, 422);
  EXPECT_EQ(
      refused.message(),
      "ResourceClaim.resource.k8s.io \"a\" is invalid: spec.devices.requests[0].adminAccess: Forbidden: admin access "
      "to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace");
  server.call("PATCH", "/api/v1/namespaces/default",
              R"({"metadata":{"labels":{"resource.kubernetes.io/admin-access":"true"}}})", kMerge);
  EXPECT_EQ(server.call("POST", claims, claim).status, 201);
}

// As in Kubernetes, where only POST removes it.
TEST(VerbsTest, ApplyCanCreateAnObjectThatIsBeingDeleted) {
  InProcess server;
  const std::string config =
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","deletionTimestamp":"2026-01-02T03:04:05Z",)"
      R"("finalizers":["example.com/hold"]}})";
  ASSERT_EQ(server.call("PATCH", path("a") + "?fieldManager=m", config, kApply).status, 201);
  EXPECT_THAT(server.call("GET", path("a")).body, HasSubstr("deletionTimestamp"));
  server.call("PATCH", path("a"), R"({"metadata":{"finalizers":null}})", kMerge);
  EXPECT_EQ(server.call("GET", path("a")).status, 404);
}

TEST(VerbsTest, CreateThenGet) {
  InProcess server;
  const Answer made = server.call("POST", kMaps, config_map("a", R"({"k":"v"})"));
  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(made.text("metadata", "creationTimestamp"), "2027-01-15T08:00:00Z");
  const Answer got = server.call("GET", path("a"));
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(got.body, made.body);
  EXPECT_EQ(server.call("POST", kMaps, config_map("a")).reason(), "AlreadyExists");
  EXPECT_EQ(server.call("GET", path("b")).message(), "configmaps \"b\" not found");
}

TEST(VerbsTest, DryRunStoresNothing) {
  InProcess server;
  EXPECT_EQ(server.call("POST", std::string(kMaps) + "?dryRun=All", config_map("a")).status, 201);
  EXPECT_EQ(server.call("GET", path("a")).status, 404);
}

TEST(VerbsTest, UpdateWithStaleResourceVersionConflicts) {
  InProcess server;
  const Answer made = server.call("POST", kMaps, config_map("a"));
  EXPECT_EQ(server.call("PATCH", path("a"), R"({"data":{"k":"1"}})", kMerge).status, 200);
  const std::string old(made.body);
  const Answer refused = server.call("PUT", path("a"), old);
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("the object has been modified"));
  // Without a resourceVersion the update is unconditional.
  EXPECT_EQ(server.call("PUT", path("a"), config_map("a", R"({"k":"2"})")).text("data", "k"), "2");
}

TEST(VerbsTest, NoOpUpdateKeepsTheResourceVersion) {
  InProcess server;
  const Answer made = server.call("POST", kMaps, config_map("a", R"({"k":"v"})"));
  server.clock.pass(10s);
  const Answer same = server.call("PUT", path("a"), made.body);
  EXPECT_EQ(same.body, made.body);
}

TEST(VerbsTest, PatchesOfEveryKind) {
  InProcess server;
  server.call("POST", kMaps, config_map("a", R"({"k":"v","gone":"x"})"));
  EXPECT_EQ(server.call("PATCH", path("a"), R"({"data":{"gone":null}})", kMerge).status, 200);
  const Answer patched =
      server.call("PATCH", path("a"), R"([{"op":"add","path":"/data/j","value":"p"}])", "application/json-patch+json");
  EXPECT_EQ(patched.text("data", "j"), "p");
  const Answer strategic =
      server.call("PATCH", path("a"), R"({"data":{"s":"m"}})", "application/strategic-merge-patch+json");
  EXPECT_EQ(strategic.json.find("data")->count(), 3u);
}

TEST(VerbsTest, ApplyCreatesOwnsAndConflicts) {
  InProcess server;
  const Answer made = server.call("PATCH", path("a") + "?fieldManager=one", config_map("a", R"({"k":"1"})"), kApply);
  EXPECT_EQ(made.status, 201);
  const Answer conflict =
      server.call("PATCH", path("a") + "?fieldManager=two", config_map("a", R"({"k":"2"})"), kApply);
  EXPECT_EQ(conflict.status, 409);
  EXPECT_EQ(conflict.message(), "Apply failed with 1 conflict: conflict with \"one\": .data.k");
  const Answer forced =
      server.call("PATCH", path("a") + "?fieldManager=two&force=true", config_map("a", R"({"k":"2"})"), kApply);
  EXPECT_EQ(forced.text("data", "k"), "2");
  // Fields that no manager applies any more are removed.
  EXPECT_EQ(server.call("PATCH", path("a") + "?fieldManager=two", config_map("a"), kApply).json.find("data"), nullptr);
}

TEST(VerbsTest, ConcurrentPatchesOfOneObjectAllSucceed) {
  InProcess server;
  server.call("POST", kMaps, config_map("a"));
  // Each reads the object, then writes: all but one find that the revision has changed, and retry.
  constexpr int kWriters = 16;
  constexpr auto patch = [](own_calls::OwnCalls calls, int number, int& failed) -> Task<void> {
    const std::string key = "k" + std::to_string(number);
    const Result<net::ClientResponse> answer =
        co_await calls.call("PATCH", path("a"), R"({"data":{")" + key + R"(":"v"}})", kMerge);
    if (!answer || answer->status != 200) ++failed;
  };
  int failed = 0;
  std::vector<Task<void>> writers;
  for (int i = 0; i < kWriters; ++i) writers.push_back(patch(server.api().own_calls(server.loop()), i, failed));
  block_on(server.loop(), when_all(server.loop(), std::move(writers)));
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(server.call("GET", path("a")).json.find("data")->count(), size_t{kWriters});
}

TEST(VerbsTest, DeletionConcurrentWithPatchesIsNotLost) {
  InProcess server;
  server.call("POST", kMaps, R"({"metadata":{"name":"a","finalizers":["example.com/hold"]}})");
  constexpr int kWriters = 16;
  constexpr auto send = [](own_calls::OwnCalls calls, std::string method, std::string body, int& failed) -> Task<void> {
    const Result<net::ClientResponse> answer =
        co_await calls.call(std::move(method), path("a"), std::move(body), kMerge);
    if (!answer || answer->status != 200) ++failed;
  };
  int failed = 0;
  std::vector<Task<void>> writers;
  for (int i = 0; i < kWriters; ++i) {
    const bool deletes = i == kWriters / 2;
    const std::string body = R"({"data":{"k)" + std::to_string(i) + R"(":"v"}})";
    writers.push_back(
        send(server.api().own_calls(server.loop()), deletes ? "DELETE" : "PATCH", deletes ? "" : body, failed));
  }
  block_on(server.loop(), when_all(server.loop(), std::move(writers)));
  EXPECT_EQ(failed, 0);
  const Answer left = server.call("GET", path("a"));
  EXPECT_EQ(left.text("metadata", "deletionTimestamp"), "2027-01-15T08:00:00Z");
  EXPECT_EQ(left.json.find("data")->count(), size_t{kWriters - 1});
}

TEST(VerbsTest, PagesOfAListShareOneSnapshot) {
  InProcess server;
  for (const char* name : {"a", "b", "c", "d", "e"}) server.call("POST", kMaps, config_map(name));
  const Answer first = server.call("GET", std::string(kMaps) + "?limit=2");
  EXPECT_EQ(names(first), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(first.json.get("metadata", "remainingItemCount")->as_int(), 3);
  server.call("DELETE", path("c"));
  server.call("POST", kMaps, config_map("cc"));
  const Answer rest =
      server.call("GET", std::string(kMaps) + "?continue=" + std::string(first.text("metadata", "continue")));
  EXPECT_EQ(names(rest), (std::vector<std::string>{"c", "d", "e"}));
  EXPECT_EQ(rest.text("metadata", "resourceVersion"), first.text("metadata", "resourceVersion"));
}

TEST(VerbsTest, ReadsMatchTheStoreWithoutAWatchCache) {
  const std::string events = "/api/v1/namespaces/default/events";
  for (const bool cached : {true, false}) {
    InProcess server({.settings = {.watch_cache = cached}});
    for (const char* name : {"a", "b", "c"}) {
      ASSERT_EQ(server.call("POST", kMaps, config_map(name)).status, 201);
      const std::string about = R"("involvedObject":{"namespace":"default"})";
      ASSERT_EQ(
          server.call("POST", events, R"({"metadata":{"name":")" + std::string(name) + "\"}," + about + "}").status,
          201);
    }
    ASSERT_EQ(names(server.call("GET", kMaps)).size(), 3);  // The cache is now caught up.
    // Without a watch cache, limit also applies with resourceVersion=0. With one, only to events, which have no watch
    // cache in Kubernetes.
    const std::string limited = "?resourceVersion=0&limit=2";
    const Answer page = server.call("GET", kMaps + limited);
    EXPECT_EQ(names(page).size(), cached ? 3 : 2);
    EXPECT_EQ(page.text("metadata", "continue").empty(), cached);
    EXPECT_EQ(names(server.call("GET", events + limited)).size(), 2);
    EXPECT_EQ(names(server.call("GET", kMaps + limited + "&resourceVersionMatch=NotOlderThan")).size(), cached ? 3 : 2);
    if (cached) continue;
    EXPECT_EQ(page.json.get("metadata", "remainingItemCount")->as_int(), 1);
    const std::string next = "&continue=" + std::string(page.text("metadata", "continue"));
    EXPECT_EQ(names(server.call("GET", kMaps + limited + next)), std::vector<std::string>{"c"});
    // Future revisions fail immediately instead of waiting; a wait would never end because the clock is stopped.
    const Answer now = server.call("GET", std::string(kMaps) + "?resourceVersion=0");
    for (const std::string& late : {std::string(kMaps) + "?resourceVersion=999", path("a") + "?resourceVersion=999"}) {
      const Answer answer = server.call("GET", late);
      EXPECT_EQ(answer.status, 504) << late;
      EXPECT_EQ(answer.message(), "Timeout: Too large resource version: 999, current: " +
                                      std::string(now.text("metadata", "resourceVersion")));
    }
    EXPECT_EQ(server.call("GET", path("a") + "?resourceVersion=1").status, 200);
  }
}

TEST(VerbsTest, ContinueTokenExpiresAfterCompaction) {
  InProcess server;
  for (const char* name : {"a", "b", "c"}) server.call("POST", kMaps, config_map(name));
  const Answer first = server.call("GET", std::string(kMaps) + "?limit=1");
  const std::string next = std::string(kMaps) + "?continue=" + std::string(first.text("metadata", "continue"));
  // Enough changes to fill the part of the history that is kept regardless of age, after the older events have aged
  // out.
  server.clock.pass(100s);
  for (int i = 0; i < 120; ++i) {
    EXPECT_EQ(server.call("PATCH", path("c"), R"({"data":{"k":")" + std::to_string(i) + R"("}})", kMerge).status, 200);
  }
  EXPECT_EQ(names(server.call("GET", next)), (std::vector<std::string>{"b", "c"}));  // Served from the store.
  server.with_store([](store::MemoryStore& store) {
    store.current_revision([&store](store::StoreResult<Revision> now) {
      store.compact(*now, [](store::StoreResult<Unit> done) { EXPECT_TRUE(done.ok()); });
    });
  });
  // The caches notice the compaction on their next request to the store.
  Answer late = server.call("GET", next);
  for (int looks = 0; late.status == 200 && looks < 3000; ++looks) {
    server.clock.pass(20s);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    late = server.call("GET", next);
  }
  EXPECT_EQ(late.status, 410);
  EXPECT_EQ(late.reason(), "Expired");
  // The response has a token for continuing with the latest state.
  const Answer latest =
      server.call("GET", std::string(kMaps) + "?continue=" + std::string(late.text("metadata", "continue")));
  EXPECT_EQ(names(latest), (std::vector<std::string>{"b", "c"}));
}

TEST(VerbsTest, UnknownPathsReturn503UntilCustomResourcesAreServed) {
  for (const char* path : {"/apis/example.com/v1/namespaces/default/things/a", "/apis/example.com/v1", "/openapi/v4"}) {
    InProcess server({}, InProcess::Begin::NotStarted);
    const Answer early = server.call("GET", path);
    EXPECT_EQ(early.status, 503) << path;
    EXPECT_EQ(early.reason(), "ServiceUnavailable") << path;
    EXPECT_THAT(early.headers, ::testing::Contains(::testing::Pair("retry-after", "5"))) << path;
    EXPECT_EQ(InProcess().call("GET", path).status, 404) << path;
  }
}

TEST(VerbsTest, ListAppliesSelectors) {
  InProcess server;
  server.call("POST", kMaps, R"({"metadata":{"name":"a","labels":{"app":"x"}}})");
  server.call("POST", kMaps, R"({"metadata":{"name":"b","labels":{"app":"y"}}})");
  EXPECT_EQ(names(server.call("GET", std::string(kMaps) + "?labelSelector=app%3Dx")), std::vector<std::string>{"a"});
  EXPECT_EQ(names(server.call("GET", std::string(kMaps) + "?fieldSelector=metadata.name%3Db")),
            std::vector<std::string>{"b"});
}

TEST(VerbsTest, ConvertedObjectsKeepDeclaredMemberOrder) {
  InProcess server;
  const Answer scaler = server.call(
      "POST", "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers",
      R"({"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v1","metadata":{"name":"a","finalizers":["x.io/y"]},)"
      R"("spec":{"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"},"minReplicas":2,"maxReplicas":4}})");
  EXPECT_EQ(scaler.status, 201);
  EXPECT_THAT(std::string(scaler.body),
              HasSubstr(R"("minReplicas":2,"maxReplicas":4,"targetCPUUtilizationPercentage":80)"));
  const Answer event = server.call(
      "POST", "/apis/events.k8s.io/v1/namespaces/default/events",
      R"({"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"name":"e"},"eventTime":"2024-01-02T03:04:05.678901Z",)"
      R"("series":{"count":2,"lastObservedTime":"2024-01-02T03:04:06.000001Z"},"reportingController":"example.com/c",)"
      R"("reportingInstance":"i","action":"Starting","reason":"Started","regarding":{"kind":"Pod","namespace":"default",)"
      R"("name":"p"},"note":"it began","type":"Warning"})");
  EXPECT_EQ(event.status, 201);
  size_t last = 0;
  for (const char* key : {"metadata", "eventTime", "series", "reportingController", "reportingInstance", "action",
                          "reason", "regarding", "note", "type", "deprecatedSource"}) {
    const size_t at = event.body.find("\"" + std::string(key) + "\":");
    EXPECT_GT(at, last) << key;
    last = at;
  }
}

TEST(VerbsTest, WatchFromRevisionReplaysChangesSince) {
  InProcess server;
  const Answer made = server.call("POST", kMaps, config_map("a"));
  server.call("PATCH", path("a"), R"({"data":{"k":"v"}})", kMerge);
  server.call("DELETE", path("a"));
  const Answer watched = server.call("GET", std::string(kMaps) + "?watch=1&timeoutSeconds=1&resourceVersion=" +
                                                std::string(made.text("metadata", "resourceVersion")));
  EXPECT_EQ(watched.status, 200);
  EXPECT_THAT(watched.body, HasSubstr(R"({"type":"MODIFIED",)"));
  EXPECT_THAT(watched.body, HasSubstr(R"({"type":"DELETED",)"));
}

TEST(VerbsTest, FinalizersDelayDeletion) {
  InProcess server;
  server.call("POST", kMaps, R"({"metadata":{"name":"a","finalizers":["example.com/hold"]}})");
  const Answer marked = server.call("DELETE", path("a"));
  EXPECT_EQ(marked.text("metadata", "deletionTimestamp"), "2027-01-15T08:00:00Z");
  server.clock.pass(5s);
  // Deleting it again changes nothing.
  EXPECT_EQ(server.call("DELETE", path("a")).text("metadata", "deletionTimestamp"), "2027-01-15T08:00:00Z");
  EXPECT_EQ(server.call("PATCH", path("a"), R"({"metadata":{"finalizers":null}})", kMerge).status, 200);
  EXPECT_EQ(server.call("GET", path("a")).status, 404);
}

// Namespaces interpret the options themselves when they are marked, and like other objects once nothing in spec holds
// them.
TEST(VerbsTest, DeletingANamespaceSetsFinalizersByItsOwnRules) {
  InProcess server;
  const std::string path = "/api/v1/namespaces/a";
  const std::string held =
      R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a","finalizers":["example.com/x"]}})";
  ASSERT_EQ(server.call("POST", "/api/v1/namespaces", held).status, 201);
  const auto finalizers_after = [&](const std::string& options) {
    const Answer answer = server.call("DELETE", path, options);
    const Value* found = answer.json.get("metadata", "finalizers");
    return found == nullptr ? answer.body : codec::encode_json(*found);
  };
  EXPECT_EQ(finalizers_after(R"({"orphanDependents":false})"), R"(["example.com/x","foregroundDeletion"])");
  EXPECT_EQ(finalizers_after(R"({"propagationPolicy":"Orphan"})"), R"(["example.com/x","foregroundDeletion"])");
  ASSERT_EQ(server.call("PUT", path + "/finalize", held).status, 200);
  EXPECT_EQ(finalizers_after(R"({"propagationPolicy":"Orphan"})"), R"(["example.com/x","orphan"])");
  EXPECT_EQ(finalizers_after(R"({"propagationPolicy":"Background"})"), R"(["example.com/x"])");
  server.call("PATCH", path, R"({"metadata":{"finalizers":null}})", kMerge);
  EXPECT_EQ(server.call("GET", path).status, 404);
}

TEST(VerbsTest, DryRunDeleteSetsNoDeletionTimestamp) {
  InProcess server;
  const Answer made = server.call("POST", kMaps, R"({"metadata":{"name":"a","finalizers":["example.com/hold"]}})");
  const Answer marked = server.call("DELETE", path("a") + "?dryRun=All");
  EXPECT_EQ(marked.text("metadata", "deletionTimestamp"), "2027-01-15T08:00:00Z");
  EXPECT_EQ(marked.text("metadata", "resourceVersion"), made.text("metadata", "resourceVersion"));
  EXPECT_EQ(server.call("GET", path("a")).body, made.body);
}

TEST(VerbsTest, UpdateThatDeletesAServiceReleasesItsIp) {
  InProcess server;
  const std::string services = "/api/v1/namespaces/default/services";
  ASSERT_EQ(server
                .call("POST", services,
                      R"({"metadata":{"name":"a","finalizers":["example.com/hold"]},)"
                      R"("spec":{"type":"ExternalName","externalName":"a.example.com"}})")
                .status,
            201);
  ASSERT_EQ(server.call("DELETE", services + "/a").status, 200);
  // Allocates an IP and removes the last finalizer, which deletes the Service.
  const Answer last = server.call("PATCH", services + "/a",
                                  R"({"metadata":{"finalizers":null},"spec":{"type":"ClusterIP","externalName":null,)"
                                  R"("clusterIP":"10.0.0.77","ports":[{"port":80}]}})",
                                  kMerge);
  ASSERT_EQ(last.status, 200) << last.body;
  ASSERT_EQ(server.call("GET", services + "/a").status, 404);
  const Answer next = server.call(
      "POST", services, R"({"metadata":{"name":"b"},"spec":{"clusterIP":"10.0.0.77","ports":[{"port":80}]}})");
  EXPECT_EQ(next.status, 201) << next.body;
}

TEST(VerbsTest, DeleteChecksPreconditions) {
  InProcess server;
  server.call("POST", kMaps, config_map("a"));
  const Answer refused = server.call("DELETE", path("a"), R"({"preconditions":{"uid":"another"}})");
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(server.call("GET", path("a")).status, 200);
}

TEST(VerbsTest, DeleteOptionsMayHaveAnyVersionButNoOtherKind) {
  InProcess server;
  server.call("POST", kMaps, config_map("a"));
  EXPECT_THAT(std::string(server.call("DELETE", path("a"), R"({"kind":"Pod","apiVersion":"v1"})").message()),
              HasSubstr(R"(no kind "Pod" is registered for version "v1" in scheme)"));
  EXPECT_EQ(server.call("DELETE", path("a"), R"({"kind":"DeleteOptions","apiVersion":"a/b/c"})").message(),
            "unexpected GroupVersion string: a/b/c");
  EXPECT_EQ(server.call("DELETE", path("a"), R"({"kind":"DeleteOptions","apiVersion":"apps/v9"})").status, 200);
  server.call("POST", kMaps, config_map("b"));
  // A kind without an apiVersion is ignored.
  EXPECT_EQ(server.call("DELETE", path("b"), R"({"kind":"Pod"})").status, 200);
}

TEST(VerbsTest, CborTypeMetaIsDecodedBeforeTheContent) {
  InProcess server;
  // {"apiVersion": "v1", "kind": "ConfigMap", "x": 2^64 - 1}: well-formed, but too large for an int64.
  const std::string body = std::string("\xd9\xd9\xf7\xa3\x6a") + "apiVersion" + "\x62" + "v1" + "\x64" + "kind" +
                           "\x69" + "ConfigMap" + "\x61" + "x" + "\x1b" + std::string(8, '\xff');
  const std::string cbor = "application/cbor";
  EXPECT_THAT(std::string(server.call("POST", kMaps, body, cbor).message()),
              HasSubstr(R"(ConfigMap in version "v1" cannot be handled as a ConfigMap: cbor: cannot unmarshal)"));
  EXPECT_THAT(std::string(server.call("POST", kMaps, body.substr(0, body.size() - 1), cbor).message()),
              HasSubstr("(must be of type ConfigMap): unable to determine group/version/kind: "));
}

TEST(VerbsTest, JsonPatchErrorQuotesOutOfRangeNumber) {
  InProcess server;
  server.call("POST", kMaps, config_map("a"));
  const Answer refused = server.call("PATCH", path("a"), R"([{"op":"add","path":"/data","value":[1, -1e999]}])",
                                     "application/json-patch+json");
  EXPECT_EQ(refused.message(),
            "error decoding patch: json: cannot unmarshal number -1e999 into Go struct field jsonPatchOp.value of type "
            "float64");
}

TEST(VerbsTest, ErrorsShowEmptyMapsAsSent) {
  InProcess server;
  const Answer refused = server.call(
      "POST", "/apis/apps/v1/namespaces/default/deployments",
      R"({"metadata":{"name":"web"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{}},)"
      R"("spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  EXPECT_THAT(
      std::string(refused.message()),
      HasSubstr("spec.template.metadata.labels: Invalid value: {}: `selector` does not match template `labels`"));
}

TEST(VerbsTest, DeleteCollectionAppliesTheSelector) {
  InProcess server;
  server.call("POST", kMaps, R"({"metadata":{"name":"a","labels":{"app":"x"}}})");
  server.call("POST", kMaps, R"({"metadata":{"name":"b"}})");
  EXPECT_EQ(server.call("DELETE", std::string(kMaps) + "?labelSelector=app%3Dx").status, 200);
  EXPECT_EQ(names(server.call("GET", kMaps)), std::vector<std::string>{"b"});
}

TEST(VerbsTest, CustomResourceIsServedOnceItsDefinitionIsCreated) {
  InProcess server;
  const Answer made = server.call(
      "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},)"
      R"("spec":{"group":"example.com","names":{"kind":"Widget","plural":"widgets"},"scope":"Namespaced","versions":)"
      R"([{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",)"
      R"("x-kubernetes-preserve-unknown-fields":true}}}]}})");
  ASSERT_EQ(made.status, 201) << made.body;
  const char* widgets = "/apis/example.com/v1/namespaces/default/widgets";
  EXPECT_EQ(
      server.call("POST", widgets, R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}})").status,
      201);
  EXPECT_EQ(names(server.call("GET", widgets)), std::vector<std::string>{"w"});
}

// Go stores whatever its JSON decoder skips. In a response such bytes would make a whole list unreadable.
TEST(VerbsTest, RawDataThatIsNotUtf8IsReplaced) {
  InProcess server;
  const char* revisions = "/apis/apps/v1/namespaces/default/controllerrevisions";
  const Answer made =
      server.call("POST", revisions, "{\"metadata\":{\"name\":\"r\"},\"revision\":1,\"data\":{\"a\":\"\xff\"}}");
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(server.call("GET", revisions).body.find('\xff'), std::string::npos);
}

TEST(VerbsTest, StoreFailureIsReportedAndRecovered) {
  InProcess server;
  server.with_store([](store::MemoryStore& store) {
    store.set_failure(store::StoreError{store::ErrorKind::Unavailable, "on purpose"});
  });
  EXPECT_GE(server.call("POST", kMaps, config_map("a")).status, 500);
  server.with_store([](store::MemoryStore& store) { store.set_failure(std::nullopt); });
  EXPECT_EQ(server.call("POST", kMaps, config_map("a")).status, 201);
}

}  // namespace
}  // namespace holdfast::api
