// Ownership in memory: the managedFields of every cached object, stored separately from the objects and shared between
// them.
//
// Equal field sets exist once per process: interned as FieldsV2, reference-counted, freed with their last user (but for
// kinds whose sets are nearly all different). A set used by a single object (a kubelet's, with the pod's IP in a key)
// resembles others of its kind and is compressed with a dictionary for that kind, which is trained on the first sets
// seen and replaced when its compression ratio degrades. Frequently requested FieldsV1 texts are cached, within a
// budget.
//
//   Owners (one object, one revision)        FieldsBlock (shared)
//   +-----------------------------------+    +--------------------------------------+
//   | count | manager, time, fields --------->| users | dictionary | FieldsV2, packed |
//   |       | manager, time, fields ------\   +--------------------------------------+
//   +-----------------------------------+  \-> ...
//
// Fields that FieldsV2 cannot reproduce byte for byte (unknown elements, an unknown fieldsType, not JSON at all) are
// kept as found: reading an object and writing it back never changes fields that nobody touched.
//
// Threading: every method may be called from any thread. Lifetime: the pool must outlive every OwnersRef.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/gates.h"
#include "ownership/field_set.h"

namespace holdfast::ownership {

// One element of metadata.managedFields as stored in an object's bytes.
struct ManagedEntry {
  std::string_view manager, operation, api_version, subresource;
  std::optional<UnixTime> time;            // Whole seconds.
  std::string_view fields_type;            // "FieldsV1", "FieldsV2", or as found.
  std::optional<std::string_view> fields;  // FieldsV1: JSON text; FieldsV2: bytes. Empty if absent.
  std::optional<FieldSet> set = {};        // The set that `fields` was written from, if known.
};
inline constexpr std::string_view kFieldsV1 = "FieldsV1";
inline constexpr std::string_view kFieldsV2 = "FieldsV2";

// The set encoded by a stored text, if writing it reproduces the text: only then may it be kept as a set.
std::optional<FieldSet> lossless_set(Arena& arena, std::string_view fields_v1, MemberOrder order);

class Pool;
struct OwnersBlock;  // Private.
struct FieldsBlock;  // Private. The same block is the same set.

// Reads the fields of many entries, one after the other, reusing its memory.
class FieldsReader {
  friend class Owners;
  std::shared_ptr<const std::string> shared_;
  std::string own_;
};

// A view of the managers of one object at one revision.
class Owners {
 public:
  Owners() = default;
  Owners(const Pool* pool, const OwnersBlock* block) : pool_(pool), block_(block) {}

  size_t count() const;
  bool empty() const { return count() == 0; }

  // Everything but the fields. fields_type is FieldsV1 for sets, regardless of how they are stored.
  ManagedEntry manager(size_t i) const;
  const FieldsBlock* fields(size_t i) const;
  bool has_fields(size_t i) const { return fields(i) != nullptr; }

  // The set, allocated in `arena`. An error for entries whose fields are not a set.
  Result<FieldSet> field_set(size_t i, Arena& arena) const;
  // The JSON text, shared if it is in the cache. Fields that are not a set are returned as found. Null if there are
  // none.
  std::shared_ptr<const std::string> fields_v1(size_t i, MemberOrder order = MemberOrder::Canonical) const;
  // The binary form; false for fields that are not a set.
  bool append_fields_v2(size_t i, std::string& out) const;

  // The whole entry, with its fields as FieldsV1 (or FieldsV2); the fields are valid until the reader's next use.
  ManagedEntry entry(size_t i, FieldsReader& reader, std::string_view fields_type = kFieldsV1,
                     MemberOrder order = MemberOrder::Canonical) const;
  // Length of an entry's fields as FieldsV1.
  size_t fields_v1_bytes(size_t i) const;
  // Memory used for this object's ownership: its block, plus its share of what it has in common with other objects.
  size_t kept_bytes() const;
  // Size of all entries as Protobuf (codec::append_managed_fields), with FieldsV1.
  size_t protobuf_bytes() const;
  // Prefetches the entries into the CPU cache.
  void fetch() const;

  // All entries, with their fields as FieldsV1 (or FieldsV2). Texts are in `arena`, names in the pool.
  std::span<ManagedEntry> entries(Arena& arena, std::string_view fields_type = kFieldsV1,
                                  MemberOrder order = MemberOrder::Canonical) const;

 private:
  const Pool* pool_ = nullptr;
  const OwnersBlock* block_ = nullptr;
};

struct PoolUsage {
  uint64_t objects = 0;          // Live Owners.
  uint64_t owner_bytes = 0;      // Memory of their blocks.
  uint64_t entries = 0;          // Manager entries in them.
  uint64_t sets = 0;             // Distinct sets.
  uint64_t references = 0;       // References to them. The sharing factor is references / sets.
  uint64_t fields_v1_bytes = 0;  // Size of all entries' fields as FieldsV1: the raw size of ownership.
  uint64_t plain_bytes = 0;      // Distinct sets as FieldsV2 (or as found) ...
  uint64_t kept_bytes = 0;       // ... and the bytes actually kept for them, headers included.
  uint64_t packed_sets = 0;      // Sets kept compressed.
  uint64_t table_bytes = 0;      // The pool's hash tables.
  uint64_t managers = 0;         // Distinct (manager, operation, apiVersion, subresource).
  uint64_t manager_bytes = 0;
  uint64_t dictionaries = 0;
  uint64_t dictionary_bytes = 0;
  uint64_t sample_bytes = 0;  // Samples held for training.
  uint64_t hot_texts = 0;
  uint64_t hot_text_bytes = 0;

  double sharing_factor() const { return sets == 0 ? 0 : static_cast<double>(references) / static_cast<double>(sets); }
  uint64_t total_bytes() const {
    return owner_bytes + kept_bytes + table_bytes + manager_bytes + dictionary_bytes + sample_bytes + hot_text_bytes;
  }
};

struct PoolOptions {
  // Budget for cached FieldsV1 texts of sets that more than one object has.
  uint64_t hot_text_bytes = 1 << 20;
  // Number of sets of a kind that a dictionary is trained on, and its maximum size. Sets are a few hundred bytes.
  uint32_t dictionary_samples = 128;
  uint32_t dictionary_bytes = 16 << 10;
};

// A counted reference to an Owners block.
class OwnersRef {
 public:
  OwnersRef() = default;
  OwnersRef(Pool* pool, OwnersBlock* adopted) : pool_(pool), block_(adopted) {}
  OwnersRef(OwnersRef&& other) noexcept : pool_(other.pool_), block_(std::exchange(other.block_, nullptr)) {}
  OwnersRef& operator=(OwnersRef&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(block_, other.block_);
    return *this;
  }
  ~OwnersRef();
  OwnersRef share() const;
  Owners view() const { return {pool_, block_}; }
  // For owners that know the pool and store only the block pointer: adopt it again to release the reference.
  OwnersBlock* release() { return std::exchange(block_, nullptr); }

 private:
  Pool* pool_ = nullptr;
  OwnersBlock* block_ = nullptr;
};

class Pool {
 public:
  explicit Pool(const Gates& gates, PoolOptions options = {});
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Sets of one kind share dictionaries. `order` is the member order of FieldsV1 in that kind's stored bytes. Calling
  // it again with the same name returns the same kind.
  struct Kind {
    uint16_t number = 0;
  };
  Kind kind(std::string_view name, MemberOrder order);

  // Never fails: fields that are not a set are kept as found.
  OwnersRef intern(Kind kind, std::span<const ManagedEntry> entries);

  PoolUsage usage() const;

 private:
  friend class Owners;
  friend class OwnersRef;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::ownership
