// What a kind's objects need between decoding and the store. Built-in kinds have it from `kinds`,
// CustomResourceDefinitions beside that from `crd`, custom resources from their definition.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "kinds/kinds.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::resource {

// Collects what plain code wanted converted and only a webhook can convert: see custom/conversions.h, which alone makes
// these.
class MissingConversions {
 public:
  virtual ~MissingConversions() = default;

 protected:
  MissingConversions() = default;
};

// The steps are those of kinds/kinds.h, in its order. Immutable; share freely.
class ObjectRules {
 public:
  virtual ~ObjectRules() = default;

  // In the requested version.
  virtual void set_defaults(Arena& arena, Draft::Node object) const = 0;
  // From one version to another. Where a webhook converts (asks_to_convert), only what it has converted already; the
  // rest is an error and added to `missing`, unless that is null. custom::with_conversions() runs code that calls this.
  virtual Result<Value> convert(Arena& arena, const types::Resource& from, const types::Resource& to,
                                const Value& object, MissingConversions* missing) const = 0;
  virtual bool asks_to_convert() const { return false; }
  // The version of a stored object: `usual`, unless the kind is stored in several versions.
  virtual const types::Resource& version_of(const Value&, const types::Resource& usual) const { return usual; }

  // In the stored version.
  virtual void prepare_for_create(kinds::Context& context, Draft::Node object) const = 0;
  virtual void prepare_for_update(kinds::Context& context, kinds::Endpoint endpoint, Draft::Node next,
                                  const Value& old) const = 0;
  virtual Result<Unit> validate_create(kinds::Context& context, const Value& object) const = 0;
  virtual Result<Unit> validate_update(kinds::Context& context, kinds::Endpoint endpoint, const Value& next,
                                       const Value& old) const = 0;
  virtual std::vector<std::string> warnings(kinds::Context& context, kinds::Endpoint endpoint, const Value& object,
                                            const Value* old) const = 0;
  // Whether two objects are equivalent, whatever their representation.
  virtual bool same(const Value& a, const Value& b) const = 0;

  // Text for a Warning header on every request; empty: none.
  virtual std::string_view deprecation_warning() const = 0;
};

std::shared_ptr<const ObjectRules> builtin_rules(const types::Resource& requested, const types::Resource& stored);

}  // namespace holdfast::resource
