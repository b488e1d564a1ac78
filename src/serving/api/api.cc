#include "api/api.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <unordered_map>

#include "aggregate/aggregate.h"
#include "api/ownership_report.h"
#include "base/fair_pool.h"
#include "base/limits.h"
#include "base/strings.h"
#include "base/task_group.h"
#include "custom/custom.h"
#include "kinds/kinds.h"
#include "ownership/pool.h"
#include "resource/builtin_codec.h"
#include "services/services.h"

namespace holdfast::api {
namespace {

// How often caches check the clock: bookmarks are due within seconds, waits for a revision within tenths of a second.
constexpr std::chrono::milliseconds kTickInterval{100};

// Requests with bodies of this size may take long enough that they must not take all background threads.
constexpr size_t kLargeBytes = 512 << 10;

constexpr double kEventBounds[] = {1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072};

constexpr std::string_view kWebhookGroup = "admissionregistration.k8s.io";

// Feature gate metrics, named as in kube-apiserver.
void add_feature_metrics(MetricRegistry& metrics, const Gates& gates) {
  Family<Gauge>& enabled = metrics.gauges("kubernetes_feature_enabled",
                                          "This metric records the data about the stage and enablement of a k8s "
                                          "feature.",
                                          {"name", "stage"});
  for (const GateInfo& gate : all_gates()) {
    const std::string stage = gate.stage == "GA" ? "" : to_upper(gate.stage);
    enabled.with({gate.name, stage}).set(gates.on(gate.gate) ? 1 : 0);
  }
}

// Whether the groups and versions are available, as kube-aggregator tells it: those of this server always are.
void add_availability_metric(MetricRegistry& metrics, const resource::Registry& served_now,
                             const aggregate::Aggregation& aggregation) {
  metrics.computed_by("aggregator_unavailable_apiservice", "Whether an APIService is unavailable, by name.", "gauge",
                      {"name"}, [&served_now, &aggregation] {
                        std::map<std::string, double> unavailable;
                        for (const types::Resource* resource : served_now.snapshot()->resources()) {
                          unavailable[std::string(resource->version) + "." + std::string(resource->group)] = 0;
                        }
                        if (const aggregate::RemoteApisRef remotes = aggregation.remotes()) {
                          for (const aggregate::RemoteApi& remote : *remotes)
                            unavailable[remote.name] = remote.available ? 0 : 1;
                        }
                        std::vector<MetricRegistry::Labelled> all;
                        all.reserve(unavailable.size());
                        for (const auto& [name, value] : unavailable) all.push_back({{name}, value});
                        return all;
                      });
}

// Memory held by the caches and the pool, by component.
void add_memory_metrics(MetricRegistry& metrics, const resource::Registry& served_now) {
  const auto over_caches = [&served_now](auto part) {
    return [&served_now, part] {
      uint64_t sum = 0;
      const resource::Registry::SnapshotRef registry = served_now.snapshot();
      std::set<const resource::Storage*> seen;  // Versions share their storage.
      for (const resource::Served& served : registry->all()) {
        if (served.storage != nullptr && seen.insert(served.storage).second) sum += part(served.storage->cache());
      }
      return static_cast<double>(sum);
    };
  };
  const auto usage = [&](const char* name, const char* help, uint64_t cache::Usage::* part) {
    metrics.computed(name, help, "gauge", over_caches([part](cache::Cache& cache) { return cache.usage().*part; }));
  };
  usage("holdfast_cache_objects", "Objects in the watch caches.", &cache::Usage::entries);
  usage("holdfast_unreadable_objects", "Stored objects that cannot be decoded.", &cache::Usage::unreadable);
  usage("holdfast_cache_entry_bytes", "Keys, uids and indexed fields of all objects kept, history included.",
        &cache::Usage::entry_bytes);
  usage("holdfast_cache_label_bytes", "Distinct label sets.", &cache::Usage::label_bytes);
  usage("holdfast_cache_index_bytes", "Trees, snapshots included.", &cache::Usage::index_bytes);
  usage("holdfast_cache_body_raw_bytes", "Plain size of all bodies.", &cache::Usage::body_raw_bytes);
  usage("holdfast_cache_body_plain_bytes", "Bodies kept plain.", &cache::Usage::body_plain_bytes);
  usage("holdfast_cache_body_packed_bytes", "Bodies kept compressed.", &cache::Usage::body_packed_bytes);
  usage("holdfast_cache_dictionary_bytes", "Dictionaries of compressed bodies.", &cache::Usage::dictionary_bytes);
  usage("holdfast_cache_event_bytes", "The windows of recent events.", &cache::Usage::event_bytes);
  usage("holdfast_cache_rendered_bytes", "Serializations kept with events.", &cache::Usage::rendered_bytes);
  usage("holdfast_cache_watchers", "Open watches.", &cache::Usage::watchers);
  // Kubernetes' names; -1 would stand for resources whose objects cannot be counted.
  const auto objects = [&served_now](auto labels) {
    return [&served_now, labels] {
      std::vector<MetricRegistry::Labelled> counts;
      const resource::Registry::SnapshotRef registry = served_now.snapshot();
      std::set<const resource::Storage*> seen;
      for (const resource::Served& served : registry->all()) {
        if (served.storage == nullptr || !seen.insert(served.storage).second) continue;
        counts.push_back({labels(*served.resource), static_cast<double>(served.storage->cache().usage().entries)});
      }
      return counts;
    };
  };
  metrics.computed_by("apiserver_resource_objects", "Stored objects by group and resource.", "gauge",
                      {"group", "resource"}, objects([](const types::Resource& resource) {
                        return std::vector<std::string>{std::string(resource.group), std::string(resource.plural)};
                      }));
  metrics.computed_by("apiserver_storage_objects", "Stored objects by resource.", "gauge", {"resource"},
                      objects([](const types::Resource& resource) {
                        return std::vector{to_string(GroupResource{resource.group, resource.plural})};
                      }));
  metrics.computed("holdfast_cache_store_reads_total", "Reads that the caches could not serve.", "counter",
                   over_caches([](cache::Cache& cache) { return cache.counters().store_fallbacks; }));
  metrics.computed("holdfast_caches", "Watch caches in memory, including those of deleted kinds that are still in use.",
                   "gauge", [] { return static_cast<double>(cache::cache_count()); });
}

// The built-in resources: one storage per prefix in the store, and the versions served from it.
struct Builtin {
  std::unordered_map<std::string, std::unique_ptr<resource::Storage>> storages;  // Constant after construction.
  std::vector<resource::Served> served;
};

std::unique_ptr<resource::Storage> make_storage(const Dependencies& deps, const Options& options,
                                                const types::Resource& resource, const types::Resource& stored,
                                                const std::string& prefix) {
  cache::Options cache_options;
  cache_options.prefix = prefix;
  cache_options.namespaced = resource.namespaced;
  cache_options.resource = to_string(GroupResource{resource.group, resource.plural});
  const std::vector<std::string_view>& families = options.settings.service_ip_families;
  auto codec =
      resource::make_builtin_codec(stored, options.settings.gates, families.empty() ? "IPv4" : families.front());
  std::shared_ptr<const cache::Codec> at_rest;
  if (options.settings.embedded_store && !stored.stored_as_json) {
    at_rest = cache::embedded_codec(codec, {.fields_v2 = options.settings.gates.on(Gate::FieldsV2AtRest)});
  }
  const auto other = deps.other_stores.find(to_string(GroupResource{stored.group, stored.plural}));
  store::Store& store = other == deps.other_stores.end() ? *deps.store : *other->second;
  return std::make_unique<resource::Storage>(store, std::move(codec), std::move(at_rest), *deps.pool,
                                             cache::Executors{&deps.loops->at(0), deps.background},
                                             std::move(cache_options), *deps.clock);
}

// Versions that share a storage belong to one kind, so their field managers are linked.
void add_managers(std::vector<resource::Served>& served, const Gates& gates) {
  for (resource::Served& entry : served) {
    std::vector<resource::KindVersion> versions;
    for (const resource::Served& other : served) {
      const bool same = entry.storage == nullptr ? &other == &entry : other.storage == entry.storage;
      if (same) versions.push_back({other.resource, nullptr});
    }
    entry.managers =
        std::make_shared<resource::Managers>(*entry.resource, std::move(versions), entry.object_rules, gates, false);
  }
}

Builtin make_builtin(const Dependencies& deps, const Options& options) {
  Builtin builtin;
  for (const types::Resource& resource : types::builtin_resources()) {
    if (!discovery::exists(resource, options.settings.gates)) continue;
    const bool enabled = options.runtime_config.serves(resource);
    if (!enabled && !discovery::is_stable(resource.version)) continue;
    resource::Served entry;
    entry.enabled = enabled;
    entry.resource = &resource;
    entry.rules = &kinds::rules_of(resource);
    entry.stored = &resource::stored_version(resource);
    entry.object_rules = resource::builtin_rules(resource, *entry.stored);
    if (!resource.storage_prefix.empty()) {
      const std::string prefix = options.settings.registry_prefix + "/" + std::string(resource.storage_prefix) + "/";
      std::unique_ptr<resource::Storage>& storage = builtin.storages[prefix];
      if (!storage) storage = make_storage(deps, options, resource, *entry.stored, prefix);
      entry.storage = storage.get();
    }
    builtin.served.push_back(std::move(entry));
  }
  add_managers(builtin.served, options.settings.gates);
  return builtin;
}

}  // namespace

// The modules of the API, in dependency order.
struct Api::State {
  State(Api& api, const Dependencies& dependencies, Options chosen);

