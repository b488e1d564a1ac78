// Job and CronJob.

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "base/ascii.h"
#include "base/text.h"

#include "base/strings.h"
#include "kinds/all.h"
#include "kinds/cron.h"
#include "kinds/names.h"
#include "kinds/workload.h"

namespace holdfast::kinds {
namespace {

constexpr std::string_view kNameLabels[] = {"job-name", "batch.kubernetes.io/job-name"};
constexpr std::string_view kUidLabels[] = {"controller-uid", "batch.kubernetes.io/controller-uid"};

// --- Defaults ---

void default_job(Arena& arena, const types::Resource&, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  const bool indexed = is_set(spec.value(), "backoffLimitPerIndex");
  if (!is_set(spec.value(), "completions") && !is_set(spec.value(), "parallelism")) {
    spec.set("completions", Value::integer(1));
    spec.set("parallelism", Value::integer(1));
  }
  spec.set_default("parallelism", Value::integer(1));
  spec.set_default("backoffLimit", Value::integer(indexed ? INT32_MAX : 6));
  spec.set_default("completionMode", Value::string("NonIndexed"));
  spec.set_default("suspend", Value::boolean(false));
  const bool policy = is_set(spec.value(), "podFailurePolicy");
  spec.set_default("podReplacementPolicy", Value::string(policy ? "Failed" : "TerminatingOrFailed"));
  spec.set_default("manualSelector", Value::boolean(false));
  if (policy) {
    for (Draft::Node rule : spec.child("podFailurePolicy").list("rules")) {
      for (Draft::Node pattern : rule.list("onPodConditions")) pattern.set_if_zero("status", Value::string("True"));
    }
  }
  default_pod_template(arena, spec, "template");
  const Value labels = sub(spec.value(), "template", "metadata", "labels");
  if (!is_empty(&labels) && is_empty(sub(object.value(), "metadata"), "labels")) {
    object.child("metadata").set("labels", labels);
  }
}

void default_cron_job(Arena& arena, const types::Resource&, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  spec.set_if_zero("concurrencyPolicy", Value::string("Allow"));
  spec.set_default("suspend", Value::boolean(false));
  spec.set_default("successfulJobsHistoryLimit", Value::integer(3));
  spec.set_default("failedJobsHistoryLimit", Value::integer(1));
  Draft::Node job = spec.child("jobTemplate").child("spec");
  default_pod_template(arena, job, "template");
  if (Draft::Node policy = job.existing("podFailurePolicy")) {
    for (Draft::Node rule : policy.list("rules")) {
      for (Draft::Node pattern : rule.list("onPodConditions")) pattern.set_if_zero("status", Value::string("True"));
    }
  }
}

// --- Strategy ---

void create_job(Context& context, Draft::Node object) {
  const Value name = Value::string(object.value().text_at("metadata", "name")),
              uid = Value::string(object.value().text_at("metadata", "uid"));
  const Value own = sub(object.value(), "metadata", "labels");
  Draft::Node spec = object.child("spec");
  if (!is_true(spec.value(), "manualSelector")) {
    Draft::Node labels = spec.child("template").child("metadata").child("labels");
    // A job sent without labels shares those of its template: in kube-apiserver both are the same map.
    const bool shared =
        is_empty(sub(context.sent, "metadata"), "labels") && !is_empty(&own) && equal(own, labels.value());
    for (const std::string_view key : kNameLabels) labels.set_default(key, name);
    for (const std::string_view key : kUidLabels) labels.set_default(key, uid);
    if (shared) object.child("metadata").set("labels", labels.value());
    spec.child("selector").child("matchLabels").set_default(kUidLabels[1], uid);
  }
  drop_disabled_template_fields(spec, "template", nullptr);
}

void update_job(Context&, Draft::Node next, const Value& old) {
  drop_disabled_template_fields(next.child("spec"), "template", old.get("spec", "template"));
}

void create_cron_job(Context&, Draft::Node object) {
  drop_disabled_template_fields(object.child("spec").child("jobTemplate").child("spec"), "template", nullptr);
}
void update_cron_job(Context&, Draft::Node next, const Value& old) {
  drop_disabled_template_fields(next.child("spec").child("jobTemplate").child("spec"), "template",
                                old.get("spec", "jobTemplate", "spec", "template"));
}

// --- Validation ---

std::string quoted_list(std::initializer_list<std::string_view> values) {
  return "valid values: [" + join(values, " ", go_quote) + "]";
}

void validate_exit_codes(const Value& codes, const Value& pod_spec, const Path& at, FieldErrors& errors) {
  if (codes.text_at("operator").empty()) {
    errors.required(at.child("operator"), quoted_list({"In", "NotIn"}));
  } else {
    validate_enum(codes, "operator", {"In", "NotIn"}, at, errors);
  }
  if (is_set(codes, "containerName")) {
    const std::string_view name = codes.text_at("containerName");
    bool known = false;
    for (const std::string_view list : {"containers", "initContainers"}) {
      for (const Value& container : pod_spec.items_at(list)) known = known || container.text_at("name") == name;
    }
    if (!known) {
      errors.invalid(at.child("containerName"), name,
                     "must be one of the container or initContainer names in the pod template");
    }
  }
  const std::span<const Value> values = codes.items_at("values");
  if (values.empty()) errors.invalid(at.child("values"), codes.find("values"), "at least one value is required");
  if (values.size() > 255) errors.too_many(at.child("values"), static_cast<int64_t>(values.size()), 255);
  bool ordered = true;
  std::unordered_set<int64_t> seen;
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t code = values[i].as_int();
    if (codes.text_at("operator") == "In" && code == 0) {
      errors.invalid(at.item("values", i), code, "must not be 0 for the In operator");
    }
    if (!seen.insert(code).second) errors.duplicate(at.item("values", i), code);
    if (i > 0 && values[i - 1].as_int() > code) ordered = false;
  }
  if (!ordered) errors.invalid(at.child("values"), codes.find("values"), "must be ordered");
}

void validate_failure_policy(const Value& spec, const Path& at, FieldErrors& errors) {
  const Path policy = at.child("podFailurePolicy");
  const std::span<const Value> rules = spec.items_at("podFailurePolicy", "rules");
  if (rules.size() > 20) errors.too_many(policy.child("rules"), static_cast<int64_t>(rules.size()), 20);
  for (size_t i = 0; i < rules.size(); ++i) {
    const Path here = policy.item("rules", i);
    const std::string_view action = rules[i].text_at("action");
    if (action.empty()) {
      errors.required(here.child("action"), quoted_list({"Count", "FailIndex", "FailJob", "Ignore"}));
    } else if (action == "FailIndex") {
      if (!is_set(spec, "backoffLimitPerIndex")) {
        errors.invalid(here.child("action"), action, "requires the backoffLimitPerIndex to be set");
      }
    } else {
      validate_enum(rules[i], "action", {"Count", "FailIndex", "FailJob", "Ignore"}, here, errors);
    }
    const bool codes = is_set(rules[i], "onExitCodes");
    const std::span<const Value> conditions = rules[i].items_at("onPodConditions");
    if (codes) {
      validate_exit_codes(sub(rules[i], "onExitCodes"), sub(spec, "template", "spec"), here.child("onExitCodes"),
                          errors);
    }
    if (conditions.size() > 20) {
      errors.too_many(here.child("onPodConditions"), static_cast<int64_t>(conditions.size()), 20);
    }
    for (size_t j = 0; j < conditions.size(); ++j) {
      const Path pattern = here.item("onPodConditions", j);
      const std::string_view type = conditions[j].text_at("type");
      errors.invalid_each(pattern.child("type"), type, qualified_name_errors(type));
      if (conditions[j].text_at("status").empty()) {
        errors.required(pattern.child("status"), quoted_list({"False", "True", "Unknown"}));
      } else {
        validate_enum(conditions[j], "status", {"False", "True", "Unknown"}, pattern, errors);
      }
    }
    if (codes && !conditions.empty()) {
      errors.invalid(here, Shown::nothing(), "specifying both OnExitCodes and OnPodConditions is not supported");
    }
    if (!codes && conditions.empty()) {
      errors.invalid(here, Shown::nothing(), "specifying one of OnExitCodes and OnPodConditions is required");
    }
  }
}

void validate_indexed(const Value& spec, const Path& at, FieldErrors& errors) {
  const bool has_completions = is_set(spec, "completions");
  const int64_t completions = spec.int_at_or(0, "completions"), parallelism = spec.int_at_or(0, "parallelism");
  const int64_t failed = spec.int_at_or(0, "maxFailedIndexes");
  if (!has_completions) errors.required(at.child("completions"), "when completion mode is Indexed");
  if (parallelism > 100000) {
    errors.invalid(at.child("parallelism"), parallelism,
                   "must be less than or equal to 100000 when completion mode is Indexed");
  }
  if (has_completions && failed > completions) {
    errors.invalid(at.child("maxFailedIndexes"), failed, "must be less than or equal to completions");
  }
  if (failed > 100000) errors.invalid(at.child("maxFailedIndexes"), failed, "must be less than or equal to 100000");
  if (completions <= 100000 || !is_set(spec, "backoffLimitPerIndex")) return;
  if (!is_set(spec, "maxFailedIndexes")) {
    errors.required(at.child("maxFailedIndexes"), "must be specified when completions is above 100000");
  }
  constexpr std::string_view kTail = " when completions are above 100000 and used with backoff limit per index";
  for (const std::string_view key : {"parallelism", "maxFailedIndexes"}) {
    if (spec.int_at_or(0, key) > 10000) {
      errors.invalid(at.child(key), spec.int_at_or(0, key), "must be less than or equal to 10000" + std::string(kTail));
    }
  }
}

struct Interval {
  int64_t first, last;
};

Error falling_order(int64_t previous, int64_t current) {
  return bad_request("non-increasing order, previous: " + std::to_string(previous) +
                     ", current: " + std::to_string(current));
}

// "3" or "3-5", below `completions`.
Result<Interval> parse_interval(std::string_view text, int64_t completions) {
  const auto number = [&](std::string_view part) -> Result<int64_t> {
    const std::optional<int64_t> value = parse_number<int64_t>(part.substr(part.starts_with('+') ? 1 : 0));
    if (!value) return bad_request("cannot convert string to integer for index: " + go_quote(part));
    if (*value >= completions) return bad_request("too large index: " + go_quote(part));
    return *value;
  };
  const size_t dash = text.find('-');
  if (dash != std::string_view::npos && text.find('-', dash + 1) != std::string_view::npos) {
    return bad_request("the fragment " + go_quote(text) +
                       " violates the requirement that an index interval can have at most two parts separated by '-'");
  }
  Result<int64_t> first = number(text.substr(0, dash));
  if (!first) return first.take_error();
  if (dash == std::string_view::npos) return Interval{*first, *first};
  Result<int64_t> last = number(text.substr(dash + 1));
  if (!last) return last.take_error();
  if (*first >= *last) return falling_order(*first, *last);
  return Interval{*first, *last};
}

// The number of indexes in "1,3-5"; the error says why the text is invalid.
Result<int64_t> count_indexes(std::string_view text, int64_t completions) {
  int64_t total = 0;
  std::optional<int64_t> last;
  if (text.empty()) return total;
  for (const std::string_view part : split(text, ',')) {
    Result<Interval> interval = parse_interval(part, completions);
    if (!interval) return interval.take_error();
    if (last && *last >= interval->first) return falling_order(*last, interval->first);
    total += interval->last - interval->first + 1;
    last = interval->last;
  }
  return total;
}

// The first index in both lists. Invalid parts of either are skipped.
std::optional<int64_t> common_index(std::string_view one, std::string_view other, int64_t completions) {
  const auto intervals = [&](std::string_view text) {
    std::vector<Interval> readable;
    for (const std::string_view part : split(text, ',')) {
      if (Result<Interval> interval = parse_interval(part, completions)) readable.push_back(*interval);
    }
    return readable;
  };
  const std::vector<Interval> a = intervals(one), b = intervals(other);
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i].first <= b[j].last && b[j].first <= a[i].last) return std::max(a[i].first, b[j].first);
    ++(a[i].first <= b[j].first ? i : j);
  }
  return std::nullopt;
}

