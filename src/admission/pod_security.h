// The Pod Security Standards: what each level forbids. Private to the module.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "admission/admission.h"
#include "base/metrics.h"
#include "value/value.h"

namespace holdfast::admission {

enum class Level : uint8_t { Privileged, Baseline, Restricted };

struct LevelVersion {
  Level level = Level::Privileged;
  int32_t minor = -1;  // Of v1.x; -1: latest.
  bool operator==(const LevelVersion&) const = default;
  std::string text() const;  // baseline:latest
};

struct Violation {
  std::string reason, detail;
};

// Everything in a pod (its metadata and spec) that the level forbids, in Kubernetes' order.
std::vector<Violation> violations(const LevelVersion& policy, const Value* metadata, const Value& spec);

// What the plugin decided, as Kubernetes counts it.
class PodSecurityCounts {
 public:
  explicit PodSecurityCounts(MetricRegistry& metrics);

  enum class Mode : uint8_t { Enforce, Audit, Warn };
  void evaluated(bool allowed, const LevelVersion& policy, Mode mode, const Attributes& attributes);
  // `fatal`: the request could not be judged at all.
  void failed(bool fatal, const Attributes& attributes);

 private:
  Family<Counter>&evaluations_, &errors_;
};

}  // namespace holdfast::admission
