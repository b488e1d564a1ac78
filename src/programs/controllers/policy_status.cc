#include "controllers/policy_status.h"

#include <algorithm>
#include <string>

#include "base/log.h"
#include "cache/cache.h"
#include "cache/follower.h"
#include "codec/codec.h"
#include "own_calls/requests.h"
#include "policy/policy.h"
#include "resource/resource.h"
#include "value/value.h"

namespace holdfast::controllers {

using own_calls::Answer;
using own_calls::Request;
using own_calls::Target;

namespace {

constexpr std::string_view kGroup = "admissionregistration.k8s.io", kPlural = "validatingadmissionpolicies";

Target policy_target(std::string_view name) {
  static const types::Resource& resource = *types::find_resource(kGroup, "v1", kPlural);
  return own_calls::object(resource, "", name);
}

Value warnings_value(Arena& arena, std::span<const policy::TypeWarning> warnings) {
  ListBuilder list(arena);
  for (const policy::TypeWarning& warning : warnings) {
    MapBuilder map(arena);
    map.add("fieldRef", Value::string(arena, warning.field));
    map.add("warning", Value::string(arena, warning.warning));
    list.add(map.build());
  }
  return list.build();
}

}  // namespace

struct PolicyStatus::State {
  State(api::Api& served, net::EventLoop& runs_on, const own_calls::OwnCalls& own, Standby& other)
      : api(served), loop(runs_on), tasks(runs_on, "policy status"), calls(own), standby(other) {}

  api::Api& api;
  net::EventLoop& loop;
  TaskGroup tasks;
  const own_calls::OwnCalls& calls;
  Standby& standby;

  // Owned by the loop.
  cache::Follower policies{tasks};
  KeyedQueue<std::string> queue{tasks, [this](std::string name) { return look(std::move(name)); },
                                standby.pausing({.workers = 1})};

  Task<void> follow_policies() {
    return policies.run(*api.cache_of(kGroup, kPlural), {.see = cache::one_by_one([this](const auto& event) {
                                                           if (event.type != cache::EventType::Deleted)
                                                             queue.add(std::string(event.object()->name()));
                                                         })});
  }

  // The types of a kind; null if it is not served or has no schema.
  Task<std::shared_ptr<const cel::SchemaTypes>> types_of(std::string group, std::string version, std::string kind) {
    const Result<Answer> answer = co_await own_calls::send(calls, Request::openapi(group, version));
    if (!answer || !answer->succeeded()) co_return nullptr;
    Arena arena;
    const Result<Value> document = answer->object(arena);
    if (!document) co_return nullptr;
    co_return policy::schema_of(arena, *document, group, version, kind);
  }

  Task<bool> look(std::string name) {
    const Result<Answer> answer = co_await own_calls::send(calls, Request::get(policy_target(name)));
    if (!answer) co_return false;
    if (!answer->succeeded()) co_return answer->not_found();
    Arena arena;
    const Result<Value> read = answer->object(arena);
    if (!read) co_return false;
    const int64_t generation = read->int_at_or(0, "metadata", "generation");
    if (generation <= read->int_at_or(0, "status", "observedGeneration")) co_return true;

    std::vector<policy::CheckedKind> kinds;
    for (const policy::CheckedResource& one : policy::resources_to_check(*read)) {
      const resource::Registry::SnapshotRef registry = api.registry().snapshot();
      const resource::Served* served = registry->find(one.group, one.version, one.resource);
      if (served == nullptr) continue;
      const std::string kind(served->resource->kind);
      const bool known = std::any_of(kinds.begin(), kinds.end(), [&](const policy::CheckedKind& other) {
        return other.group == one.group && other.version == one.version && other.kind == kind;
      });
      if (known) continue;
      std::shared_ptr<const cel::SchemaTypes> types = co_await types_of(one.group, one.version, kind);
      if (types != nullptr) kinds.push_back({one.group, one.version, kind, std::move(types)});
    }
    std::sort(kinds.begin(), kinds.end(), [](const policy::CheckedKind& a, const policy::CheckedKind& b) {
      return std::tie(a.group, a.version, a.kind) < std::tie(b.group, b.version, b.kind);
    });
    std::shared_ptr<const cel::SchemaTypes> params;
    if (const Value* kind = read->get("spec", "paramKind"); kind != nullptr && kind->is_map()) {
      const policy::ParamKind wanted{std::string(kind->text_at("apiVersion")), std::string(kind->text_at("kind"))};
      params = co_await types_of(std::string(wanted.group()), std::string(wanted.version()), wanted.kind);
    }
    co_return co_await apply(name, generation, warnings_value(arena, policy::type_warnings(*read, kinds, params)));
  }

  Task<bool> apply(std::string name, int64_t generation, Value warnings) {
    Arena arena;
    MapBuilder checking(arena), status(arena), metadata(arena), policy(arena);
    if (warnings.count() > 0) checking.add("expressionWarnings", warnings);
    status.add("observedGeneration", Value::integer(generation));
    status.add("typeChecking", checking.build());
    metadata.add("name", Value::string(name));
    policy.add("apiVersion", Value::string("admissionregistration.k8s.io/v1"));
    policy.add("kind", Value::string("ValidatingAdmissionPolicy"));
    policy.add("metadata", metadata.build());
    policy.add("status", status.build());
    const Result<Answer> answer = co_await own_calls::send(
        calls, Request::apply(policy_target(name).sub("status"), policy.build(), "validatingadmissionpolicy-status"));
    if (answer && (answer->succeeded() || answer->not_found())) co_return true;
    log::warning("the status of a policy could not be written", {{"policy", name}, {"answer", text_of(answer)}});
    co_return false;
  }
};

PolicyStatus::PolicyStatus(api::Api& api, net::EventLoop& loop, const own_calls::OwnCalls& calls, Standby& standby)
    : state_(std::make_unique<State>(api, loop, calls, standby)) {}
PolicyStatus::~PolicyStatus() = default;

void PolicyStatus::start() {
  state_->tasks.post([state = state_.get()] { return state->follow_policies(); });
}

Task<void> PolicyStatus::close(Executor& executor) {
  co_await state_->tasks.close(executor, [state = state_.get()] { state->policies.cancel(); });
}

}  // namespace holdfast::controllers
