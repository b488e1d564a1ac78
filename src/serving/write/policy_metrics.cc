#include "write/policy_metrics.h"

#include "expressions/expressions.h"

namespace holdfast::write {
namespace {

constexpr double kBounds[] = {0.0000005, 0.001, 0.01, 0.1, 1};

// By the prefix of the message, as upstream; a failed validation is an invalid_error, too.
std::string_view error_type(std::string_view problem) {
  if (problem.empty()) return "no_error";
  if (problem.starts_with("compilation")) return "compile_error";
  if (problem.starts_with(expressions::kOutOfBudget)) return "out_of_budget";
  return "invalid_error";
}

double seconds(std::chrono::nanoseconds took) { return std::chrono::duration<double>(took).count(); }

}  // namespace

PolicyMetrics::PolicyMetrics(MetricRegistry& registry)
    : validations_(
          registry.counters("apiserver_validating_admission_policy_check_total",
                            "Validation admission policy check total, labeled by policy and further identified "
                            "by binding and enforcement action taken.",
                            {"policy", "policy_binding", "error_type", "enforcement_action"})),
      mutations_(registry.counters("apiserver_mutating_admission_policy_check_total",
                                   "Mutation admission policy check total, labeled by policy and further identified by "
                                   "binding.",
                                   {"policy", "policy_binding", "error_type"})),
      validation_seconds_(registry.histograms("apiserver_validating_admission_policy_check_duration_seconds",
                                              "Validation admission latency for individual validation expressions in "
                                              "seconds, labeled by policy and further including binding and "
                                              "enforcement action taken.",
                                              kBounds,
                                              {"policy", "policy_binding", "error_type", "enforcement_action"})),
      mutation_seconds_(registry.histograms("apiserver_mutating_admission_policy_check_duration_seconds",
                                            "Mutation admission latency for individual mutation expressions in "
                                            "seconds, labeled by policy and binding.",
                                            kBounds, {"policy", "policy_binding", "error_type"})) {}

void PolicyMetrics::validated(std::string_view policy, std::string_view binding, std::string_view problem,
                              std::string_view action, std::chrono::nanoseconds took) {
  const std::string_view type = error_type(problem);
  validations_.with({policy, binding, type, action}).add();
  validation_seconds_.with({policy, binding, type, action}).observe(seconds(took));
}

void PolicyMetrics::mutated(std::string_view policy, std::string_view binding, std::string_view problem,
                            std::chrono::nanoseconds took) {
  const std::string_view type = error_type(problem);
  mutations_.with({policy, binding, type}).add();
  mutation_seconds_.with({policy, binding, type}).observe(seconds(took));
}

}  // namespace holdfast::write
