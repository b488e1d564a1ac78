#include "webhook/webhook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "codec/codec.h"

namespace holdfast::webhook {
namespace {

Value parse(Arena& arena, std::string_view json) { return *codec::decode_json(arena, arena.copy(json)); }

// --- Rules ---

struct RuleCase {
  std::string_view name;
  std::string_view rule;
  Operation operation;
  GroupVersionResource resource;
  std::string_view subresource, ns;
  bool want;
};

constexpr RuleCase kRuleCases[] = {
    {"everything exact",
     R"({"operations":["CREATE"],"apiGroups":["apps"],"apiVersions":["v1"],"resources":["deployments"]})",
     Operation::Create,
     {"apps", "v1", "deployments"},
     "",
     "default",
     true},
    {"another operation",
     R"({"operations":["CREATE"],"apiGroups":["apps"],"apiVersions":["v1"],"resources":["deployments"]})",
     Operation::Update,
     {"apps", "v1", "deployments"},
     "",
     "default",
     false},
    {"wildcards exclude subresources",
     R"({"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*"]})",
     Operation::Update,
     {"", "v1", "pods"},
     "status",
     "default",
     false},
    {"*/* matches every resource and subresource",
     R"({"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*/*"]})",
     Operation::Update,
     {"", "v1", "pods"},
     "status",
     "default",
     true},
    {"pods/* matches pods too",
     R"({"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods/*"]})",
     Operation::Update,
     {"", "v1", "pods"},
     "",
     "default",
     true},
    {"*/status of any resource",
     R"({"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["*/status"]})",
     Operation::Update,
     {"", "v1", "pods"},
     "status",
     "default",
     true},
    {"scope Namespaced excludes namespaces",
     R"({"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["*"],"scope":"Namespaced"})",
     Operation::Create,
     {"", "v1", "namespaces"},
     "",
     "x",
     false},
    {"scope Cluster includes namespaces",
     R"({"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["*"],"scope":"Cluster"})",
     Operation::Create,
     {"", "v1", "namespaces"},
     "",
     "x",
     true},
};

TEST(Rules, MatchRequests) {
  for (const RuleCase& row : kRuleCases) {
    Arena arena;
    const std::string text =
        R"({"metadata":{"name":"c"},"webhooks":[{"name":"h","rules":[)" + std::string(row.rule) + "]}]}";
    const std::vector<Hook> hooks = hooks_of(parse(arena, text));
    EXPECT_EQ(hooks[0].rules[0].matches(row.operation, row.resource, row.subresource, row.ns, ""), row.want)
        << row.name;
  }
}

TEST(Hooks, UseFirstSupportedReviewVersion) {
  Arena arena;
  const std::vector<Hook> hooks = hooks_of(parse(arena, R"({"metadata":{"name":"c"},"webhooks":[
      {"name":"h","admissionReviewVersions":["v9","v1beta1","v1"],"timeoutSeconds":3,"sideEffects":"None"},
      {"name":"h","admissionReviewVersions":["v9"],"sideEffects":"Some"}]})"));
  EXPECT_EQ(hooks[0].review_version, ReviewVersion::V1beta1);
  EXPECT_EQ(hooks[0].timeout, std::chrono::seconds(3));
  EXPECT_FALSE(hooks[0].has_side_effects);
  EXPECT_EQ(hooks[1].review_version, ReviewVersion::None);
  EXPECT_TRUE(hooks[1].has_side_effects);
  EXPECT_NE(hooks[0].id, hooks[1].id);
}

TEST(Hooks, ObjectSelectorMatchesOldOrNewObject) {
  Arena arena;
  const std::vector<Hook> hooks =
      hooks_of(parse(arena, R"({"webhooks":[{"name":"h","objectSelector":{"matchLabels":{"a":"b"}}}]})"));
  const Value with = parse(arena, R"({"metadata":{"labels":{"a":"b"}}})");
  const Value without = parse(arena, R"({"metadata":{}})");
  EXPECT_TRUE(selects_object(hooks[0].object_selector, with, Value::null()));
  EXPECT_TRUE(selects_object(hooks[0].object_selector, without, with));
  EXPECT_FALSE(selects_object(hooks[0].object_selector, without, without));
  EXPECT_FALSE(selects_object(hooks[0].object_selector, Value::null(), Value::null()));
}

// --- Credentials ---

// A kubeconfig in its own temporary folder.
struct Kubeconfig {
  explicit Kubeconfig(std::string_view text) : path(folder.write("config", text)) {}
  TestFolder folder;
  std::string path;
};

TEST(Credentials, AreChosenByServerName) {
  const Kubeconfig all(R"({users: [{name: "hook.example.com:8443", user: {token: a}}, {name: hook.default.svc},
      {name: "*.example.com"}, {name: "*.example.com:8443"}, {name: "*.svc:9443"}, {name: "::1"}, {name: "*"}]})");
  const auto loaded = ClientCredentials::load(all.path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  constexpr std::pair<std::string_view, std::string_view> kWanted[] = {
      {"hook.example.com:8443", "hook.example.com:8443"},
      {"other.example.com:8443", "*.example.com:8443"},
      {"far.other.example.com:443", "*.example.com"},  // Only the default port may be omitted.
      {"far.other.example.com:444", "*"},
      {"hook.default.svc:443", "hook.default.svc"},
      {"hook.default.svc:9443", "*.svc:9443"},
      {"[::1]:443", "::1"},
      {"example.com:443", "*"},
      {"kubernetes.default.svc:443", ""},
  };
  for (const auto& [server, user] : kWanted) EXPECT_EQ((*loaded)->user_for(server), user) << server;
}

