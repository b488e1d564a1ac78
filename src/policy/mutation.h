// One mutation of a MutatingAdmissionPolicy: an expression that evaluates to an apply configuration or to a JSON patch,
// and what that makes of an object.
//
//   ApplyConfiguration   Object{spec: Object.spec{replicas: 3}}                        merged as an apply merges it
//   JSONPatch            [JSONPatch{op: "add", path: "/spec/replicas", value: 3}]
//
// Ownership of fields is neither looked at nor recorded. In an apply configuration {k8s_io__value: "unset"} removes
// what it stands for, whatever the gate ServerSideApplyUnsettingFields says.
//
// Pure. Lifetime: results share memory with the arena, the activation's inputs and the object.
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
// Of an item of spec.mutations. What does not compile fails when it is applied.
Mutation compile_mutation(expressions::Compiler& compiler, const Value& mutation);

// The object after the mutation, as a tree: neither converted to its type nor defaulted. A JSON patch may have added
// anything, so its result must be decoded strictly; an apply configuration was checked against the type.
//
// `fields`: of the object's kind and version; null: nothing is known of them, so that apply configurations fail.
// `activation` must have the object as its `object`. Each
// mutation has a budget of its own (cel::kRuntimeBudget).
//
// Every error is one that the policy's failurePolicy decides on; its message is what follows "denied request: ".
Result<Value> apply_mutation(Arena& arena, const Mutation& mutation, expressions::Activation& activation,
                             int64_t& budget, const Value& object, const ownership::FieldManager* fields);

}  // namespace holdfast::policy
