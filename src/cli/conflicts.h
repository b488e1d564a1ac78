// The conflicts of an apply, field by field, and how they are resolved.
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
  Take,   // Ours wins; the others lose the field.
  Share,  // We apply the live value, and own the field together with the others.
  Yield,  // We leave the field out.
};

struct FieldConflict {
  std::string path;
  std::string ours, live;  // Values as compact JSON; "(none)" where there is none.
  struct Owner {
    std::string manager, operation, subresource;
    std::optional<int64_t> since;
  };
  std::vector<Owner> owners;
  Resolution resolution = Resolution::Open;
};

// What a Conflict error says, one for each field, with what the live object (its managedFields included) tells of it.
std::vector<FieldConflict> read_conflicts(const Error& error, const Value& config, const Value& live,
                                          std::string_view manager);

// FIELD, YOURS, LIVE, OWNER, OPERATION, SINCE; cut to the terminal's width.
std::string conflict_table(const std::vector<FieldConflict>& conflicts, const Terminal& terminal, UnixTime now);

// The configuration with shared and yielded fields taken care of. Made in `arena`.
Value resolved(Arena& arena, const Value& config, const Value& live, const std::vector<FieldConflict>& conflicts);

}  // namespace holdfast::cli
