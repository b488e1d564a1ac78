// Who owns each field of one object: its managedFields laid over its own tree.
//
//   object                      field sets                       FieldOwners
//     spec:                       alice: .spec.replicas            spec
//       replicas: 3        +      bob:   .spec.paused        =       replicas: 3   alice
//       strategy: {...}                                              strategy      nobody (a default)
//                                                                    paused        bob, but there is no such field
//
// Items of lists are found by what the sets say of them: keys, values of sets, positions. What a manager owns in one
// piece (an atomic list or map) it owns with everything below.
//
// Lifetime: the object must outlive it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "ownership/ownership.h"
#include "value/value.h"

namespace holdfast::cli {

struct OwnedField {
  ownership::PathElement element;  // Of the root: an empty name.
  const Value* value = nullptr;    // Null: somebody owns the field, but it does not exist.
  std::vector<uint32_t> owners;    // Positions in FieldOwners::managers(), ascending.
  bool given_by_server = false;    // apiVersion, kind, name, uid, ...: never owned.
  std::vector<OwnedField> children;
  bool hides_children = false;  // Some were taken out, by whoever shows only a part.

  // A value of its own, rather than a map or list whose content is shown below it.
  bool is_leaf() const { return children.empty(); }
};

class FieldOwners {
 public:
  // `custom_type`: how lists and maps of a custom resource merge, if that is known. Without it, the field sets have
  // to do: a map that is owned without anything in it being owned is treated as atomic then. BadRequest where
  // managedFields cannot be read.
  static Result<FieldOwners> of(const Value& object, const ownership::MergeType* custom_type = nullptr);

  const ownership::Managed& managers() const { return managers_; }
  const OwnedField& root() const { return root_; }
  // Children in the order of the object; those that do not exist last. The path is that of the field.
  using Visit = std::function<void(ownership::Path path, const OwnedField& field)>;
  void for_each(const Visit& visit) const;
  // The owners of what is at a path as errors show it (".spec.ports[port=80].name"): itself, or what it is part of.
  std::vector<uint32_t> owners_of(std::string_view path) const;

 private:
  std::unique_ptr<Arena> arena_;
  ownership::Managed managers_;
  OwnedField root_{ownership::PathElement::field(""), nullptr, {}, false, {}, false};
};

// The object with what one manager owns of it, whatever the operation: those fields, what leads to them, and what tells
// which object it is. Made in `arena`.
Result<Value> owned_part(Arena& arena, const Value& object, std::string_view manager);
// Whether it has an entry of that manager.
bool has_manager(const Value& object, std::string_view manager);

// The object with all entries of its managedFields in one form.
enum class FieldsForm : uint8_t { V1, V2 };
Result<Value> with_fields_as(Arena& arena, const Value& object, FieldsForm form);

}  // namespace holdfast::cli
