#include "server/own_endpoints.h"

#include <algorithm>
#include <array>

#include "base/log.h"
#include "codec/codec.h"
#include "own_calls/requests.h"
#include "types/types.h"

namespace holdfast::server {

using own_calls::Answer;
using own_calls::Request;
using own_calls::Target;

namespace {

constexpr std::string_view kName = "kubernetes", kNamespace = "default";
constexpr std::string_view kManager = "kube-apiserver";
constexpr std::string_view kSkipMirror = "endpointslice.kubernetes.io/skip-mirror";
// controlplane.DefaultEndpointReconcilerInterval and ...TTL.
constexpr std::chrono::seconds kBetween{10}, kLeaseTime{15};
constexpr int kAttempts = 5;  // For conflicts with other servers.

const types::Resource& endpoints_resource() {
  static const types::Resource& resource = *types::find_resource("", "v1", "endpoints");
  return resource;
}
const types::Resource& slices_resource() {
  static const types::Resource& resource = *types::find_resource("discovery.k8s.io", "v1", "endpointslices");
  return resource;
}
// Creates the object, or replaces the one that exists.
Request written(const types::Resource& resource, bool exists, const Value& object) {
  return exists ? Request::update(own_calls::object(resource, kNamespace, kName), object, kManager)
                : Request::create(own_calls::collection(resource, kNamespace), object, kManager);
}

const types::Type& lease_type() {
  static const types::Type& type = *types::find_type("core/v1.Endpoints");
  return type;
}

// The addresses of the single expected subset; nullopt if the number of subsets differs.
std::optional<std::vector<std::string>> addresses_of(const Value& live) {
  const std::span<const Value> subsets = live.is_map() ? live.items_at("subsets") : std::span<const Value>();
  if (subsets.size() != 1) return std::nullopt;
  std::vector<std::string> ips;
  for (const Value& address : subsets[0].items_at("addresses")) ips.emplace_back(address.text_at("ip"));
  return ips;
}

bool is_marked(const Value& live) { return live.is_map() && live.text_at("metadata", "labels", kSkipMirror) == "true"; }

Value ports_value(Arena& arena, uint16_t port) {
  MapBuilder https(arena);
  https.add("name", Value::string("https"));
  https.add("port", Value::integer(port));
  https.add("protocol", Value::string("TCP"));
  ListBuilder ports(arena);
  ports.add(https.build());
  return ports.build();
}

bool has_ports(const Value& live, uint16_t port) {
  const std::span<const Value> ports = live.items_at("subsets")[0].items_at("ports");
  return ports.size() == 1 && ports[0].text_at("name") == "https" && ports[0].text_at("protocol") == "TCP" &&
         ports[0].int_at_or(0, "port") == port;
}

// `live` (or a new object, if null) with one subset of these addresses, sorted; without subsets if there are none.
// Ports are kept unless missing or explicitly requested.
Value with_addresses(Arena& arena, const Value& live, std::vector<std::string> ips, uint16_t port, bool ports) {
  std::sort(ips.begin(), ips.end());
  Draft draft(arena, live.is_map() ? live : Value::empty_map());
  Draft::Node object = draft.root();
  object.set("kind", Value::string("Endpoints"));
  object.set("apiVersion", Value::string("v1"));
  object.child("metadata").set("name", Value::string(kName));
  object.child("metadata").set("namespace", Value::string(kNamespace));
  object.child("metadata").child("labels").set(kSkipMirror, Value::string("true"));
  if (ips.empty()) {
    object.remove("subsets");
    return draft.value();
  }
  const bool keeps_ports = !ports && addresses_of(live).has_value();
  ListBuilder addresses(arena), subsets(arena);
  for (const std::string& ip : ips) {
    MapBuilder address(arena);
    address.add("ip", Value::string(arena, ip));
    addresses.add(address.build());
  }
  MapBuilder subset(arena);
  subset.add("addresses", addresses.build());
  const Value* kept = keeps_ports ? live.items_at("subsets")[0].find("ports") : nullptr;
  subset.add("ports", kept != nullptr ? *kept : ports_value(arena, port));
  subsets.add(subset.build());
  object.set("subsets", subsets.build());
  return draft.value();
}

bool same_addresses(std::vector<std::string> a, std::vector<std::string> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

}  // namespace

std::optional<Value> endpoints_with(Arena& arena, const Value& live, std::vector<std::string> ips, uint16_t port,
                                    bool ports) {
  const std::optional<std::vector<std::string>> now = addresses_of(live);
  if (now && is_marked(live) && same_addresses(*now, ips) && (!ports || has_ports(live, port))) return std::nullopt;
  return with_addresses(arena, live, std::move(ips), port, ports);
}

std::optional<Value> endpoints_adding(Arena& arena, const Value& live, const OwnAddress& own, size_t count,
                                      bool ports) {
  const std::optional<std::vector<std::string>> now = addresses_of(live);
  if (!now) return with_addresses(arena, live, {own.ip}, own.port, true);
  std::vector<std::string> ips = *now;
  if (std::find(ips.begin(), ips.end(), own.ip) == ips.end()) ips.push_back(own.ip);
  std::sort(ips.begin(), ips.end());
  // Removes those after our own, wrapping around: if all servers do so, they converge.
  while (ips.size() > std::max<size_t>(count, 1)) {
    const auto at = static_cast<size_t>(std::find(ips.begin(), ips.end(), own.ip) - ips.begin());
    ips.erase(ips.begin() + static_cast<std::ptrdiff_t>((at + 1) % ips.size()));
  }
  return endpoints_with(arena, live, std::move(ips), own.port, ports);
}

std::optional<Value> endpoints_removing(Arena& arena, const Value& live, std::string_view ip) {
  const std::optional<std::vector<std::string>> now = addresses_of(live);
  if (!now || std::find(now->begin(), now->end(), ip) == now->end()) return std::nullopt;
  std::vector<std::string> ips = *now;
  std::erase(ips, ip);
  return with_addresses(arena, live, std::move(ips), 0, false);
}

Value slice_of(Arena& arena, const Value& endpoints) {
  MapBuilder labels(arena), metadata(arena), slice(arena);
  labels.add("kubernetes.io/service-name", Value::string(kName));
  metadata.add("name", Value::string(kName));
  metadata.add("namespace", Value::string(kNamespace));
  metadata.add("labels", labels.build());
  const std::vector<std::string> ips = addresses_of(endpoints).value_or(std::vector<std::string>{});
  const auto is_v6 = [](const std::string& ip) { return ip.find(':') != std::string::npos; };
  const bool v6 = !ips.empty() && std::all_of(ips.begin(), ips.end(), is_v6);
  ListBuilder all(arena), ports(arena);
  for (const std::string& ip : ips) {
    if (is_v6(ip) != v6) continue;
    MapBuilder conditions(arena), endpoint(arena);
    ListBuilder addresses(arena);
    addresses.add(Value::string(arena, ip));
    conditions.add("ready", Value::boolean(true));
    endpoint.add("addresses", addresses.build());
    endpoint.add("conditions", conditions.build());
    all.add(endpoint.build());
  }
  if (!ips.empty()) {
    for (const Value& port : endpoints.items_at("subsets")[0].items_at("ports")) {
      MapBuilder shown(arena);
      for (const std::string_view key : {"name", "port", "protocol"}) {
        if (const Value* member = port.find(key)) shown.add(key, *member);
      }
      ports.add(shown.build());
    }
  }
  slice.add("kind", Value::string("EndpointSlice"));
  slice.add("apiVersion", Value::string("discovery.k8s.io/v1"));
  slice.add("metadata", metadata.build());
  slice.add("addressType", Value::string(v6 ? "IPv6" : "IPv4"));
  slice.add("endpoints", all.build());
  slice.add("ports", ports.build());
  return slice.build();
}

OwnEndpoints::OwnEndpoints(api::Api& api, store::Store& store, net::EventLoop& loop, Options options)
    : calls_(api.own_calls(loop)),
      store_(store),
      loop_(loop),
      options_(std::move(options)),
      tasks_(loop, "endpoints of the Service kubernetes") {}

Task<void> OwnEndpoints::run() { return attempt(When::Starting); }

void OwnEndpoints::start() {
  tasks_.post([this] { return keep_running(); });
}

Task<void> OwnEndpoints::close(Executor& executor) {
  co_await tasks_.close(loop_);
  // If the store does not respond, this would only double the time to shut down.
  if (reached_store_) co_await attempt(When::Stopping);
  co_await resume_on(executor);
}

Task<void> OwnEndpoints::keep_running() {
  while (!tasks_.closing()) {
    co_await tasks_.sleep(kBetween);
    if (!tasks_.closing()) co_await attempt(When::Running);
  }
}

Task<void> OwnEndpoints::attempt(When when) {
  try {
    reached_store_ = false;
    const Result<Unit> done = co_await reconcile(when);
    reached_store_ = done.ok();
    if (done) co_return;
    log::warning("the endpoints of the Service kubernetes could not be brought up to date",
                 {{"address", options_.own.ip}, {"error", done.error().message}});
  } catch (...) {
    report_failed_task("endpoints of the Service kubernetes", std::current_exception());
  }
}

Task<Result<Unit>> OwnEndpoints::reconcile(When when) {
  if (options_.kind == Kind::Lease) {
    // Independent of the objects, because other servers look at the key.
    Result<Unit> renewed = when == When::Stopping ? co_await remove_lease() : co_await renew_lease();
    if (!renewed) co_return renewed.take_error();
  }
  Result<Unit> written = Unit{};
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    written = co_await write_objects(when);
    if (written || written.error().reason != Reason::Conflict) break;
  }
  co_return written;
}

Task<Result<Unit>> OwnEndpoints::write_objects(When when) {
  const bool by_lease = options_.kind == Kind::Lease;
  Arena arena;
  Result<Value> live = co_await read(arena, own_calls::object(endpoints_resource(), kNamespace, kName));
  if (!live) co_return live.take_error();
  if (when == When::Stopping && !live->is_map()) co_return Unit{};
  std::optional<Value> next;
  if (!by_lease && when == When::Stopping) {
    next = endpoints_removing(arena, *live, options_.own.ip);
  } else if (!by_lease) {
    next = endpoints_adding(arena, *live, options_.own, options_.count, when == When::Starting);
  } else {
    Result<std::vector<std::string>> ips = co_await leased();
    if (!ips) co_return ips.take_error();
    // Our own was just written.
    if (ips->empty() && when != When::Stopping) co_return internal_error("no API server has a lease in the store");
    next = endpoints_with(arena, *live, std::move(*ips), options_.own.port, when != When::Running);
  }
  if (next) {
    Result<Unit> written = co_await write_endpoints(*live, *next);
    if (!written) co_return written;
  }
  co_return co_await follow_with_slice(next.value_or(*live));
}

Task<Result<Unit>> OwnEndpoints::write_endpoints(const Value& live, Value next) {
  return write(written(endpoints_resource(), live.is_map(), next));
}

Task<Result<Unit>> OwnEndpoints::follow_with_slice(Value endpoints) {
  Arena arena;
  Value wanted = slice_of(arena, endpoints);
  const Target target = own_calls::object(slices_resource(), kNamespace, kName);
  Result<Value> live = co_await read(arena, target);
  if (!live) co_return live.take_error();
  if (live->is_map()) {
    const auto same = [&](std::string_view key) {
      const Value *now = live->find(key), *then = wanted.find(key);
      const bool none = then->is_list() && then->items().empty();
      return now == nullptr || now->is_null() ? none : equal(*now, *then);
    };
    const Value* labels = live->get("metadata", "labels");
    const bool labelled = labels != nullptr && equal(*labels, *wanted.get("metadata", "labels"));
    if (labelled && same("addressType") && same("endpoints") && same("ports")) co_return Unit{};
    if (!same("addressType")) {
      Result<Unit> removed = co_await write(Request::remove(target, {.uid = live->text_at("metadata", "uid")}));
      if (!removed) co_return removed;
      live = Value();
    } else {
      // A concurrent writer may know of more servers.
      wanted = with_path(arena, wanted, std::array{std::string_view("metadata"), std::string_view("resourceVersion")},
                         Value::string(live->text_at("metadata", "resourceVersion")));
    }
  }
  co_return co_await write(written(slices_resource(), live->is_map(), wanted));
}

Task<Result<Value>> OwnEndpoints::read(Arena& arena, Target object) {
  Request request = Request::get(object);
  const std::string what = request.text();
  const Result<Answer> answer = co_await own_calls::send(calls_, std::move(request));
  if (!answer) co_return answer.error();
  if (answer->not_found()) co_return Value();
  if (!answer->succeeded()) co_return internal_error(what + ": " + answer->body);
  co_return codec::decode_json(arena, arena.copy(answer->body));
}

Task<Result<Unit>> OwnEndpoints::write(Request change) {
  const std::string what = change.text();
  const Result<Answer> answer = co_await own_calls::send(calls_, std::move(change));
  if (!answer) co_return answer.error();
  if (answer->succeeded()) co_return Unit{};
  co_return Error{answer->status == 409 ? Reason::Conflict : Reason::InternalError, what + ": " + answer->body};
}

Task<Result<Unit>> OwnEndpoints::renew_lease() {
  const std::string key = options_.lease_prefix + options_.own.ip;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    store::StoreResult<store::Got> got = co_await from_callback<store::StoreResult<store::Got>>(
        loop_, [&](auto done) { store_.get(key, std::move(done)); });
    if (!got) co_return store::to_api_error(got.error());
    int64_t generation = 0;
    Arena arena;
    if (got->item) {
      Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(*got->item->value);
      if (envelope) {
        Result<Value> known = codec::decode_protobuf(arena, lease_type(), envelope->message, envelope->type);
        if (known) generation = known->int_at_or(0, "metadata", "generation");
      }
    }
    MapBuilder address(arena), subset(arena), metadata(arena), lease(arena);
    ListBuilder addresses(arena), subsets(arena);
    address.add("ip", Value::string(options_.own.ip));
    addresses.add(address.build());
    subset.add("addresses", addresses.build());
    subsets.add(subset.build());
    // Same as in kube-apiserver, whose store would skip an unchanged value.
    metadata.add("generation", Value::integer(generation + 1));
    lease.add("kind", Value::string("Endpoints"));
    lease.add("apiVersion", Value::string("v1"));
    lease.add("metadata", metadata.build());
    lease.add("subsets", subsets.build());
    std::string bytes;
    Result<Unit> encoded = codec::encode_enveloped(lease_type(), lease.build(), bytes);
    if (!encoded) co_return encoded;
    store::Blob value = store::make_blob(std::move(bytes));
    const store::Transaction change = {got->item ? store::update(key, got->item->modified, std::move(value), kLeaseTime)
                                                 : store::create(key, std::move(value), kLeaseTime)};
    store::StoreResult<store::WriteResult> written = co_await from_callback<store::StoreResult<store::WriteResult>>(
        loop_, [&](auto done) { store_.write(change, std::move(done)); });
    if (!written) co_return store::to_api_error(written.error());
    // Otherwise it has just expired.
    if (std::holds_alternative<store::Committed>(*written)) co_return Unit{};
  }
  co_return internal_error(key + " keeps changing");
}

