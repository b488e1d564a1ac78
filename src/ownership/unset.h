// Unset markers in apply configurations: {k8s_io__value: unset} stands where a value could stand and says that the
// field shall be absent, and that the applier owns that it is.
//
//   spec: {replicas: {k8s_io__value: unset}}                        a field of any kind
//   ports: [{containerPort: 80, k8s_io__value: unset}]              an item of a keyed list, by its keys
//
// Private to the room; the gate is the caller's.
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "ownership/field_set.h"
#include "ownership/merge_type.h"
#include "value/value.h"

namespace holdfast::ownership {

inline constexpr std::string_view kUnsetKey = "k8s_io__value";
inline constexpr std::string_view kUnsetValue = "unset";

// Whether a map anywhere in the value has the marker's key. Reads, makes nothing: all that an apply without markers
// pays.
bool has_marker(const Value& value);

struct Unset {
  Value config;    // Without markers, and without containers that held nothing but markers.
  FieldSet paths;  // What is unset. Items of keyed lists with defaulted keys completed.
};
// BadRequest naming the path where a marker stands in a wrong place or says something else.
Result<Unset> take_markers(Arena& arena, const MergeType& type, const Value& config);

}  // namespace holdfast::ownership
