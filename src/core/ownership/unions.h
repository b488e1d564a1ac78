// The union of many sets. Private to the module.
#pragma once

#include <vector>

#include "base/arena.h"
#include "ownership/field_set.h"

namespace holdfast::ownership {

// In any order. Copies each entry a logarithmic number of times only.
FieldSet union_of(Arena& arena, std::vector<FieldSet> sets);

}  // namespace holdfast::ownership
