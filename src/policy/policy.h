// Admission policies.
//
//   mutation.h    one mutation of a MutatingAdmissionPolicy, applied to an object
#pragma once

#include "policy/mutation.h"  // IWYU pragma: export
