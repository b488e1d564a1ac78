#include "controllers/flow_status.h"

#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "cache/cache.h"
#include "cache/follower.h"
#include "codec/codec.h"
#include "controllers/objects.h"
#include "value/value.h"

namespace holdfast::controllers {
namespace {

constexpr std::string_view kGroup = "flowcontrol.apiserver.k8s.io";
constexpr std::string_view kManager = "api-priority-and-fairness-config-consumer-v1";
constexpr std::string_view kType = "Dangling";

const types::Resource& schema_resource() {
  static const types::Resource& resource = *types::find_resource(kGroup, "v1", "flowschemas");
  return resource;
}
const types::Type& schema_type() { return *schema_resource().type; }

// The desired condition of a schema.
Value condition_for(Arena& arena, std::string_view level, bool exists, UnixTime now) {
  std::string message = "This FlowSchema references the PriorityLevelConfiguration object named " + go_quote(level) +
                        (exists ? " and it exists" : " but there is no such object");
  MapBuilder condition(arena);
  condition.add("type", Value::string(kType));
  condition.add("status", Value::string(exists ? "False" : "True"));
  condition.add("lastTransitionTime", Value::string(arena, format_rfc3339(now)));
  condition.add("reason", Value::string(exists ? "Found" : "NotFound"));
  condition.add("message", Value::string(arena, message));
  return condition.build();
}

bool has_condition(const Value& schema, const Value& wanted) {
  for (const Value& condition : schema.items_at("status", "conditions")) {
    if (condition.text_at("type") != kType) continue;
    return condition.text_at("status") == wanted.text_at("status") &&
           condition.text_at("reason") == wanted.text_at("reason") &&
           condition.text_at("message") == wanted.text_at("message");
  }
  return false;
}

Value status_of(Arena& arena, std::string_view name, const Value& condition) {
  ListBuilder conditions(arena);
  conditions.add(condition);
  MapBuilder metadata(arena), status(arena), schema(arena);
  metadata.add("name", Value::string(name));
  status.add("conditions", conditions.build());
  schema.add("kind", Value::string("FlowSchema"));
  schema.add("apiVersion", Value::string("flowcontrol.apiserver.k8s.io/v1"));
  schema.add("metadata", metadata.build());
  schema.add("status", status.build());
  return schema.build();
}

}  // namespace

struct FlowStatus::State {
  State(api::Api& served, net::EventLoop& runs_on, const Clock& time, const own_calls::OwnCalls& own)
      : api(served), loop(runs_on), clock(time), tasks(runs_on, "status of flow schemas"), calls(own) {}

  api::Api& api;
  net::EventLoop& loop;
  const Clock& clock;
  TaskGroup tasks;
  const own_calls::OwnCalls& calls;

  // Owned by the loop.
  cache::Follower schemas{tasks}, levels{tasks};
  std::unordered_map<std::string, std::string, KeyHash, std::equal_to<>> level_of;  // By schema name.
  std::unordered_map<std::string, std::set<std::string, std::less<>>, KeyHash, std::equal_to<>> schemas_of;
  KeyedQueue<std::string> queue{tasks, [this](std::string name) { return look(std::move(name)); }, {.workers = 1}};

  Task<void> follow_schemas() {
    return schemas.run(*api.cache_of(kGroup, "flowschemas"),
                       {.begin =
                            [this] {
                              level_of.clear();
                              schemas_of.clear();
                            },
                        .see = cache::one_by_one([this](const cache::Delivery& event) { see_schema(event); })});
  }

  void see_schema(const cache::Delivery& event) {
    const std::string name(event.object()->name());
    forget(name);
    if (event.type == cache::EventType::Deleted) return;
    Arena arena;
    const store::Blob body = event.object()->body();
    const Result<Value> schema = object_tree(arena, schema_type(), *body);
    if (!schema) return;
    remember(name, schema->text_at("spec", "priorityLevelConfiguration", "name"));
    queue.add(name);
  }

  Task<void> follow_levels() {
    return levels.run(*api.cache_of(kGroup, "prioritylevelconfigurations"),
                      {.see = cache::one_by_one([this](const cache::Delivery& event) { see_level(event); })});
  }

  void see_level(const cache::Delivery& event) {
    if (event.type == cache::EventType::Modified) return;
    const auto found = schemas_of.find(event.object()->name());
    if (found == schemas_of.end()) return;
    for (const std::string& schema : found->second) queue.add(schema);
  }

  void remember(const std::string& schema, std::string_view level) {
    level_of.insert_or_assign(schema, std::string(level));
    schemas_of[std::string(level)].insert(schema);
  }

  void forget(const std::string& schema) {
    const auto known = level_of.find(schema);
    if (known == level_of.end()) return;
    const auto of = schemas_of.find(known->second);
    of->second.erase(schema);
    if (of->second.empty()) schemas_of.erase(of);
    level_of.erase(known);
  }

  Task<bool> look(std::string name) {
    const Result<cache::Snapshot> served = api.cache_of(kGroup, "flowschemas")->snapshot();
    const Result<cache::Snapshot> known = api.cache_of(kGroup, "prioritylevelconfigurations")->snapshot();
    if (!served || !known) co_return false;
    const cache::EntryRef entry = served->find(name);
    if (!entry) co_return true;
    Arena arena;
    const store::Blob body = entry->body();
    const Result<Value> schema = object_tree(arena, schema_type(), *body);
    if (!schema) co_return true;  // It cannot be decoded, so its status cannot be updated.
    const std::string_view level = schema->text_at("spec", "priorityLevelConfiguration", "name");
    const Value condition = condition_for(arena, level, static_cast<bool>(known->find(level)), clock.now());
    if (has_condition(*schema, condition)) co_return true;
    const Result<own_calls::Answer> answer =
        co_await own_calls::send(calls, own_calls::Request::apply(target_of(schema_resource(), name).sub("status"),
                                                                  status_of(arena, name, condition), kManager));
    if (answer && (answer->succeeded() || answer->not_found())) co_return true;
    log::warning("the status of a FlowSchema could not be written", {{"name", name}, {"answer", text_of(answer)}});
    co_return false;
  }
};

FlowStatus::FlowStatus(api::Api& api, net::EventLoop& loop, const Clock& clock, const own_calls::OwnCalls& calls)
    : state_(std::make_unique<State>(api, loop, clock, calls)) {}
FlowStatus::~FlowStatus() = default;

void FlowStatus::start() {
  state_->tasks.post([state = state_.get()] { return state->follow_schemas(); });
  state_->tasks.post([state = state_.get()] { return state->follow_levels(); });
}

Task<void> FlowStatus::close(Executor& executor) {
  return state_->tasks.close(executor, [state = state_.get()] {
    state->schemas.cancel();
    state->levels.cancel();
  });
}

}  // namespace holdfast::controllers
