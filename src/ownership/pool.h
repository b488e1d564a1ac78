// Ownership in memory: the managedFields of every cached object, kept apart from the objects and shared between them.
//
// Distinct field sets exist once in the process: interned as FieldsV2, counted, freed with their last user, equal when
// their pointers are. A set of one object alone (a kubelet's, with the pod's IP in a key) resembles others of its kind
// and is compressed against a dictionary of that kind, trained from the first sets seen and replaced when it stops
// fitting. Texts of FieldsV1 that are asked for often are kept, within a budget.
//
//   Owners (one object, one revision)        FieldsBlock (shared)
//   +-----------------------------------+    +--------------------------------------+
//   | count | manager, time, fields --------->| users | dictionary | FieldsV2, packed |
//   |       | manager, time, fields ------\   +--------------------------------------+
//   +-----------------------------------+  \-> ...
//
// What FieldsV2 could not give back byte for byte (unknown elements, an unknown fieldsType, not JSON at all) is kept as
// it was found: reading and writing an object again never changes what no one touched.
//
// Threading: every method may be called from any thread. Lifetime: the pool outlives every OwnersRef.
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
  std::string_view fields_type;            // "FieldsV1", "FieldsV2", or what was found.
  std::optional<std::string_view> fields;  // FieldsV1: JSON text; FieldsV2: bytes. Nothing: not there.
  std::optional<FieldSet> set = {};        // What `fields` was written from, where that is known.
};
inline constexpr std::string_view kFieldsV1 = "FieldsV1";
inline constexpr std::string_view kFieldsV2 = "FieldsV2";

// The set that a stored text says, if that set gives the text back: only then may it be kept as a set.
std::optional<FieldSet> faithful_set(Arena& arena, std::string_view fields_v1, MemberOrder order);

class Pool;
struct OwnersBlock;  // Private.
struct FieldsBlock;  // Private. Two that come from one pool are equal sets exactly when they are one.

// Reads the fields of many entries, one after the other, into the same memory.
class FieldsReader {
  friend class Owners;
  std::shared_ptr<const std::string> shared_;
  std::string own_;
};

// The managers of one object at one revision, as a view.
class Owners {
 public:
  Owners() = default;
  Owners(const Pool* pool, const OwnersBlock* block) : pool_(pool), block_(block) {}

  size_t count() const;
  bool empty() const { return count() == 0; }

  // Everything but the fields. fields_type says FieldsV1 for sets, however they are stored.
  ManagedEntry manager(size_t i) const;
  const FieldsBlock* fields(size_t i) const;
  bool has_fields(size_t i) const { return fields(i) != nullptr; }

  // The set in `arena`. An error for entries whose fields are not a set.
  Result<FieldSet> field_set(size_t i, Arena& arena) const;
  // The JSON text, shared when it is hot. For fields that are not a set: as found. Null when there are none.
  std::shared_ptr<const std::string> fields_v1(size_t i, MemberOrder order = MemberOrder::Canonical) const;
  // The binary form; false for fields that are not a set.
  bool append_fields_v2(size_t i, std::string& out) const;

  // The whole entry, with FieldsV1 (or FieldsV2) inside; its fields are valid until the reader's next one.
  ManagedEntry entry(size_t i, FieldsReader& reader, std::string_view fields_type = kFieldsV1,
                     MemberOrder order = MemberOrder::Canonical) const;
  // What the fields of an entry take as FieldsV1.
  size_t fields_v1_bytes(size_t i) const;
  // What this object's ownership takes in memory: its block, and its part of what it shares with others.
  size_t kept_bytes() const;
  // What all entries take as Protobuf (codec::append_managed_fields), with FieldsV1 inside.
  size_t protobuf_bytes() const;
  // Entries are wanted soon: brings them into the processor's cache.
  void fetch() const;

  // All entries, with FieldsV1 (or FieldsV2) inside; texts are in `arena`, names in the pool.
  std::span<ManagedEntry> entries(Arena& arena, std::string_view fields_type = kFieldsV1,
                                  MemberOrder order = MemberOrder::Canonical) const;

 private:
  const Pool* pool_ = nullptr;
  const OwnersBlock* block_ = nullptr;
};

struct PoolUsage {
  uint64_t objects = 0;          // Owners alive.
  uint64_t owner_bytes = 0;      // Their blocks.
  uint64_t entries = 0;          // Manager entries in them.
  uint64_t sets = 0;             // Distinct.
  uint64_t references = 0;       // To them. The sharing factor is references / sets.
  uint64_t fields_v1_bytes = 0;  // What all entries' fields would take as FieldsV1: the raw size of ownership.
  uint64_t plain_bytes = 0;      // Distinct sets as FieldsV2 (or as found) ...
  uint64_t kept_bytes = 0;       // ... and what is kept of them, headers included.
  uint64_t packed_sets = 0;      // Kept compressed.
  uint64_t table_bytes = 0;      // Hash tables of the pool.
  uint64_t managers = 0;         // Distinct (manager, operation, apiVersion, subresource).
  uint64_t manager_bytes = 0;
  uint64_t dictionaries = 0;
  uint64_t dictionary_bytes = 0;
  uint64_t sample_bytes = 0;  // Held for training.
  uint64_t hot_texts = 0;
  uint64_t hot_text_bytes = 0;

  double sharing_factor() const { return sets == 0 ? 0 : static_cast<double>(references) / static_cast<double>(sets); }
  uint64_t total_bytes() const {
    return owner_bytes + kept_bytes + table_bytes + manager_bytes + dictionary_bytes + sample_bytes + hot_text_bytes;
  }
};

struct PoolOptions {
  // Texts of FieldsV1 kept for sets that more than one object has.
  uint64_t hot_text_bytes = 1 << 20;
  // A dictionary is trained from this many sets of a kind, and is at most this long. Sets are a few hundred bytes.
  uint32_t dictionary_samples = 128;
  uint32_t dictionary_bytes = 16 << 10;
};

// Counted ownership of an Owners block.
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
  // For holders that know the pool and keep only the block: adopt it again to give it back.
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

  // Sets of one kind share dictionaries. `order` is how FieldsV1 is in that kind's stored bytes. The same name
  // gives the same number again.
  struct Kind {
    uint16_t number = 0;
  };
  Kind kind(std::string_view name, MemberOrder order);

  // Never fails: what is not a set is kept as found.
  OwnersRef intern(Kind kind, std::span<const ManagedEntry> entries);

  PoolUsage usage() const;

 private:
  friend class Owners;
  friend class OwnersRef;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::ownership
