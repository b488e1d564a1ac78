// exec, attach, portforward and proxy of pods, services and nodes: runs admission and the checks of kube-apiserver,
// finds the server to connect to, and connects the client to it.
#include <algorithm>
#include <random>
#include <vector>

#include "base/api_error.h"
#include "base/go_numbers.h"
#include "base/percent.h"
#include "base/strings.h"
#include "base/text.h"
#include "render/status.h"
#include "verbs/subresources.h"

namespace holdfast::verbs {
namespace {

// A WebSocket starts with a GET; without this check, read-only users could run commands.
Result<Unit> check_create(const call::Call& call, const auth::Authorizer& authorizer) {
  if (call.info.verb == request::Verb::Create || call.info.subresource == "proxy" || call.info.resource != "pods") {
    return Unit{};
  }
  const auth::Decision decision = authorizer.authorize(call.attributes("create"));
  if (decision.allowed()) return Unit{};
  return forbidden(call.group_resource(), call.info.name, decision.reason);
}

// The path after "proxy", as getRequestOptions of apiserver/pkg/endpoints/handlers/rest.go takes it from the request.
std::string path_to_proxy(const call::Call& call) {
  std::string path(call.info.has_rest ? call.info.rest : std::string_view());
  while (path.ends_with('/')) path.pop_back();
  if (!path.empty() && !path.starts_with('/')) path.insert(0, 1, '/');
  if (call.request.path.ends_with('/') && !path.ends_with('/')) path += '/';
  return path;
}

// The object passed to admission: PodExecOptions and the like, built from the query and the path.
Result<Value> connect_options(call::Call& call) {
  Arena& arena = call.arena;
  const std::string_view how = call.info.subresource;
  MapBuilder options(arena);
  options.add("kind", Value::string(call.subresource->kind));
  options.add("apiVersion", Value::string("v1"));
  if (how == "proxy") {
    if (const std::string path = path_to_proxy(call); !path.empty()) options.add("path", Value::string(arena, path));
    return options.build();
  }
  if (how == "portforward") {
    ListBuilder ports(arena);
    for (const std::string& said : call.query.all("ports")) {
      for (const std::string_view one : split(said, ',')) {
        Result<int64_t> port = go_parse_int(one);
        if (!port) return bad_request(port.error().message);
        ports.add(Value::integer(*port));
      }
    }
    if (call.query.has("ports")) options.add("ports", ports.build());
    return options.build();
  }
  for (const std::string_view flag : {"stdin", "stdout", "stderr", "tty"}) {
    const std::string* said = call.query.find(flag);
    if (said != nullptr && request::query_bool(*said)) options.add(flag, Value::boolean(true));
  }
  if (const std::string_view container = call.query.get("container"); !container.empty()) {
    options.add("container", Value::string(arena, container));
  }
  if (how == "exec" && call.query.has("command")) {
    ListBuilder command(arena);
    for (const std::string& word : call.query.all("command")) command.add(Value::string(arena, word));
    options.add("command", command.build());
  }
  return options.build();
}

}  // namespace

bool is_connect(const call::Call& call) {
  constexpr std::string_view kConnects[] = {"attach", "exec", "portforward", "proxy"};
  return std::find(std::begin(kConnects), std::end(kConnects), call.info.subresource) != std::end(kConnects);
}

namespace {

bool flag_at(const Value& options, std::string_view name) {
  const Value* flag = options.find(name);
  return flag != nullptr && flag->is_bool() && flag->as_bool();
}

// The options as the kubelet reads them, sorted by name as Go encodes a query.
std::string streams_query(const Value& options, const nodes::Streams& streams) {
  std::string query;
  const auto add = [&query](std::string_view name, std::string_view value) {
    query.append(query.empty() ? "?" : "&").append(name).append("=");
    append_percent_encoded(query, value);
  };
  for (const Value& word : options.items_at("command")) add("command", word.is_string() ? word.as_string() : "");
  if (streams.error) add("error", "1");
  if (streams.in) add("input", "1");
  if (streams.out) add("output", "1");
  const std::string ports = join(options.items_at("ports"), ",", [](const Value& port) {
    return port.is_int() ? std::to_string(port.as_int()) : std::string();
  });
  if (!ports.empty()) add("port", ports);
  if (streams.tty) add("tty", "1");
  return query;
}

Task<Result<Value>> find_object(call::Call& call, std::string_view group, std::string_view version,
                                std::string_view plural, std::string name, std::string_view ns) {
  const resource::Served* served = call.registry->find(group, version, plural);
  if (served == nullptr || served->storage == nullptr) co_return not_found(call.group_resource(), name);
  resource::Storage& storage = *served->storage;
  Result<cache::Cache::Latest> latest = co_await storage.cache().latest(storage.short_key(ns, name), call.executor());
  if (!latest) co_return latest.take_error();
  if (!latest->entry) co_return not_found(call.group_resource(), name);
  const store::Blob body = latest->entry->body();
  co_return storage.codec().tree(call.arena, call.arena.copy(*body));
}

Task<void> connect_pod(call::Call& call, const nodes::Nodes& connections, Value options) {
  const std::string_view how = call.info.subresource;
  Result<Value> pod = co_await find_object(call, "", "v1", "pods", std::string(call.info.name), call.ns());
  if (!pod) co_return respond_error(call, pod.error());
  nodes::Streams streams{.port_forward = how == "portforward",
                         .in = flag_at(options, "stdin"),
                         .out = flag_at(options, "stdout"),
                         .error = flag_at(options, "stderr"),
                         .tty = flag_at(options, "tty")};
  std::string path = kubelet_path(streams.port_forward ? "portForward" : how, *pod);
  if (!streams.port_forward) {
    Result<std::string> container = choose_container(*pod, options.text_at("container"));
    if (!container) co_return respond_error(call, container.error());
    path += '/';
    append_percent_encoded(path, *container);
  }
  const std::string node(pod->text_at("spec", "nodeName"));
  if (node.empty()) {
    co_return respond_error(call, bad_request("pod " + std::string(call.info.name) + " does not have a host assigned"));
  }
  Result<nodes::Kubelet> kubelet = co_await connections.kubelet(call, node, {"", "pods"});
  if (!kubelet) co_return respond_error(call, kubelet.error());
  path += streams_query(options, streams);
  co_await return_to_loop(call);
  co_await nodes::connect_streams(call, connections, std::move(*kubelet), std::move(path), streams);
}

// --- Whom a proxy request leads to. ---

// The port of a destination without credentials; the usual one of the scheme if there is none.
Result<int64_t> port_number(std::string_view text, bool tls, std::string_view what, std::string_view id) {
  if (text.empty()) return tls ? 443 : 80;
  const std::optional<int64_t> port = parse_number<int64_t>(text);
  if (!port || *port < 0) return bad_request("invalid " + std::string(what) + " request " + go_quote(id));
  return *port;
}

Task<Result<nodes::Destination>> node_to_proxy(call::Call& call, const nodes::Nodes& connections,
                                               nodes::SchemeNamePort wanted) {
  Result<nodes::Kubelet> kubelet = co_await connections.kubelet(call, std::string(wanted.name), call.group_resource());
  if (!kubelet) co_return kubelet.take_error();
  nodes::Destination to = nodes::Nodes::to(*kubelet);
  if (!wanted.port.empty() && wanted.port != std::to_string(kubelet->port)) {
    to.tls = wanted.scheme == "https";
    to.with_credentials = false;
    Result<int64_t> port = port_number(wanted.port, to.tls, "node", call.info.name);
    if (!port) co_return port.take_error();
    to.port = *port;
  }
  co_await return_to_loop(call);
  co_return co_await connections.checked(call, std::move(to));
}

Task<Result<nodes::Destination>> pod_to_proxy(call::Call& call, nodes::SchemeNamePort wanted) {
  Result<Value> pod = co_await find_object(call, "", "v1", "pods", std::string(wanted.name), call.ns());
  if (!pod) co_return pod.take_error();
  std::string port_text(wanted.port);
  for (const Value& container : pod->items_at("spec", "containers")) {
    const std::span<const Value> ports = container.items_at("ports");
    if (!port_text.empty() || ports.empty()) continue;
    port_text = std::to_string(ports[0].int_at_or(0, "containerPort"));
  }
  const std::span<const Value> addresses = pod->items_at("status", "podIPs");
  const std::string_view address = addresses.empty() ? std::string_view() : addresses[0].text_at("ip");
  if (!nodes::is_global_unicast(address)) co_return bad_request("address not allowed");
  nodes::Destination to{.tls = wanted.scheme == "https", .host = std::string(address)};
  Result<int64_t> port = port_number(port_text, to.tls, "pod", call.info.name);
  if (!port) co_return port.take_error();
  to.port = *port;
  co_return to;
}

// Whether the address of an endpoint belongs to the pod that it names: otherwise, whoever can write Endpoints could
// reach any server through this one.
Task<bool> is_address_of_pod(call::Call& call, const Value& address) {
  const Value* pod_reference = address.find("targetRef");
  if (pod_reference == nullptr || pod_reference->text_at("namespace") != call.ns()) co_return false;
  Result<Value> pod =
      co_await find_object(call, "", "v1", "pods", std::string(pod_reference->text_at("name")), call.ns());
  if (!pod) co_return false;
  const std::span<const Value> addresses = pod->items_at("status", "podIPs");
  co_return std::any_of(addresses.begin(), addresses.end(),
                        [&](const Value& own) { return own.text_at("ip") == address.text_at("ip"); });
}

size_t random_below(size_t count) {
  static thread_local std::minstd_rand random{std::random_device{}()};
  return random() % count;
}

Error no_endpoints(std::string_view service) {
  return Error{Reason::ServiceUnavailable, "no endpoints available for service " + go_quote(service)};
}

// The name of the service's port, as it is known in its endpoints.
Task<Result<std::string>> port_name(call::Call& call, nodes::SchemeNamePort wanted) {
  const Result<int64_t> number = go_parse_int(wanted.port);
  if (!number) co_return std::string(wanted.port);
  Result<Value> service = co_await find_object(call, "", "v1", "services", std::string(wanted.name), call.ns());
  if (!service) co_return service.take_error();
  for (const Value& port : service->items_at("spec", "ports")) {
    if (port.int_at_or(-1, "port") == *number) co_return std::string(port.text_at("name"));
  }
  co_return Error{Reason::ServiceUnavailable,
                  "no service port " + std::to_string(*number) + " found for service " + go_quote(wanted.name)};
}

// A random pod behind the service, as ResourceLocation of pkg/registry/core/service/storage/storage.go chooses it.
Task<Result<nodes::Destination>> service_to_proxy(call::Call& call, nodes::SchemeNamePort wanted) {
  const Result<std::string> name = co_await port_name(call, wanted);
  if (!name) co_return name.error();
  Result<Value> endpoints = co_await find_object(call, "", "v1", "endpoints", std::string(wanted.name), call.ns());
  if (!endpoints) co_return endpoints.take_error();
  const std::span<const Value> subsets = endpoints->items_at("subsets");
  if (subsets.empty()) co_return no_endpoints(wanted.name);
  const size_t first_subset = random_below(subsets.size());
  for (size_t i = 0; i < subsets.size(); ++i) {
    const Value& subset = subsets[(first_subset + i) % subsets.size()];
    const std::span<const Value> addresses = subset.items_at("addresses");
    for (const Value& port : subset.items_at("ports")) {
      if (addresses.empty() || port.text_at("name") != *name) continue;
      const size_t first_address = random_below(addresses.size());
      for (size_t k = 0; k < addresses.size(); ++k) {
        const Value& address = addresses[(first_address + k) % addresses.size()];
        if (!co_await is_address_of_pod(call, address)) continue;
        co_return nodes::Destination{.tls = wanted.scheme == "https",
                                     .host = std::string(address.text_at("ip")),
                                     .port = port.int_at_or(0, "port")};
      }
    }
  }
  co_return no_endpoints(call.info.name);
}

Task<void> connect_proxy(call::Call& call, const nodes::Nodes& connections, Value options) {
  const std::string_view plural = call.served->resource->plural;
  const std::optional<nodes::SchemeNamePort> wanted = nodes::split_scheme_name_port(call.info.name);
  if (!wanted) {
    const std::string_view what = plural == "pods" ? "pod" : plural == "nodes" ? "node" : "service";
    co_return respond_error(call, bad_request("invalid " + std::string(what) + " request " + go_quote(call.info.name)));
  }
  Result<nodes::Destination> to = plural == "nodes"  ? co_await node_to_proxy(call, connections, *wanted)
                                  : plural == "pods" ? co_await pod_to_proxy(call, *wanted)
                                                     : co_await service_to_proxy(call, *wanted);
  if (!to) co_return respond_error(call, to.error());
  co_await return_to_loop(call);
  co_await nodes::proxy(call, connections, std::move(*to), std::string(options.text_at("path")));
}

}  // namespace

Task<void> serve_connect(call::Call& call, const Parts& parts) {
  Result<Value> options = connect_options(call);
  if (!options) co_return respond_error(call, options.error());
  Result<Value> admitted = co_await parts.writer.admit_subresource(call, write::AdmissionOperation::Connect, {},
                                                                   *options, Value::null(), true);
  if (!admitted) co_return respond_error(call, admitted.error());
  const Result<Unit> allowed = check_create(call, parts.authorizers);
  if (!allowed) co_return respond_error(call, allowed.error());
  if (call.info.subresource == "proxy") {
    co_await connect_proxy(call, parts.connections, *admitted);
  } else {
    co_await connect_pod(call, parts.connections, *admitted);
  }
}

}  // namespace holdfast::verbs
