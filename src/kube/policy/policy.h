// Admission policies: their definitions and bindings, which of them apply to a request, and what they do.
//
//   objects --Policy, Binding--> Index --find(operation, resource)--> candidates --judge(subject)--> Verdict
//                                                                               --apply_mutation()--> object
//
//   definition.h  policies and bindings, read once, compiled once per generation
//   index.h       finds the policies that may apply to a request
//   judge.h       evaluates a ValidatingAdmissionPolicy
//   mutation.h    applies one mutation of a MutatingAdmissionPolicy to an object
//   type_check.h  checks a policy's expressions against the types of objects
//
// Reading objects, matching rules and finding params is up to the caller (write/admission_policies.h). Everything here
// is immutable after construction and shared between requests.
#pragma once

#include "policy/definition.h"  // IWYU pragma: export
#include "policy/index.h"       // IWYU pragma: export
#include "policy/judge.h"       // IWYU pragma: export
#include "policy/mutation.h"    // IWYU pragma: export
#include "policy/type_check.h"  // IWYU pragma: export
