#include "policy/judge.h"

#include "base/strings.h"

namespace holdfast::policy {
namespace {

using expressions::Activation;
using expressions::Evaluated;
using Clock = std::chrono::steady_clock;

constexpr size_t kMaxAnnotationBytes = 10 * 1024;

Verdict failed_as_a_whole(const Policy& policy, std::string message) {
  Verdict verdict;
  (policy.ignores_failure ? verdict.ignored : verdict.failures).push_back({0, std::move(message), {}});
  return verdict;
}

// The result of a messageExpression, if it can be shown.
std::string_view shown_message(const std::optional<Evaluated>& evaluated) {
  if (!evaluated || !evaluated->problem.empty() || !evaluated->value.is_string()) return {};
  const std::string_view message = trim(evaluated->value.text());
  if (message.size() > cel::kMaxMessageBytes || message.find('\n') != std::string_view::npos) return {};
  return message;
}

std::string message_of(const Policy::Validation& validation, const std::optional<Evaluated>& evaluated) {
  if (const std::string_view message = shown_message(evaluated); !message.empty()) return std::string(message);
  if (!validation.message.empty()) return validation.message;
  return "failed expression: " + std::string(trim(validation.condition.text));
}

// Messages and audit annotations have no authorizer, and neither have the variables they use: variables are computed
// again for them (upstream: validator.go).
expressions::Inputs without_authorizer(const expressions::Inputs& inputs) {
  expressions::Inputs others = inputs;
  others.authorizer = nullptr;
  return others;
}

// Messages, indexed by validation.
struct Messages {
  std::vector<std::optional<Evaluated>> evaluated;
  bool out_of_budget = false;
};

// Kubernetes evaluates all messages before it knows which are needed, and exceeding the budget fails the policy.
// Unneeded ones are evaluated here only if that could happen.
Messages evaluate_messages(Arena& arena, const Policy& policy, const Subject& subject,
                           std::span<const std::optional<Evaluated>> results, int64_t budget) {
  const Policy::Programs& programs = policy.programs();
  Messages messages;
  messages.evaluated.resize(programs.validations.size());
  size_t count = 0;
  for (const Policy::Validation& validation : programs.validations) count += validation.message_expression ? 1 : 0;
  if (count == 0) return messages;
  // An evaluation stops at the first step beyond its limit.
  constexpr int64_t kMost = int64_t{cel::kPerCallLimit} * 2;
  const bool may_exceed = static_cast<int64_t>(count + programs.variables.size()) * kMost > budget;
  Activation activation(arena, policy.scope(), programs.variables, without_authorizer(subject.inputs));
  for (size_t i = 0; i < programs.validations.size(); ++i) {
    const Policy::Validation& validation = programs.validations[i];
    if (!validation.message_expression) continue;
    const bool wanted = results[i] && results[i]->problem.empty() && !results[i]->value.is_true();
    if (!wanted && !may_exceed) continue;
    messages.evaluated[i] = activation.evaluate(*validation.message_expression, budget);
    if (!messages.evaluated[i]) {
      messages.out_of_budget = true;
      return messages;
    }
  }
  return messages;
}

// nullopt if the policy's budget was exceeded.
std::optional<Verdict> annotate(Arena& arena, const Policy& policy, const Subject& subject, Verdict verdict) {
  const Policy::Programs& programs = policy.programs();
  Activation activation(arena, policy.scope(), programs.variables, without_authorizer(subject.inputs));
  int64_t budget = cel::kRuntimeBudget;
  for (const Policy::AuditAnnotation& annotation : programs.annotations) {
    const std::optional<Evaluated> result = activation.evaluate(annotation.value, budget);
    if (!result) return std::nullopt;
    if (!result->problem.empty()) {
      if (!policy.ignores_failure) verdict.annotation_problems.push_back(result->problem);
      continue;
    }
    if (!result->value.is_string()) continue;
    if (const std::string_view value = trim(result->value.text()); !value.empty()) {
      verdict.annotations.emplace_back(annotation.key, value.substr(0, kMaxAnnotationBytes));
    }
  }
  return verdict;
}

}  // namespace

expressions::Matched check_match_conditions(Arena& arena, const Policy& policy, const Subject& subject) {
  const Policy::Programs& programs = policy.programs();
  if (programs.conditions.empty()) return {};
  expressions::Inputs inputs = subject.inputs;
  inputs.namespace_object = cel::Val::null();
  inputs.request = subject.original_request;
  Activation activation(arena, policy.scope(), programs.variables, inputs);
  return expressions::match(programs.conditions, activation, policy.ignores_failure);
}

Verdict judge(Arena& arena, const Policy& policy, const Subject& subject) {
  const expressions::Matched matched = check_match_conditions(arena, policy, subject);
  if (!matched.problem.empty()) return failed_as_a_whole(policy, matched.problem);
  if (!matched.matches) return {};

  const Policy::Programs& programs = policy.programs();
  Activation activation(arena, policy.scope(), programs.variables, subject.inputs);
  int64_t budget = cel::kRuntimeBudget;
  std::vector<std::optional<Evaluated>> results;
  results.reserve(programs.validations.size());
  std::vector<Clock::time_point> times{Clock::now()};  // Before each validation, and after the last one.
  for (const Policy::Validation& validation : programs.validations) {
    results.push_back(activation.evaluate(validation.condition, budget));
    times.push_back(Clock::now());
    if (!results.back()) return failed_as_a_whole(policy, std::string(expressions::kOutOfBudget));
  }
  const Messages messages = evaluate_messages(arena, policy, subject, results, budget);
  Verdict verdict;
  for (size_t i = 0; i < results.size(); ++i) {
    const Policy::Validation& validation = programs.validations[i];
    const std::chrono::nanoseconds took = times[i + 1] - times[i];
    std::vector<Failure>& errors = policy.ignores_failure ? verdict.ignored : verdict.failures;
    if (!results[i]->problem.empty()) {
      errors.push_back({i, results[i]->problem, {}, took});
    } else if (messages.out_of_budget) {
      errors.push_back({i, "failed messageExpression: " + std::string(expressions::kOutOfBudget), {}, took});
    } else if (!results[i]->value.is_true()) {
      verdict.failures.push_back({i, message_of(validation, messages.evaluated[i]), validation.reason, took});
    }
  }
  if (programs.annotations.empty()) return verdict;
  std::optional<Verdict> annotated = annotate(arena, policy, subject, std::move(verdict));
  if (!annotated) return failed_as_a_whole(policy, std::string(expressions::kOutOfBudget));
  return std::move(*annotated);
}

}  // namespace holdfast::policy
