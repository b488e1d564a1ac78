// Admission policies: what they and their bindings say, which of them a request concerns, and what they do about it.
//
//   objects --Policy, Binding--> Index --find(operation, resource)--> candidates --judge(subject)--> Verdict
//                                                                               --apply_mutation()--> object
//
//   definition.h  policies and bindings, read once, compiled once per generation
//   index.h       which policies might be about a request
//   judge.h       the verdict of a ValidatingAdmissionPolicy
//   mutation.h    one mutation of a MutatingAdmissionPolicy, applied to an object
//   type_check.h  what the types of objects say about a policy's expressions
//
// Reading objects, matching rules and finding params is the caller's part (write/admission_policies.h). Everything here
// is immutable once made and shared between requests.
#pragma once

#include "policy/definition.h"  // IWYU pragma: export
#include "policy/index.h"       // IWYU pragma: export
#include "policy/judge.h"       // IWYU pragma: export
#include "policy/mutation.h"    // IWYU pragma: export
#include "policy/type_check.h"  // IWYU pragma: export
