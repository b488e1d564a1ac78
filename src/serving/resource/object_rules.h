// The steps that a kind's objects go through between decoding and the store: implemented by `kinds` for built-in kinds,
// by `crd` in addition for CustomResourceDefinitions, and by their definition for custom resources.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "base/warnings.h"
#include "kinds/kinds.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::resource {

// Collects conversions that synchronous code needs and only a webhook can do. Created only by custom/conversions.h; see
// there.
class MissingConversions {
 public:
  virtual ~MissingConversions() = default;

 protected:
  MissingConversions() = default;
};

// The steps are those of kinds/kinds.h, in that order. Immutable and thread-safe.
class ObjectRules {
 public:
  virtual ~ObjectRules() = default;

  // A decoded object of the requested version with its defaults. A built-in one is also converted to its stored version
  // and back, which may add and move members: kube-apiserver has it in a version of its own from here on.
  virtual Value with_defaults(Arena& arena, const Value& decoded) const = 0;
  // From one version to another. With a conversion webhook (converts_by_webhook), only cached conversions succeed;
  // others are an error and are added to `missing` unless it is null. custom::with_conversions() runs code that calls
  // this.
  virtual Result<Value> convert(Arena& arena, const types::Resource& from, const types::Resource& to,
                                const Value& object, MissingConversions* missing) const = 0;
  virtual bool converts_by_webhook() const { return false; }
  // The version of a stored object: `usual`, unless the kind is stored in several versions.
  virtual const types::Resource& version_of(const Value&, const types::Resource& usual) const { return usual; }

  // In the stored version.
  virtual void prepare_for_create(kinds::Context& context, Draft::Node object) const = 0;
  virtual void prepare_for_update(kinds::Context& context, kinds::Endpoint endpoint, Draft::Node next,
                                  const Value& old) const = 0;
  virtual Result<Unit> validate_create(kinds::Context& context, const Value& object) const = 0;
  virtual Result<Unit> validate_update(kinds::Context& context, kinds::Endpoint endpoint, const Value& next,
                                       const Value& old) const = 0;
  virtual void add_warnings(kinds::Context& context, kinds::Endpoint endpoint, const Value& object, const Value* old,
                            Warnings& warnings) const = 0;
  // Whether two objects are semantically equal, regardless of representation.
  virtual bool same(const Value& a, const Value& b) const = 0;

  // Text for a Warning header on every request; empty if there is none.
  virtual std::string_view deprecation_warning() const = 0;
};

std::shared_ptr<const ObjectRules> builtin_rules(const types::Resource& requested, const types::Resource& stored);

}  // namespace holdfast::resource
