#include "aggregate/aggregate.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include "base/api_version.h"
#include "base/ascii.h"
#include "base/base64.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/reservation.h"
#include "base/strings.h"
#include "base/text.h"
#include "base/url.h"
#include "codec/codec.h"
#include "discovery/discovery.h"
#include "forward/forward.h"
#include "own_calls/requests.h"

namespace holdfast::aggregate {
namespace {

constexpr std::chrono::seconds kRecheck{30}, kRecheckUnavailable{1};
constexpr std::chrono::seconds kProbeTimeout{5};

Value with_available(Arena& arena, const Value& service, const Condition& condition, UnixTime now) {
  MapBuilder made(arena);
  made.add("type", Value::string("Available"));
  made.add("status", Value::string(condition.status));
  Value since = Value::string(arena, format_rfc3339(now));
  ListBuilder conditions(arena);
  for (const Value& known : service.items_at("status", "conditions")) {
    if (known.text_at("type") != "Available") {
      conditions.add(known);
    } else if (known.text_at("status") == condition.status) {
      since = Value::string(known.text_at("lastTransitionTime"));
    }
  }
  made.add("lastTransitionTime", since);
  made.add("reason", Value::string(condition.reason));
  made.add("message", Value::string(arena, condition.message));
  conditions.add(made.build());
  return with_path(arena, service, std::array{std::string_view("status"), std::string_view("conditions")},
                   conditions.build());
}

bool is_available(const Value& service) {
  for (const Value& condition : service.items_at("status", "conditions")) {
    if (condition.text_at("type") == "Available") return condition.text_at("status") == "True";
  }
  return false;
}

RemoteApi remote_of(const Value& service) {
  RemoteApi remote;
  remote.name = service.text_at("metadata", "name");
  remote.uid = service.text_at("metadata", "uid");
  remote.group = service.text_at("spec", "group");
  remote.version = service.text_at("spec", "version");
  remote.service.ns = service.text_at("spec", "service", "namespace");
  remote.service.name = service.text_at("spec", "service", "name");
  remote.service.port = static_cast<uint16_t>(service.int_at_or(443, "spec", "service", "port"));
  if (std::optional<std::string> pem = base64_decode(service.text_at("spec", "caBundle"))) remote.ca_pem = *pem;
  const Value* insecure = service.get("spec", "insecureSkipTLSVerify");
  remote.insecure = insecure != nullptr && insecure->is_bool() && insecure->as_bool();
  remote.group_priority = service.int_at_or(0, "spec", "groupPriorityMinimum");
  remote.version_priority = service.int_at_or(0, "spec", "versionPriority");
  remote.available = is_available(service);
  return remote;
}

// The matching objects of a storage, decoded into `arena`.
std::vector<Value> trees(Arena& arena, resource::Storage& storage, const cache::ListRequest& request) {
  std::vector<Value> all;
  Result<cache::Snapshot> snapshot = storage.cache().snapshot();
  if (!snapshot) return all;
  for (const cache::EntryRef& entry : snapshot->list(request).entries) {
    const store::Blob body = entry->body();
    if (Result<Value> tree = storage.codec().tree(arena, arena.copy(*body))) all.push_back(*tree);
  }
  return all;
}

bool has_endpoint(const Value& slice, std::string_view port_name) {
  const std::span<const Value> endpoints = slice.items_at("endpoints"), ports = slice.items_at("ports");
  return std::any_of(endpoints.begin(), endpoints.end(),
                     [](const Value& endpoint) {
                       const Value* ready = endpoint.get("conditions", "ready");
                       return ready == nullptr || !ready->is_bool() || ready->as_bool();
                     }) &&
         std::any_of(ports.begin(), ports.end(),
                     [&](const Value& port) { return port.text_at("name") == port_name && port.has("port"); });
}

// Problems that can be detected without contacting the server; nullopt if there are none.
std::optional<Condition> problem_of(const resource::Registry::Snapshot& registry, const RemoteApi& remote) {
  Arena arena;
  const std::string where = "service/" + remote.service.name + " in " + go_quote(remote.service.ns);
  resource::Storage& services = *registry.storage_of("", "services");
  Result<cache::Snapshot> snapshot = services.cache().snapshot();
  const cache::EntryRef entry =
      snapshot ? snapshot->find(services.short_key(remote.service.ns, remote.service.name)) : cache::EntryRef();
  if (!entry) return Condition{"False", "ServiceNotFound", where + " is not present"};
  const store::Blob body = entry->body();
  Result<Value> service = services.codec().tree(arena, *body);
  if (!service || service->text_at("spec", "type") != "ClusterIP") return std::nullopt;
  const Value* port = nullptr;
  for (const Value& candidate : service->items_at("spec", "ports")) {
    if (port == nullptr && candidate.int_at_or(0, "port") == remote.service.port) port = &candidate;
  }
  if (port == nullptr) {
    return Condition{"False", "ServicePortError",
                     where + " is not listening on port " + std::to_string(remote.service.port)};
  }
  resource::Storage& storage = *registry.storage_of("discovery.k8s.io", "endpointslices");
  cache::ListRequest request;
  request.scope = storage.scope(remote.service.ns);
  request.selector.labels.push_back(
      {"kubernetes.io/service-name", cache::LabelRequirement::Operator::In, {remote.service.name}});
  const std::vector<Value> slices = trees(arena, storage, request);
  if (slices.empty()) return Condition{"False", "EndpointsNotFound", "cannot find endpointslices for " + where};
  const std::string_view name = port->text_at("name");
  const bool any =
      std::any_of(slices.begin(), slices.end(), [&](const Value& slice) { return has_endpoint(slice, name); });
  if (any) return std::nullopt;
  return Condition{"False", "MissingEndpoints",
                   "endpointslices for " + where + " have no addresses with port name " + go_quote(name)};
}

// Encodes a key of the user's extra fields for a header name: lower case, non-token characters percent-encoded.
std::string extra_header(std::string_view key) {
  constexpr std::string_view kPlain = "!#$&'*+-.^_`|~";
  std::string name = "X-Remote-Extra-";
  for (char c : key) {
    c = to_lower(c);
    if (is_alnum(c) || kPlain.find(c) != std::string_view::npos) {
      name += c;
    } else {
      append_percent_encoded(name, c);
    }
  }
  return name;
}

void add_user(forward::Headers& headers, const auth::UserInfo& user) {
  headers.emplace_back("X-Remote-User", user.name);
  if (!user.uid.empty()) headers.emplace_back("X-Remote-Uid", user.uid);
  for (const std::string& group : user.groups) headers.emplace_back("X-Remote-Group", group);
  for (const auto& [key, values] : user.extra) {
    for (const std::string& value : values) headers.emplace_back(extra_header(key), value);
  }
}

// Matches /apis/GROUP/VERSION[/...] and its /openapi/v3 path.
struct GroupVersion {
  std::string_view group, version;
};
std::optional<GroupVersion> group_version_of(std::string_view path) {
  if (path.starts_with("/openapi/v3")) path.remove_prefix(11);
  if (!path.starts_with("/apis/")) return std::nullopt;
  path.remove_prefix(6);
  const size_t slash = path.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  GroupVersion found{path.substr(0, slash), path.substr(slash + 1)};
  found.version = found.version.substr(0, found.version.find('/'));
  if (found.version.empty()) return std::nullopt;
  return found;
}

void send_plain(call::Call& call, int code, std::string text) {
  call.response.set_header("x-content-type-options", "nosniff");
  respond(call, code, net::Body(text + "\n"), "text/plain; charset=utf-8");
}

// Priorities that CustomResourceDefinitions register their groups and versions with.
constexpr int64_t kCustomGroup = 1000, kCustomVersion = 100;
// The aggregator's own group has no APIService; it gets the highest priority an APIService may request.
constexpr std::string_view kOwnGroup = "apiregistration.k8s.io";
constexpr int64_t kHighestPriority = 20000;

}  // namespace

int64_t RemoteApis::group_priority(std::string_view group) const {
  if (group == kOwnGroup) return kHighestPriority;
  const auto found = priorities.find(group);
  return found == priorities.end() ? kCustomGroup : found->second.group;
}

int64_t RemoteApis::version_priority(std::string_view group, std::string_view version) const {
  const auto found = priorities.find(group);
  if (found == priorities.end()) return kCustomVersion;
  const auto own = found->second.versions.find(version);
  return own == found->second.versions.end() ? kCustomVersion : own->second;
}

// --- Watching APIServices --------------------------------------------------------------------------------------------

void Aggregation::start() {
  tasks_.post([this] { return follow(); });
}

RemoteApisRef Aggregation::remotes() const {
  if (!any_.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(mutex_);
  return remotes_;
}

void Aggregation::rebuild() {
  Arena arena;
  auto next = std::make_shared<RemoteApis>();
  const RemoteApisRef before = remotes();
  for (const Value& service :
       trees(arena, *parts_.registry.snapshot()->storage_of("apiregistration.k8s.io", "apiservices"), {})) {
    const Value* target = service.get("spec", "service");
    RemoteApi remote = remote_of(service);
    RemoteApis::Priorities& priorities = next->priorities[remote.group];
    priorities.group = std::max(priorities.group, remote.group_priority);
    priorities.versions[remote.version] = remote.version_priority;
    if (target == nullptr || !target->is_map()) continue;
    for (const RemoteApi& known : before == nullptr ? RemoteApis{} : *before) {
      if (known.uid != remote.uid) continue;
      remote.fresh = known.fresh;
      remote.discovery = known.discovery;
      remote.resources = known.resources;
      remote.openapi_v2 = known.openapi_v2;
      remote.openapi_v3 = known.openapi_v3;
      remote.v2_etag = known.v2_etag;
    }
    next->push_back(std::move(remote));
  }
  std::sort(next->begin(), next->end(), [](const RemoteApi& a, const RemoteApi& b) {
    if (a.group_priority != b.group_priority) return a.group_priority > b.group_priority;
    if (a.group != b.group) return a.group < b.group;
    if (a.version_priority != b.version_priority) return a.version_priority > b.version_priority;
    return a.version < b.version;
  });
  const std::lock_guard lock(mutex_);
  any_.store(!next->empty(), std::memory_order_release);
  remotes_ = std::move(next);
  openapi_version_.fetch_add(1, std::memory_order_acq_rel);
}

Task<void> Aggregation::follow() {
  return follower_.run(parts_.registry.snapshot()->storage_of("apiregistration.k8s.io", "apiservices")->cache(),
                       {// Changes may have been missed before the watch started.
                        .begin = [this] { remote_changed_ = true; },
                        .see = [this](std::span<const cache::Delivery> events) { see(events); }});
}

void Aggregation::see(std::span<const cache::Delivery> events) {
  resource::Storage& storage = *parts_.registry.snapshot()->storage_of("apiregistration.k8s.io", "apiservices");
  const auto is_remote = [&storage](const cache::Entry& entry) {
    Arena arena;
    const store::Blob body = entry.body();
    Result<Value> tree = storage.codec().tree(arena, *body);
    const Value* target = tree ? tree->get("spec", "service") : nullptr;
    return target != nullptr && target->is_map();
  };
  // Local APIServices, of which there may be thousands, do not matter here.
  const RemoteApisRef before = remotes();
  for (const cache::Delivery& event : events) {
    const std::string_view name = event.object()->name();
    if (event.type == cache::EventType::Deleted || event.object()->label(custom::kAutomanaged) == "true") {
      parts_.services.look_at(name);
    }
    remote_changed_ = remote_changed_ || is_remote(*event.object()) ||
                      (before != nullptr && std::any_of(before->begin(), before->end(),
                                                        [&](const RemoteApi& one) { return one.name == name; }));
  }
  if (!remote_changed_ || follower_.pending()) return;
  remote_changed_ = false;
  rebuild();
  changed_ = true;
  tick();  // Checks now, unless a check is already running.
}

void Aggregation::tick() {
  if (!any_.load(std::memory_order_acquire) || checking_ || tasks_.closing()) return;
  const auto now = std::chrono::steady_clock::now();
  if (!changed_ && now < next_check_) return;
  changed_ = false;
  checking_ = true;
  tasks_.run(check(loop_));
}

Task<void> Aggregation::check(net::EventLoop& loop) {
  const struct Done {
    bool& checking;
    ~Done() { checking = false; }
  } done{checking_};
  co_await check_all(loop);
}

Task<void> Aggregation::close(Executor& executor) {
  co_await tasks_.close(executor, [this] { follower_.cancel(); });
}

webhook::Trust Aggregation::trust_of(const RemoteApi& remote) const {
  return {.server_name = remote.service.name + "." + remote.service.ns + ".svc",
          .ca_pem = remote.ca_pem,
          .insecure = remote.insecure,
          .identity = parts_.identity ? &*parts_.identity : nullptr};
}

Task<Condition> Aggregation::availability(net::EventLoop& loop, const RemoteApi& remote,
                                          const Result<webhook::Address>& address, std::string& resources) {
  if (std::optional<Condition> problem = problem_of(*parts_.registry.snapshot(), remote)) {
    co_return std::move(*problem);
  }
  const auto failed = [](std::string why) { return Condition{"False", "FailedDiscoveryCheck", std::move(why)}; };
  if (!address) co_return failed(address.error().message);
  const std::string path = api_path(remote.group, remote.version);
  const std::string url = "https://" + host_port(address->host, address->port) + path;
  const std::string what = "failing or missing response from " + url + ": ";
  // No Accept header: the server picks the encoding, as some support only one.
  net::CallResult<net::ClientResponse> answer = co_await ask(loop, remote, *address, path, {}, {});
  if (!answer) co_return failed(what + "Get " + go_quote(url) + ": " + answer.error().message);
  if (answer->status < 200 || answer->status >= 300) {
    co_return failed(what + "bad status from " + url + ": " + std::to_string(answer->status));
  }
  resources = std::move(answer->body);
  co_return Condition{"True", "Passed", "all checks passed"};
}

Task<void> Aggregation::check_all(net::EventLoop& loop) {
  const RemoteApisRef all = remotes();
  bool unavailable = false;
  for (const RemoteApi& remote : *all) {
    if (tasks_.closing()) co_return;
    Result<webhook::Address> address =
        parts_.addresses.resolve(remote.service.ns, remote.service.name, remote.service.port);
    std::string resources;
    const Condition condition = co_await availability(loop, remote, address, resources);
    co_await write_condition(loop, remote.name, condition.status, condition.reason, condition.message);
    // Discovery is requested even if the server is unavailable: it may support only aggregated discovery.
    const bool fresh = address && co_await read_discovery(loop, remote, *address, std::move(resources));
    if (condition.status == "True") co_await read_openapi(loop, remote, *address);
    if (!fresh && remote.fresh) {
      change(remote.uid, [](RemoteApi& known) { known.fresh = false; });
    }
    unavailable = unavailable || !fresh;
  }
  next_check_ = std::chrono::steady_clock::now() + (unavailable ? kRecheckUnavailable : kRecheck);
}

Task<bool> Aggregation::read_discovery(net::EventLoop& loop, RemoteApi remote, webhook::Address address,
                                       std::string plain) {
  constexpr std::string_view kForm = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
  const std::string accept = "application/json" + std::string(kForm);
  net::CallResult<net::ClientResponse> answer = co_await ask(loop, remote, address, "/apis", {}, accept);
  if (!answer || answer->status == 503) co_return false;
  std::shared_ptr<const std::string> discovery, resources;
  if (answer->status == 200 && answer->header("content-type").find("as=APIGroupDiscoveryList") != std::string::npos) {
    discovery = std::make_shared<const std::string>(std::move(answer->body));
  } else {
    // No aggregated discovery: use the resource list of this version.
    Arena arena;
    if (!codec::decode_json(arena, plain)) co_return false;
    resources = std::make_shared<const std::string>(std::move(plain));
  }
  change(remote.uid, [&](RemoteApi& known) {
    known.fresh = true;
    known.discovery = discovery;
    known.resources = resources;
  });
  co_return true;
}

void Aggregation::change(std::string_view uid, const std::function<void(RemoteApi&)>& edit) {
  const std::lock_guard lock(mutex_);
  auto next = std::make_shared<RemoteApis>(*remotes_);
  for (RemoteApi& known : *next) {
    if (known.uid == uid) edit(known);
  }
  remotes_ = std::move(next);
}

Task<net::CallResult<net::ClientResponse>> Aggregation::ask(net::EventLoop& loop, const RemoteApi& remote,
                                                            const webhook::Address& address, std::string path,
                                                            std::string etag, std::string accept) {
  net::ClientRequest probe;
  probe.target = std::move(path);
  probe.timeout = kProbeTimeout;
  probe.headers = {{"Host", host_port(address.host, address.port)}};
  if (!accept.empty()) probe.headers.emplace_back("Accept", std::move(accept));
  if (!etag.empty()) probe.headers.emplace_back("If-None-Match", std::move(etag));
  static const auth::UserInfo kProber{
      .name = "system:kube-aggregator", .uid = {}, .groups = {std::string(auth::kMastersGroup)}, .extra = {}};
  add_user(probe.headers, kProber);
  co_return co_await parts_.caller.client(loop, address, trust_of(remote))
      ->fetch(std::move(probe), limits::kAggregatedDocumentBytes);
}

Task<void> Aggregation::read_openapi(net::EventLoop& loop, RemoteApi remote, webhook::Address address) {
  net::CallResult<net::ClientResponse> v3 = co_await ask(loop, remote, address, "/openapi/v3");
  net::CallResult<net::ClientResponse> v2 = co_await ask(loop, remote, address, "/openapi/v2", remote.v2_etag);
  std::shared_ptr<const std::string> index = remote.openapi_v3, document = remote.openapi_v2;
  if (v3 && v3->status == 200) index = std::make_shared<const std::string>(std::move(v3->body));
  if (v3 && v3->status == 404) index = nullptr;  // v3 is not supported. Other errors keep the last index.
  std::string etag = remote.v2_etag;
  if (v2 && v2->status != 304) {
    document = v2->status == 200 ? std::make_shared<const std::string>(std::move(v2->body)) : nullptr;
    etag.clear();
    for (const auto& [name, value] : v2->headers) {
      if (name == "etag") etag = value;
    }
  }
  const auto same = [](const std::shared_ptr<const std::string>& a, const std::shared_ptr<const std::string>& b) {
    return a == b || (a != nullptr && b != nullptr && *a == *b);
  };
  if (same(index, remote.openapi_v3) && same(document, remote.openapi_v2) && etag == remote.v2_etag) co_return;
  change(remote.uid, [&](RemoteApi& known) {
    known.openapi_v3 = index;
    known.openapi_v2 = document;
    known.v2_etag = etag;
  });
  openapi_version_.fetch_add(1, std::memory_order_acq_rel);
}

Task<void> Aggregation::write_condition(net::EventLoop& loop, std::string name, std::string_view status,
                                        std::string_view reason, std::string message) {
  static const types::Resource& services = *types::find_resource("apiregistration.k8s.io", "v1", "apiservices");
  const own_calls::OwnCalls calls(parts_.own, loop);
  const own_calls::Target target = own_calls::object(services, "", name);
  const Result<own_calls::Answer> found = co_await own_calls::send(calls, own_calls::Request::get(target));
  if (!found || !found->succeeded()) co_return;
  Arena arena;
  const Result<Value> service = found->object(arena);
  if (!service) co_return;
  const Value next = with_available(arena, *service, {status, reason, std::move(message)}, parts_.clock.now());
  if (equal(next, *service)) co_return;
  (void)co_await own_calls::send(calls, own_calls::Request::update(target.sub("status"), next, "kube-apiserver"));
}

// --- Proxying --------------------------------------------------------------------------------------------------------

Task<bool> Aggregation::proxied(call::Call& call) {
  const RemoteApisRef all = remotes();
  if (all == nullptr) co_return false;
  const std::optional<GroupVersion> wanted = group_version_of(call.request.path);
  if (!wanted) co_return false;
  for (const RemoteApi& remote : *all) {
    if (remote.group != wanted->group || remote.version != wanted->version) continue;
    if (remote.has_only_v2() && call.request.path.starts_with("/openapi/")) co_return false;
    co_await proxy(call, remote);
    co_return true;
  }
  co_return false;
}

Task<void> Aggregation::proxy(call::Call& call, RemoteApi remote) {
  if (!remote.available) co_return send_plain(call, 503, "service unavailable");
  Result<webhook::Address> address =
      parts_.addresses.resolve(remote.service.ns, remote.service.name, remote.service.port);
  if (!address) co_return send_plain(call, 503, "service unavailable");
  Reservation memory(proxied_bodies());
  Result<std::string> body = co_await forward::read_body(call.request, memory);
  if (!body) co_return respond_error(call, body.error());

  net::ClientRequest forwarded;
  forwarded.method = call.request.method;
  forwarded.target = call.request.target;
  forwarded.body = std::move(*body);
  forwarded.upgrade = forward::upgrade_of(call.request);
  for (auto& [name, value] : forward::headers_to_forward(call.request)) {
    if (name.starts_with("x-forwarded-") || name == "audit-id") continue;
    forwarded.headers.emplace_back(name, std::move(value));
  }
  const std::string_view peer = call.request.peer->address;
  forwarded.headers.emplace_back("Host", host_port(address->host, address->port));
  forwarded.headers.emplace_back("Audit-Id", call.response.header("audit-id"));
  forwarded.headers.emplace_back("X-Forwarded-For", peer.substr(0, peer.rfind(':')));
  forwarded.headers.emplace_back("X-Forwarded-Host", call.request.authority);
  forwarded.headers.emplace_back("X-Forwarded-Proto", "https");
  forwarded.headers.emplace_back("X-Forwarded-Uri", call.request.path);
  add_user(forwarded.headers, *call.user);

  const std::shared_ptr<net::Client> client = parts_.caller.client(call.request.loop(), *address, trust_of(remote));
  // Until the response head arrives, cancel when the client disconnects and at the deadline: waiting holds a seat.
  forwarded.cancellation = std::make_shared<net::Cancellation>();
  call.response.on_interrupt([cancellation = forwarded.cancellation](net::Interrupt why) {
    if (why == net::Interrupt::PeerGone) cancellation->cancel();
  });
  net::CallResult<net::ClientStream> opened = co_await client->open(std::move(forwarded));
  if (!opened) co_return send_plain(call, 503, "error trying to reach service: " + opened.error().message);
  net::ClientStream stream = std::move(*opened);
  forward::copy_head(stream.head(), call.response);
  const bool tunnel = stream.head().status == 101;
  if (tunnel) call.response.set_header("upgrade", stream.head().header("upgrade"));
  if (!call.response.start(stream.head().status)) co_return;
  call.response.on_interrupt([&stream](net::Interrupt) { stream.cancel(); });
  if (tunnel) {
    co_await forward::run_tunnel(call.request, call.response, stream);
  } else {
    co_await forward::send_rest(call.response, stream);
  }
}

// --- Discovery -------------------------------------------------------------------------------------------------------

namespace {

Value version_value(Arena& arena, const RemoteApi& remote) {
  MapBuilder version(arena);
  version.add("groupVersion", Value::string(arena, remote.group + "/" + remote.version));
  version.add("version", Value::string(arena, remote.version));
  return version.build();
}

// Sorts the versions of a group by priority; `name_of` returns the name of one.
template <class Name>
Value by_priority(Arena& arena, std::vector<Value> versions, std::string_view group, const RemoteApis& remotes,
                  Name name_of) {
  std::stable_sort(versions.begin(), versions.end(), [&](const Value& a, const Value& b) {
    const int64_t of_a = remotes.version_priority(group, name_of(a)),
                  of_b = remotes.version_priority(group, name_of(b));
    return of_a != of_b ? of_a > of_b : discovery::version_precedes(name_of(a), name_of(b));
  });
  ListBuilder list(arena);
  for (const Value& version : versions) list.add(version);
  return list.build();
}

std::string_view version_name(const Value& version) { return version.text_at("version"); }

// The versions of a group not served by another server: an APIService takes precedence over a CustomResourceDefinition.
std::vector<Value> own_versions(const Value& group, std::string_view name, const RemoteApis& remotes) {
  const std::span<const Value> known = group.items_at("versions");
  std::vector<Value> versions(known.begin(), known.end());
  std::erase_if(versions, [&](const Value& version) {
    return std::any_of(remotes.begin(), remotes.end(), [&](const RemoteApi& remote) {
      return remote.group == name && remote.version == version_name(version);
    });
  });
  return versions;
}

// An APIGroup with the versions of other servers merged in.
Value group_with(Arena& arena, const Value& group, std::string_view name, const RemoteApis& remotes, bool typed) {
  std::vector<Value> versions = own_versions(group, name, remotes);
  for (const RemoteApi& remote : remotes) {
    if (remote.group == name) versions.push_back(version_value(arena, remote));
  }
  if (versions.empty()) return Value::null();
  const Value all = by_priority(arena, std::move(versions), name, remotes, version_name);
  MapBuilder made(arena);
  if (typed) {
    made.add("kind", Value::string("APIGroup"));
    made.add("apiVersion", Value::string("v1"));
  }
  made.add("name", Value::string(arena, name));
  made.add("versions", all);
  made.add("preferredVersion", all.items()[0]);
  return made.build();
}

// `items` plus the groups that only other servers have, sorted by group priority.
template <class Name, class Make>
Value merged(Arena& arena, std::span<const Value> items, const RemoteApis& remotes, Name name_of, Make make) {
  std::vector<std::pair<std::string_view, Value>> groups;
  std::set<std::string_view> known;
  for (const Value& item : items) {
    known.insert(name_of(item));
    groups.emplace_back(name_of(item), make(item, name_of(item)));
  }
  for (const RemoteApi& remote : remotes) {
    if (!known.insert(remote.group).second) continue;
    if (const Value made = make(Value::empty_map(), remote.group); !made.is_null())
      groups.emplace_back(remote.group, made);
  }
  std::stable_sort(groups.begin(), groups.end(), [&](const auto& a, const auto& b) {
    const int64_t of_a = remotes.group_priority(a.first), of_b = remotes.group_priority(b.first);
    return of_a != of_b ? of_a > of_b : a.first < b.first;
  });
  ListBuilder list(arena);
  for (const auto& [name, group] : groups) list.add(group);
  return list.build();
}

bool has_group(const RemoteApis& remotes, std::string_view group) {
  return std::any_of(remotes.begin(), remotes.end(), [&](const RemoteApi& remote) { return remote.group == group; });
}

Value texts_or(const Value& from, std::string_view key) {
  const Value* found = from.find(key);
  return found == nullptr ? Value::null() : *found;
}

Value response_kind(Arena& arena, const RemoteApi& remote, const Value& resource) {
  const std::string_view group = resource.text_at("group"), version = resource.text_at("version");
  MapBuilder kind(arena);
  kind.add("group", Value::string(arena, version.empty() ? remote.group : group));
  kind.add("version", Value::string(arena, version.empty() ? std::string_view(remote.version) : version));
  kind.add("kind", Value::string(resource.text_at("kind")));
  return kind.build();
}

// Every resource gets a responseKind, if only an empty one.
Value with_kinds(Arena& arena, const Value& resources) {
  ListBuilder list(arena);
  for (const Value& resource : resources.items()) {
    if (!resource.is_map()) continue;
    Value shown = resource;
    if (!resource.has("responseKind")) {
      MapBuilder kind(arena);
      for (const std::string_view key : {"group", "version", "kind"}) kind.add(key, Value::string(""));
      shown = with_member(arena, shown, "responseKind", kind.build());
    }
    if (const Value* below = resource.find("subresources"); below != nullptr && below->is_list()) {
      shown = with_member(arena, shown, "subresources", with_kinds(arena, *below));
    }
    list.add(shown);
  }
  return list.build();
}

// The resources of this version according to the server's aggregated discovery.
Value aggregated_resources(Arena& arena, const RemoteApi& remote) {
  Result<Value> document = codec::decode_json(arena, arena.copy(*remote.discovery));
  if (!document) return Value::null();
  for (const Value& group : document->items_at("items")) {
    if (group.text_at("metadata", "name") != remote.group) continue;
    for (const Value& version : group.items_at("versions")) {
      const Value* resources = version.find("resources");
      if (version.text_at("version") == remote.version && resources != nullptr && resources->is_list()) {
        return with_kinds(arena, *resources);
      }
    }
  }
  return Value::null();
}

// Converts an APIResourceList to the aggregated discovery form: subresources nested in their resource.
Value discovered_resources(Arena& arena, const RemoteApi& remote) {
  if (remote.discovery != nullptr) return aggregated_resources(arena, remote);
  if (remote.resources == nullptr) return Value::null();
  Result<Value> list = codec::decode_json(arena, arena.copy(*remote.resources));
  if (!list) return Value::null();
  ListBuilder all(arena);
  std::unordered_map<std::string_view, std::vector<const Value*>, KeyHash> subresources_of;
  for (const Value& resource : list->items_at("resources")) {
    const std::string_view name = resource.text_at("name");
    if (const size_t slash = name.find('/'); slash != std::string_view::npos) {
      subresources_of[name.substr(0, slash)].push_back(&resource);
    }
  }
  for (const Value& resource : list->items_at("resources")) {
    const std::string_view name = resource.text_at("name");
    if (name.find('/') != std::string_view::npos) continue;
    MapBuilder made(arena);
    made.add("resource", Value::string(name));
    made.add("responseKind", response_kind(arena, remote, resource));
    const Value* namespaced = resource.find("namespaced");
    const bool in_namespace = namespaced != nullptr && namespaced->is_bool() && namespaced->as_bool();
    made.add("scope", Value::string(in_namespace ? "Namespaced" : "Cluster"));
    made.add("singularResource", Value::string(resource.text_at("singularName")));
    made.add("verbs", texts_or(resource, "verbs"));
    for (const std::string_view key : {"shortNames", "categories"}) {
      if (!resource.items_at(key).empty()) made.add(key, *resource.find(key));
    }
    ListBuilder subresources(arena);
    if (const auto found = subresources_of.find(name); found != subresources_of.end()) {
      // Only the first resource of a name gets them: the list comes from another server and may contain duplicates.
      for (const Value* other : std::exchange(found->second, {})) {
        MapBuilder sub(arena);
        sub.add("subresource", Value::string(other->text_at("name").substr(name.size() + 1)));
        sub.add("responseKind", response_kind(arena, remote, *other));
        sub.add("verbs", texts_or(*other, "verbs"));
        subresources.add(sub.build());
      }
    }
    if (subresources.count() > 0) made.add("subresources", subresources.build());
    all.add(made.build());
  }
  return all.build();
}

}  // namespace

Value with_remote_groups(Arena& arena, const Value& group_list, const RemoteApis& remotes) {
  const auto name_of = [](const Value& group) { return group.text_at("name"); };
  const auto make = [&](const Value& group, std::string_view name) {
    return has_group(remotes, name) ? group_with(arena, group, name, remotes, false) : group;
  };
  return with_member(arena, group_list, "groups", merged(arena, group_list.items_at("groups"), remotes, name_of, make));
}

Value with_remote_versions(Arena& arena, const Value& group_document, std::string_view name,
                           const RemoteApis& remotes) {
  if (!has_group(remotes, name)) return group_document;
  return group_with(arena, group_document, name, remotes, true);
}

Value with_remote_discovery(Arena& arena, const Value& aggregated, const RemoteApis& remotes) {
  const auto name_of = [](const Value& group) { return group.text_at("metadata", "name"); };
  const auto make = [&](const Value& group, std::string_view name) {
    if (!has_group(remotes, name)) return group;
    std::vector<Value> versions = own_versions(group, name, remotes);
    for (const RemoteApi& remote : remotes) {
      if (remote.group != name) continue;
      MapBuilder version(arena);
      version.add("version", Value::string(arena, remote.version));
      if (const Value resources = discovered_resources(arena, remote); resources.is_list()) {
        version.add("resources", resources);
      }
      version.add("freshness", Value::string(remote.fresh ? "Current" : "Stale"));
      versions.push_back(version.build());
    }
    MapBuilder made(arena);
    MapBuilder metadata(arena);
    metadata.add("name", Value::string(arena, name));
    made.add("metadata", group.has("metadata") ? *group.find("metadata") : metadata.build());
    made.add("versions", by_priority(arena, std::move(versions), name, remotes, version_name));
    return made.build();
  };
  return with_member(arena, aggregated, "items", merged(arena, aggregated.items_at("items"), remotes, name_of, make));
}

}  // namespace holdfast::aggregate
