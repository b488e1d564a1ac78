// The client against a running server: the one in KUBECONFIG. HOLDFAST_SERVER=1 if it is Holdfast, which has additional
// features.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>

#include "apply/apps_v1.h"
#include "base/test_folder.h"
#include "client/client.h"

namespace holdfast::client {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

bool is_holdfast() { return std::getenv("HOLDFAST_SERVER") != nullptr; }

Client connect(Options options = {}) {
  options.field_manager = options.field_manager == "holdfast-client" ? "live-test" : options.field_manager;
  Result<Client> client = Client::connect(std::move(options));
  EXPECT_TRUE(client) << client.error().message;
  return std::move(*client);
}

// Waits up to half a minute: servers are slow when many tests share two cores.
template <class Condition>
bool eventually(Condition condition) {
  const auto until = std::chrono::steady_clock::now() + 30s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

Result<Value> json(Arena& arena, std::string_view text) { return codec::decode_json(arena, text); }

// A namespace of its own for each test.
struct Space {
  explicit Space(const Client& the_client) : client(the_client) {
    static std::atomic<int> next{0};
    name = "live-" + std::to_string(getpid()) + "-" + std::to_string(next++);
    Arena arena;
    Result<Object> made =
        client.api(builtin("v1", "Namespace"))
            .create(*json(arena, R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":")" + name + R"("}})"))
            .wait();
    EXPECT_TRUE(made) << made.error().message;
  }
  ~Space() { (void)client.api(builtin("v1", "Namespace")).remove(name).wait(); }
  Api<> maps() const { return client.api(builtin("v1", "ConfigMap"), name); }
  Result<Object> put(std::string_view map_name, std::string_view value) const {
    Arena arena;
    return maps()
        .apply(*json(arena, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")" + std::string(map_name) +
                                R"("},"data":{"x":")" + std::string(value) + R"("}})"),
               {.force = true})
        .wait();
  }
  const Client& client;
  std::string name;
};

class EveryEncoding : public ::testing::TestWithParam<Encoding> {};
INSTANTIATE_TEST_SUITE_P(Live, EveryEncoding, ::testing::Values(Encoding::Json, Encoding::Cbor, Encoding::Protobuf));

TEST_P(EveryEncoding, SupportsAllVerbs) {
  Client client = connect({.encoding = GetParam()});
  const Space space(client);
  const Api<> maps = space.maps();
  Arena arena;
  Result<Object> made =
      maps
          .create(*json(
              arena,
              R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"l":"1"}},"data":{"x":"1"}})"))
          .wait();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->root().text_at("data", "x"), "1");
  EXPECT_EQ(made->root().text_at("kind"), "ConfigMap");

  Result<Object> again = maps.create(made->root(), {.dry_run = true}).wait();
  ASSERT_FALSE(again);

  Draft draft(arena, made->root());
  draft.root().child("data").set("x", Value::string("2"));
  Result<Object> updated = maps.update(draft.value()).wait();
  ASSERT_TRUE(updated) << updated.error().message;
  Result<Object> stale = maps.update(made->root()).wait();
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().reason, Reason::Conflict);
  EXPECT_EQ(stale.error().code, 409);

  EXPECT_EQ(maps.patch("a", Patch::Merge, R"({"data":{"y":"3"}})").wait()->root().text_at("data", "y"), "3");
  EXPECT_EQ(maps.patch("a", Patch::Json, R"([{"op":"remove","path":"/data/y"}])").wait()->root().get("data", "y"),
            nullptr);
  EXPECT_EQ(maps.patch("a", Patch::Strategic, R"({"data":{"z":"4"}})").wait()->root().text_at("data", "z"), "4");

  Result<Object> dry = maps.patch("a", Patch::Merge, R"({"data":{"x":"dry"}})", {.dry_run = true}).wait();
  ASSERT_TRUE(dry);
  EXPECT_EQ(maps.get("a").wait()->root().text_at("data", "x"), "2");

  Result<Object> conflict =
      maps.apply(*json(arena, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"9"}})"),
                 {.field_manager = "other"})
          .wait();
  ASSERT_FALSE(conflict);
  EXPECT_EQ(conflict.error().reason, Reason::Conflict);
  ASSERT_FALSE(conflict.error().causes.empty());
  EXPECT_EQ(conflict.error().causes[0].field, ".data.x");
  EXPECT_TRUE(space.put("b", "1"));

  Result<Object> list = maps.list({.label_selector = "l=1"}).wait();
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ(list->root().items_at("items").size(), 1u);
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(space.put("page-" + std::to_string(i), "1"));
  Result<std::vector<Object>> pages = maps.list_all({.limit = 3}).wait();
  ASSERT_TRUE(pages) << pages.error().message;
  EXPECT_GE(pages->size(), 3u);

  Result<Object> absent = maps.get("absent").wait();
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().reason, Reason::NotFound);
  EXPECT_EQ(absent.error().details->name, "absent");

  EXPECT_TRUE(maps.remove("a", {.uid = std::string(made->uid())}).wait());
  EXPECT_FALSE(maps.get("a").wait());
  EXPECT_TRUE(maps.remove_all({.label_selector = "!l"}).wait());
}

