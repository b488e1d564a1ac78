#include "verbs/component_statuses.h"

#include <array>

#include "base/api_error.h"
#include "base/text.h"
#include "verbs/reads.h"

namespace holdfast::verbs {
namespace {

// The first two are probed at their default secure ports on this machine; the third is the store.
struct Component {
  std::string_view name;
  uint16_t port = 0;
};
constexpr std::array<Component, 3> kComponents = {{{"controller-manager", 10257}, {"scheduler", 10259}, {"etcd-0"}}};

constexpr std::chrono::seconds kProbeTimeout{20};
constexpr size_t kMaxProbeBytes = 10 << 10;

struct Health {
  bool healthy = false;
  std::string message, error;
};

Task<Health> probe_port(net::EventLoop& loop, uint16_t port) {
  net::ClientOptions options;
  options.host = "127.0.0.1";
  options.port = port;
  options.insecure = true;
  options.connect_timeout = kProbeTimeout;
  net::Client client(loop, std::move(options));
  net::ClientRequest request;
  request.target = "/healthz";
  request.timeout = kProbeTimeout;
  net::CallResult<net::ClientResponse> answer = co_await client.fetch(std::move(request), kMaxProbeBytes);
  if (!answer) {
    const std::string url = "https://127.0.0.1:" + std::to_string(port) + "/healthz";
    co_return Health{.message = "Get " + go_quote(url) + ": " + answer.error().message};
  }
  if (answer->status >= 200 && answer->status < 400) {
    co_return Health{.healthy = true, .message = std::move(answer->body)};
  }
  co_return Health{.message = "HTTP probe failed with statuscode: " + std::to_string(answer->status)};
}

Task<Health> probe_store(call::Call& call) {
  cache::Cache& cache = call.registry->storage_of("", "namespaces")->cache();
  Result<Revision> revision = co_await cache.store_revision(call.executor());
  if (!revision) co_return Health{.error = revision.error().message};
  co_return Health{.healthy = true, .message = "ok"};
}

Task<Value> component_status(call::Call& call, const Component& component) {
  const Health health =
      component.port == 0 ? co_await probe_store(call) : co_await probe_port(call.request.loop(), component.port);
  MapBuilder metadata(call.arena), condition(call.arena), object(call.arena);
  metadata.add("name", Value::string(component.name));
  condition.add("type", Value::string("Healthy"));
  condition.add("status", Value::string(health.healthy ? "True" : "False"));
  if (!health.message.empty()) condition.add("message", Value::string(call.arena, health.message));
  if (!health.error.empty()) condition.add("error", Value::string(call.arena, health.error));
  ListBuilder conditions(call.arena);
  conditions.add(condition.build());
  object.add("kind", Value::string("ComponentStatus"));
  object.add("apiVersion", Value::string("v1"));
  object.add("metadata", metadata.build());
  object.add("conditions", conditions.build());
  co_return object.build();
}

// Components have a name, but neither labels nor a namespace.
bool selects(const cache::Selector& selector, std::string_view name) {
  for (const cache::LabelRequirement& label : selector.labels) {
    using Operator = cache::LabelRequirement::Operator;
    if (label.op != Operator::Absent && label.op != Operator::NotIn) return false;
  }
  for (const cache::FieldRequirement& field : selector.fields) {
    const std::string_view value = field.field == cache::FieldRequirement::kName ? name : std::string_view();
    if ((value == field.value) != field.equal) return false;
  }
  return true;
}

}  // namespace

Task<void> serve_component_status(call::Call& call) {
  const types::Resource& resource = *call.served->resource;
  for (const Component& component : kComponents) {
    if (component.name != call.info.name) continue;
    const Value status = co_await component_status(call, component);
    co_return respond_tree(call, 200, status, *resource.type);
  }
  // Kubernetes uses the singular here.
  respond_error(call, not_found({resource.group, resource.singular}, call.info.name));
}

Task<void> serve_component_statuses(call::Call& call) {
  Result<Selection> selection = resolve_selector(call);
  if (!selection) co_return respond_error(call, selection.error());
  std::vector<Value> items;
  for (const Component& component : kComponents) {
    if (selects(selection->stored, component.name)) items.push_back(co_await component_status(call, component));
  }
  Result<std::string> body = render_list(call.view, call.arena, items);
  if (!body) co_return respond_error(call, body.error());
  respond(call, 200, std::move(*body));
}

}  // namespace holdfast::verbs
