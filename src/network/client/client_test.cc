#include "client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "base/process.h"
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
  for (const char* text : {"0", "f", "F", "FALSE", "False"}) {
    setenv("KUBE_FEATURE_ManagedFieldsOptOutClient", text, 1);
    EXPECT_FALSE(opt_out_gate(std::nullopt)) << text;
  }
  for (const char* text : {"1", "t", "TRUE", "nonsense"}) {
    setenv("KUBE_FEATURE_ManagedFieldsOptOutClient", text, 1);
    EXPECT_TRUE(opt_out_gate(std::nullopt)) << text;
  }
  unsetenv("KUBE_FEATURE_ManagedFieldsOptOutClient");
}

struct DropCase {
  const char* name;
  Answered answered;
  const char* answer;
  const char* want;
};

TEST(Drops, ListedFieldsAreRemovedFromEveryResponse) {
  const DropCase cases[] = {
      {"an object", Answered::Object, R"({"metadata":{"name":"a","managedFields":[{}]},"data":{"managedFields":"x"}})",
       R"({"metadata":{"name":"a"},"data":{"managedFields":"x"}})"},
      {"an empty list is removed too", Answered::Object, R"({"metadata":{"managedFields":[]}})", R"({"metadata":{}})"},
      {"the items of a list", Answered::List,
       R"({"items":[{"metadata":{"managedFields":[1]}},{"metadata":{"name":"b"}}]})",
       R"({"items":[{"metadata":{}},{"metadata":{"name":"b"}}]})"},
      {"the objects of a table's rows", Answered::Table,
       R"({"kind":"Table","rows":[{"cells":[1],"object":{"metadata":{"managedFields":[1]}}}]})",
       R"({"kind":"Table","rows":[{"cells":[1],"object":{"metadata":{}}}]})"},
      {"a list instead of a table", Answered::Table, R"({"items":[{"metadata":{"managedFields":[1]}}]})",
       R"({"items":[{"metadata":{}}]})"},
      {"an object instead of a table", Answered::Table, R"({"metadata":{"managedFields":[1]}})", R"({"metadata":{}})"},
      {"rows of an ordinary object are its data", Answered::Object,
       R"({"rows":[{"object":{"metadata":{"managedFields":[1]}}}],"items":[{"metadata":{"managedFields":[1]}}]})",
       R"({"rows":[{"object":{"metadata":{"managedFields":[1]}}}],"items":[{"metadata":{"managedFields":[1]}}]})"},
      {"other fields", Answered::Object, R"({"metadata":{"name":"a"},"spec":{"secret":1,"items":[{"x":1,"y":2}]}})",
       R"({"metadata":{"name":"a"},"spec":{"items":[{"y":2}]}})"},
  };
  const Drops drops({"metadata.managedFields", "spec.secret", "spec.items.x"});
  EXPECT_EQ(drops.parameter, ";drop=metadata.managedFields+spec.secret+spec.items.x");
  for (const DropCase& c : cases) {
    Result<Object> answer = decode_answer(Encoding::Json, c.answer, drops, c.answered);
    ASSERT_TRUE(answer) << c.name;
    EXPECT_EQ(answer->json(), c.want) << c.name;
    EXPECT_EQ(answer->dropped().size(), 3u) << c.name;
    Arena arena;
    Result<Object> cbor =
        decode_answer(Encoding::Cbor, codec::encode_cbor(*codec::decode_json(arena, c.answer)), drops, c.answered);
    ASSERT_TRUE(cbor) << c.name;
    EXPECT_EQ(cbor->json(), c.want) << c.name;
  }
}

