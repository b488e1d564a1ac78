// PodNodeSelector, PodTolerationRestriction and OwnerReferencesPermissionEnforcement.
#include <gtest/gtest.h>

#include "admission/admission.h"
#include "admission/testing.h"
#include "codec/json.h"

namespace holdfast::admission {
namespace {

testing::Objects cluster() {
  testing::Objects objects;
  objects.add("", "namespaces", "", R"({"metadata":{"name":"plain"}})");
  objects.add(
      "", "namespaces", "",
      R"({"metadata":{"name":"fast","annotations":{"scheduler.alpha.kubernetes.io/node-selector":"disk=ssd, zone = a",
    "scheduler.alpha.kubernetes.io/defaultTolerations":"[{\"key\":\"fast\",\"operator\":\"Exists\"}]",
    "scheduler.alpha.kubernetes.io/tolerationsWhitelist":"[{\"key\":\"fast\",\"operator\":\"Exists\"}]"}}})");
  objects.add("", "namespaces", "",
              R"({"metadata":{"name":"wrong","annotations":{"scheduler.alpha.kubernetes.io/node-selector":"disk"}}})");
  return objects;
}

PluginChoice only(std::string plugin) {
  PluginChoice choice{
      .enabled = {std::move(plugin)},
      .disabled = {"NamespaceLifecycle", "LimitRanger", "ServiceAccount", "PodSecurity", "Priority",
                   "DefaultTolerationSeconds", "RuntimeClass", "PodTopologyLabels", "NodeDeclaredFeatureValidator"}};
  choice.configuration.node_selectors = {{"clusterDefaultNodeSelector", "pool=shared"},
                                         {"fast", "disk=ssd,zone=a,arch=arm"}};
  choice.configuration.pod_tolerations.defaults = {{.key = "shared", .op = "Equal", .value = "yes"}};
  choice.configuration.pod_tolerations.allowed = {{.key = "shared", .op = "Exists"},
                                                  {.key = "node.kubernetes.io/memory-pressure", .op = "Exists"}};
  return choice;
}

// What the plugin makes of the object, or the message of its error.
std::string admit(const std::string& plugin, const testing::Objects& objects, std::string_view ns,
                  std::string_view json, const char* before = nullptr, std::string_view member = "spec") {
  Arena arena;
  const Chain chain(only(plugin));
  const Value object = *codec::decode_json(arena, json);
  const Value old = before == nullptr ? Value::null() : *codec::decode_json(arena, before);
  std::vector<std::string> warnings;
  Attributes attributes{.operation = before == nullptr ? Operation::Create : Operation::Update,
                        .resource = *types::find_resource("", "v1", "pods"),
                        .ns = ns,
                        .name = object.text_at("metadata", "name"),
                        .old = before == nullptr ? nullptr : &old,
                        .arena = arena,
                        .lookup = objects,
                        .warnings = warnings};
  Draft draft(arena, object);
  Result<Unit> done = chain.admit(attributes, draft.root());
  const Value result = draft.value();
  if (done) done = chain.validate(attributes, result);
  if (!done) return done.error().message;
  const Value* shown = result.find(member);
  return shown == nullptr ? "" : codec::encode_json(*shown);
}

TEST(PodNodeSelector, PodsGetTheSelectorOfTheirNamespace) {
  const testing::Objects objects = cluster();
  const auto selected = [&](std::string_view ns, std::string_view selector) {
    return admit("PodNodeSelector", objects, ns,
                 R"({"metadata":{"name":"p"},"spec":{"nodeSelector":)" + std::string(selector) + "}}");
  };
  EXPECT_EQ(selected("fast", R"({"arch":"arm"})"), R"({"nodeSelector":{"arch":"arm","disk":"ssd","zone":"a"}})");
  EXPECT_EQ(selected("fast", R"({"disk":"hdd"})"),
            "pods \"p\" is forbidden: pod node label selector conflicts with its namespace node label selector");
  EXPECT_EQ(selected("fast", R"({"arch":"amd64"})"),
            "pods \"p\" is forbidden: pod node label selector labels conflict with its namespace whitelist");
  EXPECT_EQ(selected("plain", R"({"any":"x"})"), R"({"nodeSelector":{"any":"x","pool":"shared"}})");
  EXPECT_EQ(selected("wrong", "{}"), "invalid selector: [disk]");
  EXPECT_EQ(selected("none", "{}"), "namespaces \"none\" not found");
}

