// One mutation of a MutatingAdmissionPolicy: an expression that evaluates to an apply configuration or to a JSON patch,
// and its application to an object.
//
//   ApplyConfiguration   Object{spec: Object.spec{replicas: 3}}                        merged like Server-Side Apply
//   JSONPatch            [JSONPatch{op: "add", path: "/spec/replicas", value: 3}]
//
// Field ownership is neither checked nor recorded. In an apply configuration, {k8s_io__value: "unset"} removes the
// field regardless of the gate ServerSideApplyUnsettingFields.
//
// Pure functions. Lifetime: results share memory with the arena, the activation's inputs and the object.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/arena.h"
#include "base/error.h"
#include "expressions/expressions.h"
#include "ownership/ownership.h"
#include "value/value.h"

namespace holdfast::policy {

struct Mutation {
  enum class Kind : uint8_t { ApplyConfiguration, JsonPatch };
  Kind kind = Kind::ApplyConfiguration;
  expressions::Expression expression;
};
// Compiles an item of spec.mutations. One that does not compile fails when it is applied.
Mutation compile_mutation(expressions::Compiler& compiler, const Value& mutation);

// The object after the mutation, as a tree: neither converted to its type nor defaulted. A JSON patch may have added
// anything, so its result must be decoded strictly; an apply configuration was checked against the type.
//
// `fields` must be for the object's kind and version; if null, apply configurations fail. `activation` must have the
// object as its `object`. Each mutation has its own budget (cel::kRuntimeBudget).
//
// All errors are subject to the policy's failurePolicy; the message is what follows "denied request: ".
Result<Value> apply_mutation(Arena& arena, const Mutation& mutation, expressions::Activation& activation,
                             int64_t& budget, const Value& object, const ownership::FieldManager* fields);

}  // namespace holdfast::policy
