// Unset markers in apply configurations: {k8s_io__value: unset} in place of a value states that the field must be
// absent, and that the applier owns its absence.
//
//   spec: {replicas: {k8s_io__value: unset}}                        a field of any kind
//   ports: [{containerPort: 80, k8s_io__value: unset}]              an item of a keyed list, by its keys
//
// Private to the module. Callers check the feature gate.
#pragma once

#include "ownership/ownership.h"

namespace holdfast::ownership {

struct Unset {
  Value config;    // Without markers. A container that held only markers is empty.
  FieldSet paths;  // The unset paths. Items of keyed lists have defaulted keys filled in.
  // Declared fields whose container held only markers. The configuration does not own them as it would own {}, since it
  // does configure something below them.
  FieldSet vacated;
};
// BadRequest naming the path if a marker is misplaced or malformed, or names an item that also occurs elsewhere in the
// configuration.
Result<Unset> take_markers(Arena& arena, const MergeType& type, const Value& config);

// The topmost members of `set` that are absent from the value and that a marker can represent.
FieldSet vacancies(Arena& arena, const MergeType& type, const Value& value, FieldSet set);
// The reverse of take_markers: a configuration with markers at these paths.
Value with_markers(Arena& arena, const MergeType& type, const Value& config, FieldSet paths);

}  // namespace holdfast::ownership