TEST(Live, Subresources) {
  Client client = connect();
  const Space space(client);
  Arena arena;
  const Api<> deployments = client.api(builtin("apps/v1", "Deployment"), space.name);
  Result<Object> made = deployments
                            .apply(*json(arena, R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},
      "spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
      "spec":{"containers":[{"name":"c","image":"i"}]}}}})"),
                                   {.force = true})
                            .wait();
  ASSERT_TRUE(made) << made.error().message;
  Result<Object> scale = deployments.get("d", {.subresource = "scale"}).wait();
  ASSERT_TRUE(scale) << scale.error().message;
  EXPECT_EQ(scale->root().text_at("kind"), "Scale");
  EXPECT_TRUE(deployments.patch("d", Patch::Merge, R"({"spec":{"replicas":4}})", {.subresource = "scale"}).wait());
  EXPECT_EQ(deployments.get("d").wait()->root().int_at_or(0, "spec", "replicas"), 4);
  Result<Object> token =
      client.api(builtin("v1", "ServiceAccount"), space.name)
          .create(*json(arena, R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"sa"}})"))
          .wait();
  ASSERT_TRUE(token) << token.error().message;
  token = client.api(builtin("v1", "ServiceAccount"), space.name)
              .create_subresource(
                  "sa", *json(arena, R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}})"),
                  {.subresource = "token"})
              .wait();
  ASSERT_TRUE(token) << token.error().message;
  EXPECT_FALSE(token->root().text_at("status", "token").empty());
}

TEST(Live, AppliedConditionsAreReadBack) {
  Client client = connect();
  const Space space(client);
  Arena arena;
  const Api<apps_v1::Deployment> deployments = client.api<apps_v1::Deployment>(space.name);
  Result<Object> made =
      deployments
          .apply(apps_v1::Deployment("d").with_spec(
                     apps_v1::DeploymentSpec()
                         .with_selector(meta_v1::LabelSelector().with_match_labels("a", "b"))
                         .with_template(core_v1::PodTemplateSpec()
                                            .with_metadata(meta_v1::ObjectMeta().with_labels("a", "b"))
                                            .with_spec(core_v1::PodSpec().with_containers(
                                                core_v1::Container().with_name("c").with_image("i"))))),
                 {.force = true})
          .wait();
  ASSERT_TRUE(made) << made.error().message;
  const auto ready = apps_v1::DeploymentCondition().with_type("Ready").with_status("True").with_reason("Tested");
  Result<Object> applied =
      deployments
          .apply(apps_v1::Deployment("d").with_status(
                     apps_v1::DeploymentStatus().with_observed_generation(1).with_conditions(ready)),
                 {.force = true, .field_manager = "status-writer", .subresource = "status"})
          .wait();
  ASSERT_TRUE(applied) << applied.error().message;
  const auto read = apps_v1::extract_deployment(*applied, "status-writer", "status");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_TRUE(*read);
  const Value status = (*read)->to_value(arena);
  EXPECT_EQ(status.int_at_or(0, "status", "observedGeneration"), 1);
  ASSERT_EQ(status.items_at("status", "conditions").size(), 1u);
  EXPECT_EQ(status.items_at("status", "conditions")[0].text_at("type"), "Ready");
  EXPECT_EQ(status.items_at("status", "conditions")[0].text_at("reason"), "Tested");
  EXPECT_FALSE(status.find("spec"));
  // That manager has applied nothing through the main resource.
  const auto none = apps_v1::extract_deployment(*applied, "status-writer");
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_FALSE(*none);
}

