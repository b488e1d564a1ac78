#include "controllers/role_aggregation.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>

#include "base/log.h"
#include "cache/cache.h"
#include "cache/follower.h"
#include "codec/codec.h"
#include "own_calls/requests.h"
#include "rbac/rbac.h"
#include "value/value.h"

namespace holdfast::controllers {

using own_calls::Answer;
using own_calls::Request;

namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

const types::Resource& role_resource() {
  static const types::Resource& resource = *types::find_resource(kGroup, "v1", "clusterroles");
  return resource;
}

}  // namespace

struct RoleAggregation::State {
  State(api::Api& served, net::EventLoop& runs_on, const own_calls::OwnCalls& own, Standby& other)
      : api(served), loop(runs_on), tasks(runs_on, "role aggregation"), calls(own), standby(other) {}

  api::Api& api;
  net::EventLoop& loop;
  TaskGroup tasks;
  const own_calls::OwnCalls& calls;
  Standby& standby;

  // Owned by the loop.
  cache::Follower roles{tasks};
  // All roles are one key, because they may aggregate one another.
  KeyedQueue<std::string> queue{tasks, [this](const std::string&) { return look(); }, standby.pausing()};

  Task<void> follow_roles() {
    return roles.run(*api.cache_of(kGroup, "clusterroles"),
                     {.see = [this](std::span<const cache::Delivery>) { queue.add("roles"); }});
  }

  // Processes all roles each time: there are few, and their dependencies are not tracked.
  Task<bool> look() {
    Result<Answer> answer = co_await own_calls::send(calls, Request::list(own_calls::collection(role_resource())));
    if (!answer || !answer->succeeded()) co_return false;
    Arena arena;
    Result<Value> list = answer->object(arena);
    if (!list) co_return false;
    rbac::Index::Objects roles;
    for (const Value& role : list->items_at("items")) {
      roles.emplace("/" + std::string(role.text_at("metadata", "name")), role);
    }
    bool good = true;
    for (const auto& [key, role] : roles) {
      const Value* rule = role.find("aggregationRule");
      if (rule == nullptr || !rule->is_map()) continue;
      const Value wanted = rbac::aggregate(arena, role, roles);
      const Value* rules = role.find("rules");
      const bool none = rules == nullptr || !rules->is_list();
      if (none ? wanted.count() == 0 : equal(*rules, wanted)) continue;
      good = co_await apply(std::string(role.text_at("metadata", "name")), wanted) && good;
    }
    co_return good;
  }

  Task<bool> apply(std::string name, const Value& rules) {
    Arena arena;
    MapBuilder metadata(arena), role(arena);
    metadata.add("name", Value::string(name));
    role.add("apiVersion", Value::string("rbac.authorization.k8s.io/v1"));
    role.add("kind", Value::string("ClusterRole"));
    role.add("metadata", metadata.build());
    role.add("rules", rules);
    const Result<Answer> answer =
        co_await own_calls::send(calls, Request::apply(own_calls::object(role_resource(), "", name), role.build(),
                                                       "clusterrole-aggregation-controller"));
    if (answer && answer->succeeded()) co_return true;
    log::warning("cannot update the rules of an aggregated role", {{"role", name}, {"answer", text_of(answer)}});
    co_return false;
  }
};

RoleAggregation::RoleAggregation(api::Api& api, net::EventLoop& loop, const own_calls::OwnCalls& calls,
                                 Standby& standby)
    : state_(std::make_unique<State>(api, loop, calls, standby)) {}
RoleAggregation::~RoleAggregation() = default;

void RoleAggregation::start() {
  state_->tasks.post([state = state_.get()] { return state->follow_roles(); });
}

Task<void> RoleAggregation::close(Executor& executor) {
  co_await state_->tasks.close(executor, [state = state_.get()] { state->roles.cancel(); });
}

}  // namespace holdfast::controllers
