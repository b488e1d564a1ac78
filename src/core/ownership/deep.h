// Extra stack for recursion over very deeply nested objects.
//
// The engine's walks are recursive. An object at the decoders' depth limit could overflow a thread's stack, so such
// objects are processed on a separate thread with a large stack, whose pages are committed only when touched.
#pragma once

#include <functional>
#include <initializer_list>

#include "value/value.h"

namespace holdfast::ownership {

// Whether a value is nested more than a few hundred levels deep. Stops looking at that depth.
bool is_deep(const Value& value);

// Runs `work` to completion on a thread with a large stack and rethrows its exception. False if the thread could not be
// created; `work` has not run then.
bool run_with_large_stack(const std::function<void()>& work);

// Runs `work` on this thread, or with a large stack if one of the objects is deep; they may be null. False if that
// stack could not be allocated.
bool run_with_stack_for(std::initializer_list<const Value*> objects, const std::function<void()>& work);

}  // namespace holdfast::ownership
