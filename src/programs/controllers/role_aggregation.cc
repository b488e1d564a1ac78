#include "controllers/role_aggregation.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>

#include "base/log.h"
#include "cache/cache.h"
#include "codec/codec.h"
#include "controllers/follow.h"
#include "rbac/rbac.h"
#include "value/value.h"

namespace holdfast::controllers {
namespace {

constexpr std::string_view kCollection = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
// Exponential backoff between failed attempts: the cause may persist, such as a policy that cannot be decoded.
constexpr std::chrono::milliseconds kFirstRetry{200}, kLastRetry{5000};

}  // namespace

struct RoleAggregation::State {
  State(api::Api& served, net::EventLoop& runs_on, const own_calls::OwnCalls& own, Pause& rests)
      : api(served), loop(runs_on), tasks(runs_on, "role aggregation"), calls(own), pause(rests) {}

  api::Api& api;
  net::EventLoop& loop;
  TaskGroup tasks;
  const own_calls::OwnCalls& calls;
  Pause& pause;

  // Owned by the loop.
  Followed roles;
  bool changed = false;  // Since the last pass began.
  bool looking = false;

  Task<void> follow_roles() {
    return follow(
        tasks, *api.cache_of("rbac.authorization.k8s.io", "clusterroles"), roles, [] {},
        [this](const cache::Delivery&) {
          changed = true;
          if (looking) return;
          looking = true;
          tasks.run(settle());
        });
  }

  // Roles may aggregate other aggregated roles: repeat until nothing changes.
  Task<void> settle() {
    std::chrono::milliseconds retry = kFirstRetry;
    while (changed && !tasks.closing()) {
      if (pause.on()) {
        co_await tasks.sleep(Pause::kLook);
        continue;
      }
      changed = false;
      if (co_await look()) {
        retry = kFirstRetry;
        continue;
      }
      co_await tasks.sleep(retry);
      retry = std::min(2 * retry, kLastRetry);
      changed = true;
    }
    looking = false;
  }

  // Processes all roles each time: there are few, and their dependencies are not tracked.
  Task<bool> look() {
    Result<net::ClientResponse> answer = co_await calls.call("GET", std::string(kCollection));
    if (!answer || answer->status != 200) co_return false;
    Arena arena;
    Result<Value> list = codec::decode_json(arena, answer->body);
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
    Result<net::ClientResponse> answer = co_await calls.call(
        "PATCH", std::string(kCollection) + "/" + name + "?fieldManager=clusterrole-aggregation-controller&force=true",
        R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":)" +
            codec::encode_json_string(name) + R"(},"rules":)" + codec::encode_json(rules) + "}",
        "application/apply-patch+yaml");
    if (answer && answer->status < 300) co_return true;
    log::warning("cannot update the rules of an aggregated role",
                 {{"role", name}, {"answer", answer ? answer->body : answer.error().message}});
    co_return false;
  }
};

RoleAggregation::RoleAggregation(api::Api& api, net::EventLoop& loop, const own_calls::OwnCalls& calls, Pause& pause)
    : state_(std::make_unique<State>(api, loop, calls, pause)) {}
RoleAggregation::~RoleAggregation() = default;

void RoleAggregation::start() {
  state_->tasks.post([state = state_.get()] { return state->follow_roles(); });
}

Task<void> RoleAggregation::close(Executor& executor) {
  co_await state_->tasks.close(executor, [state = state_.get()] { state->roles.cancel(); });
}

}  // namespace holdfast::controllers
