// The Pod Security Standards: checks of each level. Private to the module.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admission/admission.h"
#include "base/metrics.h"
#include "value/value.h"

namespace holdfast::admission {

// Parses "privileged", "baseline" or "restricted", and "latest" (-1) or "v1.x" (x). nullopt if invalid.
std::optional<Level> parse_level(std::string_view text);
std::optional<int32_t> parse_version(std::string_view text);
inline constexpr std::string_view kLevelRule = "must be one of privileged, baseline, restricted";
inline constexpr std::string_view kVersionRule = "must be \"latest\" or \"v1.x\"";

struct Violation {
  std::string reason, detail;
};

// All violations of the level in a pod (its metadata and spec), in Kubernetes' order.
std::vector<Violation> violations(const LevelVersion& policy, const Value* metadata, const Value& spec);

// Metrics of the plugin's decisions, as in Kubernetes.
class PodSecurityCounts {
 public:
  explicit PodSecurityCounts(MetricRegistry& metrics);

  enum class Mode : uint8_t { Enforce, Audit, Warn };
  void evaluated(bool allowed, const LevelVersion& policy, Mode mode, const Attributes& attributes);
  // `fatal` if the request could not be evaluated at all.
  void failed(bool fatal, const Attributes& attributes);
  void exempted(const Attributes& attributes);

 private:
  Family<Counter>&evaluations_, &errors_, &exemptions_;
};

}  // namespace holdfast::admission
