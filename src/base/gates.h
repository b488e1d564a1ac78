// Feature gates: one table with name, stage, default and what "off" does. --help, docs and errors are made from it.
//
// Threading: set while the process starts, read by everyone afterwards.
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
  kCount,
};

struct GateInfo {
  Gate gate;
  std::string_view name;
  std::string_view stage;  // Alpha, Beta, GA.
  bool default_on;
  bool locked;
  std::string_view when_off;  // What turning it off does, one sentence.
};

std::span<const GateInfo> all_gates();

// An immutable choice for every gate; passed to modules, never a global.
class Gates {
 public:
  Gates();  // All defaults.

  bool on(Gate gate) const { return on_[static_cast<size_t>(gate)]; }
  Gates with(Gate gate, bool value) const;

  // "Name=true,Other=false", added to this choice. Names an unknown or locked gate in the error and lists the known
  // ones.
  Result<Gates> parse(std::string_view text) const;

 private:
  std::array<bool, static_cast<size_t>(Gate::kCount)> on_;
};

}  // namespace holdfast
