// kube-apiserver's metrics for admission policies, under the same names.
#pragma once

#include <chrono>
#include <string_view>

#include "base/metrics.h"

namespace holdfast::write {

class PolicyMetrics {
 public:
  explicit PolicyMetrics(MetricRegistry& registry);

  // `action` is deny, audit or warn, or allow for an error ignored by the policy. Successful validations are not
  // counted. `problem` is the error message.
  void validated(std::string_view policy, std::string_view binding, std::string_view problem, std::string_view action,
                 std::chrono::nanoseconds took);
  // Counts every mutation; `problem` is empty if it succeeded.
  void mutated(std::string_view policy, std::string_view binding, std::string_view problem,
               std::chrono::nanoseconds took);

 private:
  Family<Counter>&validations_, &mutations_;
  Family<Histogram>&validation_seconds_, &mutation_seconds_;
};

}  // namespace holdfast::write
