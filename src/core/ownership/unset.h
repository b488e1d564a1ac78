// Unset markers in apply configurations: {k8s_io__value: unset} in place of a value states that the field must be
// absent, and that the applier owns its absence.
//
//   spec: {replicas: {k8s_io__value: unset}}                        a field of any kind
//   ports: [{containerPort: 80, k8s_io__value: unset}]              an item of a keyed list, by its keys
//   finalizers: [{k8s_io__value: unset, value: example.com/f}]      an element of a set
//
// Data that really has the key is doubled; the inner value may be a marker again:
//
//   data: {k8s_io__value: {k8s_io__value: text}}                    the key k8s_io__value with the value "text"
//
// A marker concerns its own path and nothing else: no container is created, kept or removed because of it, except that
// defaults which the schema declares next to it apply.
//
// Private to the module. Callers check the feature gate.
#pragma once

#include "ownership/ownership.h"

namespace holdfast::ownership {

struct Unset {
  Value config;    // Without markers, and without containers that held only markers.
  FieldSet paths;  // The unset paths, and those of their aliases. Items of keyed lists have defaulted keys filled in.
};
// BadRequest naming the path if a marker is misplaced or malformed, or names an item that also occurs elsewhere in the
// configuration.
Result<Unset> take_markers(Arena& arena, const MergeType& type, const Value& config);

// The topmost members of `set` that are absent from the value. A marker can represent each of them.
FieldSet vacancies(Arena& arena, const MergeType& type, const Value& value, FieldSet set);
// The reverse of take_markers: a configuration with markers at these paths.
Value with_markers(Arena& arena, const MergeType& type, const Value& config, FieldSet paths);

// Doubles every k8s_io__value in a value that has no markers.
Value with_escapes(Arena& arena, const Value& value);

// Sets the declared defaults of an object from which `unset` has been removed. Containers on the way to an unset path
// are created if a default below them applies.
Value with_defaults_of_unset(Arena& arena, const MergeType& type, const Value& object, FieldSet unset,
                             const std::function<Value(Arena&, const Value&)>& defaults);

// Only the containers: the object itself if none is to be created.
Value with_defaulted_parents(Arena& arena, const MergeType& type, const Value& object, FieldSet unset,
                             const std::function<Value(Arena&, const Value&)>& defaults);

// The declared containers in `owned` that equal their defaults: a manager that owns a container as well as its content
// has unset it, and the default came back; if it was set, the manager owns only the content. (Ownership migrated from
// client-side apply looks the same, but there the value is not the default.)
FieldSet defaulted_containers(Arena& arena, const MergeType& type, const Value& object, FieldSet owned,
                              const std::function<Result<Value>(const Value&)>& with_defaults);

// The members of `set` without members below them whose value equals the declared default.
FieldSet default_valued(Arena& arena, const MergeType& type, const Value& value, FieldSet set);

}  // namespace holdfast::ownership
