#include "client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "base/test_folder.h"
#include "client/core.h"
#include "client/credentials.h"
#include "ownership/ownership.h"

namespace holdfast::client {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

constexpr std::string_view kKubeconfig = R"(
apiVersion: v1
kind: Config
current-context: dev
clusters:
- name: here
  cluster: {server: "https://10.0.0.1:6443/base/", certificate-authority: ca.crt, tls-server-name: api.example.com, proxy-url: "http://u:p@proxy:3128"}
- name: there
  cluster: {server: "http://localhost:8080", insecure-skip-tls-verify: true}
users:
- name: alice
  user: {client-certificate-data: Y2VydA==, client-key-data: a2V5, as: bob, as-groups: [dev, ops], as-uid: u1, as-user-extra: {scopes: [a, b]}}
- name: robot
  user: {tokenFile: token}
- name: plugged
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, args: [x], env: [{name: A, value: b}], provideClusterInfo: true}
contexts:
- {name: dev, context: {cluster: here, user: alice, namespace: team}}
- {name: other, context: {cluster: there, user: robot}}
- {name: plugin, context: {cluster: here, user: plugged}}
- {name: broken, context: {cluster: nowhere, user: alice}}
)";

TEST(Kubeconfig, CurrentContextSelectsServerAndUser) {
  const TestFolder folder;
  folder.write("ca.crt", "authority");
  const Result<Config> config = Config::parse(kKubeconfig, "", folder.path());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->server, "https://10.0.0.1:6443/base/");
  EXPECT_EQ(config->ca_pem, "authority");
  EXPECT_EQ(config->tls_server_name, "api.example.com");
  EXPECT_EQ(config->proxy_url, "http://u:p@proxy:3128");
  EXPECT_EQ(config->certificate_pem, "cert");
  EXPECT_EQ(config->key_pem, "key");
  EXPECT_EQ(config->default_namespace, "team");
  EXPECT_EQ(config->impersonate.user, "bob");
  EXPECT_EQ(config->impersonate.uid, "u1");
  EXPECT_EQ(config->impersonate.groups, (std::vector<std::string>{"dev", "ops"}));
  EXPECT_EQ(config->impersonate.extra.size(), 2u);
}

TEST(Kubeconfig, TokenFileTakesPrecedenceOverToken) {
  const TestFolder folder;
  folder.write("token", "from the file\n");
  const auto authorization = [&](std::string_view user) {
    const std::string text =
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
        "clusters: [{name: a, cluster: {server: \"https://127.0.0.1:1\"}}]\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\n"
        "users: [{name: a, user: " +
        std::string(user) + "}]\n";
    const Result<Config> config = Config::parse(text, "", folder.path());
    EXPECT_TRUE(config) << config.error().message;
    const Result<Credentials> read = read_credentials(*config);
    return read ? read->authorization : read.error().message;
  };
  EXPECT_EQ(authorization("{token: beside, tokenFile: token}"), "Bearer from the file");
  EXPECT_EQ(authorization("{token: beside, tokenFile: missing}"), "Bearer beside");
  EXPECT_EQ(authorization("{token: beside}"), "Bearer beside");
  EXPECT_THAT(authorization("{tokenFile: missing}"), testing::HasSubstr("missing"));
}

TEST(Kubeconfig, OtherContextCanBeSelected) {
  const TestFolder folder;
  folder.write("ca.crt", "authority");
  const Result<Config> other = Config::parse(kKubeconfig, "other", "/etc/here");
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_TRUE(other->insecure);
  EXPECT_EQ(other->token_file, "/etc/here/token");
  EXPECT_EQ(other->default_namespace, "default");
  const Result<Config> plugged = Config::parse(kKubeconfig, "plugin", folder.path());
  ASSERT_TRUE(plugged) << plugged.error().message;
  EXPECT_EQ(fs::path(plugged->exec->command).lexically_normal(), folder.file("plugin"));
  EXPECT_TRUE(plugged->exec->provide_cluster_info);
}

TEST(Kubeconfig, ErrorsNameWhatIsMissing) {
  EXPECT_THAT(Config::parse(kKubeconfig, "broken").error().message, HasSubstr("cluster \"nowhere\" does not exist"));
  EXPECT_THAT(Config::parse(kKubeconfig, "absent").error().message, HasSubstr("context \"absent\" does not exist"));
  EXPECT_THAT(Config::parse(kKubeconfig, "dev", "/nowhere").error().message, HasSubstr("/nowhere/ca.crt"));
  EXPECT_THAT(Config::parse("clusters: []").error().message, HasSubstr("no current-context"));
}

