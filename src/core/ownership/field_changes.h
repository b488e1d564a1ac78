// What differs between two objects of one type, as field sets, and the values of fields: for showing the effect of a
// write.
//
// Objects are passed without metadata.managedFields. Everything here is recursive: see run_with_stack_for().
// Lifetime: results point into the arguments and the arena. Threading: plain functions; a FieldValues belongs to one
// thread at a time.
#pragma once

#include <memory>

#include "base/arena.h"
#include "ownership/deep.h"
#include "ownership/field_set.h"
#include "ownership/merge_type.h"
#include "value/value.h"

namespace holdfast::ownership {

// Containers that were added or removed are members too, and so is everything inside them.
struct FieldChanges {
  FieldSet added, modified, removed;
};
FieldChanges changes_between(Arena& arena, const MergeType& type, const Value& before, const Value& after);

// The fields that an apply of the object would own: every leaf, list item, undeclared member, null and {}.
FieldSet fields_of(Arena& arena, const MergeType& type, const Value& object);

// The members of `set` that have nothing below them, and are not in `present`, nor have anything below them there.
FieldSet missing_from(Arena& arena, FieldSet set, FieldSet present);

// Looks up many fields of one object. Lists are indexed when something in them is looked up for the first time.
class FieldValues {
 public:
  // Both must outlive it.
  FieldValues(Arena& arena, const MergeType& type, const Value& object);
  ~FieldValues();
  FieldValues(const FieldValues&) = delete;
  FieldValues& operator=(const FieldValues&) = delete;

  // Null if the object has no such field.
  const Value* at(Path path);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace holdfast::ownership
