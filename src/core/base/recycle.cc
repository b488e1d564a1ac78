#include "base/recycle.h"

#include <new>

namespace holdfast {
namespace {

#if defined(__SANITIZE_ADDRESS__)
#define HOLDFAST_RECYCLES 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HOLDFAST_RECYCLES 0
#endif
#endif
#ifndef HOLDFAST_RECYCLES
#define HOLDFAST_RECYCLES 1
#endif
// Sanitizers detect use after free only for memory that is actually freed.
constexpr bool kRecycles = HOLDFAST_RECYCLES;

constexpr size_t kStep = 64;
constexpr size_t kSizes = kMaxRecycledBytes / kStep;
// Maximum kept per thread: enough for its concurrent requests, little when idle.
constexpr size_t kKeptBytes = 256 << 10;

struct Free {
  Free* next;
};

struct Lists {
  Free* heads[kSizes] = {};
  size_t kept_bytes = 0;
  bool gone = false;  // The thread is ending: further blocks are not kept.

  constexpr Lists() = default;
  ~Lists() {
    gone = true;
    for (Free* head : heads) {
      while (head != nullptr) {
        Free* next = head->next;
        ::operator delete(head);
        head = next;
      }
    }
  }
};

constinit thread_local Lists lists;

constexpr size_t size_class(size_t bytes) { return (bytes + kStep - 1) / kStep - 1; }

}  // namespace

void* allocate_block(size_t bytes) {
  if (!kRecycles || bytes == 0 || bytes > kMaxRecycledBytes) return ::operator new(bytes);
  const size_t size = size_class(bytes);
  Lists& mine = lists;
  if (Free* block = mine.heads[size]) {
    mine.heads[size] = block->next;
    mine.kept_bytes -= (size + 1) * kStep;
    return block;
  }
  return ::operator new((size + 1) * kStep);
}

void recycle_block(void* block, size_t bytes) noexcept {
  if (block == nullptr) return;
  if (kRecycles && bytes != 0 && bytes <= kMaxRecycledBytes) {
    const size_t size = size_class(bytes);
    Lists& mine = lists;
    if (!mine.gone && mine.kept_bytes + (size + 1) * kStep <= kKeptBytes) {
      mine.heads[size] = new (block) Free{mine.heads[size]};
      mine.kept_bytes += (size + 1) * kStep;
      return;
    }
  }
  ::operator delete(block);
}

}  // namespace holdfast