Task<Result<Unit>> OwnEndpoints::remove_lease() {
  const std::string key = options_.lease_prefix + options_.own.ip;
  store::StoreResult<store::Got> got = co_await from_callback<store::StoreResult<store::Got>>(
      loop_, [&](auto done) { store_.get(key, std::move(done)); });
  if (!got) co_return store::to_api_error(got.error());
  if (!got->item) co_return Unit{};
  store::StoreResult<store::WriteResult> removed = co_await from_callback<store::StoreResult<store::WriteResult>>(
      loop_, [&](auto done) { store_.write({store::remove(key, got->item->modified)}, std::move(done)); });
  if (!removed) co_return store::to_api_error(removed.error());
  co_return Unit{};
}

Task<Result<std::vector<std::string>>> OwnEndpoints::leased() {
  store::StoreResult<store::Page> page = co_await from_callback<store::StoreResult<store::Page>>(
      loop_, [&](auto done) { store_.range({.prefix = options_.lease_prefix}, std::move(done)); });
  if (!page) co_return store::to_api_error(page.error());
  std::vector<std::string> ips;
  for (const store::KeyValue& item : page->items) {
    Arena arena;
    Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(*item.value);
    Result<Value> lease = envelope ? codec::decode_protobuf(arena, lease_type(), envelope->message, envelope->type)
                                   : Result<Value>(envelope.take_error());
    if (!lease) {
      log::warning("the lease of an API server cannot be read", {{"key", item.key}, {"error", lease.error().message}});
      continue;
    }
    const std::vector<std::string> addresses = addresses_of(*lease).value_or(std::vector<std::string>{});
    if (!addresses.empty() && !addresses[0].empty()) ips.push_back(addresses[0]);
  }
  co_return ips;
}

}  // namespace holdfast::server
