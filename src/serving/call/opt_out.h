// Counts the responses from which managedFields were left out because their client asked for it (docs/opting-out.md).
#pragma once

#include "call/call.h"

namespace holdfast::call {

// Call it once per request, when an object without managedFields is sent; for a watch, when it begins. Nothing is
// counted if the client did not opt out.
void count_opt_out(Call& call);

}  // namespace holdfast::call
