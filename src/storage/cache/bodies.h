// Creates entries and stores their bodies: plain while they are hot, otherwise packed against a dictionary of the
// resource.
//
// Hot entries are in a queue with a limit on bytes. The oldest is evicted and packed, unless it was used since it was
// queued. The dictionary is trained from samples spread over the resource and replaced, together with all packed
// bodies, when another one would be clearly better.
//
// Reference counted: destroyed with the cache or the last entry, whichever is later.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/packing.h"
#include "cache/cache.h"

namespace holdfast::cache {

// The value of a label in a set; nullopt if it is absent.
std::optional<std::string_view> find_label(const LabelSet* labels, std::string_view key);
// Calls `visit(key, value)` for each label of a set.
void for_each_label(const LabelSet* labels, const std::function<void(std::string_view, std::string_view)>& visit);

class Bodies {
 public:
  struct Limits {
    uint64_t plain_bytes;
    bool compress;
    uint32_t dictionary_bytes;
    uint32_t dictionary_samples;
  };
  // Starts with one reference, held by the caller until release().
  Bodies(ownership::Pool& pool, ownership::Pool::Kind kind, bool namespaced, Limits limits);
  void release();

  // Initial state of an entry: in the queue of hot ones, or packed immediately (while a long list is loaded) if there
  // is a dictionary.
  enum class Begin : uint8_t { Hot, Cold };
  EntryRef make(std::string_view key, Revision revision, Decoded decoded, Begin begin);
  // The same object with another body, for another revision; labels, fields and ownership are shared.
  EntryRef make_like(const Entry& entry, Revision revision, std::string body);

  Blob body(const Entry& entry, Entry::Use use);
  std::string_view body(const Entry& entry, BodyReader& reader);

  // Packs entries beyond the limit. Cheap if there is nothing to do.
  void pack_cold();
  // Releases hot entries that have no other reference: otherwise deleted objects would stay until the limit is reached.
  void release_unreferenced();
  bool over_budget() const { return plain_queue_bytes_.load(std::memory_order_relaxed) > limits_.plain_bytes; }

  // Trains a dictionary from these bodies, and adopts it if it is clearly better than the current one or there is none.
  // If it returns true, repack() every entry.
  bool learn(const std::vector<Blob>& samples);
  void repack(const Entry& entry);
  bool has_dictionary() const { return dictionary() != nullptr; }
  // Number of packs since the last learn(), to decide when to train again.
  uint64_t packs_since_learning() const { return packs_.load(std::memory_order_relaxed); }

  void usage(Usage& usage) const;
  uint64_t unpacked() const { return unpacked_.load(std::memory_order_relaxed); }
  uint64_t dictionaries_trained() const { return trained_.load(std::memory_order_relaxed); }

 private:
  friend class Entry;
  ~Bodies();

  struct SharedDictionary;  // A dictionary and the number of bodies packed with it.
  static Packed* new_packed(SharedDictionary* shelf, std::string_view bytes);
  void drop_packed(Packed* packed);
  void release_dictionary(SharedDictionary* shelf);
  friend struct Packed;

  SharedDictionary* dictionary() const { return dictionary_.load(std::memory_order_acquire); }
  SharedDictionary* hold_dictionary() const;
  Packed* pack(std::string_view plain);

  Entry* allocate(std::string_view key, std::string_view uid, std::span<const std::string_view> fields,
                  Revision revision);
  void destroy(Entry* entry);
  void enqueue(const EntryRef& entry);
  void set_plain(const Entry& entry, Blob plain);
  // The body as stored: plain, or packed, with an additional reference.
  struct StoredBody {
    Blob plain;
    Packed* packed = nullptr;
  };
  static StoredBody stored_body(const Entry& entry, std::mutex& mutex);
  // Fills `out`, which has room for the plain body, and releases the reference.
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
  bool closed_ = false;         // Released: the remaining entries must not keep each other alive.
  std::atomic<uint64_t> plain_queue_bytes_{0};

  mutable std::mutex dictionary_mutex_;
  std::atomic<SharedDictionary*> dictionary_{nullptr};

  using Counter = std::atomic<uint64_t>;
  Counter entry_bytes_{0}, label_bytes_{0}, raw_bytes_{0}, plain_bytes_{0}, packed_bytes_{0}, dictionary_bytes_{0};
  Counter unpacked_{0}, trained_{0}, packs_{0};
};

}  // namespace holdfast::cache
