// The Pod Security Standards: what each level forbids. Private to the module.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace holdfast::admission