TEST_P(EveryEncoding, WatchReportsChanges) {
  Client client = connect({.encoding = GetParam()});
  const Space space(client);
  Result<Object> first = space.put("a", "1");
  Result<Watch> watch =
      space.maps()
          .watch({.field_selector = "metadata.name=a", .resource_version = std::string(first->resource_version())})
          .wait();
  ASSERT_TRUE(watch) << watch.error().message;
  EXPECT_TRUE(space.put("a", "2"));
  Result<std::optional<WatchEvent>> event = watch->next().wait();
  ASSERT_TRUE(event) << event.error().message;
  EXPECT_EQ((*event)->type, WatchEvent::Type::Modified);
  EXPECT_EQ((*event)->object.root().text_at("data", "x"), "2");
  EXPECT_TRUE(space.maps().remove("a").wait());
  event = watch->next().wait();
  EXPECT_EQ((*event)->type, WatchEvent::Type::Deleted);
  watch->cancel();
  EXPECT_FALSE(watch->next().wait());
}

// --- Opting out: results are the same whether the server supports it or not

void expect_stripped(const Value& object) {
  EXPECT_FALSE(object.get("metadata", "managedFields")) << codec::encode_json(object);
  EXPECT_TRUE(object.get("metadata", "name"));
}

TEST_P(EveryEncoding, OptingOutRemovesManagedFields) {
  Client client = connect({.drop_fields = {std::string(kManagedFields)}, .encoding = GetParam()});
  Client plain = connect({.encoding = GetParam()});
  const Space space(client);
  Result<Object> put = space.put("a", "1");
  ASSERT_TRUE(put) << put.error().message;
  expect_stripped(put->root());
  EXPECT_TRUE(
      plain.api(builtin("v1", "ConfigMap"), space.name).get("a").wait()->root().get("metadata", "managedFields"));
  expect_stripped(space.maps().get("a").wait()->root());
  const Result<Object> list = space.maps().list().wait();
  for (const Value& item : list->root().items_at("items")) expect_stripped(item);
  Result<Watch> watch = space.maps().watch({.field_selector = "metadata.name=a", .send_initial_events = true}).wait();
  ASSERT_TRUE(watch) << watch.error().message;
  expect_stripped((*watch->next().wait())->object.root());
  // Writing back what was read preserves ownership.
  Result<Object> read = space.maps().get("a").wait();
  EXPECT_TRUE(space.maps().update(read->root()).wait());
  EXPECT_TRUE(
      plain.api(builtin("v1", "ConfigMap"), space.name).get("a").wait()->root().get("metadata", "managedFields"));
  expect_stripped(space.maps().patch("a", Patch::Merge, R"({"data":{"y":"1"}})").wait()->root());
  const Result<Object> removed = space.maps().remove_all({.field_selector = "metadata.name=a"}).wait();
  ASSERT_TRUE(removed) << removed.error().message;
  for (const Value& item : removed->root().items_at("items")) expect_stripped(item);
  EXPECT_TRUE(space.put("b", "1"));
  const Result<Object> deployment_gone = space.maps().remove("b").wait();
  ASSERT_TRUE(deployment_gone);
  EXPECT_FALSE(deployment_gone->root().get("metadata", "managedFields"));
}

