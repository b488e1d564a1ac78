// What kube-apiserver counts of admission policies, under its names.
#pragma once

#include <chrono>
#include <string_view>

#include "base/metrics.h"

namespace holdfast::write {

class PolicyMetrics {
 public:
  explicit PolicyMetrics(MetricRegistry& registry);

  // `action`: deny, audit or warn; allow: an error that the policy ignores. What passes is not counted. `problem` is
  // the failure's message.
  void validated(std::string_view policy, std::string_view binding, std::string_view problem, std::string_view action,
                 std::chrono::nanoseconds took);
  // Every mutation; `problem` empty: it succeeded.
  void mutated(std::string_view policy, std::string_view binding, std::string_view problem,
               std::chrono::nanoseconds took);

 private:
  Family<Counter>&validations_, &mutations_;
  Family<Histogram>&validation_seconds_, &mutation_seconds_;
};

}  // namespace holdfast::write