TEST(Kubeconfig, FirstFileWinsInAList) {
  const TestFolder folder;
  const std::string first = folder.write("a", R"({current-context: x, contexts: [{name: x, context: {cluster: c}}]})");
  const std::string second =
      folder.write("b", R"({current-context: y, clusters: [{name: c, cluster: {server: "https://second"}}],
               contexts: [{name: x, context: {cluster: none}}]})");
  setenv("KUBECONFIG", (first + ":" + folder.file("absent") + ":" + second).c_str(), 1);
  const Result<Config> config = Config::load();
  unsetenv("KUBECONFIG");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->server, "https://second");
}

TEST(Kubeconfig, PodUsesItsServiceAccount) {
  const TestFolder folder;
  folder.write("token", "secret\n");
  folder.write("ca.crt", "authority");
  folder.write("namespace", "mine");
  setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
  setenv("KUBERNETES_SERVICE_PORT", "443", 1);
  setenv("HOLDFAST_SERVICEACCOUNT_FOLDER", folder.path().c_str(), 1);
  const Result<Config> config = Config::in_cluster();
  for (const char* name : {"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "HOLDFAST_SERVICEACCOUNT_FOLDER"}) {
    unsetenv(name);
  }
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->server, "https://[fd00::1]:443");
  EXPECT_EQ(config->default_namespace, "mine");
  EXPECT_FALSE(Config::in_cluster());
}

TEST(Url, ServerMayBeHostOnly) {
  const Result<ServerUrl> bare = parse_server("a:8080/x/");
  ASSERT_TRUE(bare) << bare.error().message;
  EXPECT_EQ(bare->at.host, "a");
  EXPECT_EQ(bare->at.port, 8080);
  EXPECT_FALSE(bare->at.tls) << "like client-go";
  EXPECT_EQ(bare->prefix, "/x");
  EXPECT_EQ(parse_server("https://a//")->prefix, "");
  EXPECT_FALSE(parse_server("ftp://a"));
}

TEST(Url, RoutesThroughProxy) {
  net::ClientOptions options;
  ASSERT_TRUE(route_to(*parse_http_url("https://a:6443"), "http://u%40x:p@proxy:3128", options));
  EXPECT_EQ(options.host, "a");
  EXPECT_EQ(options.port, 6443);
  EXPECT_EQ(options.proxy_host, "proxy");
  EXPECT_EQ(options.proxy_port, 3128);
  EXPECT_EQ(options.proxy_authorization, "Basic dUB4OnA=");
  EXPECT_FALSE(route_to(*parse_http_url("https://a"), "https://proxy", options))
      << "only http:// proxies are supported";
}

ExecPlugin plugin(const TestFolder& folder, std::string_view script) {
  ExecPlugin plugin;
  plugin.api_version = "client.authentication.k8s.io/v1";
  plugin.command = folder.write("plugin", "#!/bin/sh\n" + std::string(script));
  chmod(plugin.command.c_str(), 0755);
  return plugin;
}

TEST(ExecPlugin, TokenIsUsedUntilItExpires) {
  const TestFolder folder;
  const ExecPlugin good =
      plugin(folder, R"sh(printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",
    "status":{"token":"t-%s","expirationTimestamp":"2020-01-01T00:00:00Z"}}' "$(echo "$KUBERNETES_EXEC_INFO" | grep -c ExecCredential)")sh");
  const Result<Credentials> said = run_exec_plugin(good, {});
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(said->authorization, "Bearer t-1");
  EXPECT_LT(*said->stale_at, std::chrono::steady_clock::now());
}

TEST(ExecPlugin, FailuresAreExplained) {
  const TestFolder folder;
  EXPECT_THAT(run_exec_plugin(plugin(folder, "exit 3"), {}).error().message, HasSubstr("failed with exit code 3"));
  EXPECT_THAT(run_exec_plugin(plugin(folder, "echo nonsense"), {}).error().message, HasSubstr("no ExecCredential"));
  EXPECT_THAT(
      run_exec_plugin(
          plugin(folder,
                 R"(echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{}}')"),
          {})
          .error()
          .message,
      HasSubstr("neither a token nor a certificate"));
  ExecPlugin absent;
  absent.command = "/no/such/plugin";
  absent.install_hint = "install it so";
  EXPECT_THAT(run_exec_plugin(absent, {}).error().message, HasSubstr("install it so"));
}

