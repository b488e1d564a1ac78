// PodSecurity: namespace labels select the standards that pods are checked against, for enforcement and for warnings.

#include "admission/pod_security.h"

#include <algorithm>
#include <map>

#include "admission/plugin.h"
#include "base/api_error.h"
#include "base/strings.h"
#include "base/text.h"

namespace holdfast::admission {

namespace {

std::string_view name_of(Level level) {
  return level == Level::Privileged ? "privileged" : level == Level::Baseline ? "baseline" : "restricted";
}

std::string version_text(int32_t minor) { return minor < 0 ? "latest" : "v1." + std::to_string(minor); }

std::string_view operation_label(const Attributes& attributes) {
  return attributes.operation == Operation::Update ? "update" : "create";
}

std::string_view resource_label(const types::Resource& resource) {
  if (is_core(resource, "pods")) return "pod";
  return is_core(resource, "namespaces") ? "namespace" : "controller";
}

// The newest version of the standards known to this server.
constexpr int32_t kNewestMinor = 36;

}  // namespace

std::string LevelVersion::text() const { return std::string(name_of(level)) + ":" + version_text(minor); }

PodSecurityCounts::PodSecurityCounts(MetricRegistry& metrics)
    : evaluations_(metrics.counters(
          "pod_security_evaluations_total",
          "Number of policy evaluations that occurred, not counting ignored or exempt "
          "requests.",
          {"decision", "policy_level", "policy_version", "mode", "request_operation", "resource", "subresource"})),
      errors_(metrics.counters("pod_security_errors_total",
                               "Number of errors preventing normal evaluation. Non-fatal errors may result in the "
                               "latest restricted profile being used for evaluation.",
                               {"fatal", "request_operation", "resource", "subresource"})),
      exemptions_(metrics.counters("pod_security_exemptions_total",
                                   "Number of exempt requests, not counting ignored or out of scope requests.",
                                   {"request_operation", "resource", "subresource"})) {
  for (const std::string_view operation : {"create", "update"}) {
    (void)evaluations_.with({"allow", "privileged", "latest", "enforce", operation, "pod", ""});
    for (const std::string_view resource : {"pod", "controller"}) (void)exemptions_.with({operation, resource, ""});
  }
}

void PodSecurityCounts::evaluated(bool allowed, const LevelVersion& policy, Mode mode, const Attributes& attributes) {
  const bool latest = policy.minor < 0 || policy.level == Level::Privileged;  // Privileged is the same in all versions.
  const std::string version = latest ? "latest" : policy.minor <= kNewestMinor ? version_text(policy.minor) : "future";
  const std::string_view as = mode == Mode::Enforce ? "enforce" : mode == Mode::Audit ? "audit" : "warn";
  evaluations_
      .with({allowed ? "allow" : "deny", name_of(policy.level), version, as, operation_label(attributes),
             resource_label(attributes.resource), attributes.subresource})
      .add();
}

void PodSecurityCounts::failed(bool fatal, const Attributes& attributes) {
  errors_
      .with({fatal ? "true" : "false", operation_label(attributes), resource_label(attributes.resource),
             attributes.subresource})
      .add();
}

void PodSecurityCounts::exempted(const Attributes& attributes) {
  exemptions_.with({operation_label(attributes), resource_label(attributes.resource), attributes.subresource}).add();
}

std::optional<Level> parse_level(std::string_view text) {
  if (text == "privileged") return Level::Privileged;
  if (text == "baseline") return Level::Baseline;
  if (text == "restricted") return Level::Restricted;
  return std::nullopt;
}

std::optional<int32_t> parse_version(std::string_view text) {
  if (text == "latest") return -1;
  if (!text.starts_with("v1.") || text.size() < 4) return std::nullopt;
  const std::string_view digits = text.substr(3);
  const std::optional<int32_t> minor = parse_number<int32_t>(digits);
  const bool plain = digits.size() == 1 || digits[0] != '0';
  return minor && *minor >= 0 && plain ? minor : std::nullopt;
}

namespace {

constexpr std::string_view kPrefix = "pod-security.kubernetes.io/";

struct Policy : PodSecurityPolicy {
  std::vector<Cause> errors;
};

Policy policy_of(const Attributes& attributes, const Value& space) {
  const PodSecurityPolicy& defaults = attributes.configuration->pod_security.defaults;
  Policy policy{defaults, {}};
  const std::span<const Member> labels = space.members_at("metadata", "labels");
  if (std::ranges::none_of(labels, [](const Member& label) { return label.key.starts_with(kPrefix); })) return policy;
  bool enforce_set = false, warn_set = false, warn_version_set = false;
  for (const std::string_view mode : {"enforce", "audit", "warn"}) {
    LevelVersion parsed = mode == "enforce" ? defaults.enforce : mode == "audit" ? defaults.audit : defaults.warn;
    const std::string level_label = std::string(kPrefix) + std::string(mode), version_label = level_label + "-version";
    const auto complain = [&](const std::string& label, std::string_view text, std::string_view why) {
      policy.errors.push_back(field_invalid_text("metadata.labels[" + label + "]", text, why));
    };
    bool level_set = false, version_set = false;
    if (const Value* text = space.get("metadata", "labels", std::string_view(level_label)); text != nullptr) {
      level_set = true;
      const std::optional<Level> level = parse_level(text->as_string());
      if (!level) complain(level_label, text->as_string(), kLevelRule);
      // Invalid levels are enforced as restricted, and otherwise ignored.
      parsed.level = level.value_or(mode == "enforce" ? Level::Restricted : Level::Privileged);
      if (mode == "enforce") enforce_set = level.has_value();
    }
    if (const Value* text = space.get("metadata", "labels", std::string_view(version_label)); text != nullptr) {
      version_set = true;
      const std::optional<int32_t> minor = parse_version(text->as_string());
      if (!minor) complain(version_label, text->as_string(), kVersionRule);
      parsed.minor = minor.value_or(-1);
    }
    if (mode == "enforce") policy.enforce = parsed;
    if (mode == "audit") policy.audit = parsed;
    if (mode == "warn") {
      policy.warn = parsed;
      warn_set = level_set;
      warn_version_set = version_set;
    }
  }
  if (!warn_set && enforce_set && policy.enforce.level > policy.warn.level) {
    policy.warn.level = policy.enforce.level;
    if (!warn_version_set) policy.warn.minor = policy.enforce.minor;
  }
  return policy;
}

std::string details(const std::vector<Violation>& found) {
  std::string text;
  for (const Violation& one : found) {
    text += (text.empty() ? "" : ", ") + one.reason + (one.detail.empty() ? "" : " (" + one.detail + ")");
  }
  return text;
}

std::string reasons(const std::vector<Violation>& found) {
  std::string text;
  for (const Violation& one : found) text += (text.empty() ? "" : ", ") + one.reason;
  return text;
}

void annotate(Attributes& attributes, std::string_view key, std::string value) {
  attributes.annotations.emplace_back(std::string(kPrefix) + std::string(key), std::move(value));
}

// --- Exemptions ---

bool is_exempt(const std::vector<std::string>& names, std::string_view name) {
  return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
}

// Marks the request as exempt because of `reason`.
Result<Unit> exempt(Attributes& attributes, std::string_view reason) {
  annotate(attributes, "exempt", std::string(reason));
  if (attributes.counts != nullptr) attributes.counts->exempted(attributes);
  return Unit{};
}

bool equivalent(const PodSecurityPolicy& a, const PodSecurityPolicy& b) {
  const auto same = [](const LevelVersion& one, const LevelVersion& other) {
    return one == other || (one.level == Level::Privileged && other.level == Level::Privileged);
  };
  return same(a.enforce, b.enforce) && same(a.audit, b.audit) && same(a.warn, b.warn);
}

// Warns about labels on an exempt namespace, which have no effect.
void warn_about_exemption(Attributes& attributes, const Value& space, const Policy& policy) {
  if (equivalent(policy, {}) || equivalent(policy, attributes.configuration->pod_security.defaults)) return;
  std::string asked;
  const auto add = [&](const std::string& mode, const LevelVersion& level) {
    const std::string label = std::string(kPrefix) + mode, version_label = label + "-version";
    const bool labelled = space.get("metadata", "labels", std::string_view(label)) != nullptr ||
                          space.get("metadata", "labels", std::string_view(version_label)) != nullptr;
    if (labelled && level.level != Level::Privileged) asked += (asked.empty() ? "" : ", ") + mode + "=" + level.text();
  };
  add("enforce", policy.enforce);
  add("audit", policy.audit);
  add("warn", policy.warn);
  attributes.warnings.push_back("namespace " + go_quote(space.text_at("metadata", "name")) +
                                " is exempt from Pod Security, and the policy (" + asked + ") will be ignored");
}

// --- Pods and their controllers ---

// Only changed images, or added and removed containers, can introduce violations.
bool is_significant(const Value& pod, const Value& old) {
  for (const std::string_view list : {"containers", "initContainers"}) {
    const std::span<const Value> now = pod.items_at("spec", list), was = old.items_at("spec", list);
    if (now.size() != was.size()) return true;
    for (size_t i = 0; i < now.size(); ++i) {
      if (now[i].text_at("image") != was[i].text_at("image")) return true;
    }
  }
  const std::span<const Value> was = old.items_at("spec", "ephemeralContainers");
  for (const Value& container : pod.items_at("spec", "ephemeralContainers")) {
    const auto known = std::find_if(was.begin(), was.end(),
                                    [&](const Value& one) { return one.text_at("name") == container.text_at("name"); });
    if (known == was.end() || known->text_at("image") != container.text_at("image")) return true;
  }
  return false;
}

// The pod template of a controller; null if the kind has none.
const Value* pod_template(const types::Resource& resource, const Value& object) {
  const std::string_view plural = resource.plural;
  if (resource.group == "apps" &&
      (plural == "deployments" || plural == "replicasets" || plural == "statefulsets" || plural == "daemonsets")) {
    return object.get("spec", "template");
  }
  if (is_core(resource, "replicationcontrollers")) return object.get("spec", "template");
  if (is_core(resource, "podtemplates")) return object.find("template");
  if (resource.group == "batch" && plural == "jobs") return object.get("spec", "template");
  if (resource.group == "batch" && plural == "cronjobs") return object.get("spec", "jobTemplate", "spec", "template");
  return nullptr;
}

bool makes_pods(const types::Resource& resource) {
  return resource.group == "apps" || resource.group == "batch" || is_core(resource, "replicationcontrollers") ||
         is_core(resource, "podtemplates");
}

// `enforced` is true for pods. `significant` is false for updates of a pod that cannot introduce violations.
Result<Unit> check_pod(Attributes& attributes, const Value& metadata_holder, const Value& spec, bool enforced,
                       bool significant, const Value& object) {
  const PodSecurityConfiguration& configuration = attributes.configuration->pod_security;
  if (is_exempt(configuration.exempt_namespaces, attributes.ns)) return exempt(attributes, "namespace");
  if (is_exempt(configuration.exempt_users, attributes.user)) return exempt(attributes, "user");
  const std::optional<Value> space = attributes.lookup.get(attributes.arena, "", "namespaces", "", attributes.ns);
  if (!space) {
    if (attributes.counts != nullptr) attributes.counts->failed(true, attributes);
    if (!enforced) return Unit{};
    return internal("failed to lookup namespace " + go_quote(attributes.ns));
  }
  const Policy policy = policy_of(attributes, *space);
  const Value* metadata = metadata_holder.find("metadata");
  const auto count = [&attributes](bool allowed, const LevelVersion& by, PodSecurityCounts::Mode mode) {
    if (attributes.counts != nullptr) attributes.counts->evaluated(allowed, by, mode, attributes);
  };
  using enum PodSecurityCounts::Mode;
  const bool asks_for_nothing =
      policy.errors.empty() && policy.warn.level == Level::Privileged && policy.audit.level == Level::Privileged;
  if (enforced && asks_for_nothing && policy.enforce.level == Level::Privileged) {
    annotate(attributes, "enforce-policy", LevelVersion{}.text());
    count(true, policy.enforce, Enforce);
    return Unit{};
  }
  if (!significant || (!enforced && asks_for_nothing)) return Unit{};
  if (is_exempt(configuration.exempt_runtime_classes, spec.text_at("runtimeClassName"))) {
    return exempt(attributes, "runtimeClass");
  }
  if (!policy.errors.empty()) {
    annotate(attributes, "error", "Failed to parse policy: " + aggregate_text(policy.errors));
    if (attributes.counts != nullptr) attributes.counts->failed(false, attributes);
  }
  if (const std::vector<Violation> found = violations(policy.audit, metadata, spec); !found.empty()) {
    annotate(attributes, "audit-violations",
             "would violate PodSecurity " + go_quote(policy.audit.text()) + ": " + details(found));
    count(false, policy.audit, Audit);
  }
  if (enforced) {
    annotate(attributes, "enforce-policy", policy.enforce.text());
    const std::vector<Violation> found = violations(policy.enforce, metadata, spec);
    count(found.empty(), policy.enforce, Enforce);
    if (!found.empty()) {
      return refuse(attributes, object,
                    "violates PodSecurity " + go_quote(policy.enforce.text()) + ": " + details(found));
    }
  }
  const std::vector<Violation> found = violations(policy.warn, metadata, spec);
  if (!found.empty()) {
    attributes.warnings.push_back("would violate PodSecurity " + go_quote(policy.warn.text()) + ": " + details(found));
    count(false, policy.warn, Warn);
  }
  return Unit{};
}

// --- Namespaces ---

void warn_about_pods(Attributes& attributes, std::string_view name, const LevelVersion& enforce) {
  struct Count {
    std::string first;
    size_t pods = 0;
  };
  std::map<std::string, Count> by_reason;
  for (const Value& pod : attributes.lookup.list(attributes.arena, "", "pods", name)) {
    const Value* spec = pod.find("spec");
    if (spec == nullptr) continue;
    if (is_exempt(attributes.configuration->pod_security.exempt_runtime_classes, spec->text_at("runtimeClassName")))
      continue;
    const std::vector<Violation> found = violations(enforce, pod.find("metadata"), *spec);
    if (found.empty()) continue;
    Count& count = by_reason[reasons(found)];
    const std::string pod_name(pod.text_at("metadata", "name"));
    if (count.pods++ == 0 || pod_name < count.first) count.first = pod_name;
  }
  if (by_reason.empty()) return;
  attributes.warnings.push_back("existing pods in namespace " + go_quote(name) +
                                " violate the new PodSecurity enforce level " + go_quote(enforce.text()));
  std::vector<std::string> texts;
  for (const auto& [reason, count] : by_reason) {
    std::string who = count.first;
    if (count.pods == 2) who += " (and 1 other pod)";
    if (count.pods > 2) who += " (and " + std::to_string(count.pods - 1) + " other pods)";
    texts.push_back(who + ": " + reason);
  }
  std::sort(texts.begin(), texts.end());
  for (std::string& text : texts) attributes.warnings.push_back(std::move(text));
}

Result<Unit> check_namespace(Attributes& attributes, const Value& space) {
  const Policy policy = policy_of(attributes, space);
  const std::string_view name = space.text_at("metadata", "name");
  const bool exempt = is_exempt(attributes.configuration->pod_security.exempt_namespaces, name);
  if (attributes.old == nullptr) {
    if (!policy.errors.empty()) return invalid(GroupKind{"", "Namespace"}, name, policy.errors);
    if (exempt) warn_about_exemption(attributes, space, policy);
    return Unit{};
  }
  const Policy before = policy_of(attributes, *attributes.old);
  if (!policy.errors.empty() && policy.errors != before.errors) {
    return invalid(GroupKind{"", "Namespace"}, name, policy.errors);
  }
  const bool looser = policy.enforce.minor == before.enforce.minor && policy.enforce.level <= before.enforce.level;
  if (policy.enforce == before.enforce || policy.enforce.level == Level::Privileged || looser) return Unit{};
  if (exempt) {
    warn_about_exemption(attributes, space, policy);
  } else {
    warn_about_pods(attributes, name, policy.enforce);
  }
  return Unit{};
}

bool handles(const types::Resource& resource, std::string_view subresource, Operation operation) {
  if (operation != Operation::Create && operation != Operation::Update) return false;
  if (is_core(resource, "pods")) return subresource.empty() || subresource == "ephemeralcontainers";
  return subresource.empty() && (is_core(resource, "namespaces") || makes_pods(resource));
}

Result<Unit> check(Attributes& attributes, const Value& object) {
  if (is_core(attributes.resource, "namespaces")) return check_namespace(attributes, object);
  if (is_core(attributes.resource, "pods")) {
    const Value* spec = object.find("spec");
    if (spec == nullptr) return Unit{};
    const bool update = attributes.operation == Operation::Update && attributes.old != nullptr;
    return check_pod(attributes, object, *spec, true, !update || is_significant(object, *attributes.old), object);
  }
  const Value* found = pod_template(attributes.resource, object);
  if (found == nullptr || found->find("spec") == nullptr) return Unit{};
  return check_pod(attributes, *found, *found->find("spec"), false, true, object);
}

}  // namespace

const Plugin kPodSecurity = {.name = "PodSecurity", .handles = handles, .validate = check};

}  // namespace holdfast::admission
