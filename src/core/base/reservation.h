// Memory that requests hold outside their arenas, counted: bodies being received, what a watch keeps.
//
// Threading: a Budget is shared by all threads; a Reservation belongs to one at a time.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/arena.h"
#include "base/limits.h"

namespace holdfast {

namespace limits {

// All bodies that are being forwarded to aggregated servers, counted twice: as received, and as part of the outgoing
// request. 429 beyond.
inline constexpr size_t kAllProxiedBytes = size_t{512} << 20;

// What the selectors of watches take, for as long as the watches last: of one (413 beyond), and of all together (429
// beyond). Those that take less than the third do not count.
inline constexpr size_t kWatchSelectorBytes = 32 << 20;
inline constexpr size_t kAllWatchSelectorBytes = size_t{256} << 20;
inline constexpr size_t kSmallSelectorBytes = 16 << 10;

}  // namespace limits

class Budget {
 public:
  Budget(size_t each_bytes, size_t all_bytes) : each_bytes_(each_bytes), all_bytes_(all_bytes) {}
  size_t taken_bytes() const { return taken_bytes_.load(std::memory_order_relaxed); }

 private:
  friend class Reservation;
  const size_t each_bytes_, all_bytes_;
  std::atomic<size_t> taken_bytes_{0};
};

// The budgets of the process.
inline Budget& proxied_bodies() {
  static Budget budget(2 * limits::kProxiedBodyBytes, limits::kAllProxiedBytes);
  return budget;
}
inline Budget& watch_selectors() {
  static Budget budget(limits::kWatchSelectorBytes, limits::kAllWatchSelectorBytes);
  return budget;
}

// `budget` must outlive it.
class Reservation {
 public:
  explicit Reservation(Budget& budget) : budget_(budget) {}
  ~Reservation() { budget_.taken_bytes_.fetch_sub(bytes_, std::memory_order_relaxed); }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  // Throws ArenaExhausted, which rejects the request.
  void grow(size_t bytes) {
    if (bytes_ + bytes > budget_.each_bytes_) throw ArenaExhausted(ArenaExhausted::Why::Own);
    if (budget_.taken_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes > budget_.all_bytes_) {
      budget_.taken_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
      throw ArenaExhausted(ArenaExhausted::Why::Shared);
    }
    bytes_ += bytes;
  }

 private:
  Budget& budget_;
  size_t bytes_ = 0;
};

}  // namespace holdfast
