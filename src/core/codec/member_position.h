// Finds a struct's members by name, one after the other. Private to the module.
#pragma once

#include <algorithm>
#include <string_view>

#include "base/same_text.h"
#include "types/types.h"

namespace holdfast::codec {

// The position in `type.members` of the member with that name, or their count. Starts searching at `next`, the position
// after the previous result, since members mostly come in declaration order.
inline size_t member_position(const types::Type& type, std::string_view name, size_t next) {
  // Up to this size a linear search is faster than a binary one; only custom resources have more members.
  constexpr size_t kFew = 128;
  const size_t count = type.members.size();
  for (size_t at = next, end = std::min(count, next + kFew); at < end; ++at) {
    if (same_text(type.members[at]->name, name)) return at;
  }
  if (count > kFew) {
    const auto found = std::ranges::lower_bound(type.members_by_name, name, {},
                                                [&](uint16_t position) { return type.members[position]->name; });
    return found != type.members_by_name.end() && type.members[*found]->name == name ? *found : count;
  }
  for (size_t at = 0; at < next; ++at) {
    if (same_text(type.members[at]->name, name)) return at;
  }
  return count;
}

}  // namespace holdfast::codec