TEST_P(EveryEncoding, MetadataOnlyOmitsManagedFields) {
  Client client = connect({.drop_fields = {std::string(kManagedFields)}, .encoding = GetParam()});
  const Space space(client);
  ASSERT_TRUE(space.put("a", "1"));
  const auto expect_metadata = [](const Value& object) {
    expect_stripped(object);
    EXPECT_EQ(object.text_at("kind"), "PartialObjectMetadata");
    EXPECT_FALSE(object.find("data"));
  };
  const Result<Object> one = space.maps().get("a", {.shape = Shape::Metadata}).wait();
  ASSERT_TRUE(one) << one.error().message;
  expect_metadata(one->root());
  const Result<Object> list = space.maps().list({.field_selector = "metadata.name=a", .shape = Shape::Metadata}).wait();
  ASSERT_TRUE(list) << list.error().message;
  ASSERT_EQ(list->root().items_at("items").size(), 1u);
  expect_stripped(list->root().items_at("items")[0]);
  EXPECT_FALSE(list->root().items_at("items")[0].find("data"));
  Result<Watch> watch =
      space.maps()
          .watch({.field_selector = "metadata.name=a", .send_initial_events = true, .shape = Shape::Metadata})
          .wait();
  ASSERT_TRUE(watch) << watch.error().message;
  expect_metadata((*watch->next().wait())->object.root());

  std::shared_ptr<Informer> informer =
      Informer::follow(client, builtin("v1", "ConfigMap"), {.space = space.name, .metadata_only = true});
  ASSERT_TRUE(informer->wait_synced().wait());
  const std::optional<Stored> followed = informer->get(space.name + "/a");
  ASSERT_TRUE(followed);
  expect_metadata(followed->get().root());
}

// A misspelled field reaches the server in every encoding.
TEST_P(EveryEncoding, UnknownFieldsReachTheServer) {
  Client client = connect({.encoding = GetParam()});
  const Space space(client);
  Arena arena;
  Result<Object> made =
      space.maps()
          .create(*json(arena, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"dta":{"x":"1"}})"),
                  {.field_validation = "Strict"})
          .wait();
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("unknown field \"dta\""));
}

TEST(Live, WatchesOfTablesHaveObjectsAndAnEndOfInitialEvents) {
  Client client = connect({.drop_fields = {std::string(kManagedFields)}});
  const Space space(client);
  ASSERT_TRUE(space.put("a", "1"));
  Result<Watch> watch =
      space.maps()
          .watch({.field_selector = "metadata.name=a", .send_initial_events = true, .shape = Shape::TableOfObjects})
          .wait();
  ASSERT_TRUE(watch) << watch.error().message;
  const WatchEvent first = **watch->next().wait();
  ASSERT_EQ(first.object.root().items_at("rows").size(), 1u);
  const Value object = *first.object.root().items_at("rows")[0].find("object");
  EXPECT_EQ(object.text_at("data", "x"), "1");
  expect_stripped(object);
  EXPECT_FALSE(first.initial_events_end);
  EXPECT_TRUE((**watch->next().wait()).initial_events_end);
}

TEST(Live, GateOffIgnoresTheListOfFields) {
  Client client = connect({.drop_fields = {std::string(kManagedFields)}, .opt_out_gate = false});
  const Space space(client);
  EXPECT_TRUE(space.put("a", "1")->root().get("metadata", "managedFields"));
}

// --- Informers

class EveryInformer : public ::testing::TestWithParam<std::tuple<Encoding, bool>> {};
INSTANTIATE_TEST_SUITE_P(Live, EveryInformer,
                         ::testing::Combine(::testing::Values(Encoding::Json, Encoding::Cbor, Encoding::Protobuf),
                                            ::testing::Bool()));