TEST(Drops, ProtobufFallbackRemovesFieldsToo) {
  Arena arena;
  const types::Resource& map = *types::find_kind("", "v1", "ConfigMap");
  const Result<Value> object = codec::decode_json(
      arena, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","managedFields":[{"manager":"m"}]},
                 "data":{"x":"1"},"immutable":true})");
  std::string bytes;
  ASSERT_TRUE(codec::encode_enveloped(*map.type, *codec::to_typed(arena, *map.type, *object), bytes));
  const Result<Object> one =
      decode_answer(Encoding::Protobuf, bytes, Drops({"metadata.managedFields"}), Answered::Object);
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->root().get("metadata", "managedFields"), nullptr);
  EXPECT_EQ(one->root().text_at("kind"), "ConfigMap");
  EXPECT_EQ(one->root().text_at("data", "x"), "1");
  const Result<Object> other = decode_answer(Encoding::Protobuf, bytes, Drops({"data"}), Answered::Object);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->root().find("data"), nullptr);
  EXPECT_TRUE(other->root().get("metadata", "managedFields"));
}

// What a server sent although it was not wanted is neither built as trees nor kept.
TEST(Drops, RemovedFieldsTakeNoMemory) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "sanitizers keep what is freed";
#endif
#endif
  constexpr size_t kObjects = 100, kEntries = 1000;
  std::string entries;
  for (size_t i = 0; i < kEntries; ++i) {
    entries += (i == 0 ? "" : ",") + std::string(R"({"manager":"m)") + std::to_string(i) +
               R"(","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:)" +
               std::string(300, 'x') + std::to_string(i) + R"(":{}}}})";
  }
  const std::string json = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","managedFields":[)" +
                           entries + R"(]},"data":{"x":"1"}})";
  Arena arena;
  const Value tree = *codec::decode_json(arena, json);
  const types::Type& type = *types::find_kind("", "v1", "ConfigMap")->type;
  std::string protobuf;
  ASSERT_TRUE(codec::encode_enveloped(type, *codec::to_typed(arena, type, tree), protobuf));
  const Drops drops({"metadata.managedFields"});
  for (const auto& [encoding, bytes] :
       {std::pair(Encoding::Json, json), std::pair(Encoding::Cbor, codec::encode_cbor(tree)),
        std::pair(Encoding::Protobuf, protobuf)}) {
    std::vector<Object> kept;
    kept.push_back(*decode_answer(encoding, bytes, drops, Answered::Object));
    const uint64_t before = resident_bytes();
    for (size_t i = 0; i < kObjects; ++i) kept.push_back(*decode_answer(encoding, bytes, drops, Answered::Object));
    EXPECT_LT(resident_bytes(), before + kObjects * bytes.size() / 4) << static_cast<int>(encoding);
    EXPECT_EQ(kept.back().root().text_at("data", "x"), "1");
  }
}

struct AcceptCase {
  const char* name;
  std::vector<std::string> fields;
  const char* want;
};

