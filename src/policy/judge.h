// What a ValidatingAdmissionPolicy says about one request.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "policy/definition.h"

namespace holdfast::policy {

// One request as a policy sees it, in the version in which the policy matched it.
struct Subject {
  expressions::Inputs inputs;
  // Match conditions see the requested resource in `request.resource`, and no namespace.
  cel::Val request_as_asked;
};

// Whether the policy's match conditions let the request through.
expressions::Matched meets_conditions(Arena& arena, const Policy& policy, const Subject& subject);

// A validation that did not pass.
struct Failure {
  size_t validation = 0;  // Its place in the policy.
  std::string message;
  std::string reason;  // Of the policy; empty: Invalid.
  // How long evaluating took. Of a policy that failed as a whole: nothing.
  std::chrono::nanoseconds took{};
};

struct Verdict {
  std::vector<Failure> failures;  // Of a policy that ignores failures: those that evaluated to false.
  std::vector<Failure> ignored;   // Errors of a policy that ignores failures.
  std::vector<std::pair<std::string, std::string>> annotations;
  std::vector<std::string> annotation_problems;  // They deny, whatever the binding's actions are.
};
Verdict judge(Arena& arena, const Policy& policy, const Subject& subject);

}  // namespace holdfast::policy
