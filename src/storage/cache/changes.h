// What changed between two snapshots.
#pragma once

#include <vector>

#include "cache/cache.h"

namespace holdfast::cache {

struct Change {
  EntryRef before, now;  // One of them may be null.
};

// The changes from `earlier` to `now`, two snapshots of the same cache, by key. The cost is that of the changes,
// regardless of the number of objects, unless the cache listed again in between.
std::vector<Change> changes_between(const Snapshot& earlier, const Snapshot& now);

}  // namespace holdfast::cache
