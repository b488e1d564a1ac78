// Types as the merge engine sees them, made from types::Type.
//
// The engine needs to know three things about a type: whether a value may be a scalar, list or map, whether lists and
// maps are atomic or granular, and the type of each member or item. A MergeType has these precomputed: field-level
// overrides are resolved, and fields are found with a single hash lookup.
//
// Private to the module, except that a FieldManager is constructed with MergeTypes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/arena.h"
#include "base/same_text.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::ownership {

enum class ScalarKind : uint8_t { Numeric, String, Boolean, Untyped };

struct MergeType;

struct MergeField {
  std::string_view name;
  const MergeType* type;
  const Value* default_value;  // For a list key that is omitted.
  // What an absent field reads back as: a declared scalar default, or what Go writes for the zero value (null for a
  // list, {} for a struct). Null if it stays absent, or if only the schema of a custom resource can tell.
  const Value* value_when_absent;
  // A sibling that holds the same value, so that unsetting one field unsets both. Empty for almost all fields.
  std::string_view alias;
};

struct MergeType {
  // The kinds a value may have; several at once for untyped values.
  static constexpr uint8_t kMap = 1, kScalar = 2, kList = 4;
  uint8_t offers = 0;

  ScalarKind scalar = ScalarKind::Untyped;

  bool atomic_list = true;
  bool atomic_map = false;
  // The element's type is inlined rather than referenced by name.
  bool element_in_place = false;
  // Some of `fields` have an alias.
  bool has_aliases = false;
  // A RawExtension or apiextensions JSON may occur here or below: values must be unfolded first.
  bool holds_raw = false;

  const MergeType* item = nullptr;                  // Of a list.
  std::span<const std::string_view> keys = {};      // Of a keyed list, ascending. A list without keys is a set.
  std::span<const Value* const> key_defaults = {};  // Parallel to `keys`; null where there is no default.
  std::span<const std::string_view> keys_in_schema_order = {};  // For messages.
  const MergeType* element = nullptr;                           // Of undeclared members; null if they are not allowed.

  std::span<const MergeField> fields = {};
  std::span<const uint16_t> slots = {};  // Open addressing by field_hash: position in `fields` + 1, 0 if free.

  // Whether the key at this position of `keys` has an explicit default, rather than the zero value that OpenAPI implies
  // for fields Go always writes.
  bool has_declared_key_default(size_t position) const;

  const MergeField* find(std::string_view name) const {
    if (slots.empty()) return nullptr;
    const size_t mask = slots.size() - 1;
    for (size_t at = field_hash(name) & mask; slots[at] != 0; at = (at + 1) & mask) {
      const MergeField& field = fields[slots[at] - 1u];
      if (same_text(field.name, name)) return &field;
    }
    return nullptr;
  }
  // The type of a member, or null if it is not allowed.
  const MergeType* member(std::string_view name, bool& declared) const {
    const MergeField* field = find(name);
    declared = field != nullptr;
    return declared ? field->type : element;
  }

  // A map without declared fields whose members have the deduced type: reconciling with a changed schema leaves it
  // alone.
  bool is_deduced_map() const;

  static size_t field_hash(std::string_view name) {
    // Length, ends and middle distinguish the field names of one struct; a collision costs one comparison.
    const size_t n = name.size();
    if (n == 0) return 0;
    const auto at = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(name[i])); };
    const size_t h = n * 0x9e3779b1u + at(0) * 0x85ebca6bu + at(n - 1) * 0xc2b2ae35u + at(n / 2) * 0x27d4eb2fu;
    return h ^ (h >> 15);
  }
};

// The alternatives that apply to a value: its own kind if the type allows it, else all of them.
inline uint8_t pick(const MergeType& type, const Value& value) {
  uint8_t own = 0;
  switch (value.kind()) {
    case Value::Kind::Null:
      return type.offers;
    case Value::Kind::List:
      own = MergeType::kList;
      break;
    case Value::Kind::Map:
      own = MergeType::kMap;
      break;
    default:
      own = MergeType::kScalar;
  }
  return (type.offers & own) != 0 ? own : type.offers;
}
// The alternative that is used if there are several: map, then scalar, then list.
inline uint8_t handled(uint8_t alternatives) {
  if (alternatives & MergeType::kMap) return MergeType::kMap;
  if (alternatives & MergeType::kScalar) return MergeType::kScalar;
  return MergeType::kList;
}

// The merge types created so far from one family of types. Thread-safe; returned references are valid for its lifetime.
class MergeTypes {
 public:
  MergeTypes();
  ~MergeTypes();
  MergeTypes(const MergeTypes&) = delete;
  MergeTypes& operator=(const MergeTypes&) = delete;

  const MergeType& of(const types::Type& type);

  // For objects without a known schema: maps granular, lists atomic.
  static const MergeType& deduced();
  static const MergeType& untyped_atomic();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Those of the catalog, shared by every FieldManager; the underlying types are never destroyed.
MergeTypes& builtin_merge_types();

}  // namespace holdfast::ownership