TEST(PodTolerationRestriction, PodsGetTheTolerationsOfTheirNamespaceAndNoOthers) {
  const testing::Objects objects = cluster();
  const auto tolerated = [&](std::string_view ns, std::string_view tolerations, std::string_view containers = "[]") {
    return admit("PodTolerationRestriction", objects, ns,
                 R"({"metadata":{"name":"p"},"spec":{"containers":)" + std::string(containers) + R"(,"tolerations":)" +
                     std::string(tolerations) + "}}");
  };
  EXPECT_EQ(tolerated("fast", "[]"), R"({"containers":[],"tolerations":[{"key":"fast","operator":"Exists"}]})");
  EXPECT_EQ(tolerated("fast", R"([{"key":"fast","operator":"Equal","value":"x"}])"),
            R"({"containers":[],"tolerations":[{"key":"fast","operator":"Exists"}]})");
  EXPECT_EQ(
      tolerated("fast", R"([{"key":"slow","operator":"Exists"}])"),
      "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist");
  EXPECT_EQ(tolerated("plain", "[]", R"([{"name":"c","resources":{"requests":{"cpu":"1"}}}])"),
            R"({"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}],"tolerations":[)"
            R"({"key":"shared","operator":"Equal","value":"yes"},)"
            R"({"key":"node.kubernetes.io/memory-pressure","operator":"Exists","effect":"NoSchedule"}]})");
  EXPECT_EQ(tolerated("plain", R"([{"operator":"Exists"}])"),
            "pod tolerations (possibly merged with namespace default tolerations) conflict with its cluster whitelist");
}

TEST(PodTolerationRestriction, AWidestTolerationReplacesTheOthers) {
  const testing::Objects objects = cluster();
  const std::string all = admit("PodTolerationRestriction", objects, "fast",
                                R"({"metadata":{"name":"p"},"spec":{"tolerations":[{"key":"fast","operator":"Exists",
      "effect":"NoExecute","tolerationSeconds":5},{"key":"fast","operator":"Exists"},{"key":"fast","operator":"Exists"}]}})");
  EXPECT_EQ(all, R"({"tolerations":[{"key":"fast","operator":"Exists"}]})");
}

TEST(PodTolerationRestriction, TolerationsAreLimited) {
  std::string many;
  for (int i = 0; i < 1001; ++i) many += (i == 0 ? "" : ",") + std::string(R"({"key":"k)") + std::to_string(i) + "\"}";
  EXPECT_EQ(admit("PodTolerationRestriction", cluster(), "plain",
                  R"({"metadata":{"name":"p"},"spec":{"tolerations":[)" + many + "]}}"),
            "pods \"p\" is forbidden: more than 1000 tolerations");
}

constexpr const char* kOwned = R"({"metadata":{"name":"p","ownerReferences":[
  {"apiVersion":"apps/v1","kind":"ReplicaSet","name":"rs","uid":"u"}]}})";
constexpr const char* kBlocking = R"({"metadata":{"name":"p","ownerReferences":[
  {"apiVersion":"apps/v1","kind":"ReplicaSet","name":"rs","uid":"u","blockOwnerDeletion":true}]}})";

std::string set_owners(const std::vector<std::string>& allowed, std::string_view object, const char* old = nullptr) {
  testing::Objects objects;
  for (const std::string& what : allowed) objects.allow(what);
  return admit("OwnerReferencesPermissionEnforcement", objects, "ns", object, old, "nothing");
}

TEST(OwnerReferencesPermissionEnforcement, ChangesOfOwnersNeedThePermissionToDelete) {
  constexpr const char* kFree = R"({"metadata":{"name":"p"}})";
  EXPECT_EQ(set_owners({}, kOwned), "");
  EXPECT_EQ(set_owners({}, kOwned, kOwned), "");
  EXPECT_EQ(
      set_owners({}, kOwned, kFree),
      "pods \"p\" is forbidden: cannot set an ownerRef on a resource you can't delete: not allowed to delete pods p, "
      "<nil>");
  EXPECT_EQ(set_owners({"delete pods p"}, kOwned, kFree), "");
}

TEST(OwnerReferencesPermissionEnforcement, BlockingAnOwnerNeedsItsFinalizers) {
  const std::string refused =
      "pods \"p\" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set "
      "finalizers on: not allowed to update replicasets/finalizers rs, <nil>";
  EXPECT_EQ(set_owners({}, kBlocking), refused);
  EXPECT_EQ(set_owners({"delete pods p"}, kBlocking, kOwned), refused);
  EXPECT_EQ(set_owners({}, kBlocking, kBlocking), "");
  EXPECT_EQ(set_owners({"update replicasets/finalizers rs"}, kBlocking), "");
  EXPECT_EQ(set_owners({"update */finalizers *"}, kBlocking), "");
  EXPECT_EQ(set_owners({}, R"({"metadata":{"name":"p","ownerReferences":[
    {"apiVersion":"x/v1","kind":"Other","name":"o","uid":"u","blockOwnerDeletion":true}]}})"),
            "pods \"p\" is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping for "
            "APIVersion x/v1 Kind Other: no matches for kind \"Other\" in version \"x/v1\"");
}

}  // namespace
}  // namespace holdfast::admission