void validate_success_policy(const Value& spec, const Path& at, FieldErrors& errors) {
  constexpr int64_t kMostRules = 20;
  constexpr size_t kMostIndexes = 64 * 1024;
  const std::span<const Value> rules = spec.items_at("successPolicy", "rules");
  const int64_t completions = spec.int_at_or(0, "completions");
  if (rules.empty()) {
    errors.required(at.child("rules"), "at least one rules must be specified when the successPolicy is specified");
  }
  if (static_cast<int64_t>(rules.size()) > kMostRules) {
    errors.too_many(at.child("rules"), static_cast<int64_t>(rules.size()), kMostRules);
  }
  for (size_t i = 0; i < rules.size(); ++i) {
    const Path here = at.item("rules", i), count_at = here.child("succeededCount");
    const bool counted = is_set(rules[i], "succeededCount"), listed = rules[i].has("succeededIndexes");
    if (!counted && !listed) {
      errors.required(here, "at least one of succeededCount or succeededIndexes must be specified");
    }
    int64_t total = 0;
    if (listed) {
      const std::string_view text = rules[i].text_at("succeededIndexes");
      if (text.size() > kMostIndexes) errors.too_long(here.child("succeededIndexes"), kMostIndexes);
      Result<int64_t> indexes = count_indexes(text, completions);
      if (indexes) {
        total = *indexes;
      } else {
        errors.invalid(here.child("succeededIndexes"), text,
                       "error parsing succeededIndexes: " + indexes.error().message);
      }
    }
    if (!counted) continue;
    const int64_t count = rules[i].int_at_or(0, "succeededCount");
    if (count < 0) errors.invalid(count_at, count, kNegative);
    const auto at_most = [&](int64_t limit, std::string_view what) {
      if (count <= limit) return;
      errors.invalid(
          count_at, count,
          "must be less than or equal to " + std::to_string(limit) + " (the number of " + std::string(what) + ")");
    };
    at_most(completions, "specified completions");
    if (listed) at_most(total, "indexes in the specified succeededIndexes field");
  }
}