TEST_P(EveryInformer, TracksTheServer) {
  Client client = connect();
  const Space space(client);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(space.put("m" + std::to_string(i), "0"));
  std::shared_ptr<Informer> informer = Informer::follow(client, builtin("v1", "ConfigMap"),
                                                        {.space = space.name,
                                                         .field_selector = "metadata.name!=kube-root-ca.crt",
                                                         .drop_fields = {kManagedFields},
                                                         .encoding = std::get<0>(GetParam()),
                                                         .streaming_list = std::get<1>(GetParam())});
  std::atomic<int> added{0}, changed{0}, removed{0};
  informer->add_handlers({.added = [&](const Stored&) { ++added; },
                          .changed = [&](const Stored&, const Stored&) { ++changed; },
                          .removed = [&](const Stored&) { ++removed; }});
  informer->add_index("x", [](const Object& object, std::vector<std::string>& into) {
    into.emplace_back(object.root().text_at("data", "x"));
  });
  ASSERT_TRUE(informer->wait_synced().wait());
  EXPECT_EQ(informer->list().size(), 20u);
  EXPECT_EQ(informer->list("x", "0").size(), 20u);
  for (const Stored& stored : informer->list()) expect_stripped(stored.get().root());
  EXPECT_TRUE(space.put("m3", "changed"));
  EXPECT_TRUE(space.maps().remove("m4").wait());
  EXPECT_TRUE(space.put("new", "1"));
  const std::string key = space.name + "/";
  EXPECT_TRUE(eventually([&] { return informer->get(key + "new") && !informer->get(key + "m4"); }));
  EXPECT_TRUE(eventually([&] { return informer->list("x", "changed").size() == 1; }));
  EXPECT_EQ(informer->list("x", "0").size(), 18u);
  EXPECT_EQ(added, 21);
  EXPECT_EQ(changed, 1);
  EXPECT_EQ(removed, 1);
  const InformerStatus status = informer->status();
  EXPECT_TRUE(status.synced);
  EXPECT_EQ(status.objects, 20u);
  EXPECT_TRUE(status.last_error.empty()) << status.last_error;
}

TEST(Live, InformersAreSharedCompressedAndReduced) {
  Client client = connect();
  const Space space(client);
  const std::string text(300, 'q');
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(space.put("m" + std::to_string(i), text + std::to_string(i)));
  InformerOptions options{.space = space.name, .drop_fields = {kManagedFields}};
  std::shared_ptr<Informer> one = Informer::follow(client, builtin("v1", "ConfigMap"), options);
  EXPECT_EQ(one, Informer::follow(client, builtin("v1", "ConfigMap"), options));
  options.keep_fields = {"metadata.labels"};
  std::shared_ptr<Informer> reduced = Informer::follow(client, builtin("v1", "ConfigMap"), options);
  EXPECT_NE(one, reduced);
  ASSERT_TRUE(one->wait_synced().wait());
  ASSERT_TRUE(reduced->wait_synced().wait());
  EXPECT_LT(one->status().bytes, 500u * 200);
  EXPECT_EQ(one->get(space.name + "/m7")->get().root().text_at("data", "x"), text + "7");
  EXPECT_EQ(reduced->get(space.name + "/m7")->get().root().find("data"), nullptr);
  EXPECT_EQ(reduced->get(space.name + "/m7")->get().name(), "m7");
}

// --- Controllers and leader election

Task<Result<ReconcileResult>> copy_value(const Client& client, std::string space, std::shared_ptr<Informer> informer,
                                         std::string key) {
  const std::optional<Stored> stored = informer->get(key);
  if (!stored) co_return ReconcileResult{};
  const Object object = stored->get();
  if (!object.name().starts_with("in-")) co_return ReconcileResult{};
  Arena arena;
  const std::string body = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"out-)" +
                           std::string(object.name()) + R"("},"data":{"x":")" +
                           std::string(object.root().text_at("data", "x")) + R"("}})";
  Result<Value> config = codec::decode_json(arena, body);
  Result<Object> applied = co_await client.api(builtin("v1", "ConfigMap"), space).apply(*config, {.force = true});
  if (!applied) co_return applied.take_error();
  co_return ReconcileResult{};
}

