// Numbers for things in memory, so that they can be referred to in four bytes. Looking one up takes no lock; the table
// grows with the highest number in use and gives memory back when numbers are.
//
//   number:  | root bits | middle bits | chunk bits |
//            root_ ------> Middle -----> Chunk -----> T*
//
// The lowest free number of the lowest chunk with room is given out next, so that the chunks at the end become empty.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

namespace holdfast::ownership {

// Tests use fewer bits, to run out of numbers.
template <class T, uint32_t kChunkBits = 10, uint32_t kMiddleBits = 11, uint32_t kRootBits = 11>
class NumberTable {
 public:
  NumberTable() = default;
  NumberTable(const NumberTable&) = delete;
  NumberTable& operator=(const NumberTable&) = delete;
  ~NumberTable() {
    for (std::atomic<Middle*>& middle : root_) {
      Middle* const chunks = middle.load(std::memory_order_relaxed);
      if (chunks == nullptr) continue;
      for (std::atomic<Chunk*>& chunk : chunks->chunks) delete chunk.load(std::memory_order_relaxed);
      delete chunks;
    }
  }

  // A number for `pointer`. Nothing if all of them are in use.
  std::optional<uint32_t> take(T* pointer) {
    std::lock_guard lock(mutex_);
    if (open_.empty() && !open_another()) return std::nullopt;
    const uint32_t at = *open_.begin();
    Chunk& chunk = *find(at);
    const uint32_t slot = chunk.take();
    chunk.slots[slot].store(pointer, std::memory_order_release);
    if (chunk.used == kSlots) open_.erase(open_.begin());
    return at << kChunkBits | slot;
  }

  // The caller has it in use until then.
  void give_back(uint32_t number) {
    std::lock_guard lock(mutex_);
    const uint32_t at = number >> kChunkBits;
    Chunk& chunk = *find(at);
    chunk.give_back(number & (kSlots - 1));
    open_.insert(at);
    // One empty chunk is kept: a single number that comes and goes should not allocate each time.
    if (chunk.used != 0 || open_.size() == 1) return;
    middle_of(at)->chunks[at & (kMiddle - 1)].store(nullptr, std::memory_order_release);
    delete &chunk;
    open_.erase(at);
    gap_ = std::min(gap_, at);
    --chunk_count_;
  }

  // Of a number in use.
  T* get(uint32_t number) const {
    return find(number >> kChunkBits)->slots[number & (kSlots - 1)].load(std::memory_order_acquire);
  }

  uint64_t allocated() const {
    constexpr uint64_t kNodeBytes = 48;  // Of a std::set of numbers.
    std::lock_guard lock(mutex_);
    return sizeof(*this) + chunk_count_ * sizeof(Chunk) + middle_count_ * sizeof(Middle) + open_.size() * kNodeBytes;
  }

 private:
  static_assert(kChunkBits + kMiddleBits + kRootBits <= 32 && kChunkBits >= 6);
  static constexpr uint32_t kSlots = 1u << kChunkBits, kMiddle = 1u << kMiddleBits, kRoot = 1u << kRootBits;
  static constexpr uint32_t kChunks = 1u << (kMiddleBits + kRootBits);

  struct Chunk {
    std::array<std::atomic<T*>, kSlots> slots{};
    std::array<uint64_t, kSlots / 64> taken{};
    uint32_t used = 0;

    uint32_t take() {
      uint32_t word = 0;
      while (taken[word] == ~uint64_t{0}) ++word;
      const auto bit = static_cast<uint32_t>(std::countr_one(taken[word]));
      taken[word] |= uint64_t{1} << bit;
      ++used;
      return word * 64 + bit;
    }
    void give_back(uint32_t slot) {
      taken[slot / 64] &= ~(uint64_t{1} << (slot % 64));
      --used;
    }
  };
  struct Middle {
    std::array<std::atomic<Chunk*>, kMiddle> chunks{};
  };

  Middle* middle_of(uint32_t at) const { return root_[at >> kMiddleBits].load(std::memory_order_acquire); }
  Chunk* find(uint32_t at) const { return middle_of(at)->chunks[at & (kMiddle - 1)].load(std::memory_order_acquire); }

  // Makes the lowest chunk that there is not. Called with the mutex held.
  bool open_another() {
    while (gap_ < kChunks && middle_of(gap_) != nullptr && find(gap_) != nullptr) ++gap_;
    if (gap_ == kChunks) return false;
    std::atomic<Middle*>& middle = root_[gap_ >> kMiddleBits];
    if (middle.load(std::memory_order_relaxed) == nullptr) {
      middle.store(new Middle, std::memory_order_release);
      ++middle_count_;
    }
    auto chunk = std::make_unique<Chunk>();
    open_.insert(gap_);
    middle.load(std::memory_order_relaxed)
        ->chunks[gap_ & (kMiddle - 1)]
        .store(chunk.release(), std::memory_order_release);
    ++chunk_count_;
    ++gap_;
    return true;
  }

  mutable std::mutex mutex_;
  std::set<uint32_t> open_;  // Chunks with room.
  uint32_t gap_ = 0;         // All chunks below exist.
  uint64_t chunk_count_ = 0, middle_count_ = 0;
  std::array<std::atomic<Middle*>, kRoot> root_{};
};

}  // namespace holdfast::ownership
