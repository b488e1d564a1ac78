// Memory that is needed over and over for a short while: coroutine frames, and the first blocks of arenas.
//
// Each thread keeps a few blocks of each size that it gave back. A request makes a dozen of them; most are too large
// for the allocator's own quick lists, and taking them from its bins costs more than what is done with them.
#pragma once

#include <cstddef>

namespace holdfast {

// Larger ones come from the allocator and go back to it.
inline constexpr size_t kMaxRecycledBytes = 4096;

void* take_block(size_t bytes);
// On any thread. `bytes` as it was asked for.
void give_block(void* block, size_t bytes) noexcept;

}  // namespace holdfast
