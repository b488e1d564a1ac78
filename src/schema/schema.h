// Custom resources' schemas: a CustomResourceDefinition's openAPIV3Schema becomes the same types that built-in kinds
// have, and objects are pruned and defaulted by them.
//
// A Schema is immutable and owns everything its types point to; keep the Schema while using its types. Any thread.
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

// The types of one version of a custom resource. Equal schemas are shared. The source is kept compressed, and the types
// are built on first use: a definition that is not in use costs a kilobyte or two.
class Schema final : public types::LazyType {
 public:
  // `schema` is openAPIV3Schema as a tree; null (or no map): any object goes, maps granular, lists atomic.
  // `preserve_unknown_fields` is spec.preserveUnknownFields of the definition. What is not understood is ignored:
  // the structural rules are checked before (crd/).
  static std::shared_ptr<const Schema> build(const Value& schema, bool preserve_unknown_fields);
  ~Schema() = default;

  const types::Type& root() const;
  const types::Type& type() const override { return root(); }
  // The schema as written, for publishing; null: there is none.
  Value written(Arena& arena) const;
  // Of what it says: differs where that does.
  uint64_t fingerprint() const { return hash_; }
  size_t bytes() const { return packed_.size() + arena_.reserved_bytes(); }

 private:
  struct Known;  // Every schema there is.
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

// The types that a schema describes, made in `arena`: they share nothing with `schema`.
const types::Type& types_of(Arena& arena, const Value& schema, bool preserve_unknown_fields);

// The steps that a body, a patched object or a stored object goes through, in this order. Each shares with its input
// whatever it leaves alone.

// Removes members that the schema does not know; adds the path of each to `unknown`, when given, sorted: "spec.a[0].b".
// apiVersion, kind and metadata of the root and of embedded resources stay.
Value prune(Arena& arena, const types::Type& root, const Value& object, std::vector<std::string>* unknown = nullptr);
// Removes members that are null where the schema neither allows null nor has a default.
Value drop_nulls(Arena& arena, const types::Type& root, const Value& object);
// Sets every member that has a default and is absent (or null where null is not allowed).
Value apply_defaults(Arena& arena, const types::Type& root, const Value& object);

}  // namespace holdfast::schema
