#include "server/reconcile.h"

#include <gtest/gtest.h>

#include "codec/codec.h"

namespace holdfast::server {
namespace {

struct Case {
  const char* name;
  const char* live;
  const char* wanted;
  const char* result;  // Empty: it stays.
};

constexpr Case kCases[] = {
    {"what is there already stays",
     R"({"metadata":{"name":"a"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})",
     R"({"metadata":{"name":"a"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})", ""},
    {"what another rule covers is not missing",
     R"({"metadata":{"name":"a"},"rules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}]})",
     R"({"metadata":{"name":"a"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})", ""},
    {"missing rules are added, others stay",
     R"({"metadata":{"name":"a"},"rules":[{"verbs":["list"],"apiGroups":["x"],"resources":["y"]}]})",
     R"({"metadata":{"name":"a"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})",
     R"({"metadata":{"name":"a"},"rules":[{"verbs":["list"],"apiGroups":["x"],"resources":["y"]},)"
     R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})"},
    {"who says no is left alone",
     R"({"metadata":{"name":"a","annotations":{"rbac.authorization.kubernetes.io/autoupdate":"false"}},"rules":[]})",
     R"({"metadata":{"name":"a"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})", ""},
    {"labels that were changed stay, missing ones come",
     R"({"metadata":{"name":"a","labels":{"x":"mine"}},"rules":[]})",
     R"({"metadata":{"name":"a","labels":{"x":"1","y":"2"}},"rules":[]})",
     R"({"metadata":{"name":"a","labels":{"x":"mine","y":"2"}},"rules":[]})"},
    {"rules of a role that gathers others are not looked at",
     R"({"metadata":{"name":"a"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]},"rules":[{"verbs":["get"]}]})",
     R"({"metadata":{"name":"a"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]},"rules":null})",
     ""},
    {"subjects that are missing are added",
     R"({"metadata":{"name":"a"},"roleRef":{"name":"r"},"subjects":[{"kind":"User","name":"extra"}]})",
     R"({"metadata":{"name":"a"},"roleRef":{"name":"r"},"subjects":[{"kind":"Group","name":"g"}]})",
     R"({"metadata":{"name":"a"},"roleRef":{"name":"r"},"subjects":[{"kind":"User","name":"extra"},{"kind":"Group","name":"g"}]})"},
    {"another role takes its place", R"({"metadata":{"name":"a"},"roleRef":{"name":"other"}})",
     R"({"metadata":{"name":"a"},"roleRef":{"name":"r"}})", R"({"metadata":{"name":"a"},"roleRef":{"name":"r"}})"},
};

TEST(Reconcile, AddsWhatIsMissing) {
  for (const Case& item : kCases) {
    SCOPED_TRACE(item.name);
    Arena arena;
    Result<Value> live = codec::decode_json(arena, item.live), wanted = codec::decode_json(arena, item.wanted);
    ASSERT_TRUE(live && wanted);
    const std::optional<Value> result = reconcile(arena, *live, *wanted);
    EXPECT_EQ(result ? codec::encode_json(*result) : "", item.result);
  }
}

TEST(Reconcile, ASplitBindingIsForWhomTheOtherIs) {
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