  resource::Storage& storage_of(std::string_view group, std::string_view plural) const {
    return *registry.snapshot()->storage_of(group, plural);
  }
  // Periodically lets the caches check the clock, on the first loop.
  void tick();

  const Dependencies deps;
  const Options options;
  const own_calls::Handler own;
  ArenaBudget request_memory{limits::kRequestBytes, limits::kAllRequestsBytes};
  const call::CallDependencies surroundings;
  FairPool* const fair = dynamic_cast<FairPool*>(deps.background);  // Null if the executor is of another kind.
  Builtin builtin;
  resource::Registry registry;
  access::Authorizers authorizers;
  OwnershipReport ownership;
  services::ServicePools pools;
  services::ServiceAddresses addresses;
  webhook::Caller caller;
  custom::CustomServices custom_services;
  custom::CustomResources custom;
  aggregate::Aggregation aggregation;
  const nodes::Nodes connections;
  write::Writer writer;
  verbs::OpenApiDocuments openapi;
  const verbs::Parts verbs;

  Timer ticker{deps.loops->at(0)};  // Owned by the first loop.
  std::atomic<bool> closing{false};
};

Api::State::State(Api& api, const Dependencies& dependencies, Options chosen)
    : deps(dependencies),
      options(std::move(chosen)),
      own([&api](net::Request& request, net::Response& response, auth::UserRef user) {
        return api.handle_own(request, response, std::move(user));
      }),
      surroundings{
          options.settings,
          *deps.clock,
          deps.metrics->counters("holdfast_managed_fields_opt_out_total",
                                 "Responses sent without managedFields, because the client asked for it.",
                                 {"verb", "format", "kind", "group", "resource", "client"}),
          deps.metrics->counters(
              "holdfast_managed_fields_opt_out_bytes_total",
              "Bytes of field sets that were not sent, because the client asked for it. As FieldsV1, "
              "before compression.",
              {"group", "resource", "client"}),
          deps.metrics->counters("apiserver_watch_events_total", "Events sent to watchers.",
                                 {"group", "version", "resource"}),
          deps.metrics->histograms("apiserver_watch_events_sizes", "Size in bytes of the events sent to watchers.",
                                   kEventBounds, {"group", "version", "resource"}),
          deps.metrics->counters("holdfast_unset_applies_total",
                                 "Successful apply requests with unset markers, without dry runs.",
                                 {"group", "version", "resource", "subresource"}),
          request_memory,
          deps.background},
      builtin(make_builtin(deps, options)),
      registry(builtin.served),
      authorizers(options.authorization, registry, deps.loops->at(0), *deps.background, *deps.metrics),
      ownership(*deps.metrics, registry, *deps.pool),
      pools({.cidrs = options.service_cluster_ip_ranges,
             .first_port = options.node_port_first,
             .last_port = options.node_port_last,
             .port_ledger = options.settings.embedded_store
                                ? std::string()
                                : options.settings.registry_prefix + "/ranges/servicenodeports"},
            registry, *deps.clock),
      addresses(registry, options.settings.server_address, options.aggregator_routing),
      caller(*deps.loops, addresses),
      custom_services(registry, own, deps.loops->at(0)),
      custom({.settings = options.settings,
              .clock = *deps.clock,
              .store = *deps.store,
              .pool = *deps.pool,
              .executors = {&deps.loops->at(0), deps.background},
              .loop = deps.loops->at(0),
              .registry = registry,
              .caller = caller,
              .services = custom_services,
              .own = own}),
      aggregation({.clock = *deps.clock,
                   .registry = registry,
                   .addresses = addresses,
                   .caller = caller,
                   .services = custom_services,
                   .loop = deps.loops->at(0),
                   .own = own,
                   .identity = options.proxy_identity}),
      connections(options.kubelets),
      writer({.pools = pools,
              .authorizer = authorizers,
              .rbac = authorizers.rbac(),
              .mutating_webhooks = storage_of(kWebhookGroup, "mutatingwebhookconfigurations"),
              .validating_webhooks = storage_of(kWebhookGroup, "validatingwebhookconfigurations"),
              .caller = caller,
              .webhook_credentials = options.webhook_credentials,
              .registry = registry,
              .plugins = options.admission_plugins,
              .own = own,
              .metrics = *deps.metrics}),
      verbs{.writer = writer,
            .definitions = custom,
            .aggregation = aggregation,
            .connections = connections,
            .registry = registry,
            .openapi = openapi,
            .authorizers = authorizers,
            .token_issuer = deps.token_issuer,
            .review_token = deps.review_token,
            .own = own} {}

void Api::State::tick() {
  if (closing.load(std::memory_order_acquire)) return;
  for (auto& [prefix, storage] : builtin.storages) storage->cache().tick();
  authorizers.tick();
  custom.tick();
  aggregation.tick();
  ticker.start(kTickInterval, [this] { tick(); });
}

namespace {

FairPool::Size size_of(const net::Request& request) {
  if (request.method == "GET" || request.method == "DELETE") return FairPool::Size::Small;
  // Without a length, the body may be of any size.
  const std::optional<uint64_t> bytes = parse_number<uint64_t>(request.headers.get("content-length"));
  return bytes.value_or(kLargeBytes) < kLargeBytes ? FairPool::Size::Small : FairPool::Size::Large;
}

}  // namespace

Api::Api(const Dependencies& dependencies, Options options)
    : state_(std::make_unique<State>(*this, dependencies, std::move(options))) {
  add_memory_metrics(*state_->deps.metrics, state_->registry);
  add_feature_metrics(*state_->deps.metrics, state_->options.settings.gates);
  add_availability_metric(*state_->deps.metrics, state_->registry, state_->aggregation);
}

Api::~Api() = default;

bool Api::charges_quota(std::string_view ns) const { return state_->writer.charges_quota(ns); }

void Api::start() {
  for (auto& [prefix, storage] : state_->builtin.storages) storage->cache().start();
  state_->deps.loops->at(0).post([this] { state_->tick(); });
  state_->authorizers.start();
  state_->custom.start();
  state_->aggregation.start();
}

bool Api::ready() const {
  for (const auto& [prefix, storage] : state_->builtin.storages) {
    if (!storage->cache().ready()) return false;
  }
  return state_->authorizers.ready() && state_->custom.ready();
}

Task<void> Api::close(Executor& executor) {
  state_->closing.store(true, std::memory_order_release);
  // The ticker sees the flag on its own loop before it next touches the caches.
  co_await resume_on(state_->deps.loops->at(0));
  state_->ticker.cancel();
  co_await state_->aggregation.close(executor);
  co_await state_->custom_services.close(executor);
  co_await state_->custom.close(executor);
  co_await state_->authorizers.close(executor);
  for (auto& [prefix, storage] : state_->builtin.storages) co_await storage->cache().close(executor);
}

Task<Result<Unit>> Api::repair_services(net::EventLoop& loop) { return state_->pools.repair(loop); }

const resource::Registry& Api::registry() const { return state_->registry; }
Task<void> Api::permissions_in_effect(Executor& executor) {
  if (const access::RbacAuthorizer* rbac = state_->authorizers.rbac()) co_await rbac->catch_up(executor);
}

const auth::Authorizer& Api::authorizer() const { return state_->authorizers; }

cache::Cache* Api::cache_of(std::string_view group, std::string_view plural) {
  resource::Storage* storage = state_->registry.snapshot()->storage_of(group, plural);
  return storage == nullptr ? nullptr : &storage->cache();
}

std::vector<std::string> Api::group_paths() const {
  std::set<std::string> paths;
  for (const types::Resource* resource : state_->registry.snapshot()->resources()) {
    if (resource->group.empty()) {
      paths.insert("/api/" + std::string(resource->version));
      continue;
    }
    const std::string group = "/apis/" + std::string(resource->group);
    paths.insert(group);
    paths.insert(group + "/" + std::string(resource->version));
  }
  if (const aggregate::RemoteApisRef remotes = state_->aggregation.remotes()) {
    for (const aggregate::RemoteApi& remote : *remotes) {
      paths.insert("/apis/" + remote.group);
      paths.insert("/apis/" + remote.group + "/" + remote.version);
    }
  }
  return {paths.begin(), paths.end()};
}

bool Api::serves(const request::Target& target) const {
  const resource::Registry::SnapshotRef served = state_->registry.snapshot();
  const resource::Served* found = served->find(target.group, target.version, target.resource);
  return found != nullptr && (target.subresource.empty() || found->subresource(target.subresource) != nullptr);
}

const ArenaBudget& Api::request_memory() const { return state_->request_memory; }

std::optional<ObjectIdentity> Api::identity_of(std::string_view group, std::string_view plural, std::string_view ns,
                                               std::string_view name) const {
  const resource::Registry::SnapshotRef served = state_->registry.snapshot();
  const resource::Served* resource = served->find(group, "v1", plural);
  if (resource == nullptr || resource->storage == nullptr) return std::nullopt;
  Result<cache::Snapshot> snapshot = resource->storage->cache().snapshot();
  if (!snapshot) return std::nullopt;
  const cache::EntryRef entry = snapshot->find(resource->storage->short_key(ns, name));
  if (!entry) return std::nullopt;
  ObjectIdentity identity{std::string(entry->uid()), std::nullopt};
  Arena arena;
  const store::Blob body = entry->body();
  Result<Value> tree = resource->storage->codec().tree(arena, *body);
  if (!tree) return std::nullopt;
  if (const std::string_view at = tree->text_at("metadata", "deletionTimestamp"); !at.empty()) {
    if (const std::optional<UnixTime> time = parse_rfc3339(at)) identity.deleted = time->seconds;
  }
  return identity;
}

void Api::refresh_metrics() { state_->ownership.refresh_metrics(); }
Result<std::string> Api::ownership_page(const request::Query& query) { return state_->ownership.page(query); }
const Options& Api::options() const { return state_->options; }

own_calls::OwnCalls Api::own_calls(net::EventLoop& loop) { return {state_->own, loop}; }

Task<void> Api::handle_own(net::Request& request, net::Response& response, auth::UserRef user) {
  const request::RequestInfo info(request.method, request.path, request.query);
  co_await handle(info, request, response, std::move(user));
}

Task<void> Api::handle(const request::RequestInfo& info, net::Request& request, net::Response& response,
                       auth::UserRef user, call::Recording* recording) {
  // The request's own place in the background: it must not wait for all the work of other users.
  call::CallDependencies around = state_->surroundings;
  std::optional<FairPool::Lane> lane;
  if (state_->fair != nullptr) around.background = &lane.emplace(*state_->fair, user->name, size_of(request));
  call::Call call(around, info, state_->registry.snapshot(), request, response, std::move(user), recording);
  std::exception_ptr failure;
  try {
    co_await verbs::serve(call, state_->verbs);
  } catch (...) {
    failure = std::current_exception();
  }
  if (call.left_loop()) co_await finish(call);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace holdfast::api