TEST(Gate, EnvironmentVariableIsReadAndOptionWins) {
  EXPECT_TRUE(opt_out_gate(std::nullopt));
  setenv("KUBE_FEATURE_ManagedFieldsOptOutClient", "false", 1);
  EXPECT_FALSE(opt_out_gate(std::nullopt));
  EXPECT_TRUE(opt_out_gate(true));
  unsetenv("KUBE_FEATURE_ManagedFieldsOptOutClient");
}

struct DropCase {
  const char* name;
  const char* kind;  // object or list
  const char* answer;
  const char* want;
};

TEST(Drops, ListedFieldsAreRemovedFromEveryResponse) {
  const DropCase cases[] = {
      {"an object", "object", R"({"metadata":{"name":"a","managedFields":[{}]},"data":{"managedFields":"x"}})",
       R"({"metadata":{"name":"a"},"data":{"managedFields":"x"}})"},
      {"an empty list is removed too", "object", R"({"metadata":{"managedFields":[]}})", R"({"metadata":{}})"},
      {"the items of a list", "list", R"({"items":[{"metadata":{"managedFields":[1]}},{"metadata":{"name":"b"}}]})",
       R"({"items":[{"metadata":{}},{"metadata":{"name":"b"}}]})"},
      {"the objects of a table's rows", "list",
       R"({"rows":[{"cells":[1],"object":{"metadata":{"managedFields":[1]}}}]})",
       R"({"rows":[{"cells":[1],"object":{"metadata":{}}}]})"},
      {"other fields", "object", R"({"metadata":{"name":"a"},"spec":{"secret":1,"items":[{"x":1,"y":2}]}})",
       R"({"metadata":{"name":"a"},"spec":{"items":[{"y":2}]}})"},
  };
  const Drops drops({"metadata.managedFields", "spec.secret", "spec.items.x"});
  EXPECT_EQ(drops.parameter, ";drop=metadata.managedFields+spec.secret+spec.items.x");
  for (const DropCase& c : cases) {
    const codec::FieldPaths& paths = std::string_view(c.kind) == "list" ? drops.list : drops.object;
    Result<Object> answer = decode_answer(Encoding::Json, c.answer, paths);
    ASSERT_TRUE(answer) << c.name;
    EXPECT_EQ(answer->json(), c.want) << c.name;
  }
}

TEST(Errors, ErrorIsReadFromStatus) {
  net::ClientResponse response;
  response.status = 409;
  response.headers.emplace_back("content-type", "application/json");
  response.body =
      R"({"kind":"Status","status":"Failure","message":"conflict with x","reason":"Conflict",
          "details":{"name":"n","causes":[{"reason":"FieldManagerConflict","message":"m","field":".a"}],"retryAfterSeconds":2},"code":409})";
  const Error error = error_of(response);
  EXPECT_EQ(error.reason, Reason::Conflict);
  EXPECT_EQ(error.code, 409);
  EXPECT_EQ(error.causes, (std::vector<Cause>{{"FieldManagerConflict", "m", ".a"}}));
  EXPECT_EQ(error.retry_after_seconds, 2);
  response.status = 404;
  response.body = "404 page not found\n";
  EXPECT_EQ(error_of(response).reason, Reason::NotFound);
  EXPECT_EQ(error_of(response).message, "404 page not found");
}

TEST(ApplyFields, LastCallWins) {
  apply::Fields spec;
  spec.set("replicas", 3);
  spec.unset("replicas");
  spec.unset("paused");
  spec.set("paused", true);
  spec.put_entry("labels", "a", "1");
  spec.unset_entry("labels", "b");
  apply::Fields port;
  port.set("name", "web");
  port.set("port", 80);
  spec.put_item("ports", port, {{"name"}});
  port.set("port", 81);
  spec.put_item("ports", port, {{"name"}});
  spec.unset_item("ports", {{"name", "old"}});
  Arena arena;
  EXPECT_EQ(codec::encode_json(spec.to_value(arena)),
            R"({"replicas":{"k8s_io__value":"unset"},"paused":true,"labels":{"a":"1","b":{"k8s_io__value":"unset"}},)"
            R"("ports":[{"name":"web","port":81},{"name":"old","k8s_io__value":"unset"}]})");
  EXPECT_TRUE(ownership::has_marker(spec.to_value(arena)));
  // Copies are independent.
  apply::Fields copy = spec;
  copy.put_entry("labels", "a", "2");
  EXPECT_THAT(codec::encode_json(spec.to_value(arena)), HasSubstr(R"("a":"1")"));
  // Round trip.
  EXPECT_EQ(codec::encode_json(apply::Fields::of(spec.to_value(arena)).to_value(arena)),
            codec::encode_json(spec.to_value(arena)));
}

