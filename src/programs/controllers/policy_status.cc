#include "controllers/policy_status.h"

#include <algorithm>
#include <string>

#include "base/api_version.h"
#include "base/log.h"
#include "cache/cache.h"
#include "codec/codec.h"
#include "controllers/follow.h"
#include "controllers/queued_work.h"
#include "policy/policy.h"
#include "resource/resource.h"
#include "value/value.h"

namespace holdfast::controllers {
namespace {

constexpr std::string_view kCollection = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

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
  State(api::Api& served, net::EventLoop& runs_on, const own_calls::OwnCalls& own, Pause& rests)
      : api(served), loop(runs_on), tasks(runs_on, "policy status"), calls(own), pause(rests) {}

  api::Api& api;
  net::EventLoop& loop;
  TaskGroup tasks;
  const own_calls::OwnCalls& calls;
  Pause& pause;

  // Owned by the loop.
  Followed policies;
  QueuedWork work{tasks, &pause, [this](std::string name) { return look(std::move(name)); }};

  Task<void> follow_policies() {
    return follow(
        tasks, *api.cache_of("admissionregistration.k8s.io", "validatingadmissionpolicies"), policies, [] {},
        [this](const cache::Delivery& delivery) {
          if (delivery.type == cache::EventType::Bookmark || delivery.type == cache::EventType::Deleted) return;
          work.request(delivery.object()->name());
        });
  }

  // The types of a kind; null if it is not served or has no schema.
  Task<std::shared_ptr<const cel::SchemaTypes>> types_of(std::string group, std::string version, std::string kind) {
    Result<net::ClientResponse> answer = co_await calls.call("GET", "/openapi/v3" + api_path(group, version));
    if (!answer || answer->status != 200) co_return nullptr;
    Arena arena;
    Result<Value> document = codec::decode_json(arena, answer->body);
    if (!document) co_return nullptr;
    co_return policy::schema_of(arena, *document, group, version, kind);
  }

  Task<bool> look(std::string name) {
    Result<net::ClientResponse> answer = co_await calls.call("GET", std::string(kCollection) + "/" + name);
    if (!answer) co_return false;
    if (answer->status != 200) co_return answer->status == 404;
    Arena arena;
    Result<Value> read = codec::decode_json(arena, answer->body);
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
    std::string checking;
    if (warnings.count() > 0) checking = R"("expressionWarnings":)" + codec::encode_json(warnings);
    Result<net::ClientResponse> answer = co_await calls.call(
        "PATCH",
        std::string(kCollection) + "/" + name + "/status?fieldManager=validatingadmissionpolicy-status&force=true",
        R"({"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":)" +
            codec::encode_json_string(name) + R"(},"status":{"observedGeneration":)" + std::to_string(generation) +
            R"(,"typeChecking":{)" + checking + "}}}",
        "application/apply-patch+yaml");
    if (answer && (answer->status < 300 || answer->status == 404)) co_return true;
    log::warning("the status of a policy could not be written",
                 {{"policy", name}, {"answer", answer ? answer->body : answer.error().message}});
    co_return false;
  }
};

PolicyStatus::PolicyStatus(api::Api& api, net::EventLoop& loop, const own_calls::OwnCalls& calls, Pause& pause)
    : state_(std::make_unique<State>(api, loop, calls, pause)) {}
PolicyStatus::~PolicyStatus() = default;

void PolicyStatus::start() {
  state_->tasks.post([state = state_.get()] { return state->follow_policies(); });
}

Task<void> PolicyStatus::close(Executor& executor) {
  co_await state_->tasks.close(executor, [state = state_.get()] { state->policies.cancel(); });
}

}  // namespace holdfast::controllers