// What Kubernetes 1.38 takes: a clause with any other field than managedFields matches nothing there.
TEST(Drops, ClausesWithTheWholeListComeFirst) {
  const AcceptCase cases[] = {
      {"nothing", {}, "application/cbor,application/json"},
      {"managedFields",
       {"metadata.managedFields"},
       "application/cbor;drop=metadata.managedFields,application/json;drop=metadata.managedFields"},
      {"managedFields and more",
       {"data", "metadata.managedFields"},
       "application/cbor;drop=data+metadata.managedFields,application/json;drop=data+metadata.managedFields,"
       "application/cbor;drop=metadata.managedFields,application/json;drop=metadata.managedFields"},
      {"something else",
       {"data"},
       "application/cbor;drop=data,application/json;drop=data,application/cbor,application/json"},
  };
  const Resource widgets{"x.io", "v1", "widgets", "Widget", true};
  for (const AcceptCase& c : cases) {
    EXPECT_EQ(Core::accept(widgets, Drops(c.fields), Encoding::Cbor, Shape::Object, Core::Asked::Object), c.want)
        << c.name;
  }
  EXPECT_EQ(Core::accept(widgets, Drops({"data"}), Encoding::Json, Shape::Table, Core::Asked::List),
            "application/json;as=Table;v=v1;g=meta.k8s.io;drop=data,application/json;drop=data,"
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
}

TEST(Drops, FieldsAreValidated) {
  for (const char* good : {"metadata.managedFields", "data", "spec.template", "spec.x-y", "metadata.labels"}) {
    EXPECT_TRUE(check_fields({good})) << good;
  }
  for (const char* bad : {"", ".", ".spec", "spec.", "a..b", "a,b", "a+b", "a;q=0", "a b", "a\"", "metadata",
                          "metadata.name", "kind", "spec[0]", "metadata.resourceVersion"}) {
    EXPECT_FALSE(check_fields({bad})) << bad;
    EXPECT_FALSE(Client::connect(Config{.server = "http://127.0.0.1:1"}, {.drop_fields = {bad}})) << bad;
  }
}

TEST(Drops, EmptyListOptsInAgain) {
  EXPECT_TRUE(GetOptions{}.drop_fields.inherits());
  EXPECT_FALSE((GetOptions{.drop_fields = {}}.drop_fields.inherits()));
  EXPECT_TRUE((InformerOptions{.drop_fields = {}}.drop_fields.fields().empty()));
  EXPECT_EQ((GetOptions{.drop_fields = {kManagedFields}}.drop_fields.fields()),
            std::vector<std::string>{"metadata.managedFields"});
}

TEST(Drops, PartialObjectIsNotWritten) {
  Result<Client> client = Client::connect(Config{.server = "http://127.0.0.1:1"}, {.retry = {.max_attempts = 1}});
  ASSERT_TRUE(client);
  const Api<> maps = client->api(builtin("v1", "ConfigMap"), "n");
  const auto read = [](std::vector<std::string> fields) {
    return *decode_answer(Encoding::Json,
                          R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1"}})",
                          Drops(std::move(fields)), Answered::Object);
  };
  const Object partial = read({"metadata.managedFields", "data"}), stripped = read({"metadata.managedFields"});
  const std::string refused = "a was read without metadata.managedFields, data, which an update would delete";
  EXPECT_THAT(maps.update(partial).wait().error().message, HasSubstr(refused));
  const Object edited = partial.edited(
      [](Arena& arena, const Value& root) { return with_member(arena, root, "immutable", Value::boolean(true)); });
  EXPECT_THAT(edited.json(), HasSubstr("immutable"));
  EXPECT_THAT(maps.update(edited).wait().error().message, HasSubstr(refused));
  // Nothing listens there: these were sent.
  EXPECT_EQ(maps.update(stripped).wait().error().reason, Reason::ServiceUnavailable);
  EXPECT_EQ(maps.update(partial.root()).wait().error().reason, Reason::ServiceUnavailable) << "a Value does not tell";
  Result<Client> dropping =
      Client::connect(Config{.server = "http://127.0.0.1:1"}, {.drop_fields = {"data"}, .retry = {.max_attempts = 1}});
  ASSERT_TRUE(dropping);
  const Api<> other = dropping->api(builtin("v1", "ConfigMap"), "n");
  EXPECT_THAT(other.update(stripped.root()).wait().error().message, HasSubstr("was read without data"));
  EXPECT_EQ(other.update(stripped.root(), {.drop_fields = DropFields::kKeep}).wait().error().reason,
            Reason::ServiceUnavailable);
  EXPECT_THAT(other.get("a", {.drop_fields = {"a,b"}}).wait().error().message, HasSubstr("is not a path"));
}

TEST(Extract, ObjectWithDroppedFieldsCanBeRefused) {
  const std::string text =
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","managedFields":[
          {"manager":"me","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:x":{}}}}]},
          "data":{"x":"1"}})";
  const auto extract = [&](std::vector<std::string> fields, apply::IfDropped if_dropped) {
    const Object object = *decode_answer(Encoding::Json, text, Drops(std::move(fields)), Answered::Object);
    return apply::extract({"v1", "ConfigMap", {}}, object, "me", "", if_dropped);
  };
  const auto lenient = extract({"metadata.managedFields"}, apply::IfDropped::ReturnNothing);
  ASSERT_TRUE(lenient);
  EXPECT_FALSE(*lenient);
  EXPECT_THAT(extract({"metadata.managedFields"}, apply::IfDropped::Refuse).error().message,
              HasSubstr("was read without metadata.managedFields"));
  EXPECT_THAT(extract({"data"}, apply::IfDropped::ReturnNothing).error().message, HasSubstr("was read without data"));
  EXPECT_TRUE(*extract({}, apply::IfDropped::Refuse));
}

