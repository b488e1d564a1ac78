#include "server/bootstrap_objects.h"

#include <algorithm>

#include "base/api_error.h"
#include "base/log.h"
#include "base/task_group.h"
#include "cache/cache.h"
#include "codec/codec.h"
#include "own_calls/requests.h"
#include "server/reconcile.h"

namespace holdfast::server {

using own_calls::Answer;
using own_calls::Request;
using own_calls::Target;

namespace {

// The requests of one bootstrap step.
struct Writes {
  Request create;
  std::optional<Request> status = {};
  bool made = false;
};

// The object, and the collection it is created in.
Target target_of(const bootstrap::Step& step) {
  return own_calls::object(*step.resource, step.object.text_at("metadata", "namespace"),
                           step.object.text_at("metadata", "name"));
}
Target collection_of(const bootstrap::Step& step) {
  return own_calls::collection(*step.resource, step.object.text_at("metadata", "namespace"));
}

Writes writes_of(const bootstrap::Step& step) {
  Writes writes{.create = Request::create(collection_of(step), step.object, step.manager)};
  if (!step.status.is_null()) {
    writes.status = Request::apply(target_of(step).sub("status"), step.status, step.status_manager);
  }
  return writes;
}

class Maker {
 public:
  // `alone` means that no other server creates the same objects.
  Maker(api::Api& api, store::Store& store, net::Loops& loops, bool alone)
      : api_(api), store_(store), loops_(loops), alone_(alone) {}

  // Creates the objects, then writes the status of those that have one.
  Task<void> make(std::vector<Writes> all) {
    std::vector<Call> creates, statuses;
    for (Writes& writes : all) creates.push_back({&writes, &writes.create});
    co_await call_all(std::move(creates));
    for (Writes& writes : all) {
      if (writes.made && writes.status) statuses.push_back({&writes, &*writes.status});
    }
    co_await call_all(std::move(statuses));
  }

 private:
  struct Call {
    Writes* writes;
    Request* request;
  };

  // Sends all requests concurrently, and tells the store how many to expect, so that it commits them together.
  Task<void> call_all(std::vector<Call> calls) {
    if (calls.empty()) co_return;
    store_.expect_writes(calls.size());
    std::vector<Task<void>> tasks;
    tasks.reserve(calls.size());
    for (size_t i = 0; i < calls.size(); ++i) tasks.push_back(call_one(loops_.at(i % loops_.count()), calls[i]));
    co_await when_all(loops_.at(0), std::move(tasks));
  }

  Task<void> call_one(net::EventLoop& loop, Call call) {
    Writes& writes = *call.writes;
    const std::string what = call.request->text();
    const Result<Answer> answer = co_await own_calls::send(api_.own_calls(loop), std::move(*call.request));
    writes.made = answer && answer->succeeded();
    // 409: created by someone else.
    if (writes.made || (answer && answer->status == 409)) co_return;
    // Another server has allocated the IP of the Service and is about to store it, or already has. If it fails, one of
    // the next runs succeeds.
    if (!alone_ && answer && answer->status == 422) co_return;
    log::warning("cannot create a bootstrap object", {{"request", what}, {"answer", text_of(answer)}});
  }