TEST(Extract, ObjectWithoutManagedFieldsIsNotAnError) {
  Result<Object> object = decode_answer(
      Encoding::Json, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1"}})", {});
  Result<std::optional<apply::Fields>> applied = apply::extract({"v1", "ConfigMap", {}}, *object, "me", "");
  ASSERT_TRUE(applied);
  EXPECT_FALSE(*applied);
}

TEST(Extract, ReturnsFieldsAppliedByManager) {
  Result<Object> object =
      decode_answer(Encoding::Json,
                    R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n","managedFields":[
          {"manager":"me","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:x":{}}}},
          {"manager":"you","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:y":{}}}}]},
          "data":{"x":"1","y":"2"}})",
                    {});
  Result<std::optional<apply::Fields>> applied = apply::extract({"v1", "ConfigMap", {}}, *object, "me", "");
  ASSERT_TRUE(applied) << applied.error().message;
  ASSERT_TRUE(*applied);
  Arena arena;
  const Value value = (**applied).to_value(arena);
  EXPECT_EQ(value.text_at("data", "x"), "1");
  EXPECT_EQ(value.get("data", "y"), nullptr);
  EXPECT_EQ(value.text_at("metadata", "name"), "a");
}

// --- Work queue

template <class T>
T on(net::Loops& loops, Task<T> task) {
  return Call<T>(loops.at(0), std::move(task)).wait();
}

Task<std::vector<std::string>> take_and_finish(WorkQueue& queue, int count) {
  std::vector<std::string> taken;
  for (int i = 0; i < count; ++i) {
    std::optional<std::string> key = co_await queue.take();
    if (!key) break;
    taken.push_back(*key);
    queue.done(*key);
  }
  co_return taken;
}

Task<std::vector<std::string>> add_while_working(WorkQueue& queue) {
  queue.add("a");
  queue.add("a");
  std::optional<std::string> first = co_await queue.take();
  queue.add("a");  // Added while being processed: waits.
  std::vector<std::string> seen = {*first, std::to_string(queue.waiting())};
  queue.done(*first);
  seen.push_back(*co_await queue.take());
  queue.done("a");
  seen.push_back(std::to_string(queue.waiting()));
  co_return seen;
}

TEST(WorkQueue, KeyIsQueuedOnceAndProcessedByOneWorker) {
  net::Loops loops(1);
  WorkQueue queue(loops.at(0));
  EXPECT_EQ(on(loops, add_while_working(queue)), (std::vector<std::string>{"a", "0", "a", "0"}));
}

TEST(WorkQueue, KeysAreOrderedAndDelayedOnesComeLater) {
  net::Loops loops(1);
  WorkQueue queue(loops.at(0), {.first_delay = std::chrono::milliseconds(1)});
  queue.add_after("late", std::chrono::milliseconds(30));
  queue.add("one");
  queue.add("two");
  EXPECT_EQ(on(loops, take_and_finish(queue, 3)), (std::vector<std::string>{"one", "two", "late"}));
  queue.add_after("failed", std::chrono::hours(1));
  queue.add_with_backoff("failed");
  EXPECT_EQ(on(loops, take_and_finish(queue, 1)), (std::vector<std::string>{"failed"}));
  queue.close();
  EXPECT_TRUE(on(loops, take_and_finish(queue, 1)).empty());
}

TEST(Dropping, KeepsEverythingElse) {
  const Drops drops({std::string(kManagedFields), "data.secret"});
  const std::string_view object =
      R"({"metadata":{"managedFields":[{"manager":"m"}],"name":"a","labels":{"managedFields":"l"}},"data":{"secret":"s","x":"1"}})";
  const std::string_view stripped = R"({"metadata":{"name":"a","labels":{"managedFields":"l"}},"data":{"x":"1"}})";
  EXPECT_EQ(decode_answer(Encoding::Json, std::string(object), drops.object)->json(), stripped);
  const std::string list = R"({"items":[)" + std::string(object) + "," + std::string(object) + R"(,{"data":null},7]})";
  EXPECT_EQ(decode_answer(Encoding::Json, list, drops.list)->json(),
            R"({"items":[)" + std::string(stripped) + "," + std::string(stripped) + R"(,{"data":null},7]})");
}

}  // namespace
}  // namespace holdfast::client