TEST(DeclaredManager, IsSentAsTheParameter) {
  Result<Client> client = Client::connect(Config{.server = "http://127.0.0.1:1"}, {.retry = {.max_attempts = 1}});
  ASSERT_TRUE(client);
  Arena arena;
  const Value object = *codec::decode_json(
      arena, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","options":{"fieldManager":"team"}}})");
  const Api<> maps = client->api(builtin("v1", "ConfigMap"), "n");
  EXPECT_THAT(maps.apply(object, {.field_manager = "other"}).wait().error().message,
              HasSubstr("metadata.options[fieldManager] is \"team\""));
  EXPECT_EQ(maps.apply(object, {.field_manager = "team"}).wait().error().reason, Reason::ServiceUnavailable);
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

// Apply configurations double the key of markers where it is data; objects do not.
TEST(ApplyFields, DataMayHaveTheKeyOfMarkers) {
  apply::Fields fields;
  fields.put_entry("data", "k8s_io__value", "unset");
  fields.unset_entry("labels", "k8s_io__value");
  Arena arena;
  const Value config = fields.to_value(arena);
  EXPECT_EQ(codec::encode_json(config), R"({"data":{"k8s_io__value":{"k8s_io__value":"unset"}},)"
                                        R"("labels":{"k8s_io__value":{"k8s_io__value":{"k8s_io__value":"unset"}}}})");
  EXPECT_EQ(codec::encode_json(apply::Fields::of(config).to_value(arena)), codec::encode_json(config));
  EXPECT_TRUE(apply::Fields::of(config).find("labels")->fields()->find("k8s_io__value")->is_unset());
  apply::Fields object;
  object.put_entry("data", "k8s_io__value", "unset");
  const Value stored = object.to_value(arena, apply::Form::Object);
  EXPECT_EQ(codec::encode_json(stored), R"({"data":{"k8s_io__value":"unset"}})");
  const apply::Fields read = apply::Fields::of(stored, apply::Form::Object);
  EXPECT_EQ((apply::read_all<std::map<std::string, std::string>>(read, "data")),
            (std::map<std::string, std::string>{{"k8s_io__value", "unset"}}));
  EXPECT_EQ(codec::encode_json(read.to_value(arena, apply::Form::Object)), codec::encode_json(stored));
  // A value that is no marker is data.
  EXPECT_EQ(
      codec::encode_json(apply::Fields::of(*codec::decode_json(arena, R"({"o":{"k8s_io__value":7}})")).to_value(arena)),
      R"({"o":{"k8s_io__value":{"k8s_io__value":7}}})");
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
  spec.append("finalizers", "x.io/a");
  spec.append("finalizers", "x.io/b");
  spec.unset_element("finalizers", "x.io/a");
  spec.unset_element("finalizers", "x.io/a");
  EXPECT_EQ(codec::encode_json(spec.find("finalizers")->to_value(arena)),
            R"(["x.io/b",{"k8s_io__value":"unset","value":"x.io/a"}])");
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
      Encoding::Json, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1"}})");
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
          "data":{"x":"1","y":"2"}})");
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
  EXPECT_EQ(decode_answer(Encoding::Json, std::string(object), drops, Answered::Object)->json(), stripped);
  const std::string list = R"({"items":[)" + std::string(object) + "," + std::string(object) + R"(,{"data":null},7]})";
  EXPECT_EQ(decode_answer(Encoding::Json, list, drops, Answered::List)->json(),
            R"({"items":[)" + std::string(stripped) + "," + std::string(stripped) + R"(,{"data":null},7]})");
}

}  // namespace
}  // namespace holdfast::client
