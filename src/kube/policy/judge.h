// Evaluates a ValidatingAdmissionPolicy for one request.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "policy/definition.h"

namespace holdfast::policy {

// A request as seen by a policy, in the version in which the policy matched it.
struct Subject {
  expressions::Inputs inputs;
  // Match conditions see the requested resource in `request.resource`, and no namespace.
  cel::Val original_request;
};

// Evaluates the policy's match conditions.
expressions::Matched check_match_conditions(Arena& arena, const Policy& policy, const Subject& subject);

// A validation that failed.
struct Failure {
  size_t validation = 0;  // Index in the policy.
  std::string message;
  std::string reason;  // From the validation; empty means Invalid.
  // Evaluation time; zero if the policy failed as a whole.
  std::chrono::nanoseconds took{};
};

struct Verdict {
  std::vector<Failure> failures;  // If the policy ignores failures, only validations that evaluated to false.
  std::vector<Failure> ignored;   // Errors, if the policy ignores failures.
  std::vector<std::pair<std::string, std::string>> annotations;
  std::vector<std::string> annotation_problems;  // They deny the request regardless of the binding's actions.
};
Verdict judge(Arena& arena, const Policy& policy, const Subject& subject);

}  // namespace holdfast::policy
