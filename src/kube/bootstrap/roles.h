// Private to the module: the bootstrap roles as tables, and their compact notation.
#pragma once

#include <span>
#include <string_view>

#include "base/arena.h"
#include "value/value.h"

namespace holdfast::bootstrap {

struct RoleRow {
  std::string_view name;
  std::string_view rules;  // Empty if aggregated from other roles.
};

std::span<const RoleRow> cluster_roles();
std::span<const RoleRow> controller_roles();

// Parses the notation into a list of rbac/v1 PolicyRules.
Value parse_rules(Arena& arena, std::string_view notation);

}  // namespace holdfast::bootstrap
