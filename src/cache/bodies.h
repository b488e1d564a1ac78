// Makes entries, and keeps their bodies: plain while they are hot, else packed against a dictionary of the resource.
//
// Hot entries are in a queue with a budget of bytes. The oldest leaves it unless it was used since it came; what
// leaves is packed. The dictionary is trained from samples spread over the resource and replaced, bodies and all, when
// another one would do clearly better.
//
// Counted: it lives until the cache and the last entry are gone.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/packing.h"
#include "cache/cache.h"

namespace holdfast::cache {

// The value of a label in a set; nothing when it is absent.
std::optional<std::string_view> find_label(const LabelSet* labels, std::string_view key);

class Bodies {
 public:
  struct Limits {
    uint64_t plain_bytes;
    bool compress;
    uint32_t dictionary_bytes;
    uint32_t dictionary_samples;
  };
  // One user: the caller, until release().
  Bodies(ownership::Pool& pool, ownership::Pool::Kind kind, bool namespaced, Limits limits);
  void release();

  // How the entry begins its life: in the queue of hot ones, or packed at once (a long list being loaded) as far as
  // there is a dictionary.
  enum class Begin : uint8_t { Hot, Cold };
  EntryRef make(std::string_view key, Revision revision, Decoded decoded, Begin begin);
  // The same object with another body that says another revision; labels, fields and ownership are shared.
  EntryRef make_like(const Entry& entry, Revision revision, std::string body);

  Blob body(const Entry& entry, Entry::Use use);
  std::string_view body(const Entry& entry, BodyReader& reader);

  // Packs what no longer fits the budget. Cheap when there is nothing to do.
  void cool();
  // Releases hot entries that nothing else refers to: otherwise deleted objects would stay until the budget is used
  // up.
  void forget_gone();
  bool over_budget() const { return plain_queue_bytes_.load(std::memory_order_relaxed) > limits_.plain_bytes; }

  // Trains from these bodies, and adopts the result when it does clearly better than what there is (or there is
  // nothing). True: adopted; repack() every entry then.
  bool learn(const std::vector<Blob>& samples);
  void repack(const Entry& entry);
  bool has_dictionary() const { return dictionary() != nullptr; }
  // Packs since the last learn(): when to look again.
  uint64_t packs_since_learning() const { return packs_.load(std::memory_order_relaxed); }

  void usage(Usage& usage) const;
  uint64_t unpacked() const { return unpacked_.load(std::memory_order_relaxed); }
  uint64_t dictionaries_trained() const { return trained_.load(std::memory_order_relaxed); }

 private:
  friend class Entry;
  ~Bodies();

  struct Shelf;  // A dictionary and how many bodies are packed with it.
  static Packed* new_packed(Shelf* shelf, std::string_view bytes);
  void drop_packed(Packed* packed);
  void drop_shelf(Shelf* shelf);
  friend struct Packed;

  Shelf* dictionary() const { return dictionary_.load(std::memory_order_acquire); }
  Shelf* hold_dictionary() const;
  Packed* pack(std::string_view plain);

  Entry* allocate(std::string_view key, std::string_view uid, std::span<const std::string_view> fields,
                  Revision revision);
  void destroy(Entry* entry);
  void enqueue(const EntryRef& entry);
  void set_plain(const Entry& entry, Blob plain);
  // The body as stored: plain, or else packed with one more user.
  struct Lying {
    Blob plain;
    Packed* packed = nullptr;
  };
  static Lying lying(const Entry& entry, std::mutex& mutex);
  // Fills `out`, which has room for the plain body, and gives the user of it back.
  void unpack(const Entry& entry, Packed* packed, char* out);

  const LabelSet* intern_labels(std::vector<std::pair<std::string_view, std::string_view>> labels);
  void drop_labels(const LabelSet* labels);

  std::mutex& lock_of(const Entry& entry) const {
    return locks_[(reinterpret_cast<uintptr_t>(&entry) >> 6) % locks_.size()];
  }

  // Constant after construction.
  ownership::Pool& pool_;
  const ownership::Pool::Kind kind_;
  const bool namespaced_;
  const Limits limits_;

  std::atomic<uint64_t> users_{1};
  mutable std::array<std::mutex, 64> locks_;  // For plain_ and packed_ of entries.

  mutable std::mutex labels_mutex_;
  std::unordered_multimap<uint64_t, LabelSet*> labels_;

  std::mutex queue_mutex_;
  std::deque<EntryRef> queue_;  // Hot entries, oldest first.
  bool closed_ = false;         // Released: entries that live on must not keep each other alive.
  std::atomic<uint64_t> plain_queue_bytes_{0};

  mutable std::mutex dictionary_mutex_;
  std::atomic<Shelf*> dictionary_{nullptr};

  using Counter = std::atomic<uint64_t>;
  Counter entry_bytes_{0}, label_bytes_{0}, raw_bytes_{0}, plain_bytes_{0}, packed_bytes_{0}, dictionary_bytes_{0};
  Counter unpacked_{0}, trained_{0}, packs_{0};
};

}  // namespace holdfast::cache