TEST(Credentials, FallBackToCurrentContext) {
  const Kubeconfig one(R"({current-context: c, contexts: [{name: c, context: {user: u}}],
                          users: [{name: u, user: {username: me, password: secret, as: bob, as-groups: [dev]}}]})");
  const auto loaded = ClientCredentials::load(one.path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  const Result<ClientCredentials::Shown> shown = (*loaded)->for_server("hook:443");
  ASSERT_TRUE(shown);
  EXPECT_THAT(shown->headers, testing::ElementsAre(testing::Pair("authorization", "Basic bWU6c2VjcmV0"),
                                                   testing::Pair("impersonate-user", "bob"),
                                                   testing::Pair("impersonate-group", "dev")));
  EXPECT_FALSE(shown->identity);
  const Kubeconfig none("{users: []}");
  EXPECT_EQ((*ClientCredentials::load(none.path))->user_for("hook:443"), "");
}

TEST(Credentials, AreReloadedAfterRejection) {
  const Kubeconfig one(R"({users: [{name: "*", user: {tokenFile: token}}]})");
  one.folder.write("token", "first\n");
  const auto loaded = ClientCredentials::load(one.path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  const auto header = [&] { return (*loaded)->for_server("hook:443")->headers.at(0).second; };
  EXPECT_EQ(header(), "Bearer first");
  one.folder.write("token", "second\n");
  EXPECT_EQ(header(), "Bearer first");
  (*loaded)->rejected_by("hook:443");
  EXPECT_EQ(header(), "Bearer second");
}

TEST(Credentials, UnusableUsersAreRejected) {
  constexpr std::pair<std::string_view, std::string_view> kRefused[] = {
      {R"({users: [{name: u, user: {tokenFile: nowhere}}]})", "/nowhere: no such file or directory"},
      {R"({users: [{name: u, user: {client-certificate: nowhere}}]})", "/nowhere: no such file or directory"},
      {R"({users: [{name: u, user: {client-certificate-data: YQ==}}]})",
       "user \"u\": client-certificate and client-key must be given together"},
      {R"({users: [{name: u, user: {token: t, username: me}}]})",
       "user \"u\": username/password or bearer token may be set, but not both"},
      {R"({users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: c}}}]})",
       "user \"u\": exec plugins are not supported for webhooks"},
      {R"({users: [{name: u, user: {auth-provider: {}}}]})", "user \"u\": auth-provider is not supported"},
      {R"({users: [{name: u}, {name: u}]})", "user \"u\" is defined twice"},
      {"[]", "not a kubeconfig"},
  };
  for (const auto& [text, why] : kRefused) {
    const Kubeconfig wrong(text);
    const auto loaded = ClientCredentials::load(wrong.path);
    ASSERT_FALSE(loaded) << text;
    EXPECT_THAT(loaded.error().message, testing::HasSubstr(why));
    EXPECT_THAT(loaded.error().message, testing::HasSubstr(wrong.folder.path()));
  }
  EXPECT_FALSE(ClientCredentials::load("/nowhere/config"));
}

// --- Responses ---

struct AnswerCase {
  std::string_view name, body;
  bool mutating;
  std::string_view want;  // The error; empty if it is valid.
};

constexpr AnswerCase kAnswerCases[] = {
    {"allowed",
     R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u","allowed":true}})", true,
     ""},
    {"no response", R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"})", true,
     "received invalid webhook response: webhook response was absent"},
    {"another uid", R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"x"}})", true,
     R"(received invalid webhook response: expected response.uid="u", got "x")"},
    {"no kind", R"({"response":{"uid":"u"}})", true,
     "received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got "
     "/, "
     "Kind="},
    {"a patch without its type",
     R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u","allowed":true,"patch":"W10="}})",
     true, "received invalid webhook response: webhook returned response.patch but not response.patchType"},
    {"a type without its patch",
     R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u","allowed":true,"patchType":"JSONPatch"}})",
     true, "received invalid webhook response: webhook returned response.patchType but not response.patch"},
    {"a validating webhook that patches",
     R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u","allowed":true,"patch":"W10=","patchType":"JSONPatch"}})",
     false, "received invalid webhook response: validating webhook may not return response.patch"},
};

TEST(Answers, ErrorsMatchKubernetes) {
  for (const AnswerCase& row : kAnswerCases) {
    Arena arena;
    Result<AdmissionReviewResponse> answer =
        parse_admission_response(arena, row.body, "u", row.mutating, ReviewVersion::V1);
    EXPECT_EQ(answer ? std::string() : answer.error().message, row.want) << row.name;
  }
}

TEST(Answers, V1beta1NeedsNeitherUidNorKind) {
  Arena arena;
  Result<AdmissionReviewResponse> answer = parse_admission_response(
      arena, R"({"response":{"allowed":true,"patch":"W10="}})", "u", true, ReviewVersion::V1beta1);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->patch, "[]");
}

TEST(Refusals, KeepStatusReturnedByWebhook) {
  Arena arena;
  const WebhookDenial chosen = denied_by("a.b.c", parse(arena, R"({"code":418,"message":"nope","reason":"Because"})"));
  EXPECT_EQ(chosen.error.message, "admission webhook \"a.b.c\" denied the request: nope");
  EXPECT_EQ(chosen.error.code, 418);
  EXPECT_EQ(chosen.reason, "Because");
  const WebhookDenial silent = denied_by("a.b.c", Value::null());
  EXPECT_EQ(silent.error.message, "admission webhook \"a.b.c\" denied the request without explanation");
  EXPECT_EQ(silent.error.code, 400);
}

}  // namespace
}  // namespace holdfast::webhook
