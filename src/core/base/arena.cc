#include "base/arena.h"

#include <algorithm>

#include "base/recycle.h"

namespace holdfast {

void ArenaBudget::take(size_t had, size_t bytes) {
  if (had + bytes > each_bytes_) throw ArenaExhausted(ArenaExhausted::Why::Own);
  if (taken_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= all_bytes_) return;
  give(bytes);
  throw ArenaExhausted(ArenaExhausted::Why::Shared);
}

void* Arena::allocate_slow(size_t bytes, size_t alignment) {
  const size_t needed = bytes + alignment + sizeof(Block);
  const bool own_block = needed > next_block_bytes_ / 2 && needed > kFirstBlockBytes;
  const size_t block_bytes = own_block ? needed : std::max(next_block_bytes_, needed);
  if (budget_ != nullptr) budget_->take(reserved_bytes_, block_bytes);
  auto* block = static_cast<Block*>(allocate_block(block_bytes));
  block->bytes = block_bytes;
  reserved_bytes_ += block_bytes;
  const uintptr_t start = reinterpret_cast<uintptr_t>(block) + sizeof(Block);
  const uintptr_t aligned = (start + alignment - 1) & ~(uintptr_t{alignment} - 1);
  if (own_block && blocks_ != nullptr) {
    // The current block stays in use: a single large string must not waste the space left in it.
    block->previous = blocks_->previous;
    blocks_->previous = block;
    return reinterpret_cast<void*>(aligned);
  }
  block->previous = blocks_;
  blocks_ = block;
  cursor_ = aligned + bytes;
  end_ = reinterpret_cast<uintptr_t>(block) + block_bytes;
  next_block_bytes_ = std::min(next_block_bytes_ * 2, kMaxBlockBytes);
  return reinterpret_cast<void*>(aligned);
}

void Arena::release() {
  for (Block* block = blocks_; block != nullptr;) {
    Block* previous = block->previous;
    recycle_block(block, block->bytes);
    block = previous;
  }
  if (budget_ != nullptr) budget_->give(reserved_bytes_);
  blocks_ = nullptr;
  cursor_ = end_ = 0;
  reserved_bytes_ = 0;
}

}  // namespace holdfast