void validate_job_template(Context& context, const Value& spec, const Path& at, FieldErrors& errors) {
  for (const std::string_view key : {"parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
                                     "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"}) {
    validate_non_negative(spec, key, at, errors);
  }
  if (is_set(spec, "maxFailedIndexes") && !is_set(spec, "backoffLimitPerIndex")) {
    errors.required(at.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified");
  }
  if (is_set(spec, "managedBy")) {
    const std::string_view manager = spec.text_at("managedBy");
    validate_domain_prefixed_path(manager, at.child("managedBy"), errors);
    if (manager.size() > 63) errors.too_long(at.child("managedBy"), 63);
  }
  const std::string_view mode = spec.text_at("completionMode");
  if (is_set(spec, "completionMode")) validate_enum(spec, "completionMode", {"NonIndexed", "Indexed"}, at, errors);
  if (mode == "Indexed") validate_indexed(spec, at, errors);
  if (mode.empty() || mode == "NonIndexed") {
    for (const std::string_view key : {"backoffLimitPerIndex", "maxFailedIndexes"}) {
      if (is_set(spec, key)) errors.invalid(at.child(key), spec.find(key), "requires indexed completion mode");
    }
  }
  if (is_set(spec, "podFailurePolicy")) validate_failure_policy(spec, at, errors);
  if (is_set(spec, "successPolicy")) {
    const Path policy = at.child("successPolicy");
    if (mode != "Indexed") {
      errors.invalid(policy, shown_internal(type_named("batch/v1.JobSpec"), spec, "successPolicy"),
                     "requires indexed completion mode");
    } else {
      validate_success_policy(spec, policy, errors);
    }
  }
  if (is_set(spec, "podReplacementPolicy")) {
    if (is_set(spec, "podFailurePolicy")) {
      validate_enum(spec, "podReplacementPolicy", {"Failed"}, at, errors);
    } else {
      validate_enum(spec, "podReplacementPolicy", {"Failed", "TerminatingOrFailed"}, at, errors);
    }
  }
  PodOptions options;
  options.allow_privileged = context.allow_privileged;
  validate_pod_template(sub(spec, "template"), options, at.child("template"), errors);
  const std::string_view restart = spec.text_at("template", "spec", "restartPolicy");
  const Path restart_at = at.child("template.spec.restartPolicy");
  if (restart == "Always" || restart.empty()) {
    errors.required(restart_at, R"(valid values: "OnFailure", "Never")");
  } else if (restart != "OnFailure" && restart != "Never") {
    errors.not_supported(restart_at, restart, {"OnFailure", "Never"});
  } else if (is_set(spec, "podFailurePolicy") && restart != "Never") {
    errors.invalid(restart_at, restart, R"(only "Never" is supported when podFailurePolicy is specified)");
  }
}

bool is_valid_selector(const Value* selector) {
  FieldErrors errors;
  validate_label_selector(selector, Path(""), errors);
  return errors.empty();
}

void validate_job_spec(Context& context, const Value& spec, const Path& at, FieldErrors& errors) {
  validate_job_template(context, spec, at, errors);
  if (!is_set(spec, "selector")) {
    errors.required(at.child("selector"));
  } else {
    validate_label_selector(spec.find("selector"), at.child("selector"), errors);
  }
  if (is_valid_selector(spec.find("selector"))) validate_selected(spec, at, errors);
}

void validate_has_label(const Value& labels, std::string_view key, std::string_view expected, FieldErrors& errors) {
  const Path at("spec.template.metadata"), labels_at = at.child("labels");
  const Value* actual = labels.find(key);
  if (actual == nullptr) {
    errors.required(labels_at.key(key), "must be '" + std::string(expected) + "'");
  } else if (!actual->is_string() || actual->as_string() != expected) {
    errors.invalid(labels_at.key(key), shown_sorted(&labels), "must be '" + std::string(expected) + "'");
  }
}

// Without manualSelector, the selector must be the generated one.
void validate_generated_selector(Context& context, const Value& job, const Value* old, FieldErrors& errors) {
  if (is_true(sub(job, "spec"), "manualSelector") || !is_set(sub(job, "spec"), "selector")) return;
  const std::string_view uid = job.text_at("metadata", "uid"), name = job.text_at("metadata", "name");
  const Value& labels = sub(job, "spec", "template", "metadata", "labels");
  validate_has_label(labels, kUidLabels[0], uid, errors);
  validate_has_label(labels, kNameLabels[0], name, errors);
  MapBuilder expected(context.arena);
  expected.add(kUidLabels[0], Value::string(uid));
  expected.add(kNameLabels[0], Value::string(name));
  const bool prefixed = old == nullptr || (old->get("spec", "template", "metadata", "labels", kUidLabels[1]) &&
                                           old->get("spec", "template", "metadata", "labels", kNameLabels[1]));
  if (prefixed) {
    validate_has_label(labels, kUidLabels[1], uid, errors);
    validate_has_label(labels, kNameLabels[1], name, errors);
    expected.add(kUidLabels[1], Value::string(uid));
    expected.add(kNameLabels[1], Value::string(name));
  }
  const Value all = expected.build();
  const Value& selector = sub(job, "spec", "selector");
  if (is_valid_selector(&selector) && !selects(&selector, &all)) {
    errors.invalid(Path("spec.selector"), shown_selector(&selector), "`selector` not auto-generated");
  }
}

void validate_job_whole(Context& context, const Value& job, const Value* old, FieldErrors& errors) {
  validate_generated_selector(context, job, old, errors);
  const Value& spec = sub(job, "spec");
  validate_job_spec(context, spec, Path("spec"), errors);
  const int64_t completions = spec.int_at_or(0, "completions");
  if (spec.text_at("completionMode") == "Indexed" && completions > 0) {
    const std::string host = std::string(job.text_at("metadata", "name")) + "-" + std::to_string(completions - 1);
    if (!dns_label_errors(host).empty()) {
      errors.invalid(Path("metadata.name"), job.text_at("metadata", "name"),
                     "will not able to create pod with invalid DNS label: " + host);
    }
  }
}

void validate_job(Context& context, const Value& job, FieldErrors& errors) {
  validate_job_whole(context, job, nullptr, errors);
}

bool has_condition(const Value& job, std::string_view type, std::string_view status) {
  for (const Value& condition : job.items_at("status", "conditions")) {
    if (condition.text_at("type") == type && condition.text_at("status") == status) return true;
  }
  return false;
}
bool has_true(const Value& job, std::string_view type) { return has_condition(job, type, "True"); }

void validate_template_update(Context& context, const Value& spec, const Value& old_job, const Path& at,
                              FieldErrors& errors) {
  const Value& old_spec = sub(old_job, "spec");
  const bool suspended = is_true(old_spec, "suspend");
  const bool quiet = suspended && old_job.int_at_or(0, "status", "active") == 0 &&
                     (!is_set(sub(old_job, "status"), "startTime") || has_true(old_job, "Suspended"));
  const Value& next = sub(spec, "template");
  if (!quiet) {
    const types::Type& type = type_named("core/v1.PodTemplateSpec");
    if (semantic_equal(type, &next, &sub(old_spec, "template"))) return;
    return errors.invalid(at.child("template"), shown_internal(type, &next), kImmutable);
  }
  // The metadata, scheduling directives and resources of a suspended job without pods may be changed.
  const Value& next_pod = sub(next, "spec");
  Draft draft(context.arena, sub(old_spec, "template", "spec"));
  Draft::Node allowed = draft.root();
  for (const std::string_view key : {"nodeSelector", "tolerations", "schedulingGates"}) restore(allowed, next_pod, key);
  const Value& affinity = sub(next_pod, "affinity", "nodeAffinity");
  if (!affinity.is_null()) {
    allowed.child("affinity").set("nodeAffinity", affinity);
  } else if (Draft::Node holder = allowed.existing("affinity")) {
    holder.remove("nodeAffinity");
    if (holder.value().count() == 0) allowed.remove("affinity");
  }
  for (const std::string_view list : {"containers", "initContainers"}) {
    const std::span<const Value> now = next_pod.items_at(list);
    std::vector<Draft::Node> before = allowed.list(list);
    if (now.size() != before.size()) continue;
    for (size_t i = 0; i < now.size(); ++i) {
      if (now[i].text_at("name") == before[i].value().text_at("name")) restore(before[i], now[i], "resources");
    }
  }
  const Value result = draft.value();
  const types::Type& type = type_named("core/v1.PodSpec");
  if (semantic_equal(type, &next_pod, &result)) return;
  errors.invalid(at.child("template.spec"), shown_internal(type, &next_pod), kImmutable);
}

void validate_job_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_job_whole(context, next, &old, errors);
  const Path at("spec");
  const Value &spec = sub(next, "spec"), &before = sub(old, "spec");
  validate_job_spec(context, spec, at, errors);
  const types::Type& type = type_named("batch/v1.JobSpec");
  if (spec.text_at("completionMode") != "Indexed") {
    validate_immutable(type, spec, before, "completions", at, errors);
  } else if (is_set(spec, "completions") && !unchanged(type, spec, before, "completions") &&
             spec.int_at_or(0, "completions") != spec.int_at_or(0, "parallelism")) {
    errors.invalid(at.child("completions"), spec.find("completions"),
                   "can only be modified in tandem with spec.parallelism");
  }
  validate_selector_unchanged(next, old, errors);
  validate_template_update(context, spec, old, at, errors);
  for (const std::string_view key :
       {"completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"}) {
    validate_immutable(type, spec, before, key, at, errors);
  }
}

