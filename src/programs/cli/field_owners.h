// The owners of each field of an object: its managedFields mapped onto its tree.
//
//   object                      field sets                       FieldOwners
//     spec:                       alice: .spec.replicas            spec
//       replicas: 3        +      bob:   .spec.paused        =       replicas: 3   alice
//       strategy: {...}                                              strategy      unowned (a default)
//                                                                    paused        bob, but the field does not exist
//
// List items are matched by the path elements of the field sets: keys, set values or positions. The owner of an atomic
// list or map also owns everything below it.
//
// Lifetime: the object must outlive the FieldOwners.
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
  ownership::PathElement element;  // For the root, an empty field name.
  const Value* value = nullptr;    // Null if the field is owned but does not exist.
  std::vector<uint32_t> owners;    // Positions in FieldOwners::managers(), ascending.
  bool server_managed = false;     // apiVersion, kind, name, uid, ...: never owned.
  std::vector<OwnedField> children;
  bool hides_children = false;  // Some children were removed by a filter.

  // Whether it is shown as a value, rather than as a map or list with its content below.
  bool is_leaf() const { return children.empty(); }
};

class FieldOwners {
 public:
  // `custom_type`: how lists and maps of a custom resource merge, if known. Without it, this is inferred from the field
  // sets: an owned map in which nothing is owned is treated as atomic. BadRequest if managedFields cannot be read.
  static Result<FieldOwners> of(const Value& object, const ownership::MergeType* custom_type = nullptr);

  const ownership::Managed& managers() const { return managers_; }
  const OwnedField& root() const { return root_; }
  // Visits children in the order of the object, those that do not exist last. The path is that of the field.
  using Visit = std::function<void(ownership::Path path, const OwnedField& field)>;
  void for_each(const Visit& visit) const;
  // The owners of the field at a path as written in errors (".spec.ports[port=80].name"), or of the atomic value that
  // contains it.
  std::vector<uint32_t> owners_of(std::string_view path) const;

 private:
  std::unique_ptr<Arena> arena_;
  ownership::Managed managers_;
  OwnedField root_{ownership::PathElement::field(""), nullptr, {}, false, {}, false};
};

// The part of the object that a manager owns through any operation: those fields, their parents, and the fields that
// identify the object. Allocated in `arena`.
Result<Value> owned_part(Arena& arena, const Value& object, std::string_view manager);
// Whether managedFields has an entry of that manager.
bool has_manager(const Value& object, std::string_view manager);

// The object with all managedFields entries converted to one form.
enum class FieldsForm : uint8_t { V1, V2 };
Result<Value> with_fields_as(Arena& arena, const Value& object, FieldsForm form);

}  // namespace holdfast::cli
