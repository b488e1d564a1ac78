#include "server/reconcile.h"

#include <gtest/gtest.h>

#include "codec/codec.h"

namespace holdfast::server {
namespace {

struct Case {
  const char* name;
  const char* live;
  const char* wanted;
  const char* result;  // Empty if unchanged.
};

constexpr Case kCases[] = {
    {"existing rules are unchanged",
     R"({"metadata":{"name":"a"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})",
     R"({"metadata":{"name":"a"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})", ""},
    {"rules covered by another rule are not added",
     R"({"metadata":{"name":"a"},"rules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}]})",
     R"({"metadata":{"name":"a"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})", ""},
    {"missing rules are added, others kept",
     R"({"metadata":{"name":"a"},"rules":[{"verbs":["list"],"apiGroups":["x"],"resources":["y"]}]})",
     R"({"metadata":{"name":"a"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})",
     R"({"metadata":{"name":"a"},"rules":[{"verbs":["list"],"apiGroups":["x"],"resources":["y"]},)"
     R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})"},
    {"objects with autoupdate=false are unchanged",
     R"({"metadata":{"name":"a","annotations":{"rbac.authorization.kubernetes.io/autoupdate":"false"}},"rules":[]})",
     R"({"metadata":{"name":"a"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})", ""},
    {"changed labels are kept, missing ones added", R"({"metadata":{"name":"a","labels":{"x":"mine"}},"rules":[]})",
     R"({"metadata":{"name":"a","labels":{"x":"1","y":"2"}},"rules":[]})",
     R"({"metadata":{"name":"a","labels":{"x":"mine","y":"2"}},"rules":[]})"},
    {"rules of an aggregated role are ignored",
     R"({"metadata":{"name":"a"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]},"rules":[{"verbs":["get"]}]})",
     R"({"metadata":{"name":"a"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]},"rules":null})",
     ""},
    {"missing subjects are added",
     R"({"metadata":{"name":"a"},"roleRef":{"name":"r"},"subjects":[{"kind":"User","name":"extra"}]})",
     R"({"metadata":{"name":"a"},"roleRef":{"name":"r"},"subjects":[{"kind":"Group","name":"g"}]})",
     R"({"metadata":{"name":"a"},"roleRef":{"name":"r"},"subjects":[{"kind":"User","name":"extra"},{"kind":"Group","name":"g"}]})"},
    {"a binding with another roleRef is replaced", R"({"metadata":{"name":"a"},"roleRef":{"name":"other"}})",
     R"({"metadata":{"name":"a"},"roleRef":{"name":"r"}})", R"({"metadata":{"name":"a"},"roleRef":{"name":"r"}})"},
};

void check(std::span<const Case> cases,
           std::optional<Value> (*reconciled)(Arena&, const Value& live, const Value& wanted)) {
  for (const Case& item : cases) {
    SCOPED_TRACE(item.name);
    Arena arena;
    Result<Value> live = codec::decode_json(arena, item.live), wanted = codec::decode_json(arena, item.wanted);
    ASSERT_TRUE(live && wanted);
    const std::optional<Value> result = reconciled(arena, *live, *wanted);
    EXPECT_EQ(result ? codec::encode_json(*result) : "", item.result);
  }
}

TEST(Reconcile, AddsMissingRulesAndSubjects) { check(kCases, reconcile); }

constexpr Case kFlowCases[] = {
    {"up-to-date object is unchanged",
     R"({"metadata":{"name":"a","annotations":{"apf.kubernetes.io/autoupdate-spec":"true"}},"spec":{"x":1}})",
     R"({"metadata":{"name":"a"},"spec":{"x":1}})", ""},
    {"changed spec is restored",
     R"({"metadata":{"name":"a","annotations":{"apf.kubernetes.io/autoupdate-spec":"T"}},"spec":{"x":2}})",
     R"({"metadata":{"name":"a"},"spec":{"x":1}})",
     R"({"metadata":{"name":"a","annotations":{"apf.kubernetes.io/autoupdate-spec":"T"}},"spec":{"x":1}})"},
    {"object taken over by a user is unchanged",
     R"({"metadata":{"name":"a","annotations":{"apf.kubernetes.io/autoupdate-spec":"false"}},"spec":{"x":2}})",
     R"({"metadata":{"name":"a"},"spec":{"x":1}})", ""},
    {"without annotation, a changed object counts as taken over",
     R"({"metadata":{"name":"a","generation":2},"spec":{"x":2}})", R"({"metadata":{"name":"a"},"spec":{"x":1}})",
     R"({"metadata":{"name":"a","generation":2,"annotations":{"apf.kubernetes.io/autoupdate-spec":"false"}},"spec":{"x":2}})"},
    {"without annotation, an unchanged object is ours", R"({"metadata":{"name":"a","generation":1},"spec":{"x":2}})",
     R"({"metadata":{"name":"a"},"spec":{"x":1}})",
     R"({"metadata":{"name":"a","generation":1,"annotations":{"apf.kubernetes.io/autoupdate-spec":"true"}},"spec":{"x":1}})"},
    {"mandatory object is always ours",
     R"({"metadata":{"name":"catch-all","annotations":{"apf.kubernetes.io/autoupdate-spec":"false"}},"spec":{"x":2}})",
     R"({"metadata":{"name":"catch-all"},"spec":{"x":1}})",
     R"({"metadata":{"name":"catch-all","annotations":{"apf.kubernetes.io/autoupdate-spec":"true"}},"spec":{"x":1}})"},
    {"exempt settings may be changed",
     R"({"metadata":{"name":"exempt","annotations":{"apf.kubernetes.io/autoupdate-spec":"true"}},"spec":{"exempt":{"a":5}}})",
     R"({"metadata":{"name":"exempt"},"spec":{"exempt":{"a":0}}})", ""},
};