  api::Api& api_;
  store::Store& store_;
  net::Loops& loops_;
  const bool alone_;
};

// The stored object of this name, with its resourceVersion.
struct Stored {
  bool known = true;  // False if it is currently unknown whether the object exists.
  std::optional<Value> object;
};

Stored stored_object(api::Api& api, Arena& arena, const types::Resource& resource, std::string_view ns,
                     std::string_view name) {
  cache::Cache* objects = api.cache_of(resource.group, resource.plural);
  Result<cache::Snapshot> snapshot = objects == nullptr ? internal_error("not served") : objects->snapshot();
  if (!snapshot) return {.known = false, .object = {}};
  const std::string key = resource.namespaced ? std::string(ns) + "/" + std::string(name) : std::string(name);
  // An object that cannot be decoded exists nevertheless.
  if (snapshot->find_unreadable(key) != nullptr) return {.object = Value::empty_map()};
  const cache::EntryRef entry = snapshot->find(key);
  if (!entry) return {};
  const store::Blob body = entry->body();
  Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(arena.copy(*body));
  Result<Value> object = envelope ? codec::decode_protobuf(arena, *resource.type, envelope->message, envelope->type)
                                  : Result<Value>(envelope.error());
  if (!object) return {.object = Value::empty_map()};
  Draft draft(arena, *object);
  draft.root().child("metadata").set("resourceVersion", Value::string(arena, std::to_string(entry->revision().value)));
  return {.object = draft.value()};
}

constexpr std::string_view kRbacGroup = "rbac.authorization.k8s.io";
constexpr std::string_view kFlowGroup = "flowcontrol.apiserver.k8s.io";
constexpr std::string_view kAuthentication = "extension-apiserver-authentication";
// How long another server may take between allocating an IP and storing its Service.
constexpr int64_t kAddressSeconds = 60;

Request replacement(const bootstrap::Step& step, const Value& object) {
  return Request::update(target_of(step), object, step.manager);
}

// Deletes this object only, not one that has replaced it.
Request removal(const Target& target, const Value& live) {
  return Request::remove(target, {.uid = live.text_at("metadata", "uid")});
}

// The repairs of an incomplete role or binding. A binding with a different roleRef is deleted first.
std::vector<Request> role_repairs(Arena& arena, const bootstrap::Step& step, const Value& live) {
  const std::optional<Value> repaired = reconcile(arena, live, step.object);
  if (!repaired) return {};
  const Value *before = live.find("roleRef"), *after = repaired->find("roleRef");
  const bool replaces = after != nullptr && (before == nullptr || !equal(*before, *after));
  if (!replaces) return {replacement(step, *repaired)};
  Draft draft(arena, *repaired);
  for (const std::string_view key : {"uid", "resourceVersion"}) draft.root().child("metadata").remove(key);
  return {removal(target_of(step), live), Request::create(collection_of(step), draft.value(), step.manager)};
}

std::vector<Request> service_cidr_repairs(Arena& arena, const bootstrap::Step& step, const Value& live, bool starting) {
  ServiceCidrRepair repair = reconcile_service_cidr(arena, live, step.object);
  if (repair.differs && starting) {
    log::warning("the default ServiceCIDR has other ranges than --service-cluster-ip-range, and keeps them",
                 {{"ranges", codec::encode_json(*live.get("spec", "cidrs"))}});
  }
  if (repair.object) return {replacement(step, *repair.object)};
  if (repair.not_ready) return {Request::apply(target_of(step).sub("status"), step.status, step.status_manager)};
  return {};
}

std::vector<Request> repairs_of(Arena& arena, const bootstrap::Step& step, const Value& live, bool starting) {
  if (!live.has("metadata")) return {};
  if (step.resource->plural == "servicecidrs") return service_cidr_repairs(arena, step, live, starting);
  if (step.resource->group == kRbacGroup) return role_repairs(arena, step, live);
  std::optional<Value> repaired;
  if (step.resource->group == kFlowGroup) repaired = reconcile_flow(arena, live, step.object);
  if (step.resource->plural == "configmaps" && step.object.text_at("metadata", "name") == kAuthentication) {
    repaired = reconcile_authentication(arena, live, step.object);
  }
  if (!repaired) return {};
  return {replacement(step, *repaired)};
}

// The permissions of system:public-info-viewer used to be part of system:discovery: if that binding exists and the new
// one does not, the new one gets its subjects, plus the default ones unless the old one has automatic updates disabled
// (primeSplitClusterRoleBindings).
bool was_split(const bootstrap::Step& step) {
  return step.resource->plural == "clusterrolebindings" &&
         step.object.text_at("metadata", "name") == "system:public-info-viewer";
}

}  // namespace

// Whether a Service holds this address.
bool holds(const std::optional<Value>& service, std::string_view ip) {
  if (!service) return false;
  const std::span<const Value> ips = service->items_at("spec", "clusterIPs");
  return std::any_of(ips.begin(), ips.end(), [&](const Value& each) { return each.as_string() == ip; });
}

// The planned requests. Namespaces are created first, because other objects may be in them. IPAddresses are created
// last: a Service creates its own IPAddress and cannot use one that is taken; Services of older servers have none.
struct BootstrapObjects::Plan {
  std::vector<Writes> namespaces, others, addresses;
  std::vector<Request> left_over, repairs;
  std::optional<Value> own_address;  // The IPAddress of our Service, if it exists.
  Target own_address_target;
};

BootstrapObjects::BootstrapObjects(api::Api& api, store::Store& store, net::Loops& loops, bootstrap::Options options,
                                   bool alone, const Clock& clock)
    : api_(api),
      store_(store),
      loops_(loops),
      options_(std::move(options)),
      alone_(alone),
      clock_(clock),
      tasks_(loops.at(0), "bootstrap objects") {}

Task<void> BootstrapObjects::make() {
  if (!loops_.at(0).in_thread()) co_await resume_on(loops_.at(0));
  co_await bring_up_to_date(When::Starting);
}

void BootstrapObjects::start() {
  tasks_.post([this] { return keep_running(); });
}

Task<void> BootstrapObjects::keep_running() {
  // The intervals of kube-apiserver's controllers: 10 s for kubernetesservice and defaultservicecidr, a minute for
  // systemnamespaces and flowcontrol.
  constexpr std::chrono::seconds kOften{10};
  constexpr int kTimesInAMinute = 6;
  for (int times = 1; !tasks_.closing(); ++times) {
    co_await tasks_.sleep(kOften);
    if (tasks_.closing()) co_return;
    try {
      co_await bring_up_to_date(times % kTimesInAMinute == 0 ? When::EveryMinute : When::Often);
    } catch (...) {
      report_failed_task("bootstrap objects", std::current_exception());
    }
  }
}

bool BootstrapObjects::is_due(When when, const types::Resource& resource) const {
  if (when == When::Starting) return true;
  if (when == When::EveryMinute && (resource.group == kFlowGroup || resource.plural == "namespaces")) return true;
  for (const std::string_view plural :
       {"services", "endpoints", "endpointslices", "ipaddresses", "servicecidrs", "configmaps"}) {
    if (resource.plural == plural) return true;
  }
  return false;
}

void BootstrapObjects::plan_step(Arena& arena, When when, bootstrap::Step& step, Plan& plan) const {
  const Stored stored = stored_object(api_, arena, *step.resource, step.object.text_at("metadata", "namespace"),
                                      step.object.text_at("metadata", "name"));
  // At startup every cache is ready; later it may have lost the store.
  if (!stored.known && when != When::Starting) return;
  const bool is_address = step.resource->plural == "ipaddresses";
  if (const std::optional<Value>& live = stored.object) {
    const bool own = is_address && live->text_at("spec", "parentRef", "namespace") == "default" &&
                     live->text_at("spec", "parentRef", "name") == "kubernetes";
    if (own) {
      plan.own_address = live;
      plan.own_address_target = target_of(step);
    }
    for (Request& repair : repairs_of(arena, step, *live, when == When::Starting))
      plan.repairs.push_back(std::move(repair));
    return;
  }
  if (was_split(step)) {
    const Stored source = stored_object(api_, arena, *step.resource, "", "system:discovery");
    if (source.object) {
      const Value split = split_binding(arena, step.object, *source.object);
      step.object = reconcile(arena, split, step.object).value_or(split);
    }
  }
  if (step.resource->plural == "services" && plan.own_address) {
    // Left by a start that was interrupted, and now blocking the Service; or another server has just created it and is
    // about to store the Service.
    const std::optional<UnixTime> created = parse_rfc3339(plan.own_address->text_at("metadata", "creationTimestamp"));
    if (!alone_ && created && clock_.now().seconds - created->seconds <= kAddressSeconds) return;
    plan.left_over.push_back(removal(plan.own_address_target, *plan.own_address));
  }
  if (is_address) {
    // The Service may have kept an address of another range.
    static const types::Resource& services = *types::find_resource("", "v1", "services");
    const std::string_view ip = step.object.text_at("metadata", "name");
    const std::optional<Value> service = stored_object(api_, arena, services, "default", "kubernetes").object;
    if (service && !holds(service, ip)) return;
  }
  const bool is_namespace = step.resource->group.empty() && step.resource->plural == "namespaces";
  (is_namespace ? plan.namespaces : is_address ? plan.addresses : plan.others).push_back(writes_of(step));
}

// Removes objects of older servers.
void BootstrapObjects::plan_removals(Arena& arena, When when, std::span<const bootstrap::Step> steps,
                                     Plan& plan) const {
  if (when == When::Often) return;
  for (const std::string_view plural : {"flowschemas", "prioritylevelconfigurations"}) {
    const types::Resource& resource = *types::find_resource(kFlowGroup, "v1", plural);
    const Result<cache::Snapshot> snapshot = api_.cache_of(kFlowGroup, plural)->snapshot();
    if (!snapshot) continue;
    for (const cache::EntryRef& entry : snapshot->list({}).entries) {
      const bool wanted = std::any_of(steps.begin(), steps.end(), [&](const bootstrap::Step& step) {
        return step.resource == &resource && step.object.text_at("metadata", "name") == entry->name();
      });
      if (wanted) continue;
      const std::optional<Value> live = stored_object(api_, arena, resource, "", entry->name()).object;
      if (!live || !is_kept_flow(*live)) continue;
      plan.repairs.push_back(removal(own_calls::object(resource, "", entry->name()), *live));
    }
  }
  if (when != When::Starting) return;
  static const types::Resource& services = *types::find_resource("apiregistration.k8s.io", "v1", "apiservices");
  for (const std::string& name : bootstrap::unserved_api_services(options_)) {
    const std::optional<Value> live = stored_object(api_, arena, services, "", name).object;
    if (!live || live->text_at("metadata", "labels", bootstrap::kAutomanaged) != "onstart") continue;
    plan.repairs.push_back(removal(own_calls::object(services, "", name), *live));
  }
}

BootstrapObjects::Plan BootstrapObjects::plan(When when) const {
  Plan plan;
  Arena arena;
  std::vector<bootstrap::Step> steps = bootstrap::steps(arena, options_, clock_.now());
  for (bootstrap::Step& step : steps) {
    if (is_due(when, *step.resource)) plan_step(arena, when, step, plan);
  }
  plan_removals(arena, when, steps, plan);
  plan.own_address.reset();  // It points into the arena.
  return plan;
}

Task<void> BootstrapObjects::bring_up_to_date(When when) {
  Plan plan = this->plan(when);
  Maker maker(api_, store_, loops_, alone_);
  co_await maker.make(std::move(plan.namespaces));
  for (Request& removal : plan.left_over) {
    (void)co_await own_calls::send(api_.own_calls(loops_.at(0)), std::move(removal));
  }
  co_await maker.make(std::move(plan.others));
  co_await maker.make(std::move(plan.addresses));
  for (Request& repair : plan.repairs) {
    const std::string what = repair.text();
    const Result<Answer> answer = co_await own_calls::send(api_.own_calls(loops_.at(0)), std::move(repair));
    if (answer && answer->succeeded()) continue;
    log::warning("cannot repair a bootstrap object", {{"request", what}, {"answer", text_of(answer)}});
  }
}

}  // namespace holdfast::server
