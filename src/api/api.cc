#include "api/api.h"

#include <algorithm>
#include <set>

#include "admission/admission.h"
#include "api/call.h"
#include "api/recording.h"
#include "api/ownership_report.h"
#include "api/state.h"
#include "api/subresources.h"
#include "base/api_error.h"
#include "base/text.h"
#include "kinds/kinds.h"
#include "ownership/pool.h"
#include "render/status.h"
#include "resource/managers.h"

namespace holdfast::api {
namespace {

using std::chrono_literals::operator""ms;

// How often caches look at the clock: bookmarks are a matter of seconds, waiting for revisions of tenths.
constexpr auto kTickInterval = 100ms;

constexpr std::string_view kWebhookGroup = "admissionregistration.k8s.io";

void tick(Api::State& state) {
  if (state.closing.load(std::memory_order_acquire)) return;
  for (auto& [prefix, storage] : state.storages) storage->cache().tick();
  state.custom->tick();
  state.aggregation->tick();
  state.ticker.start(kTickInterval, [&state] { tick(state); });
}

// --- Routing. A path that no route has is 404, a method that its routes lack 405. ---

enum class Route : uint8_t { Found, NoPath, NoMethod };

Route route_subresource(Call& call) {
  call.subresource = call.served->subresource(call.info.subresource);
  if (call.subresource == nullptr) return Route::NoPath;
  if (call.request.method == "HEAD" && call.info.subresource != "proxy") return Route::NoMethod;
  std::string_view verb = to_string(call.info.verb);
  for (const std::string_view allowed : call.subresource->verbs) {
    if (allowed == verb) return Route::Found;
  }
  return Route::NoMethod;
}

Route route(Call& call) {
  const request::Target& info = call.info;
  const types::Resource& resource = *call.served->resource;
  // namespaces/{x} names itself; everything else says its scope in the path.
  const bool is_namespace = resource.group.empty() && resource.plural == "namespaces";
  const bool in_namespace = !info.ns.empty() && !is_namespace;
  if (info.verb == request::Verb::Proxy) return Route::NoPath;
  if (!resource.namespaced && in_namespace) return Route::NoPath;
  if (resource.namespaced && !in_namespace && !info.name.empty()) return Route::NoPath;
  if (info.has_rest && info.subresource != "proxy") return Route::NoPath;
  if (!info.subresource.empty()) {
    if (info.legacy_watch) return Route::NoPath;
    return route_subresource(call);
  }
  if (call.request.method == "HEAD") return Route::NoMethod;
  const bool all_namespaces = resource.namespaced && !in_namespace;
  switch (info.verb) {
    case request::Verb::Get:
    case request::Verb::List:
    case request::Verb::Watch:
    case request::Verb::Update:
    case request::Verb::Patch:
    case request::Verb::Delete:
      break;
    case request::Verb::Create:
      if (!info.name.empty() || all_namespaces) return Route::NoMethod;
      break;
    case request::Verb::DeleteCollection:
      if (all_namespaces) return Route::NoMethod;
      break;
    case request::Verb::Proxy:
    case request::Verb::Other:
      return Route::NoMethod;
  }
  if (info.legacy_watch && call.request.method != "GET") return Route::NoMethod;
  if ((info.verb == request::Verb::Update || info.verb == request::Verb::Patch) && info.name.empty())
    return Route::NoMethod;
  return call.served->has_verb(to_string(info.verb)) ? Route::Found : Route::NoMethod;
}

// Names that no object can have, because they would be another path: "..", "a%b".
bool has_impossible_name(Call& call) {
  const request::Verb verb = call.info.verb;
  if (call.info.name.empty() || call.served->storage == nullptr ||
      (verb != request::Verb::Get && verb != request::Verb::Patch && verb != request::Verb::Delete)) {
    return false;
  }
  const std::vector<std::string> problems = kinds::path_segment_errors(call.info.name);
  if (problems.empty()) return false;
  std::string message = "Name parameter invalid: " + go_quote(call.info.name) + ": ";
  for (size_t i = 0; i < problems.size(); ++i) message += (i == 0 ? "" : ";") + problems[i];
  respond_error(call, bad_request(std::move(message)));
  return true;
}

Task<void> dispatch(Call& call) {
  if (has_impossible_name(call)) co_return;
  if (is_connect(call)) {
    co_await serve_connect(call);
    co_return;
  }
  switch (call.info.verb) {
    case request::Verb::Get:
      co_await serve_get(call);
      break;
    case request::Verb::List:
      co_await serve_list(call);
      break;
    case request::Verb::Watch:
      co_await serve_watch(call);
      break;
    case request::Verb::Create:
      co_await serve_create(call);
      break;
    case request::Verb::Update:
      co_await serve_update(call);
      break;
    case request::Verb::Patch:
      co_await serve_patch(call);
      break;
    case request::Verb::Delete:
      co_await serve_delete(call);
      break;
    case request::Verb::DeleteCollection:
      co_await serve_delete_collection(call);
      break;
    case request::Verb::Proxy:
    case request::Verb::Other:
      respond_error(call, render::route_method_not_allowed());
      break;
  }
}

void respond_unknown_path(Call& call) {
  // Groups that nobody knows, and what is unknown in a custom one, fall through every router.
  if (!resource::Registry::Snapshot::is_builtin_group(call.info.group)) {
    return respond(call, 404, net::Body(std::string("404 page not found\n")), "text/plain; charset=utf-8");
  }
  respond_error(call, render::route_not_found());
}

// As kube-apiserver names its gates.
void add_feature_metrics(MetricRegistry& metrics, const Gates& gates) {
  Family<Gauge>& enabled = metrics.gauges("kubernetes_feature_enabled",
                                          "This metric records the data about the stage and enablement of a k8s "
                                          "feature.",
                                          {"name", "stage"});
  for (const GateInfo& gate : all_gates()) {
    std::string stage = gate.stage == "GA" ? "" : std::string(gate.stage);
    for (char& c : stage) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    enabled.with({gate.name, stage}).set(gates.on(gate.gate) ? 1 : 0);
  }
}

// What the caches and the pool hold, by part.
void add_memory_metrics(Api::State& state) {
  MetricRegistry& metrics = *state.deps.metrics;
  const auto over_caches = [&state](auto part) {
    return [&state, part] {
      uint64_t sum = 0;
      const resource::Registry::SnapshotRef registry = state.registry.snapshot();
      std::set<const resource::Storage*> seen;  // Versions share theirs.
      for (const resource::Served& served : registry->all()) {
        if (served.storage != nullptr && seen.insert(served.storage).second) sum += part(served.storage->cache());
      }
      return static_cast<double>(sum);
    };
  };
  const auto usage = [&](const char* name, const char* help, uint64_t cache::Usage::* part) {
    metrics.computed(name, help, "gauge", over_caches([part](cache::Cache& cache) { return cache.usage().*part; }));
  };
  metrics.computed("holdfast_caches", "Watch caches in memory, including those of deleted kinds that are still in use.",
                   "gauge", [] { return static_cast<double>(cache::cache_count()); });
  usage("holdfast_cache_objects", "Objects in the watch caches.", &cache::Usage::entries);
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
  metrics.computed("holdfast_cache_store_reads_total", "Reads that the caches could not serve.", "counter",
                   over_caches([](cache::Cache& cache) { return cache.counters().store_fallbacks; }));
}

}  // namespace

Api::State::State(const Dependencies& dependencies, Options chosen)
    : deps(dependencies),
      options(std::move(chosen)),
      ticker(deps.loops->at(0)),
      opt_outs(deps.metrics->counters("holdfast_managed_fields_opt_out_total",
                                      "Requests that asked for objects without managedFields.",
                                      {"verb", "format", "kind"})),
      unset_applies(deps.metrics->counters("holdfast_unset_applies_total", "Apply requests with unset markers.",
                                           {"group", "version", "resource", "subresource"})),
      ownership_bytes(deps.metrics->gauges("holdfast_ownership_bytes", "What managedFields take in memory, by resource.",
                                           {"resource"})),
      ownership_raw_bytes(deps.metrics->gauges("holdfast_ownership_raw_bytes",
                                               "What their field sets would take as FieldsV1, by resource.",
                                               {"resource"})) {
  std::vector<resource::Served> served;
  for (const types::Resource& resource : types::builtin_resources()) {
    resource::Served entry;
    entry.resource = &resource;
    entry.rules = &kinds::rules_of(resource);
    entry.stored = &resource::stored_version(resource);
    entry.object_rules = resource::builtin_rules(resource, *entry.stored);
    if (!resource.storage_prefix.empty()) {
      const std::string prefix = options.registry_prefix + "/" + std::string(resource.storage_prefix) + "/";
      std::unique_ptr<resource::Storage>& storage = storages[prefix];
      if (!storage) {
        cache::Options cache_options;
        cache_options.prefix = prefix;
        cache_options.namespaced = resource.namespaced;
        cache_options.resource = to_string(GroupResource{resource.group, resource.plural});
        auto codec = resource::make_builtin_codec(*entry.stored, options.gates);
        std::shared_ptr<const cache::Codec> at_rest;
        if (options.embedded_store && !entry.stored->stored_as_json) {
          at_rest = cache::embedded_codec(codec, {.fields_v2 = options.gates.on(Gate::FieldsV2AtRest)});
        }
        storage = std::make_unique<resource::Storage>(*deps.store, std::move(codec), std::move(at_rest), *deps.pool,
                                                      cache::Executors{&deps.loops->at(0), deps.background},
                                                      std::move(cache_options), *deps.clock);
      }
      entry.storage = storage.get();
    }
    served.push_back(std::move(entry));
  }
  for (resource::Served& entry : served) {
    std::vector<resource::KindVersion> versions;
    for (const resource::Served& other : served) {
      const bool same = entry.storage == nullptr ? &other == &entry : other.storage == entry.storage;
      if (same) versions.push_back({other.resource, nullptr});
    }
    entry.managers = std::make_shared<resource::Managers>(*entry.resource, std::move(versions), entry.object_rules,
                                                          options.gates, false);
  }
  openapi = std::make_unique<OpenApiDocuments>();
  for (const resource::Served& entry : served) {
    if (entry.storage == nullptr) continue;
    builtin_storages.emplace(std::string(entry.resource->plural) + "." + std::string(entry.resource->group),
                             entry.storage);
  }
  registry.set_builtin(std::move(served));
  services =
      std::make_unique<ServicePools>(options.service_cluster_ip_range, options.node_port_first, options.node_port_last);
  services->bind(storage_of("", "services"), storage_of("networking.k8s.io", "ipaddresses"));
  const std::vector<std::string>& disabled = options.admission_plugins.disabled;
  plugins = std::make_unique<const admission::Chain>(options.admission_plugins);
  quota_ledger = std::make_unique<QuotaLedger>();
  quotas_on = std::find(disabled.begin(), disabled.end(), admission::quota::kName) == disabled.end();
  addresses = std::make_unique<ServiceAddresses>(*this);
  caller = std::make_unique<webhook::Caller>(*deps.loops, *addresses);
  webhooks = std::make_unique<AdmissionWebhooks>(*storage_of(kWebhookGroup, "mutatingwebhookconfigurations"),
                                                 *storage_of(kWebhookGroup, "validatingwebhookconfigurations"), *caller,
                                                 disabled);
}

resource::Storage* Api::State::storage_of(std::string_view group, std::string_view plural) {
  const std::string name = std::string(plural) + "." + std::string(group);
  if (const auto found = builtin_storages.find(name); found != builtin_storages.end()) return found->second;
  return registry.snapshot()->storage_of(name);
}

Api::Api(const Dependencies& dependencies, Options options)
    : state_(std::make_unique<State>(dependencies, std::move(options))) {
  add_memory_metrics(*state_);
  add_feature_metrics(*state_->deps.metrics, state_->options.gates);
  state_->custom_services = std::make_unique<CustomServices>(*this, state_->deps.loops->at(0));
  state_->custom = std::make_unique<CustomResources>(*this, state_->deps.loops->at(0));
  state_->self = this;
  state_->aggregation = std::make_unique<Aggregation>(*this, state_->deps.loops->at(0), state_->options.proxy_identity);
}

Api::~Api() = default;

bool Api::charges_quota(std::string_view ns) const { return state_->quota_ledger->is_held(ns); }

void Api::start() {
  for (auto& [prefix, storage] : state_->storages) storage->cache().start();
  state_->deps.loops->at(0).post([this] { tick(*state_); });
  state_->custom->start();
  state_->aggregation->start();
}

bool Api::ready() const {
  for (const auto& [prefix, storage] : state_->storages) {
    if (!storage->cache().ready()) return false;
  }
  return state_->custom->ready();
}

Task<void> Api::close(Executor& executor) {
  state_->closing.store(true, std::memory_order_release);
  // The ticker sees the flag on its own loop before its next look at the caches.
  co_await resume_on(state_->deps.loops->at(0));
  state_->ticker.cancel();
  co_await state_->aggregation->close(executor);
  co_await state_->custom_services->close(executor);
  co_await state_->custom->close(executor);
  for (auto& [prefix, storage] : state_->storages) co_await storage->cache().close(executor);
}

own_calls::OwnCalls Api::own_calls(net::EventLoop& loop) {
  return {[this](net::Request& request, net::Response& response, auth::UserRef user) {
            return handle_own(request, response, std::move(user));
          },
          loop};
}

resource::Registry& Api::registry() { return state_->registry; }

cache::Cache* Api::cache_of(std::string_view group, std::string_view plural) {
  resource::Storage* storage = state_->storage_of(group, plural);
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

void Api::refresh_metrics() { refresh_ownership_metrics(*state_); }
Result<std::string> Api::ownership_page(const request::Query& query) { return api::ownership_page(*state_, query); }
const Options& Api::options() const { return state_->options; }

Task<void> Api::handle_own(net::Request& request, net::Response& response, auth::UserRef user) {
  const request::RequestInfo info(request.method, request.path, request.query);
  co_await handle(info, request, response, std::move(user));
}

Task<void> Api::handle(const request::RequestInfo& info, net::Request& request, net::Response& response,
                       auth::UserRef user, Recording* recording) {
  Call call(*state_, state_->request_memory, info, request, response, std::move(user));
  call.recording = recording;
  call.registry = state_->registry.snapshot();
  if (state_->aggregation->any() && co_await state_->aggregation->proxied(call)) co_return;
  if (!call.info.is_resource) {
    co_await serve_discovery(call);
    co_return;
  }
  call.served = call.registry->find(call.info.group, call.info.version, call.info.resource);
  if (call.served == nullptr) co_return respond_unknown_path(call);
  switch (route(call)) {
    case Route::Found:
      break;
    case Route::NoPath:
      co_return respond_unknown_path(call);
    case Route::NoMethod:
      co_return respond_error(call, render::route_method_not_allowed());
  }
  if (!call.served->custom) {
    if (call.info.verb == request::Verb::Patch) {
      Result<request::PatchType> type = request::patch_type(request.headers.get("content-type"), false);
      if (!type) co_return respond_error(call, type.error());
    }
    const bool list_route = call.info.verb == request::Verb::List || call.info.verb == request::Verb::Watch;
    Result<Unit> acceptable = request::check_accept_route(request.headers.get("accept"), list_route);
    if (!acceptable) co_return respond_error(call, acceptable.error());
  }
  if (const std::string_view warning = call.served->object_rules->deprecation_warning(); !warning.empty()) {
    call.warnings.add(warning);
    record_annotation(call, "k8s.io/deprecated", "true");
  }
  co_await dispatch(call);
}

}  // namespace holdfast::api