TEST(Reconcile, RestoresFlowControl) { check(kFlowCases, reconcile_flow); }

TEST(Reconcile, MergesAuthenticationOfSeveralServers) {
  const auto pem = [](const std::string& content) {
    return "-----BEGIN CERTIFICATE-----\\n" + content + "\\n-----END CERTIFICATE-----\\n";
  };
  const auto united = [&](const std::string& live, const std::string& wanted) {
    Arena arena;
    const std::optional<Value> result = reconcile_authentication(arena, *codec::decode_json(arena, arena.copy(live)),
                                                                 *codec::decode_json(arena, arena.copy(wanted)));
    return result ? codec::encode_json(*result) : "";
  };
  const auto map = [&](const std::string& certificates, const std::string& names) {
    return R"({"data":{"client-ca-file":")" + certificates + R"(","requestheader-allowed-names":")" + names + "\"}}";
  };
  EXPECT_EQ(united(map(pem("a"), R"([\"x\"])"), map(pem("a"), R"([\"x\"])")), "");
  EXPECT_EQ(united(map(pem("b") + pem("a"), R"([\"y\",\"x\"])"), map(pem("a"), R"([\"x\"])")), "");
  EXPECT_EQ(united(map("a comment" + pem("b"), R"([\"y\"])"), map(pem("a"), R"([\"x\"])")),
            map(pem("b") + pem("a"), R"([\"y\",\"x\"])"));
  EXPECT_EQ(united(map("", "nonsense"), map(pem("a"), R"([\"x\"])")), map(pem("a"), R"([\"x\"])"));
}

TEST(Reconcile, DefaultServiceCidrGetsOnlyASecondFamily) {
  const auto repaired = [](const std::string& live, const std::string& cidrs) -> std::string {
    Arena arena;
    const ServiceCidrRepair repair =
        reconcile_service_cidr(arena, *codec::decode_json(arena, arena.copy(live)),
                               *codec::decode_json(arena, arena.copy(R"({"spec":{"cidrs":)" + cidrs + "}}")));
    if (repair.object) return codec::encode_json(*repair.object);
    return repair.differs ? "differs" : repair.not_ready ? "not ready" : "";
  };
  const auto ready = [](const std::string& status) {
    return R"(,"status":{"conditions":[{"type":"Ready","status":")" + status + "\"}]}}";
  };
  const std::string v4 = R"({"spec":{"cidrs":["10.0.0.0/24"]})",
                    both = R"({"spec":{"cidrs":["10.0.0.0/24","fd00::/64"]})";
  EXPECT_EQ(repaired(v4 + ready("True"), R"(["10.0.0.0/24"])"), "");
  EXPECT_EQ(repaired(v4 + "}", R"(["10.0.0.0/24"])"), "not ready");
  EXPECT_EQ(repaired(v4 + ready("Unknown"), R"(["10.0.0.0/24"])"), "not ready");
  EXPECT_EQ(repaired(v4 + ready("False"), R"(["10.0.0.0/24"])"), "");
  EXPECT_EQ(repaired(v4 + "}", R"(["10.0.0.0/24","fd00::/64"])"), both + "}");
  EXPECT_EQ(repaired(both + "}", R"(["10.0.0.0/24"])"), "differs");
  EXPECT_EQ(repaired(v4 + "}", R"(["fd00::/64","10.0.0.0/24"])"), "differs");
  EXPECT_EQ(repaired(R"({"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"cidrs":["10.0.0.0/24"]}})",
                     R"(["10.1.0.0/24"])"),
            "");
}

TEST(Reconcile, SplitBindingGetsSubjectsOfTheSource) {
  Arena arena;
  Result<Value> wanted = codec::decode_json(
      arena,
      R"({"metadata":{"name":"new","labels":{"a":"b"}},"roleRef":{"name":"new"},"subjects":[{"kind":"Group","name":"all"}]})");
  Result<Value> source = codec::decode_json(
      arena,
      R"({"metadata":{"name":"old","annotations":{"x":"y"}},"roleRef":{"name":"old"},"subjects":[{"kind":"User","name":"one"}]})");
  ASSERT_TRUE(wanted && source);
  EXPECT_EQ(
      codec::encode_json(split_binding(arena, *wanted, *source)),
      R"({"metadata":{"name":"new","annotations":{"x":"y"}},"roleRef":{"name":"new"},"subjects":[{"kind":"User","name":"one"}]})");
}

}  // namespace
}  // namespace holdfast::server