TEST(Live, ControllerReconciles) {
  Client client = connect(controller_options("copier"));
  const Space space(client);
  std::shared_ptr<Informer> informer;
  Controller controller(client,
                        [&](std::string key) { return copy_value(client, space.name, informer, std::move(key)); },
                        {.workers = 2});
  informer = controller.follow(builtin("v1", "ConfigMap"), {.space = space.name});
  controller.start();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(space.put("in-" + std::to_string(i), std::to_string(i)));
  EXPECT_TRUE(eventually([&] {
    const std::optional<Stored> last = informer->get(space.name + "/out-in-9");
    return last && last->get().root().text_at("data", "x") == "9";
  }));
  EXPECT_TRUE(space.put("in-9", "again"));
  EXPECT_TRUE(eventually([&] {
    const std::optional<Stored> last = informer->get(space.name + "/out-in-9");
    return last && last->get().root().text_at("data", "x") == "again";
  }));
  controller.stop();
}

TEST(Live, LeadershipMovesToTheOtherCandidate) {
  Client client = connect();
  const Space space(client);
  LeaderOptions options{.space = space.name, .name = "l", .identity = "a", .retry_period = 50ms};
  std::atomic<int> led_by_a{0}, led_by_b{0};
  LeaderElection a(client, options, [&] { ++led_by_a; }, [] {});
  a.start();
  ASSERT_TRUE(eventually([&] { return a.leading(); }));
  options.identity = "b";
  LeaderElection b(client, options, [&] { ++led_by_b; }, [] {});
  b.start();
  ASSERT_TRUE(eventually([&] { return b.holder() == "a"; }));
  EXPECT_FALSE(b.leading());
  a.stop();
  EXPECT_TRUE(eventually([&] { return b.leading(); }));
  EXPECT_EQ(led_by_a, 1);
  EXPECT_EQ(led_by_b, 1);
}

TEST(Live, DiscoveryIsCachedOnDisk) {
  const TestFolder folder;
  {
    Client client = connect({.cache_folder = folder.path()});
    Result<Resource> found = client.find("deploy").wait();
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(*found, builtin("apps/v1", "Deployment"));
    EXPECT_EQ(client.find("pods").wait()->kind, "Pod");
    EXPECT_EQ(client.find("leases.coordination.k8s.io").wait()->kind, "Lease");
    EXPECT_EQ(client.find("nonsense").wait().error().code, 404);
  }
  EXPECT_FALSE(std::filesystem::is_empty(folder.path()));
  {
    Client client = connect({.cache_folder = folder.path()});
    EXPECT_TRUE(client.find("deploy").wait());
  }
}

TEST(Live, MarkersAreSentOnlyToServersThatSupportThem) {
  Client client = connect();
  const Space space(client);
  EXPECT_TRUE(space.put("a", "1"));
  Arena arena;
  Result<Object> unset =
      space.maps()
          .apply(
              *json(
                  arena,
                  R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":{"k8s_io__value":"unset"}}})"),
              {.force = true})
          .wait();
  Result<bool> understood = client.supports_unset(builtin("v1", "ConfigMap")).wait();
  ASSERT_TRUE(understood) << understood.error().message;
  EXPECT_FALSE(*understood && !is_holdfast());
  if (*understood) {
    ASSERT_TRUE(unset) << unset.error().message;
    EXPECT_EQ(unset->root().get("data", "x"), nullptr);
  } else {
    ASSERT_FALSE(unset);
    EXPECT_THAT(unset.error().message, HasSubstr("does not support unset markers"));
    EXPECT_EQ(space.maps().get("a").wait()->root().text_at("data", "x"), "1");
  }
}

}  // namespace
}  // namespace holdfast::client
