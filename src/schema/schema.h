// Custom resources' schemas: a CustomResourceDefinition's openAPIV3Schema becomes the same types that built-in kinds
// have, and objects are pruned and defaulted by them.
//
// A Schema is immutable and owns all that its types point at; whoever holds types of it holds the Schema.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/arena.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::schema {

class Schema {
 public:
  // `schema` is openAPIV3Schema as a tree; null (or no map): any object goes, maps granular, lists atomic.
  // `preserve_unknown_fields` is spec.preserveUnknownFields of the definition. What is not understood is ignored:
  // the structural rules are checked before (crd/).
  static std::shared_ptr<const Schema> build(const Value& schema, bool preserve_unknown_fields);

  const types::Type& root() const { return *root_; }
  // The schema as written, for publishing.
  const Value& written() const { return written_; }
  size_t bytes() const { return arena_.reserved_bytes(); }

 private:
  Schema() = default;
  Arena arena_{1024};
  const types::Type* root_ = nullptr;
  Value written_;
};

// The steps that a body, a patched object or a stored object goes through, in this order. Each shares with its input
// whatever it leaves alone.

// Removes members that the schema does not know; adds the path of each to `unknown`, when given, sorted: "spec.a[0].b".
// apiVersion, kind and metadata of the root and of embedded resources stay.
Value prune(Arena& arena, const types::Type& root, const Value& object, std::vector<std::string>* unknown = nullptr);
// Removes members that are null where the schema neither allows null nor has a default.
Value drop_nulls(Arena& arena, const types::Type& root, const Value& object);
// Sets what is absent (or null where null is not allowed) and has a default.
Value apply_defaults(Arena& arena, const types::Type& root, const Value& object);

}  // namespace holdfast::schema