void validate_job_status(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  const Path at("status"), conditions = at.child("conditions");
  const Value &status = sub(next, "status"), &before = sub(old, "status");
  validate_counters(status, {"active", "succeeded", "failed", "ready", "terminating"}, at, errors);
  const Value& uncounted = sub(status, "uncountedTerminatedPods");
  const Path uncounted_at = at.child("uncountedTerminatedPods");
  Names seen;
  for (const std::string_view list : {"succeeded", "failed"}) {
    const std::span<const Value> uids = uncounted.items_at(list);
    for (size_t i = 0; i < uids.size(); ++i) {
      const Path here = uncounted_at.item(list, i);
      if (uids[i].as_string().empty()) {
        errors.invalid(here, "", "must not be empty");
      } else if (!seen.add(uids[i].as_string())) {
        errors.duplicate(here, uids[i]);
      }
    }
  }
  const auto complain = [&](std::string_view text) { errors.invalid(conditions, Shown::nothing(), text); };
  const auto is = [&](std::string_view type) { return has_true(next, type); };
  const auto was = [&](std::string_view type) { return has_true(old, type); };
  const auto changed = [&](std::string_view key) { return !equal(sub(status, key), sub(before, key)); };
  const bool complete = is("Complete"), failed = is("Failed"), target = is("FailureTarget"),
             met = is("SuccessCriteriaMet");
  const bool complete_changed = complete != was("Complete"), failed_changed = failed != was("Failed");
  const bool finished = complete || failed;
  const bool finished_changed = finished != (was("Complete") || was("Failed"));
  const bool has_start = is_set(status, "startTime"), has_end = is_set(status, "completionTime");
  if ((complete_changed || failed_changed) && complete && failed)
    complain("cannot set Complete=True and Failed=true conditions");
  if ((complete_changed || target != was("FailureTarget")) && complete && target) {
    complain("cannot set Complete=True and FailureTarget=true conditions");
  }
  if (complete_changed || changed("completionTime")) {
    if (has_end && !complete) {
      errors.invalid(at.child("completionTime"), status.find("completionTime"),
                     "cannot set completionTime when there is no Complete=True condition");
    }
    if (!has_end && complete) {
      errors.required(at.child("completionTime"), "completionTime is required for Complete jobs");
    }
  }
  if ((changed("startTime") || changed("completionTime")) && has_start && has_end) {
    const auto start = parse_rfc3339(status.text_at("startTime")),
               end = parse_rfc3339(status.text_at("completionTime"));
    if (start && end && *end < *start) {
      errors.invalid(at.child("completionTime"), status.find("completionTime"),
                     "must be equal to or after `startTime`");
    }
  }
  if ((failed_changed || changed("failedIndexes")) && failed && !target) {
    complain("cannot set Failed=True condition without the FailureTarget=true condition");
  }
  if ((complete_changed || met != was("SuccessCriteriaMet")) && complete && !met) {
    complain("cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
  }
  if ((finished_changed || changed("active")) && finished && status.int_at_or(0, "active") > 0) {
    errors.invalid(at.child("active"), status.find("active"), "active>0 is invalid for finished job");
  }
  const bool idle = is_true(sub(next, "spec"), "suspend") && next.int_at_or(-1, "spec", "completions") == 0;
  if ((finished_changed || changed("startTime")) && !idle && finished && !has_start) {
    errors.required(at.child("startTime"), "startTime is required for finished job");
  }
  if ((finished_changed || changed("uncountedTerminatedPods")) && finished) {
    if (!is_empty(uncounted, "failed") || !is_empty(uncounted, "succeeded")) {
      errors.invalid(uncounted_at, shown_internal(type_named("batch/v1.UncountedTerminatedPods"), &uncounted),
                     "must be empty for finished job");
    }
  }
  const bool counted = is_set(sub(next, "spec"), "completions");
  const int64_t completions = next.int_at_or(0, "spec", "completions");
  const auto validate_indexes = [&](std::string_view key) {
    const Result<int64_t> indexes = count_indexes(status.text_at(key), completions);
    if (indexes) return;
    errors.invalid(at.child(key), status.text_at(key),
                   "error parsing " + std::string(key) + ": " + indexes.error().message);
  };
  if (changed("completedIndexes") && counted) validate_indexes("completedIndexes");
  if (changed("failedIndexes") && counted && is_set(sub(next, "spec"), "backoffLimitPerIndex") &&
      is_set(status, "failedIndexes")) {
    validate_indexes("failedIndexes");
  }
  const bool indexed = next.text_at("spec", "completionMode") == "Indexed";
  if (changed("completedIndexes") && !status.text_at("completedIndexes").empty() && !indexed) {
    errors.invalid(at.child("completedIndexes"), status.find("completedIndexes"),
                   "cannot set non-empty completedIndexes when non-indexed completion mode");
  }
  if (changed("failedIndexes") && is_set(status, "failedIndexes") &&
      !is_set(sub(next, "spec"), "backoffLimitPerIndex")) {
    errors.invalid(at.child("failedIndexes"), status.find("failedIndexes"),
                   "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
  }
  if ((changed("failedIndexes") || changed("completedIndexes")) && counted) {
    const std::string_view failures = status.text_at("failedIndexes");
    if (const std::optional<int64_t> both = common_index(status.text_at("completedIndexes"), failures, completions)) {
      errors.invalid(at.child("failedIndexes"), failures,
                     "failedIndexes and completedIndexes overlap at index: " + std::to_string(*both));
    }
  }
  if ((finished_changed || changed("terminating")) && finished && status.int_at_or(0, "terminating") > 0) {
    errors.invalid(at.child("terminating"), status.find("terminating"), "terminating>0 is invalid for finished job");
  }
  if ((changed("ready") || changed("active")) && status.int_at_or(0, "ready") > status.int_at_or(0, "active")) {
    errors.invalid(at.child("ready"), status.find("ready"), "cannot set more ready pods than active");
  }
  if (met && failed) complain("cannot set SuccessCriteriaMet=True and Failed=true conditions");
  if (met && target) complain("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
  if (is_set(sub(next, "spec"), "successPolicy") && !met && complete) {
    complain("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True");
  }
  for (const std::string_view type : {"Failed", "Complete", "FailureTarget"}) {
    if (was(type) && !is(type)) complain("cannot disable the terminal " + std::string(type) + "=True condition");
  }
  if (status.int_at_or(0, "failed") < before.int_at_or(0, "failed")) {
    errors.invalid(at.child("failed"), status.int_at_or(0, "failed"), "cannot decrease the failed counter");
  }
  const bool elastic = indexed && equal(sub(next, "spec", "completions"), sub(next, "spec", "parallelism"));
  if (!elastic && status.int_at_or(0, "succeeded") < before.int_at_or(0, "succeeded")) {
    errors.invalid(at.child("succeeded"), status.int_at_or(0, "succeeded"), "cannot decrease the succeeded counter");
  }
  if (has_end && is_set(before, "completionTime") && changed("completionTime")) {
    errors.invalid(at.child("completionTime"), status.find("completionTime"), kImmutable);
  }
  if (is_set(before, "startTime") && changed("startTime") && !is_true(sub(next, "spec"), "suspend")) {
    const bool resuming = was("Suspended") && has_condition(next, "Suspended", "False");
    if (!resuming) {
      errors.invalid(at.child("startTime"), status.find("startTime"),
                     "field is immutable for unsuspended job once set");
    }
  }
  if (was("SuccessCriteriaMet") && !met) complain("cannot disable the SuccessCriteriaMet=True condition");
  if (was("Complete") && !was("SuccessCriteriaMet") && met) {
    complain("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions");
  }
}

void warn_job_spec(const Value& spec, const Path& at, Warnings& texts) {
  if (spec.text_at("completionMode") == "Indexed" && spec.int_at_or(0, "completions") > 100000 &&
      spec.int_at_or(0, "parallelism") > 10000) {
    texts.add(at.text() +
              ": In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than "
              "10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail");
  }
  warn_about_pod_template(sub(spec, "template"), at.child("template"), texts);
}

bool same_generation(const Value& object, const Value* old) {
  return old != nullptr && object.int_at_or(0, "metadata", "generation") == old->int_at_or(0, "metadata", "generation");
}

void warn_job(Context&, const Value& job, const Value* old, Warnings& texts) {
  warn_about_name(job, old, "this is used in Pod names and hostnames", texts);
  if (!same_generation(job, old)) warn_job_spec(sub(job, "spec"), Path("spec"), texts);
}

// --- CronJob ---

void validate_time_zone(const Value& spec, const Path& at, FieldErrors& errors) {
  if (!is_set(spec, "timeZone")) return;
  const std::string_view zone = spec.text_at("timeZone");
  const Path here = at.child("timeZone");
  if (zone.empty()) return errors.invalid(here, zone, "timeZone must be nil or non-empty string");
  const std::string unknown = "unknown time zone " + std::string(zone);
  for (const std::string_view part : split(zone, '/')) {
    const bool good = !part.empty() && part.size() <= 14 && part != "." && part != ".." && !part.starts_with('-') &&
                      std::all_of(part.begin(), part.end(),
                                  [](char c) { return is_alnum(c) || c == '.' || c == '-' || c == '_' || c == '+'; });
    if (!good) return errors.invalid(here, zone, unknown);
  }
  const std::string lower = to_lower(zone);
  if (lower == "local") {
    errors.invalid(here, zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
  }
  // Without a time zone database on this machine every plausible name is accepted.
  struct stat info;
  const std::string base = "/usr/share/zoneinfo";
  if (zone == "UTC" || zone == "Local" || stat(base.c_str(), &info) != 0) return;
  if (stat((base + "/" + std::string(zone)).c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    errors.invalid(here, zone, unknown);
  }
}

void validate_cron_spec(Context& context, const Value& spec, const Value* old, FieldErrors& errors) {
  const Path at("spec");
  const std::string_view schedule = spec.text_at("schedule");
  if (schedule.empty()) {
    errors.required(at.child("schedule"));
  } else {
    const std::string wrong = cron_error(schedule);
    if (!wrong.empty()) errors.invalid(at.child("schedule"), schedule, wrong);
    const bool zone = schedule.find("TZ") != std::string_view::npos;
    const bool allowed = old != nullptr && old->text_at("schedule").find("TZ") != std::string_view::npos;
    if (zone && allowed && is_set(spec, "timeZone")) {
      errors.invalid(at.child("schedule"), schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule");
    } else if (zone && !allowed) {
      errors.invalid(at.child("schedule"), schedule,
                     "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    }
  }
  validate_non_negative(spec, "startingDeadlineSeconds", at, errors);
  if (old == nullptr || !equal(sub(*old, "timeZone"), sub(spec, "timeZone"))) validate_time_zone(spec, at, errors);
  if (spec.text_at("concurrencyPolicy").empty()) {
    errors.required(at.child("concurrencyPolicy"));
  } else {
    validate_enum(spec, "concurrencyPolicy", {"Allow", "Forbid", "Replace"}, at, errors);
  }
  const Value& job = sub(spec, "jobTemplate", "spec");
  const Path job_at = at.child("jobTemplate.spec");
  validate_job_template(context, job, job_at, errors);
  if (is_set(job, "selector")) {
    errors.invalid(job_at.child("selector"), shown_selector(job.find("selector")), "`selector` will be auto-generated");
  }
  if (is_true(job, "manualSelector")) errors.not_supported(job_at.child("manualSelector"), true, {"nil", "false"});
  validate_non_negative(spec, "successfulJobsHistoryLimit", at, errors);
  validate_non_negative(spec, "failedJobsHistoryLimit", at, errors);
}

void validate_cron_job(Context& context, const Value& object, FieldErrors& errors) {
  validate_cron_spec(context, sub(object, "spec"), nullptr, errors);
  const std::string_view name = object.text_at("metadata", "name");
  if (name.size() > 52) errors.invalid(Path("metadata.name"), name, "must be no more than 52 characters");
}

void validate_cron_job_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_cron_spec(context, sub(next, "spec"), old.find("spec"), errors);
}

void warn_cron_job(Context&, const Value& object, const Value* old, Warnings& texts) {
  warn_about_name(object, old, "this is used in Pod names and hostnames", texts);
  if (!same_generation(object, old)) {
    warn_job_spec(sub(object, "spec", "jobTemplate", "spec"), Path("spec.jobTemplate.spec"), texts);
  }
  if (old != nullptr && object.text_at("spec", "schedule").find("TZ") != std::string_view::npos) {
    texts.add(
        "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
        "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details");
  }
}

}  // namespace

const Hooks kJobHooks = {.generation = Generation::Spec,
                         .update_checks = {.whole = 1},
                         .defaults = default_job,
                         .create = create_job,
                         .update = update_job,
                         .validate = validate_job,
                         .validate_update = validate_job_update,
                         .validate_status = validate_job_status,
                         .warn = warn_job};

const Hooks kCronJobHooks = {.generation = Generation::Spec,
                             .status_checks = {.compared = 0},
                             .defaults = default_cron_job,
                             .create = create_cron_job,
                             .update = update_cron_job,
                             .validate = validate_cron_job,
                             .validate_update = validate_cron_job_update,
                             .warn = warn_cron_job};

}  // namespace holdfast::kinds
