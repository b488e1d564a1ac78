// Recycles short-lived memory: coroutine frames, and the first blocks of arenas.
//
// Each thread keeps a few freed blocks of each size. A request needs a dozen of them; most are too large for the
// allocator's fast path, and its slow path costs more than the work done with them.
#pragma once

#include <cstddef>

namespace holdfast {

// Larger ones come from the allocator and return to it.
inline constexpr size_t kMaxRecycledBytes = 4096;

void* take_block(size_t bytes);
// On any thread. `bytes` as requested.
void give_block(void* block, size_t bytes) noexcept;

}  // namespace holdfast
