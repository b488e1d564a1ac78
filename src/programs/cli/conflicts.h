// The conflicts of an apply, field by field, and their resolution.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "cli/terminal.h"
#include "value/value.h"

namespace holdfast::cli {

enum class Resolution : uint8_t {
  Open,
  Take,   // Our value wins; the other managers lose the field.
  Share,  // We apply the live value and co-own the field.
  Yield,  // We drop the field from our configuration.
};

struct FieldConflict {
  std::string path;
  std::string ours, live;  // Values as compact JSON; "(unset)" for a marker, "(none)" if absent.
  struct Owner {
    std::string manager, operation, subresource;
    std::optional<int64_t> since;
  };
  std::vector<Owner> owners;
  Resolution resolution = Resolution::Open;
};

// The conflicts named by a Conflict error, one per field, completed from the live object and its managedFields.
std::vector<FieldConflict> read_conflicts(const Error& error, const Value& config, const Value& live,
                                          std::string_view manager);

// FIELD, YOURS, LIVE, OWNER, OPERATION, SINCE; cut to the terminal's width.
std::string conflict_table(const std::vector<FieldConflict>& conflicts, const Terminal& terminal, UnixTime now);

// The configuration with shared fields set to their live value and yielded fields removed. Allocated in `arena`.
Value resolved(Arena& arena, const Value& config, const Value& live, const std::vector<FieldConflict>& conflicts);

}  // namespace holdfast::cli
