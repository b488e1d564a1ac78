// Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs, HorizontalPodAutoscalers, PodDisruptionBudgets.
#include <algorithm>

#include "base/api_version.h"
#include "base/strings.h"
#include "kinds/kinds.h"
#include "table/cells.h"

namespace holdfast::table {
namespace {

const Value* template_spec(const Value& object) { return object.get("spec", "template", "spec"); }

void deployment(Row& row) {
  const Value& o = row.object();
  row.name();
  row.text(std::to_string(o.int_at_or(0, "status", "readyReplicas")) + "/" +
           std::to_string(o.int_at_or(0, "spec", "replicas")));
  row.integer(o.int_at_or(0, "status", "updatedReplicas"));
  row.integer(o.int_at_or(0, "status", "availableReplicas"));
  row.age();
  containers(row, template_spec(o));
  row.text(kinds::selector_text(o.get("spec", "selector")));
}

void replicas_row(Row& row, const std::string& selector) {
  const Value& o = row.object();
  row.name();
  row.integer(o.int_at_or(0, "spec", "replicas"));
  row.integer(o.int_at_or(0, "status", "replicas"));
  row.integer(o.int_at_or(0, "status", "readyReplicas"));
  row.age();
  containers(row, template_spec(o));
  row.text(or_none(selector));
}

void replica_set(Row& row) { replicas_row(row, kinds::selector_text(row.object().get("spec", "selector"))); }

void replication_controller(Row& row) { replicas_row(row, map_text(row.object().members_at("spec", "selector"))); }

void stateful_set(Row& row) {
  const Value& o = row.object();
  row.name();
  row.text(std::to_string(o.int_at_or(0, "status", "readyReplicas")) + "/" +
           std::to_string(o.int_at_or(0, "spec", "replicas")));
  row.age();
  containers(row, template_spec(o));
}

void daemon_set(Row& row) {
  const Value& o = row.object();
  row.name();
  row.integer(o.int_at_or(0, "status", "desiredNumberScheduled"));
  row.integer(o.int_at_or(0, "status", "currentNumberScheduled"));
  row.integer(o.int_at_or(0, "status", "numberReady"));
  row.integer(o.int_at_or(0, "status", "updatedNumberScheduled"));
  row.integer(o.int_at_or(0, "status", "numberAvailable"));
  row.text(or_none(map_text(o.members_at("spec", "template", "spec", "nodeSelector"))));
  row.age();
  containers(row, template_spec(o));
  row.text(or_none(kinds::selector_text(o.get("spec", "selector"))));
}

bool has_true_condition(const Value& object, std::string_view type) {
  for (const Value& condition : object.items_at("status", "conditions")) {
    if (condition.text_at("type") == type) return condition.text_at("status") == "True";
  }
  return false;
}

std::string job_status(const Value& o) {
  if (has_true_condition(o, "Complete")) return "Complete";
  if (has_true_condition(o, "Failed")) return "Failed";
  if (!o.text_at("metadata", "deletionTimestamp").empty()) return "Terminating";
  for (std::string_view type : {"Suspended", "FailureTarget", "SuccessCriteriaMet"}) {
    if (has_true_condition(o, type)) return std::string(type);
  }
  return "Running";
}

void job(Row& row) {
  const Value& o = row.object();
  row.name();
  row.text(job_status(o));
  const std::string succeeded = std::to_string(o.int_at_or(0, "status", "succeeded"));
  if (const Value* completions = o.get("spec", "completions"); completions != nullptr && completions->is_int()) {
    row.text(succeeded + "/" + std::to_string(completions->as_int()));
  } else {
    const int64_t parallelism = o.int_at_or(0, "spec", "parallelism");
    row.text(parallelism > 1 ? succeeded + "/1 of " + std::to_string(parallelism) : succeeded + "/1");
  }
  const auto started = parse_rfc3339(o.text_at("status", "startTime"));
  if (!started) {
    row.text("");
  } else if (const auto completed = parse_rfc3339(o.text_at("status", "completionTime"))) {
    row.text(age_text(completed->seconds - started->seconds));
  } else {
    row.text(age_of(o.text_at("status", "startTime"), row.now()));
  }
  row.age();
  containers(row, template_spec(o));
  row.text(or_none(kinds::selector_text(o.get("spec", "selector"))));
}

void cron_job(Row& row) {
  const Value& o = row.object();
  row.name();
  row.text(o.text_at("spec", "schedule"));
  row.text(or_none(o.text_at("spec", "timeZone")));
  const Value* suspend = o.get("spec", "suspend");
  row.text(suspend == nullptr || !suspend->is_bool() ? "<unset>" : suspend->as_bool() ? "True" : "False");
  row.integer(static_cast<int64_t>(o.items_at("status", "active").size()));
  const std::string_view last = o.text_at("status", "lastScheduleTime");
  row.text(last.empty() ? "<none>" : age_of(last, row.now()));
  row.age();
  containers(row, o.get("spec", "jobTemplate", "spec", "template", "spec"));
  row.text(or_none(kinds::selector_text(o.get("spec", "jobTemplate", "spec", "selector"))));
}

// One target of an autoscaler: "<current>/<target>".
std::string metric_text(const Value& spec, const Value* status) {
  const std::string_view type = spec.text_at("type");
  auto quantity = [](const Value* at, std::string_view key) -> std::string {
    if (at == nullptr) return "";
    const Value* value = at->find(key);
    return value == nullptr     ? ""
           : value->is_string() ? std::string(value->as_string())
           : value->is_int()    ? std::to_string(value->as_int())
                                : "";
  };
  auto source = [&](std::string_view key) { return spec.find(key); };
  auto current = [&](std::string_view key) -> const Value* {
    return status == nullptr ? nullptr : status->get(key, "current");
  };
  if (type == "Pods") {
    const std::string now = quantity(current("pods"), "averageValue");
    return (now.empty() ? "<unknown>" : now) + "/" + quantity(spec.get("pods", "target"), "averageValue");
  }
  if (type == "Object" || type == "External") {
    const std::string_view key = type == "Object" ? "object" : "external";
    const Value* target = source(key) == nullptr ? nullptr : source(key)->find("target");
    const std::string average = quantity(target, "averageValue");
    if (!average.empty()) {
      const std::string now = quantity(current(key), "averageValue");
      return (now.empty() ? "<unknown>" : now) + "/" + average + " (avg)";
    }
    const std::string now = quantity(current(key), "value");
    return (now.empty() ? "<unknown>" : now) + "/" + quantity(target, "value");
  }
  if (type == "Resource" || type == "ContainerResource") {
    const std::string_view key = type == "Resource" ? "resource" : "containerResource";
    const std::string name(source(key) == nullptr ? "" : source(key)->text_at("name"));
    const Value* target = source(key) == nullptr ? nullptr : source(key)->find("target");
    const std::string average = quantity(target, "averageValue");
    if (!average.empty()) {
      const std::string now = quantity(current(key), "averageValue");
      return name + ": " + (now.empty() ? "<unknown>" : now) + "/" + average;
    }
    const std::string now = quantity(current(key), "averageUtilization");
    const std::string wanted = quantity(target, "averageUtilization");
    return name + ": " + (now.empty() ? "<unknown>" : now + "%") + "/" + (wanted.empty() ? "<auto>" : wanted + "%");
  }
  return "<unknown type>";
}

constexpr size_t kShownMetrics = 2;

std::string targets_text(const std::vector<std::string>& targets) {
  if (targets.empty()) return "<none>";
  std::vector<std::string> shown(targets.begin(), targets.begin() + std::min(targets.size(), kShownMetrics));
  std::string text = join(shown, ", ");
  if (targets.size() > kShownMetrics) text += " + " + std::to_string(targets.size() - kShownMetrics) + " more...";
  return text;
}

void autoscaler_row(Row& row, const std::string& targets) {
  const Value& o = row.object();
  row.name();
  row.text(std::string(o.text_at("spec", "scaleTargetRef", "kind")) + "/" +
           std::string(o.text_at("spec", "scaleTargetRef", "name")));
  row.text(targets);
  const Value* least = o.get("spec", "minReplicas");
  row.text(least != nullptr && least->is_int() ? std::to_string(least->as_int()) : "<unset>");
  row.integer(o.int_at_or(0, "spec", "maxReplicas"));
  row.integer(o.int_at_or(0, "status", "currentReplicas"));
  row.age();
}

void autoscaler_v2(Row& row) {
  const Value& o = row.object();
  const auto statuses = o.items_at("status", "currentMetrics");
  std::vector<std::string> targets;
  for (const Value& metric : o.items_at("spec", "metrics")) {
    targets.push_back(metric_text(metric, targets.size() < statuses.size() ? &statuses[targets.size()] : nullptr));
  }
  autoscaler_row(row, targets_text(targets));
}

// v1 only has CPU utilization; other metrics are in annotations and are ignored here.
void autoscaler_v1(Row& row) {
  const Value& o = row.object();
  std::vector<std::string> targets;
  if (const Value* wanted = o.get("spec", "targetCPUUtilizationPercentage"); wanted != nullptr && wanted->is_int()) {
    const Value* now = o.get("status", "currentCPUUtilizationPercentage");
    targets.push_back(
        "cpu: " + (now != nullptr && now->is_int() ? std::to_string(now->as_int()) + "%" : std::string("<unknown>")) +
        "/" + std::to_string(wanted->as_int()) + "%");
  }
  autoscaler_row(row, targets_text(targets));
}

void disruption_budget(Row& row) {
  const Value& o = row.object();
  row.name();
  for (std::string_view key : {"minAvailable", "maxUnavailable"}) {
    const Value* bound = o.get("spec", key);
    row.text(bound == nullptr ? "N/A" : int_or_string_text(*bound));
  }
  row.integer(o.int_at_or(0, "status", "disruptionsAllowed"));
  row.age();
}

void controller_revision(Row& row) {
  const Value& o = row.object();
  row.name();
  std::string controller = "<none>";
  for (const Value& owner : o.items_at("metadata", "ownerReferences")) {
    const Value* is_controller = owner.find("controller");
    if (is_controller == nullptr || !is_controller->is_bool() || !is_controller->as_bool()) continue;
    const std::string group(split_api_version(owner.text_at("apiVersion")).group);
    controller =
        to_lower(owner.text_at("kind")) + (group.empty() ? "" : "." + group) + "/" + std::string(owner.text_at("name"));
  }
  row.text(controller);
  row.integer(o.int_at_or(0, "revision"));
  row.age();
}

}  // namespace

Printer workload_printer(std::string_view kind) {
  if (kind == "Deployment") return deployment;
  if (kind == "ReplicaSet") return replica_set;
  if (kind == "ReplicationController") return replication_controller;
  if (kind == "StatefulSet") return stateful_set;
  if (kind == "DaemonSet") return daemon_set;
  if (kind == "Job") return job;
  if (kind == "CronJob") return cron_job;
  if (kind == "HorizontalPodAutoscaler") return autoscaler_v2;
  if (kind == "HorizontalPodAutoscaler/v1") return autoscaler_v1;
  if (kind == "PodDisruptionBudget") return disruption_budget;
  if (kind == "ControllerRevision") return controller_revision;
  return nullptr;
}

}  // namespace holdfast::table
