#include "ownership/pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <list>
#include <mutex>
#include <new>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "base/packing.h"
#include "codec/codec.h"
#include "ownership/entry_message.h"
#include "ownership/fields_v2.h"
#include "ownership/number_table.h"

namespace holdfast::ownership {

// --- Allocations per set, object and manager ------------------------------------------------------------------------

// One set, or fields that are not a set. Followed by the bytes.
struct FieldsBlock {
  enum Flags : uint8_t {
    kIsSet = 1,     // FieldsV2; otherwise FieldsV1 text or other bytes as found.
    kInterned = 2,  // In the table.
    kHot = 4,       // Its text is, or was, in the cache of hot texts.
  };
  std::atomic<uint32_t> users;
  uint32_t hash;         // Of the plain bytes; determines its place in the table.
  uint32_t plain_bytes;  // FieldsV2, or as found.
  uint32_t kept_bytes;   // Following this header.
  uint32_t v1_bytes;     // Length of the FieldsV1 text, as we write it.
  uint16_t dictionary;   // 0 if the bytes are kept plain.
  std::atomic<uint8_t> flags;

  bool is_set() const { return (flags.load(std::memory_order_relaxed) & kIsSet) != 0; }
  const char* bytes() const { return reinterpret_cast<const char*>(this + 1); }
  char* bytes() { return reinterpret_cast<char*>(this + 1); }
  std::string_view kept() const { return {bytes(), kept_bytes}; }
  uint64_t allocated() const { return sizeof(FieldsBlock) + kept_bytes; }
};
static_assert(sizeof(FieldsBlock) == 24);

namespace {

// Of all objects together. Their records alone would take 64 GB.
constexpr uint64_t kMaxEntries = 4'000'000'000;

// The time of an entry in four bytes, for all times from 1970 to 2106; other times are part of the manager's text.
constexpr uint32_t kTimeInManager = 0;

struct OwnerRecord {
  FieldsBlock* fields;  // Null if the entry has none.
  uint32_t manager;
  uint32_t time;
};
static_assert(sizeof(OwnerRecord) == 16);

}  // namespace

struct OwnersBlock {
  std::atomic<uint32_t> users;
  uint32_t count;
  OwnerRecord* records() { return reinterpret_cast<OwnerRecord*>(this + 1); }
  const OwnerRecord* records() const { return reinterpret_cast<const OwnerRecord*>(this + 1); }
  static uint64_t allocated(uint32_t count) { return sizeof(OwnersBlock) + count * sizeof(OwnerRecord); }
};
static_assert(sizeof(OwnersBlock) == 8);

namespace {

// Adds a user, unless the count is zero.
bool add_user_if_alive(std::atomic<uint32_t>& users) {
  uint32_t n = users.load(std::memory_order_relaxed);
  while (n != 0) {
    if (users.compare_exchange_weak(n, n + 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

// Removes a user, unless it is the last: that one must be removed under the lock of the lookup by content.
bool drop_user_unless_last(std::atomic<uint32_t>& users) {
  uint32_t n = users.load(std::memory_order_relaxed);
  while (n > 1) {
    if (users.compare_exchange_weak(n, n - 1, std::memory_order_release, std::memory_order_relaxed)) return true;
  }
  return false;
}

using Counter = std::atomic<uint64_t>;
void add(Counter& counter, uint64_t n) { counter.fetch_add(n, std::memory_order_relaxed); }
void sub(Counter& counter, uint64_t n) { counter.fetch_sub(n, std::memory_order_relaxed); }
uint64_t get(const Counter& counter) { return counter.load(std::memory_order_relaxed); }

// --- The tables -----------------------------------------------------------------------------------------------------

constexpr size_t kShards = 64;

// One shard of a table of blocks found by content: open addressing, eight bytes per slot. A block's shard is
// hash % kShards.
template <class Block>
struct Shard {
  std::mutex mutex;
  std::vector<Block*> places;
  size_t used = 0;

  // The block with this hash that is `same`, or null.
  template <class Same>
  Block* find(uint32_t hash, Same&& same) const {
    if (places.empty()) return nullptr;
    const size_t mask = places.size() - 1;
    for (size_t at = home(hash); places[at] != nullptr; at = (at + 1) & mask) {
      if (places[at]->hash == hash && same(*places[at])) return places[at];
    }
    return nullptr;
  }
  // Makes room for one more, so that inserting it cannot fail.
  void reserve() {
    if ((used + 1) * 5 > places.size() * 4) resize(places.empty() ? 16 : places.size() * 2);
  }
  void insert(Block* block) {
    reserve();
    size_t at = home(block->hash);
    while (places[at] != nullptr) at = (at + 1) & (places.size() - 1);
    places[at] = block;
    ++used;
  }
  void erase(const Block* block) {
    const size_t mask = places.size() - 1;
    size_t hole = home(block->hash);
    while (places[hole] != block) hole = (hole + 1) & mask;
    // Move up a later entry that may fill the hole, so that no search ends too early.
    for (size_t at = (hole + 1) & mask; places[at] != nullptr; at = (at + 1) & mask) {
      if (((at - home(places[at]->hash)) & mask) >= ((at - hole) & mask)) {
        places[hole] = places[at];
        hole = at;
      }
    }
    places[hole] = nullptr;
    --used;
    // Shrink when less than an eighth is used: memory is released along with the blocks that needed it.
    if (used * 8 < places.size()) resize(used == 0 ? 0 : places.size() / 4);
  }

 private:
  size_t home(uint32_t hash) const { return (hash / kShards) & (places.size() - 1); }
  void resize(size_t count) {
    std::vector<Block*> old(count);
    old.swap(places);
    used = 0;
    for (Block* block : old) {
      if (block != nullptr) insert(block);
    }
  }
};

template <class Block>
uint64_t table_bytes(std::array<Shard<Block>, kShards>& shards) {
  uint64_t bytes = 0;
  for (Shard<Block>& shard : shards) {
    std::lock_guard lock(shard.mutex);
    bytes += shard.places.capacity() * sizeof(Block*);
  }
  return bytes;
}

// --- Managers -------------------------------------------------------------------------------------------------------

// One distinct (manager, operation, apiVersion, subresource, fieldsType [, time]). Followed by the texts, in this
// order.
struct ManagerBlock {
  std::atomic<uint32_t> users;
  uint32_t number;
  uint32_t hash;  // Of the key and the texts.
  // What has to be equal besides the texts. The time is part of it if it does not fit a record; "no time" and 1970
  // differ.
  struct Key {
    uint32_t manager_bytes, operation_bytes, api_version_bytes, subresource_bytes, fields_type_bytes;
    uint32_t has_time;
    int64_t seconds;
    int64_t nanos;
  };
  static_assert(std::has_unique_object_representations_v<Key>);
  Key key;

  size_t text_bytes() const {
    return size_t{key.manager_bytes} + key.operation_bytes + key.api_version_bytes + key.subresource_bytes +
           key.fields_type_bytes;
  }
  uint64_t allocated() const { return sizeof(ManagerBlock) + text_bytes(); }
  char* texts() { return reinterpret_cast<char*>(this + 1); }
  const char* texts() const { return reinterpret_cast<const char*>(this + 1); }

  // The entry, without its fields.
  ManagedEntry entry() const {
    std::string_view rest{texts(), text_bytes()};
    const auto part = [&rest](uint32_t bytes) {
      const std::string_view text = rest.substr(0, bytes);
      rest.remove_prefix(bytes);
      return text;
    };
    ManagedEntry entry;
    entry.manager = part(key.manager_bytes);
    entry.operation = part(key.operation_bytes);
    entry.api_version = part(key.api_version_bytes);
    entry.subresource = part(key.subresource_bytes);
    entry.fields_type = part(key.fields_type_bytes);
    if (key.has_time != 0) entry.time = UnixTime{key.seconds, static_cast<int32_t>(key.nanos)};
    return entry;
  }
};

// Numbered, so that a record refers to a manager in four bytes; freed with the last record.
class Managers {
 public:
  ~Managers() {
    // A pool is destroyed empty, see ~Pool().
    for (const Shard<ManagerBlock>& shard : shards_) assert(shard.used == 0);
  }

  // Null if all numbers are taken.
  std::optional<uint32_t> add_user(const ManagedEntry& entry, std::string_view fields_type,
                                   const std::optional<UnixTime>& time) {
    ManagerBlock::Key key{.manager_bytes = static_cast<uint32_t>(entry.manager.size()),
                          .operation_bytes = static_cast<uint32_t>(entry.operation.size()),
                          .api_version_bytes = static_cast<uint32_t>(entry.api_version.size()),
                          .subresource_bytes = static_cast<uint32_t>(entry.subresource.size()),
                          .fields_type_bytes = static_cast<uint32_t>(fields_type.size()),
                          .has_time = time ? 1u : 0u,
                          .seconds = time ? time->seconds : 0,
                          .nanos = time ? time->nanos : 0};
    thread_local std::string content;
    content.assign(reinterpret_cast<const char*>(&key), sizeof(key));
    for (std::string_view part : {entry.manager, entry.operation, entry.api_version, entry.subresource, fields_type}) {
      content += part;
    }
    const uint64_t wide = hash_key(content);
    const auto hash = static_cast<uint32_t>(wide ^ (wide >> 32));
    const std::string_view texts = std::string_view(content).substr(sizeof(key));
    Shard<ManagerBlock>& shard = shards_[hash % kShards];
    std::lock_guard lock(shard.mutex);
    ManagerBlock* const found = shard.find(hash, [&](const ManagerBlock& block) {
      return std::memcmp(&block.key, &key, sizeof(key)) == 0 && std::string_view(block.texts(), texts.size()) == texts;
    });
    if (found != nullptr) {
      found->users.fetch_add(1, std::memory_order_relaxed);
      return found->number;
    }
    shard.reserve();
    void* memory = std::malloc(sizeof(ManagerBlock) + texts.size());
    if (memory == nullptr) throw std::bad_alloc();
    std::unique_ptr<ManagerBlock, Free> made(new (memory)
                                                 ManagerBlock{.users = 1, .number = 0, .hash = hash, .key = key});
    if (!texts.empty()) std::memcpy(made->texts(), texts.data(), texts.size());
    const std::optional<uint32_t> number = numbers_.take(made.get());
    if (!number) return std::nullopt;
    made->number = *number;
    add(count_, 1);
    add(bytes_, made->allocated());
    shard.insert(made.release());
    return number;
  }

  void drop_user(uint32_t number) {
    ManagerBlock* const block = numbers_.get(number);
    if (drop_user_unless_last(block->users)) return;
    {
      Shard<ManagerBlock>& shard = shards_[block->hash % kShards];
      std::lock_guard lock(shard.mutex);
      if (block->users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
      shard.erase(block);
    }
    numbers_.give_back(number);
    sub(count_, 1);
    sub(bytes_, block->allocated());
    Free()(block);
  }

  const ManagerBlock& get(uint32_t number) const { return *numbers_.get(number); }

  void usage(PoolUsage& usage) {
    usage.managers = ownership::get(count_);
    usage.manager_bytes = ownership::get(bytes_) + table_bytes(shards_) + numbers_.allocated();
  }

 private:
  struct Free {
    void operator()(ManagerBlock* block) const {
      block->~ManagerBlock();
      std::free(block);
    }
  };

  std::array<Shard<ManagerBlock>, kShards> shards_;
  NumberTable<ManagerBlock> numbers_;
  Counter count_{0}, bytes_{0};
};

// --- Dictionaries ---------------------------------------------------------------------------------------------------

// Numbered, so that a set refers to its dictionary in two bytes. A dictionary is kept as long as sets are packed with
// it.
class Dictionaries {
 public:
  Dictionaries() : slots_(new Slot[kSlots]) {}

  const Dictionary& get(uint16_t number) const { return *slots_[number].pointer.load(std::memory_order_acquire); }

  // Returns 0 if no number is free.
  uint16_t add(std::shared_ptr<const Dictionary> dictionary) {
    std::lock_guard lock(mutex_);
    for (uint16_t number = 1; number < kSlots; ++number) {
      Slot& slot = slots_[number];
      if (slot.held != nullptr) continue;
      bytes_ += dictionary->bytes();
      ++count_;
      slot.pointer.store(dictionary.get(), std::memory_order_release);
      slot.held = std::move(dictionary);
      slot.users.store(1, std::memory_order_relaxed);
      return number;
    }
    return 0;
  }
  bool add_user(uint16_t number) { return add_user_if_alive(slots_[number].users); }
  // Returns the number of remaining users.
  uint32_t drop_user(uint16_t number) {
    Slot& slot = slots_[number];
    const uint32_t before = slot.users.fetch_sub(1, std::memory_order_acq_rel);
    if (before != 1) return before - 1;
    std::lock_guard lock(mutex_);
    bytes_ -= slot.held->bytes();
    --count_;
    slot.held = nullptr;
    return 0;
  }

  void usage(PoolUsage& usage) const {
    std::lock_guard lock(mutex_);
    usage.dictionaries = count_;
    usage.dictionary_bytes = bytes_ + kSlots * sizeof(Slot);
  }

 private:
  static constexpr uint16_t kSlots = 4096;
  struct Slot {
    std::atomic<const Dictionary*> pointer{nullptr};
    std::atomic<uint32_t> users{0};
    std::shared_ptr<const Dictionary> held;
  };
  mutable std::mutex mutex_;
  std::unique_ptr<Slot[]> slots_;
  uint64_t bytes_ = 0, count_ = 0;
};

constexpr uint64_t kMinPacksUntilRetrain = 1000, kMaxPacksUntilRetrain = 128000;

// Whether the sets of a kind are worth a place in the table, which takes 10 to 20 bytes. Where nearly every set is new
// (keys with random names), only one in kSample is looked up: enough to notice when that changes.
class Sharing {
 public:
  bool worth_looking_up() {
    const uint32_t lookups = lookups_.load(std::memory_order_relaxed);
    return lookups < kLookups || found_.load(std::memory_order_relaxed) >= lookups / kFewFound ||
           sets_.fetch_add(1, std::memory_order_relaxed) % kSample == 0;
  }
  void looked_up(bool found) {
    if (found) found_.fetch_add(1, std::memory_order_relaxed);
    if (lookups_.fetch_add(1, std::memory_order_relaxed) + 1 < 2 * kLookups) return;
    // Older lookups count less and less. Counts that are lost to another thread do not matter.
    lookups_.store(kLookups, std::memory_order_relaxed);
    found_.store(found_.load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t kLookups = 1024, kFewFound = 16, kSample = 64;
  std::atomic<uint32_t> lookups_{0}, found_{0}, sets_{0};
};

// The state of one kind.
struct KindState {
  std::string name;
  MemberOrder order = MemberOrder::Canonical;
  Sharing sharing;

  std::mutex mutex;
  std::atomic<uint16_t> dictionary{0};
  std::vector<std::string> samples;  // Collected while a dictionary is to be trained.
  uint64_t sample_bytes = 0;
  // From time to time, new samples are used to check whether a new dictionary would be clearly better, or good at all:
  // random names cannot be compressed.
  bool trained = false;
  uint64_t packs = 0, packs_until_retrain = kMinPacksUntilRetrain;
};

// The form in which a hot set's bytes are cached.
enum class Form : uint8_t { Canonical, Bytewise, Binary };
Form form_of(MemberOrder order) { return order == MemberOrder::Canonical ? Form::Canonical : Form::Bytewise; }

// Frequently used bytes, found by set and by content.
class HotTexts {
 public:
  explicit HotTexts(uint64_t budget) : budget_(budget) {}

  std::shared_ptr<const std::string> find(const FieldsBlock* block, Form form) {
    std::lock_guard lock(mutex_);
    const auto found = by_block_.find({block, form});
    if (found == by_block_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second);
    return found->second->text;
  }

  // The set with this text, with one more user.
  FieldsBlock* find_text(std::string_view text, uint64_t hash, Form form) {
    std::lock_guard lock(mutex_);
    const auto found = by_text_.find(hash);
    if (found == by_text_.end()) return nullptr;
    Item& item = *found->second;
    if (item.form != form || *item.text != text || !add_user_if_alive(item.block->users)) return nullptr;
    order_.splice(order_.begin(), order_, found->second);
    return item.block;
  }

  // The caller must be a user of the block.
  void insert(FieldsBlock* block, Form form, std::shared_ptr<const std::string> text, uint64_t hash) {
    if (text->size() * 4 > budget_) return;
    std::lock_guard lock(mutex_);
    block->flags.fetch_or(FieldsBlock::kHot, std::memory_order_relaxed);
    if (by_block_.contains({block, form}) || by_text_.contains(hash)) return;
    bytes_ += size(*text);
    order_.push_front({block, form, std::move(text), hash});
    by_block_[{block, form}] = order_.begin();
    by_text_[hash] = order_.begin();
    while (bytes_ > budget_) remove(std::prev(order_.end()));
  }

  void forget(const FieldsBlock* block) {
    std::lock_guard lock(mutex_);
    for (Form form : {Form::Canonical, Form::Bytewise, Form::Binary}) {
      if (const auto found = by_block_.find({block, form}); found != by_block_.end()) remove(found->second);
    }
  }

  void usage(PoolUsage& usage) const {
    std::lock_guard lock(mutex_);
    usage.hot_texts = order_.size();
    usage.hot_text_bytes = bytes_;
  }

 private:
  struct Item {
    FieldsBlock* block;
    Form form;
    std::shared_ptr<const std::string> text;
    uint64_t hash;
  };
  using Place = std::list<Item>::iterator;
  struct BlockKey {
    const FieldsBlock* block;
    Form form;
    bool operator==(const BlockKey&) const = default;
  };
  struct BlockHash {
    size_t operator()(const BlockKey& key) const {
      return hash_combine(reinterpret_cast<uintptr_t>(key.block), static_cast<uint64_t>(key.form));
    }
  };
  // The text, its string object, and the overhead of the list and maps.
  static uint64_t size(const std::string& text) { return text.capacity() + 1 + sizeof(std::string) + 16 + 160; }

  void remove(Place place) {
    bytes_ -= size(*place->text);
    by_block_.erase({place->block, place->form});
    by_text_.erase(place->hash);
    order_.erase(place);
  }

  const uint64_t budget_;
  mutable std::mutex mutex_;
  std::list<Item> order_;  // Most recently used first.
  std::unordered_map<BlockKey, Place, BlockHash> by_block_;
  std::unordered_map<uint64_t, Place> by_text_;
  uint64_t bytes_ = 0;
};

// FieldsV1 in stored JSON may have <, > and & escaped, which is equivalent.
bool same_json_text(std::string_view stored, std::string_view ours) {
  if (stored == ours) return true;
  if (stored.size() < ours.size()) return false;
  size_t at = 0;
  for (char c : ours) {
    const std::string_view escaped = c == '<'   ? "\\u003c"
                                     : c == '>' ? "\\u003e"
                                     : c == '&' ? "\\u0026"
                                                : std::string_view{};
    if (!escaped.empty() && stored.substr(at, escaped.size()) == escaped) {
      at += escaped.size();
    } else if (at < stored.size() && stored[at] == c) {
      ++at;
    } else {
      return false;
    }
  }
  return at == stored.size();
}

}  // namespace

std::optional<FieldSet> lossless_set(Arena& arena, std::string_view fields_v1, MemberOrder order) {
  const Result<FieldSet> set = parse_fields_v1(arena, fields_v1);
  if (!set) return std::nullopt;
  thread_local std::string text;
  text.clear();
  append_fields_v1(text, *set, order);
  const bool same = order == MemberOrder::Bytewise ? same_json_text(fields_v1, text) : fields_v1 == text;
  return same ? std::optional(*set) : std::nullopt;
}

// --- The pool -------------------------------------------------------------------------------------------------------

struct Pool::State {
  State(const Gates& gates, PoolOptions o)
      : options(o),
        share(gates.on(Gate::ManagedFieldsPool)),
        compress(gates.on(Gate::CompressManagedFieldsInCache)),
        hot(o.hot_text_bytes) {}

  // Constant after construction.
  const PoolOptions options;
  const bool share, compress;

  mutable std::array<Shard<FieldsBlock>, kShards> shards;
  mutable Managers managers;
  Dictionaries dictionaries;
  HotTexts hot;

  mutable std::mutex kinds_mutex;
  std::vector<std::unique_ptr<KindState>> kinds;
  std::array<std::unordered_map<std::string, uint16_t, KeyHash, std::equal_to<>>, 2> kind_numbers;  // By MemberOrder.

  Counter objects{0}, owner_bytes{0}, entries{0}, sets{0}, references{0}, v1_bytes{0}, plain_bytes{0}, kept_bytes{0},
      packed_sets{0};

  KindState& kind_state(Kind kind) const {
    std::lock_guard lock(kinds_mutex);
    return *kinds[kind.number];
  }

  // The plain bytes: in the block itself, or unpacked into `scratch`.
  std::string_view plain(const FieldsBlock& block, std::string& scratch) const {
    if (block.dictionary == 0) return block.kept();
    scratch.resize(block.plain_bytes);
    const bool unpacked = dictionaries.get(block.dictionary).unpack(block.kept(), scratch.data(), scratch.size());
    assert(unpacked);
    (void)unpacked;
    return scratch;
  }

  // Learns from a new set. Returns the kind's dictionary, of which the caller becomes a user, or 0 if there is none.
  uint16_t dictionary_for(KindState& kind, std::string_view bytes) {
    if (!compress) return 0;
    uint16_t current = kind.dictionary.load(std::memory_order_acquire);
    if (current != 0 && !dictionaries.add_user(current)) current = 0;
    std::lock_guard lock(kind.mutex);
    if (kind.trained && ++kind.packs < kind.packs_until_retrain) return current;
    kind.samples.emplace_back(bytes);
    kind.sample_bytes += bytes.size();
    if (kind.samples.size() >= options.dictionary_samples) train(kind);
    return current;
  }

  // Called with the kind locked.
  void train(KindState& kind) {
    std::vector<std::string_view> views(kind.samples.begin(), kind.samples.end());
    auto trained = Dictionary::train(views, options.dictionary_bytes);
    const uint16_t old = kind.dictionary.load(std::memory_order_relaxed);
    double old_ratio = 1;
    if (old != 0) {
      uint64_t plain = 1, packed = 1;
      for (std::string_view sample : views) {
        plain += sample.size();
        packed += dictionaries.get(old).packed_bytes(sample);
      }
      old_ratio = static_cast<double>(packed) / static_cast<double>(plain);
    }
    kind.samples = {};
    kind.sample_bytes = 0;
    kind.trained = true;
    kind.packs = 0;
    kind.packs_until_retrain = std::min(kind.packs_until_retrain * 2, kMaxPacksUntilRetrain);
    if (trained == nullptr || trained->expected_ratio() > 0.75 * old_ratio) return;
    kind.dictionary.store(dictionaries.add(std::move(trained)), std::memory_order_release);
    if (old != 0) dictionaries.drop_user(old);
  }

  FieldsBlock* make_block(KindState& kind, std::string_view bytes, uint32_t hash, size_t v1, uint8_t flags) {
    uint16_t dictionary = dictionary_for(kind, bytes);
    std::string_view kept = bytes;
    if (dictionary != 0) {
      const std::string_view packed = dictionaries.get(dictionary).pack(bytes);
      if (packed.empty()) {
        dictionaries.drop_user(dictionary);
        dictionary = 0;
      } else {
        kept = packed;
      }
    }
    void* memory = std::malloc(sizeof(FieldsBlock) + kept.size());
    if (memory == nullptr) throw std::bad_alloc();
    auto* block = new (memory) FieldsBlock{.users = 1,
                                           .hash = hash,
                                           .plain_bytes = static_cast<uint32_t>(bytes.size()),
                                           .kept_bytes = static_cast<uint32_t>(kept.size()),
                                           .v1_bytes = static_cast<uint32_t>(v1),
                                           .dictionary = dictionary,
                                           .flags = flags};
    if (!kept.empty()) std::memcpy(block->bytes(), kept.data(), kept.size());
    add(sets, 1);
    add(plain_bytes, block->plain_bytes);
    add(kept_bytes, block->allocated());
    if (dictionary != 0) add(packed_sets, 1);
    return block;
  }

  void free_block(FieldsBlock* block) {
    if ((block->flags.load(std::memory_order_relaxed) & FieldsBlock::kHot) != 0) hot.forget(block);
    sub(sets, 1);
    sub(plain_bytes, block->plain_bytes);
    sub(kept_bytes, block->allocated());
    if (block->dictionary != 0) {
      sub(packed_sets, 1);
      if (dictionaries.drop_user(block->dictionary) == 1) retire(block->dictionary);
    }
    block->~FieldsBlock();
    std::free(block);
  }

  // Called when no set is packed with the dictionary any more. If its kind still holds it, the kind has become (almost)
  // empty and is reset to its initial state: the dictionary is released along with the sets that it was trained on.
  void retire(uint16_t dictionary) {
    std::lock_guard lock(kinds_mutex);
    for (const auto& kind : kinds) {
      if (kind->dictionary.load(std::memory_order_relaxed) != dictionary) continue;
      std::lock_guard kind_lock(kind->mutex);
      if (kind->dictionary.load(std::memory_order_relaxed) != dictionary) return;
      kind->dictionary.store(0, std::memory_order_release);
      kind->samples = {};
      kind->sample_bytes = 0;
      kind->trained = false;
      kind->packs = 0;
      kind->packs_until_retrain = kMinPacksUntilRetrain;
      dictionaries.drop_user(dictionary);
      return;
    }
  }

  // Whether a block has these plain bytes. Called with its shard locked.
  bool same_bytes(const FieldsBlock& block, std::string_view bytes, uint8_t flags) const {
    if (block.plain_bytes != bytes.size()) return false;
    if ((block.flags.load(std::memory_order_relaxed) & FieldsBlock::kIsSet) != (flags & FieldsBlock::kIsSet))
      return false;
    thread_local std::string scratch;
    return plain(block, scratch) == bytes;
  }

  // Finds or creates the block with these bytes and adds a user. `v1` returns the length of their FieldsV1 text; if it
  // returns nothing, the bytes cannot be kept, and the result is null.
  template <class V1Bytes>
  FieldsBlock* intern_bytes(KindState& kind, std::string_view bytes, uint8_t flags, V1Bytes&& v1) {
    if (!share) {
      const std::optional<size_t> length = v1();
      return length ? make_block(kind, bytes, 0, *length, flags) : nullptr;
    }
    const uint64_t wide = hash_key(bytes);
    const auto hash = static_cast<uint32_t>(wide ^ (wide >> 32));
    if (!kind.sharing.worth_looking_up()) {
      const std::optional<size_t> length = v1();
      return length ? make_block(kind, bytes, hash, *length, flags) : nullptr;
    }
    Shard<FieldsBlock>& shard = shards[hash % kShards];
    {
      std::lock_guard lock(shard.mutex);
      FieldsBlock* const found = find(shard, hash, bytes, flags);
      kind.sharing.looked_up(found != nullptr);
      if (found != nullptr) return found;
    }
    const std::optional<size_t> length = v1();
    if (!length) return nullptr;
    // Packing takes a while and is done without the lock; if another thread was faster, its block is used.
    FieldsBlock* made = make_block(kind, bytes, hash, *length, flags | FieldsBlock::kInterned);
    FieldsBlock* first = nullptr;
    {
      std::lock_guard lock(shard.mutex);
      first = find(shard, hash, bytes, flags);
      if (first == nullptr) shard.insert(made);
    }
    if (first == nullptr) return made;
    free_block(made);
    return first;
  }

  FieldsBlock* find(Shard<FieldsBlock>& shard, uint32_t hash, std::string_view bytes, uint8_t flags) {
    FieldsBlock* const found =
        shard.find(hash, [&](const FieldsBlock& block) { return same_bytes(block, bytes, flags); });
    if (found != nullptr) found->users.fetch_add(1, std::memory_order_relaxed);
    return found;
  }

  FieldsBlock* intern_fields(KindState& kind, const ManagedEntry& entry, bool& is_set) {
    is_set = false;
    if (!entry.fields) return nullptr;
    const std::string_view fields = *entry.fields;
    if (entry.fields_type == kFieldsV1) {
      const uint64_t text_hash = share ? hash_key(fields) : 0;
      if (share) {
        if (FieldsBlock* found = hot.find_text(fields, text_hash, form_of(kind.order))) {
          is_set = true;
          return found;
        }
      }
      Arena arena;
      if (const std::optional<FieldSet> set = lossless_set(arena, fields, kind.order)) {
        is_set = true;
        thread_local std::string bytes;
        bytes.clear();
        append_fields_v2(bytes, *set);
        FieldsBlock* block = intern_bytes(kind, bytes, FieldsBlock::kIsSet, [&]() -> std::optional<size_t> {
          // As we would write it: stored JSON may have escapes of its own.
          return kind.order == MemberOrder::Canonical ? fields.size() : to_fields_v1(*set).size();
        });
        // Cached only if it is exactly as we would write it.
        if (share && block->users.load(std::memory_order_relaxed) > 1 && fields.size() == block->v1_bytes &&
            (kind.order == MemberOrder::Canonical || fields.find("\\u00") == std::string_view::npos)) {
          hot.insert(block, form_of(kind.order), std::make_shared<const std::string>(fields), text_hash);
        }
        return block;
      }
    } else if (entry.fields_type == kFieldsV2) {
      const uint64_t hash = share ? hash_key(fields) : 0;
      if (share) {
        if (FieldsBlock* found = hot.find_text(fields, hash, Form::Binary)) {
          is_set = true;
          return found;
        }
      }
      // Usually these bytes were written by us.
      FieldsBlock* block =
          intern_bytes(kind, fields, FieldsBlock::kIsSet, [fields] { return measure_fields_v2(fields); });
      if (block == nullptr) {
        Arena arena;
        if (Result<FieldSet> set = parse_fields_v2(arena, fields)) {
          thread_local std::string bytes;
          bytes.clear();
          append_fields_v2(bytes, *set);
          block =
              intern_bytes(kind, bytes, FieldsBlock::kIsSet, [&] { return std::optional(to_fields_v1(*set).size()); });
        }
      }
      if (block != nullptr) {
        is_set = true;
        if (share && block->users.load(std::memory_order_relaxed) > 1) {
          hot.insert(block, Form::Binary, std::make_shared<const std::string>(fields), hash);
        }
        return block;
      }
    }
    return intern_bytes(kind, fields, 0, [&] { return std::optional(fields.size()); });
  }

  void drop_fields(FieldsBlock* block) {
    if (drop_user_unless_last(block->users)) return;
    if ((block->flags.load(std::memory_order_relaxed) & FieldsBlock::kInterned) != 0) {
      Shard<FieldsBlock>& shard = shards[block->hash % kShards];
      std::lock_guard lock(shard.mutex);
      if (block->users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
      shard.erase(block);
    } else if (block->users.fetch_sub(1, std::memory_order_acq_rel) != 1) {
      return;
    }
    free_block(block);
  }

  // The JSON text of fields that only one object has, or that are not a set.
  void append_text(const FieldsBlock& block, MemberOrder order, std::string& out) const {
    thread_local std::string scratch;
    const std::string_view bytes = plain(block, scratch);
    if (!block.is_set()) {
      out += bytes;
    } else if (order == MemberOrder::Canonical) {
      append_fields_v1_of(bytes, out);
    } else {
      Arena arena;
      Result<FieldSet> set = parse_fields_v2(arena, bytes);
      assert(set);
      append_fields_v1(out, *set, order);
    }
  }

  static bool may_be_hot(const FieldsBlock& block) {
    return block.is_set() && block.users.load(std::memory_order_relaxed) > 1;
  }

  std::shared_ptr<const std::string> text_of(FieldsBlock* block, MemberOrder order) {
    const bool shared = may_be_hot(*block);
    if (shared) {
      if (auto found = hot.find(block, form_of(order))) return found;
    }
    auto text = std::make_shared<std::string>();
    text->reserve(block->v1_bytes);
    append_text(*block, order, *text);
    if (shared) hot.insert(block, form_of(order), text, hash_key(*text));
    return text;
  }
};

Pool::Pool(const Gates& gates, PoolOptions options) : state_(std::make_unique<State>(gates, options)) {}
Pool::~Pool() { assert(get(state_->objects) == 0); }

Pool::Kind Pool::kind(std::string_view name, MemberOrder order) {
  std::lock_guard lock(state_->kinds_mutex);
  auto& numbers = state_->kind_numbers[static_cast<size_t>(order)];
  if (const auto known = numbers.find(name); known != numbers.end()) return {known->second};
  // Definitions come and go, and each name keeps its number. Once the numbers are used up, new kinds share dictionaries
  // with another kind of the same order.
  if (state_->kinds.size() > std::numeric_limits<uint16_t>::max() && !numbers.empty()) return {numbers.begin()->second};
  const auto number = static_cast<uint16_t>(state_->kinds.size());
  state_->kinds.push_back(std::make_unique<KindState>());
  state_->kinds.back()->name = name;
  state_->kinds.back()->order = order;
  numbers.emplace(name, number);
  return {number};
}

OwnersRef Pool::intern(Kind kind, std::span<const ManagedEntry> entries) {
  if (entries.empty()) return {};
  State& state = *state_;
  KindState& kind_state = state.kind_state(kind);
  // Everything that is counted in 32 bits is counted once per entry at most: users of a set, users of a manager,
  // managers. Hence none of them overflows.
  if (state.entries.fetch_add(entries.size(), std::memory_order_relaxed) + entries.size() > kMaxEntries) {
    sub(state.entries, entries.size());
    throw std::length_error("the server cannot keep more than " + std::to_string(kMaxEntries) +
                            " managedFields entries in memory");
  }
  const auto count = static_cast<uint32_t>(entries.size());
  void* memory = std::malloc(OwnersBlock::allocated(count));
  if (memory == nullptr) throw std::bad_alloc();
  OwnersBlock& block = *new (memory) OwnersBlock{.users = 1, .count = 0};
  OwnersRef made(this, &block);
  add(state.objects, 1);
  add(state.owner_bytes, OwnersBlock::allocated(count));
  try {
    for (const ManagedEntry& entry : entries) {
      bool is_set = false;
      FieldsBlock* fields = state.intern_fields(kind_state, entry, is_set);
      const bool narrow = entry.time && entry.time->seconds > 0 &&
                          entry.time->seconds <= std::numeric_limits<uint32_t>::max() && entry.time->nanos == 0;
      // There are more numbers than kMaxEntries.
      const std::optional<uint32_t> manager =
          state.managers.add_user(entry, is_set ? kFieldsV1 : entry.fields_type, narrow ? std::nullopt : entry.time);
      assert(manager);
      if (fields != nullptr) {
        add(state.references, 1);
        add(state.v1_bytes, fields->v1_bytes);
      }
      new (&block.records()[block.count])
          OwnerRecord{.fields = fields,
                      .manager = *manager,
                      .time = narrow ? static_cast<uint32_t>(entry.time->seconds) : kTimeInManager};
      ++block.count;
    }
  } catch (...) {
    // `made` drops the records that there are.
    sub(state.entries, count - block.count);
    sub(state.owner_bytes, OwnersBlock::allocated(count) - OwnersBlock::allocated(block.count));
    throw;
  }
  return made;
}

OwnersRef OwnersRef::share() const {
  if (block_ != nullptr) block_->users.fetch_add(1, std::memory_order_relaxed);
  return {pool_, block_};
}

OwnersRef::~OwnersRef() {
  if (block_ == nullptr || block_->users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  Pool::State& state = *pool_->state_;
  for (uint32_t i = 0; i < block_->count; ++i) {
    const OwnerRecord& record = block_->records()[i];
    state.managers.drop_user(record.manager);
    if (record.fields == nullptr) continue;
    sub(state.references, 1);
    sub(state.v1_bytes, record.fields->v1_bytes);
    state.drop_fields(record.fields);
  }
  sub(state.objects, 1);
  sub(state.entries, block_->count);
  sub(state.owner_bytes, OwnersBlock::allocated(block_->count));
  block_->~OwnersBlock();
  std::free(block_);
}

PoolUsage Pool::usage() const {
  const State& state = *state_;
  PoolUsage usage;
  usage.objects = get(state.objects);
  usage.owner_bytes = get(state.owner_bytes);
  usage.entries = get(state.entries);
  usage.sets = get(state.sets);
  usage.references = get(state.references);
  usage.fields_v1_bytes = get(state.v1_bytes);
  usage.plain_bytes = get(state.plain_bytes);
  usage.kept_bytes = get(state.kept_bytes);
  usage.packed_sets = get(state.packed_sets);
  usage.table_bytes = table_bytes(state_->shards);
  state.managers.usage(usage);
  state.dictionaries.usage(usage);
  state.hot.usage(usage);
  std::lock_guard lock(state.kinds_mutex);
  for (const auto& kind : state.kinds) {
    std::lock_guard kind_lock(kind->mutex);
    usage.sample_bytes += kind->sample_bytes;
  }
  return usage;
}

// --- Owners ---------------------------------------------------------------------------------------------------------

size_t Owners::count() const { return block_ == nullptr ? 0 : block_->count; }

ManagedEntry Owners::manager(size_t i) const {
  assert(i < count());
  const OwnerRecord& record = block_->records()[i];
  ManagedEntry entry = pool_->state_->managers.get(record.manager).entry();
  if (record.time != kTimeInManager) entry.time = UnixTime{record.time, 0};
  return entry;
}

const FieldsBlock* Owners::fields(size_t i) const {
  assert(i < count());
  return block_->records()[i].fields;
}

Result<FieldSet> Owners::field_set(size_t i, Arena& arena) const {
  const FieldsBlock* block = fields(i);
  if (block == nullptr) return FieldSet{};
  thread_local std::string scratch;
  const std::string_view bytes = arena.copy(pool_->state_->plain(*block, scratch));
  if (block->is_set()) return parse_fields_v2(arena, bytes);
  const ManagedEntry entry = manager(i);
  if (entry.fields_type == kFieldsV1) return parse_fields_v1(arena, bytes);
  if (entry.fields_type == kFieldsV2) return parse_fields_v2(arena, bytes);
  return bad_request("managedFields of " + std::string(entry.manager) + ": unknown fieldsType " +
                     std::string(entry.fields_type));
}

std::shared_ptr<const std::string> Owners::fields_v1(size_t i, MemberOrder order) const {
  FieldsBlock* block = block_->records()[i].fields;
  return block == nullptr ? nullptr : pool_->state_->text_of(block, order);
}

bool Owners::append_fields_v2(size_t i, std::string& out) const {
  const FieldsBlock* block = fields(i);
  if (block == nullptr || !block->is_set()) return false;
  thread_local std::string scratch;
  out += pool_->state_->plain(*block, scratch);
  return true;
}

ManagedEntry Owners::entry(size_t i, FieldsReader& reader, std::string_view fields_type, MemberOrder order) const {
  ManagedEntry entry = manager(i);
  FieldsBlock* block = block_->records()[i].fields;
  if (block == nullptr) return entry;
  Pool::State& state = *pool_->state_;
  if (fields_type == kFieldsV2 && block->is_set()) {
    entry.fields = state.plain(*block, reader.own_);
    entry.fields_type = kFieldsV2;
  } else if (state.may_be_hot(*block)) {
    reader.shared_ = state.text_of(block, order);
    entry.fields = *reader.shared_;
  } else {
    reader.own_.clear();
    state.append_text(*block, order, reader.own_);
    entry.fields = reader.own_;
  }
  return entry;
}

size_t Owners::fields_v1_bytes(size_t i) const {
  const FieldsBlock* block = fields(i);
  return block == nullptr ? 0 : block->v1_bytes;
}

size_t Owners::kept_bytes() const {
  if (block_ == nullptr) return 0;
  size_t bytes = OwnersBlock::allocated(block_->count);
  for (size_t i = 0; i < count(); ++i) {
    const FieldsBlock* block = fields(i);
    if (block != nullptr) bytes += block->allocated() / std::max(1u, block->users.load(std::memory_order_relaxed));
    const ManagerBlock& manager = pool_->state_->managers.get(block_->records()[i].manager);
    bytes += manager.allocated() / std::max(1u, manager.users.load(std::memory_order_relaxed));
  }
  return bytes;
}

size_t Owners::protobuf_bytes() const {
  size_t bytes = 0;
  for (size_t i = 0; i < count(); ++i) {
    ManagedEntry entry = manager(i);
    const FieldsBlock* block = fields(i);
    if (block != nullptr) entry.fields = std::string_view();  // Only their presence matters here.
    bytes += codec::managed_fields_bytes(to_message(entry), block == nullptr ? 0 : block->v1_bytes);
  }
  return bytes;
}

void Owners::fetch() const {
  for (size_t i = 0; i < count(); ++i) __builtin_prefetch(fields(i));
}

std::span<ManagedEntry> Owners::entries(Arena& arena, std::string_view fields_type, MemberOrder order) const {
  const size_t n = count();
  auto* const list = arena.allocate_array<ManagedEntry>(n);
  FieldsReader reader;
  for (size_t i = 0; i < n; ++i) {
    ManagedEntry entry = this->entry(i, reader, fields_type, order);
    if (entry.fields) entry.fields = arena.copy(*entry.fields);
    new (&list[i]) ManagedEntry(entry);
  }
  return {list, n};
}

}  // namespace holdfast::ownership
