// A bump allocator: many small allocations, freed together. Holds the trees, strings and sets of one request.
//
// Threading: one owner at a time. Destructors are not run, so only trivial types are allowed.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace holdfast {

// Thrown by an arena that must not grow further. Fails the request that owns the arena, and nothing else.
class ArenaExhausted : public std::bad_alloc {
 public:
  enum class Why : uint8_t {
    Own,     // This request alone needs too much: a retry would fail as well.
    Shared,  // All requests together do: a retry may succeed.
  };
  explicit ArenaExhausted(Why why) : why_(why) {}
  Why why() const { return why_; }
  const char* what() const noexcept override { return "the request needs more memory than it may use"; }

 private:
  Why why_;
};

// Memory limits for each arena, and for all arenas of the budget together. Threading: shared by all threads.
class ArenaBudget {
 public:
  ArenaBudget(size_t each_bytes, size_t all_bytes) : each_bytes_(each_bytes), all_bytes_(all_bytes) {}

  size_t each_bytes() const { return each_bytes_; }
  size_t all_bytes() const { return all_bytes_; }
  size_t taken_bytes() const { return taken_bytes_.load(std::memory_order_relaxed); }

 private:
  friend class Arena;
  // Throws ArenaExhausted. `had` is what the arena has taken so far.
  void take(size_t had, size_t bytes);
  void give(size_t bytes) { taken_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  const size_t each_bytes_, all_bytes_;
  std::atomic<size_t> taken_bytes_{0};
};

class Arena {
 public:
  // Blocks start at this size and double up to kMaxBlockBytes; a larger request gets its own block.
  explicit Arena(size_t first_block_bytes = kFirstBlockBytes) : next_block_bytes_(first_block_bytes) {}
  // Its memory counts against `budget`, which must outlive it.
  explicit Arena(ArenaBudget& budget) : budget_(&budget) {}
  ~Arena() { release(); }
  Arena(Arena&& other) noexcept { swap(other); }
  Arena& operator=(Arena&& other) noexcept {
    if (this != &other) {
      release();
      swap(other);
    }
    return *this;
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* allocate(size_t bytes, size_t alignment = alignof(std::max_align_t)) {
    const uintptr_t aligned = (cursor_ + alignment - 1) & ~(uintptr_t{alignment} - 1);
    if (aligned + bytes > end_ || cursor_ == 0) [[unlikely]]
      return allocate_slow(bytes, alignment);
    cursor_ = aligned + bytes;
    return reinterpret_cast<void*>(aligned);
  }

  // Uninitialised memory for `count` values.
  template <class T>
  T* allocate_array(size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    return static_cast<T*>(allocate(count * sizeof(T), alignof(T)));
  }

  template <class T, class... Args>
  T* make(Args&&... args) {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (allocate(sizeof(T), alignof(T))) T(std::forward<Args>(args)...);
  }

  template <class T>
  std::span<T> copy(std::span<const T> from) {
    static_assert(std::is_trivially_copyable_v<T>);
    T* to = allocate_array<T>(from.size());
    if (!from.empty()) std::memcpy(static_cast<void*>(to), from.data(), from.size_bytes());
    return {to, from.size()};
  }

  std::string_view copy(std::string_view text) {
    if (text.empty()) return {};
    char* to = allocate_array<char>(text.size());
    std::memcpy(to, text.data(), text.size());
    return {to, text.size()};
  }

  // Bytes allocated from the system so far.
  size_t reserved_bytes() const { return reserved_bytes_; }

 private:
  static constexpr size_t kFirstBlockBytes = 4096;
  static constexpr size_t kMaxBlockBytes = 1 << 20;
  struct Block {
    Block* previous;
    size_t bytes;  // Including this header.
  };

  void* allocate_slow(size_t bytes, size_t alignment);
  void release();
  void swap(Arena& other) noexcept {
    std::swap(cursor_, other.cursor_);
    std::swap(end_, other.end_);
    std::swap(blocks_, other.blocks_);
    std::swap(next_block_bytes_, other.next_block_bytes_);
    std::swap(reserved_bytes_, other.reserved_bytes_);
    std::swap(budget_, other.budget_);
  }

  uintptr_t cursor_ = 0;
  uintptr_t end_ = 0;
  Block* blocks_ = nullptr;
  size_t next_block_bytes_ = kFirstBlockBytes;
  size_t reserved_bytes_ = 0;
  ArenaBudget* budget_ = nullptr;  // Null means unlimited.
};

}  // namespace holdfast
