// Recycles short-lived memory: coroutine frames, and the first blocks of arenas.
//
// Each thread keeps a few freed blocks of each size. A request needs a dozen of them; most are too large for the fast
// path of the allocator, and its slow path costs more than the work done with them.
#pragma once

#include <cstddef>

namespace holdfast {

// Larger blocks come directly from the allocator and are returned to it.
inline constexpr size_t kMaxRecycledBytes = 4096;

void* allocate_block(size_t bytes);
// On any thread. `bytes` must be the size requested.
void recycle_block(void* block, size_t bytes) noexcept;

}  // namespace holdfast
