// pods/eviction: a deletion that is subject to the PodDisruptionBudget of the pod.
//
//   budget found -> checked and counted down (its status) -> condition DisruptionTarget on the pod -> deleted
//
// Follows EvictionREST.Create of kube-apiserver (pkg/registry/core/pod/storage/eviction.go).
#include "base/api_error.h"
#include "base/text.h"
#include "custom/custom_resources.h"
#include "own_calls/own_calls.h"
#include "render/status.h"
#include "verbs/deletes.h"
#include "verbs/subresources.h"
#include "write/body.h"
#include "write/write.h"

namespace holdfast::verbs {
namespace {

// Limit on evictions not yet observed by the controller; beyond it, something is wrong with the controller.
constexpr size_t kMostDisruptedPods = 2000;

Error no_disruption(std::string why, int32_t retry_after_seconds) {
  Error error{Reason::TooManyRequests, "Cannot evict pod as it would violate the pod's disruption budget."};
  error.causes.push_back({"DisruptionBudget", std::move(why), ""});
  error.retry_after_seconds = retry_after_seconds;
  return error;
}

Error still_processed(std::string_view budget) {
  return no_disruption("The disruption budget " + std::string(budget) + " is still being processed by the server.", 10);
}

Error budget_forbidden(std::string_view budget, std::string_view why) {
  Error error{Reason::Forbidden,
              "poddisruptionbudget.policy " + go_quote(budget) + " is forbidden: " + std::string(why)};
  error.details = ErrorDetails{std::string(budget), "policy", "poddisruptionbudget", {}};
  return error;
}

const Value* condition_of(const Value& object, std::string_view type) {
  for (const Value& condition : object.items_at("status", "conditions")) {
    if (condition.text_at("type") == type) return &condition;
  }
  return nullptr;
}

bool is_ready(const Value& pod) {
  const Value* ready = condition_of(pod, "Ready");
  return ready != nullptr && ready->text_at("status") == "True";
}

bool ignores_budgets(const Value& pod) {
  const std::string_view phase = pod.text_at("status", "phase");
  return phase == "Succeeded" || phase == "Failed" || phase == "Pending" ||
         !pod.text_at("metadata", "deletionTimestamp").empty();
}

// Whether the budget allows one more disruption.
Result<Unit> check_budget(const Value& budget) {
  const std::string name(budget.text_at("metadata", "name"));
  const auto number = [&](std::string_view key) { return budget.int_at_or(0, "status", key); };
  if (number("observedGeneration") < budget.int_at_or(0, "metadata", "generation")) return still_processed(name);
  if (number("disruptionsAllowed") < 0) return budget_forbidden(name, "pdb disruptions allowed is negative");
  if (budget.members_at("status", "disruptedPods").size() > kMostDisruptedPods) {
    return budget_forbidden(name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller");
  }
  if (number("disruptionsAllowed") > 0) return Unit{};
  std::string why = "The disruption budget " + name;
  const Value* condition = condition_of(budget, "DisruptionAllowed");
  const std::string message(condition == nullptr || condition->text_at("status") != "False"
                                ? std::string_view{}
                                : condition->text_at("message"));
  if (!message.empty() && condition->text_at("reason") == "SyncFailed") {
    why += " does not allow evicting pods currently because it failed sync: " + message;
  } else if (number("currentHealthy") <= number("desiredHealthy")) {
    why += " needs " + std::to_string(number("desiredHealthy")) + " healthy pods and has " +
           std::to_string(number("currentHealthy")) + " currently";
  } else if (!message.empty()) {
    why += " does not allow evicting pods currently (" + std::string(condition->text_at("reason")) + "): " + message;
  } else {
    why += " does not allow evicting pods currently";
  }
  return no_disruption(std::move(why), 0);
}

// Replaces or appends a condition; lastTransitionTime is kept if the status stays the same.
Value with_condition(Arena& arena, const Value& object, std::string_view type, std::string_view status,
                     std::span<const Member> rest, std::string_view now) {
  const Value* before = condition_of(object, type);
  const Value* time =
      before == nullptr || before->text_at("status") != status ? nullptr : before->find("lastTransitionTime");
  MapBuilder condition(arena);
  condition.add("type", Value::string(type));
  condition.add("status", Value::string(status));
  condition.add("lastTransitionTime", time == nullptr ? Value::string(arena, now) : *time);
  for (const Member& member : rest) condition.add(member.key, member.value);
  const Value made = condition.build();
  ListBuilder list(arena);
  for (const Value& other : object.items_at("status", "conditions")) {
    list.add(other.text_at("type") == type ? made : other);
  }
  if (before == nullptr) list.add(made);
  return list.build();
}

Task<Result<write::NextObject>> count_down(call::Call& call, std::string pod, const write::LiveObject* live) {
  const Value& budget = live->object;
  if (Result<Unit> allowed = check_budget(budget); !allowed) co_return allowed.take_error();
  Arena& arena = call.arena;
  const std::string now = format_rfc3339(call.view.now);
  Draft draft(arena, budget);
  Draft::Node status = draft.root().child("status");
  const int64_t left = budget.int_at_or(0, "status", "disruptionsAllowed") - 1;
  status.set("disruptionsAllowed", Value::integer(left));
  if (left == 0) {
    const Member rest[] = {{"reason", Value::string("InsufficientPods")},
                           {"message", Value::string("")},
                           {"observedGeneration", Value::integer(budget.int_at_or(0, "status", "observedGeneration"))}};
    status.set("conditions", with_condition(arena, budget, "DisruptionAllowed", "False", rest, now));
  }
  status.child("disruptedPods").set(arena.copy(std::string_view(pod)), Value::string(arena, now));
  ownership::UpdateResult owned = call.served->managers->at(kinds::Endpoint::Status)
                                      .update(arena, {.live = &live->object,
                                                      .live_managed = &live->managed,
                                                      .object = draft.value(),
                                                      .manager = "kube-apiserver",
                                                      .now = call.view.now});
  co_return write::NextObject{owned.object, std::move(owned.managed)};
}

Task<Result<write::NextObject>> mark_pod(call::Call& call, const request::DeleteOptions& deletion,
                                         const write::LiveObject* live) {
  Result<Unit> fits = check_preconditions(call, *live, call.info.name, deletion);
  if (!fits) co_return fits.take_error();
  const Value& pod = live->object;
  Draft draft(call.arena, pod);
  const Member rest[] = {{"lastProbeTime", Value::null()},
                         {"reason", Value::string("EvictionByEvictionAPI")},
                         {"message", Value::string("Eviction API: evicting")}};
  draft.root().child("status").set(
      "conditions", with_condition(call.arena, pod, "DisruptionTarget", "True", rest, format_rfc3339(call.view.now)));
  co_return write::NextObject{draft.value(), live->managed};
}

// Names of the budgets in the pod's namespace that select it.
Task<Result<std::vector<std::string>>> budgets_of(call::Call& call, const resource::Served& budgets, const Value& pod) {
  Result<cache::Snapshot> snapshot = co_await budgets.storage->cache().consistent(call.executor());
  if (!snapshot) co_return snapshot.take_error();
  const std::vector<cache::EntryRef> all = snapshot->list({.scope = std::string(call.ns()) + "/"}).entries;
  size_t bytes = 0;
  for (const cache::EntryRef& entry : all) bytes += entry->body_bytes();
  if (bytes > call::kLongBytes) co_await leave_loop(call);
  std::vector<std::string> names;
  for (const cache::EntryRef& entry : all) {
    const store::Blob body = entry->body();
    Arena arena;
    Result<Value> budget = budgets.storage->codec().tree(arena, *body);
    if (!budget) co_return budget.take_error();
    if (kinds::selects(budget->get("spec", "selector"), pod.get("metadata", "labels"))) {
      names.emplace_back(budget->text_at("metadata", "name"));
    }
  }
  co_return names;
}

// Consults the budget. True if the pod must not change until it is deleted.
Task<Result<bool>> pass_budget(call::Call& call, write::Writer& writer, const Value& pod, bool dry_run) {
  const resource::Served* budgets = call.registry->find("policy", "v1", "poddisruptionbudgets");
  if (budgets == nullptr || budgets->storage == nullptr) co_return false;
  Result<std::vector<std::string>> names = co_await budgets_of(call, *budgets, pod);
  if (!names) co_return names.take_error();
  if (names->empty()) co_return false;
  if (names->size() > 1) {
    co_return untyped(
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.");
  }
  request::Target target = call.info;
  target.group = "policy";
  target.resource = "poddisruptionbudgets";
  target.subresource = "status";
  target.verb = request::Verb::Update;
  target.name = names->front();
  co_await return_to_loop(call);
  call::Call asked(call, own_calls::server_user(), *budgets, target);

  Result<std::unique_ptr<write::LiveObject>> live = co_await write::read_live(asked, asked.info.name);
  if (!live) co_return live.take_error();
  if (*live == nullptr) co_return false;
  const Value& budget = (*live)->object;
  if (!is_ready(pod)) {
    const int64_t desired = budget.int_at_or(0, "status", "desiredHealthy");
    if (budget.text_at("spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow" ||
        (desired > 0 && budget.int_at_or(0, "status", "currentHealthy") >= desired)) {
      co_return true;
    }
  }
  if (dry_run) {
    if (Result<Unit> allowed = check_budget(budget); !allowed) co_return allowed.take_error();
    co_return false;
  }
  write::WriteRequest request;
  request.endpoint = kinds::Endpoint::Status;
  request.options.field_manager = "kube-apiserver";
  const std::string name(pod.text_at("metadata", "name"));
  Result<write::Written> written = co_await writer.write_object(
      asked, std::move(request), [&](const write::LiveObject* fresh) { return count_down(asked, name, fresh); });
  if (!written) co_return written.take_error();
  co_return false;
}

Result<request::DeleteOptions> deletion_of(const Value& eviction, bool dry_run) {
  request::DeleteOptions deletion;
  if (const Value* given = eviction.find("deleteOptions"); given != nullptr && given->is_map()) {
    if (const Value* grace = given->find("gracePeriodSeconds"); grace != nullptr && grace->is_int()) {
      deletion.grace_period_seconds = grace->as_int();
    }
    if (const std::string_view uid = given->text_at("preconditions", "uid"); !uid.empty()) {
      deletion.uid = std::string(uid);
    }
    if (const std::string_view rv = given->text_at("preconditions", "resourceVersion"); !rv.empty()) {
      deletion.resource_version = std::string(rv);
    }
    for (const Value& item : given->items_at("dryRun")) {
      if (item.is_string()) deletion.dry_run.emplace_back(item.as_string());
    }
  }
  if (dry_run) deletion.dry_run = {"All"};
  Result<Unit> valid = validate(deletion);
  if (!valid) return valid.take_error();
  return deletion;
}

}  // namespace

Task<Result<Unit>> evict(call::Call& call, write::Writer& writer, const Value& eviction, bool dry_run) {
  Result<request::DeleteOptions> deletion = deletion_of(eviction, dry_run);
  if (!deletion) co_return deletion.take_error();
  Result<std::unique_ptr<write::LiveObject>> live = co_await write::read_live(call, call.info.name);
  if (!live) co_return live.take_error();
  if (*live == nullptr) co_return not_found(call.group_resource(), call.info.name);
  const Value& pod = (*live)->object;
  bool pinned = false;
  if (!ignores_budgets(pod)) {
    Result<bool> passed = co_await pass_budget(call, writer, pod, deletion->is_dry_run());
    if (!passed) co_return passed.take_error();
    pinned = *passed;
  } else {
    pinned = pod.text_at("status", "phase") == "Pending" && pod.text_at("metadata", "deletionTimestamp").empty();
  }
  if (pinned && !deletion->resource_version) {
    deletion->resource_version = std::string(pod.text_at("metadata", "resourceVersion"));
  }
  if (!deletion->is_dry_run()) {
    write::WriteRequest request;
    request.endpoint = kinds::Endpoint::Status;
    const request::DeleteOptions wanted = *deletion;
    Result<write::Written> marked = co_await writer.write_object(
        call, std::move(request), [&](const write::LiveObject* fresh) { return mark_pod(call, wanted, fresh); });
    if (!marked) co_return marked.take_error();
    if (deletion->resource_version) {
      deletion->resource_version = std::string(marked->stored.text_at("metadata", "resourceVersion"));
    }
  }
  Result<Deleted> deleted = co_await delete_object(call, writer, std::string(call.info.name), *deletion);
  if (!deleted) co_return deleted.take_error();
  co_return Unit{};
}

}  // namespace holdfast::verbs
