// Unset markers in apply configurations: {k8s_io__value: unset} stands where a value could stand and says that the
// field must be absent, and that the applier owns its absence.
//
//   spec: {replicas: {k8s_io__value: unset}}                        a field of any kind
//   ports: [{containerPort: 80, k8s_io__value: unset}]              an item of a keyed list, by its keys
//
// Private to the module; the gate is the caller's.
#pragma once

#include "ownership/ownership.h"

namespace holdfast::ownership {

struct Unset {
  Value config;    // Without markers. A container that held nothing else is empty.
  FieldSet paths;  // What is unset. Items of keyed lists with defaulted keys completed.
  // Declared fields whose container held nothing but markers. The configuration does not own them as it would own {}:
  // it does say something below them.
  FieldSet vacated;
};
// BadRequest naming the path where a marker is misplaced or malformed, or names an item that the configuration names
// elsewhere too.
Result<Unset> take_markers(Arena& arena, const MergeType& type, const Value& config);

// The members of `set`, topmost ones alone, that the value does not have and that a marker can stand for.
FieldSet vacancies(Arena& arena, const MergeType& type, const Value& value, FieldSet set);
// The reverse of take_markers: a configuration with markers at these paths.
Value with_markers(Arena& arena, const MergeType& type, const Value& config, FieldSet paths);

}  // namespace holdfast::ownership
