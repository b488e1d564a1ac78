// Schemas of custom resources: converts a CustomResourceDefinition's openAPIV3Schema to the same types that built-in
// kinds have, and prunes and defaults objects accordingly.
//
// A Schema is immutable and owns everything its types point to; keep the Schema while using its types. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::schema {

// The types of one version of a custom resource. Equal schemas are shared. The source is kept compressed and the types
// are built on first use: a definition that is not used costs a kilobyte or two.
class Schema final : public types::LazyType {
 public:
  // `schema` is openAPIV3Schema as a tree. If it is null (or not a map), any object is allowed, with granular maps and
  // atomic lists. `preserve_unknown_fields` is spec.preserveUnknownFields of the definition. Unsupported keywords are
  // ignored: the structural rules are checked beforehand (crd/).
  static std::shared_ptr<const Schema> build(const Value& schema, bool preserve_unknown_fields);
  ~Schema() = default;

  const types::Type& root() const;
  const types::Type& type() const override { return root(); }
  // The schema in source form, for publishing; null if there is none.
  Value written(Arena& arena) const;
  // A hash of the source: differs if the schema does.
  uint64_t fingerprint() const { return hash_; }
  size_t bytes() const { return packed_.size() + arena_.reserved_bytes(); }

 private:
  struct Known;  // Registry of all existing schemas.
  Schema(std::string_view text, uint64_t hash, bool preserve_unknown_fields);
  static Known& known();

  // Constant after construction.
  std::string packed_;  // JSON.
  const size_t plain_bytes_;
  const uint64_t hash_;
  const bool preserve_unknown_fields_;

  mutable std::once_flag made_;
  mutable Arena arena_;
  mutable const types::Type* root_ = nullptr;
};

// Builds the types described by a schema in `arena`; they do not reference `schema`.
const types::Type& types_of(Arena& arena, const Value& schema, bool preserve_unknown_fields);

// The type of a member that the schema itself describes; null for undeclared members, and for built-in types, which
// occur inside metadata.
const types::Type* member_type(const types::Type& type, std::string_view key);

// The steps applied to a request body, a patched object or a stored object, in this order. The result of each shares
// unchanged parts with its input.

// Removes members that the schema does not declare. If `unknown` is given, appends their paths, sorted: "spec.a[0].b".
// apiVersion, kind and metadata of the root and of embedded resources are kept.
Value prune(Arena& arena, const types::Type& root, const Value& object, std::vector<std::string>* unknown = nullptr);
// Removes null members where the schema neither allows null nor has a default.
Value drop_nulls(Arena& arena, const types::Type& root, const Value& object);
// Sets every member that has a default and is absent (or null where null is not allowed).
Value apply_defaults(Arena& arena, const types::Type& root, const Value& object);

}  // namespace holdfast::schema
