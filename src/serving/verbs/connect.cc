// exec, attach, portforward and proxy of pods, services and nodes: runs admission and the checks that kube-apiserver
// makes before contacting a kubelet, then fails, because this server does not contact kubelets.
#include <algorithm>
#include <vector>

#include "base/api_error.h"
#include "base/go_numbers.h"
#include "base/strings.h"
#include "render/status.h"
#include "verbs/nodes.h"
#include "verbs/subresources.h"

namespace holdfast::verbs {
namespace {

Error no_nodes() { return Error{Reason::ServiceUnavailable, "this server does not connect to nodes"}; }

}  // namespace

Task<Error> node_error(call::Call& call, std::string node, GroupResource asked) {
  const resource::Served* nodes = call.registry->find("", "v1", "nodes");
  Result<cache::Cache::Latest> latest =
      co_await nodes->storage->cache().latest(nodes->storage->short_key("", node), call.executor());
  if (!latest) co_return latest.take_error();
  if (!latest->entry) co_return not_found(asked, node);
  const store::Blob body = latest->entry->body();
  Arena arena;
  Result<Value> tree = nodes->storage->codec().tree(arena, *body);
  if (!tree) co_return tree.take_error();
  if (tree->items_at("status", "addresses").empty()) {
    co_return untyped("no preferred addresses found; known addresses: []");
  }
  co_return no_nodes();
}

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

Task<Error> pod_error(call::Call& call, const Value& pod) {
  const std::string name(pod.text_at("metadata", "name"));
  if (call.info.subresource == "proxy") {
    if (pod.text_at("status", "podIP").empty()) co_return bad_request("address not allowed");
    co_return no_nodes();
  }
  if (call.info.subresource != "portforward") {
    Result<Unit> chosen = check_container(pod, call.query.get("container"));
    if (!chosen) co_return chosen.take_error();
  }
  const std::string node(pod.text_at("spec", "nodeName"));
  if (node.empty()) co_return bad_request("pod " + name + " does not have a host assigned");
  co_return co_await node_error(call, node, {"", "pods"});
}

// The object passed to admission: PodExecOptions and the like, built from the query and the path.
Result<Value> connect_options(call::Call& call) {
  Arena& arena = call.arena;
  const std::string_view how = call.info.subresource;
  MapBuilder options(arena);
  options.add("kind", Value::string(call.subresource->kind));
  options.add("apiVersion", Value::string("v1"));
  if (how == "proxy") {
    options.add("path", Value::string(arena, "/" + std::string(call.info.rest)));
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

Task<void> serve_connect(call::Call& call, write::Writer& writer, const auth::Authorizer& authorizer) {
  Result<Value> options = connect_options(call);
  if (!options) co_return respond_error(call, options.error());
  // The mutated options are discarded, because no node is contacted.
  Result<Value> admitted =
      co_await writer.admit_subresource(call, write::AdmissionOperation::Connect, {}, *options, Value::null(), true);
  if (!admitted) co_return respond_error(call, admitted.error());
  const Result<Unit> allowed = check_create(call, authorizer);
  if (!allowed) co_return respond_error(call, allowed.error());
  resource::Storage& storage = call.storage();
  Result<cache::Cache::Latest> latest =
      co_await storage.cache().latest(storage.short_key(call.ns(), call.info.name), call.executor());
  if (!latest) co_return respond_error(call, latest.error());
  const std::string_view plural = call.served->resource->plural;
  // Services are resolved through their endpoints, which no controller maintains here.
  if (!latest->entry || plural == "services") {
    co_return respond_error(call, not_found(call.group_resource(), call.info.name));
  }
  if (plural == "nodes") {
    co_return respond_error(call, co_await node_error(call, std::string(call.info.name), call.group_resource()));
  }
  const store::Blob body = latest->entry->body();
  Result<Value> pod = storage.codec().tree(call.arena, *body);
  if (!pod) co_return respond_error(call, pod.error());
  respond_error(call, co_await pod_error(call, *pod));
}

}  // namespace holdfast::verbs
