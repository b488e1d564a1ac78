// Room for recursion on objects nested far deeper than any real one. Private to the module.
//
// The engine's walks recurse. What decoders let through could outgrow a thread's stack, so such objects
// are worked on by a thread of their own with a stack to match; its pages are only taken when they are touched.
#pragma once

#include <functional>

#include "value/value.h"

namespace holdfast::ownership {

// Whether a value has more than a few hundred levels: stops looking there.
bool is_deep(const Value& value);

// Runs `work` to its end, on a thread with a large stack; throws what it throws. False when no such thread could be
// made: nothing was run.
bool run_with_room(const std::function<void()>& work);

}  // namespace holdfast::ownership
