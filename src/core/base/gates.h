// Feature gates: one table with name, stage, default and the effect of "off". --help, docs and errors are generated
// from it.
//
// Threading: set during startup, read-only afterwards.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace holdfast {

enum class Gate : uint8_t {
  ManagedFieldsOptOut,
  ManagedFieldsOptOutClient,
  DropAnyField,
  ServerSideApplyUnsettingFields,
  DeclarativeFieldManager,
  ManagedFieldsPool,
  CompressManagedFieldsInCache,
  FieldsV2,
  FieldsV2AtRest,
  RetainAllManagers,
  APIServerIdentity,
  AllowUnsafeMalformedObjectDeletion,
  CBORServingAndStorage,
  OwnershipAPI,
  kCount,
};

struct GateInfo {
  Gate gate;
  std::string_view name;
  std::string_view stage;  // Alpha, Beta, GA.
  bool default_on;
  bool locked;
  std::string_view when_off;  // The effect of turning it off, in one sentence.
};

std::span<const GateInfo> all_gates();

// An immutable setting of every gate; passed to modules, never a global.
class Gates {
 public:
  Gates();  // All defaults.

  bool on(Gate gate) const { return on_[static_cast<size_t>(gate)]; }
  Gates with(Gate gate, bool value) const;

  // Applies "Name=true,Other=false" on top of these settings. The error names an unknown or locked gate and lists the
  // known ones.
  Result<Gates> parse(std::string_view text) const;

 private:
  std::array<bool, static_cast<size_t>(Gate::kCount)> on_;
};

}  // namespace holdfast
