// Counts the responses from which managedFields were left out because their client asked for it, and the bytes that
// this saved (docs/opting-out.md).
#pragma once

#include "call/call.h"
#include "ownership/pool.h"

namespace holdfast::call {

// Call it once per request, when an object without managedFields is sent; for a watch, when it begins. Nothing is
// counted if the client did not opt out. `bytes` is what the response lacks.
void count_opt_out(Call& call, uint64_t bytes);

// The bytes of field sets that are saved for this client. Null if it did not opt out.
Counter* opt_out_bytes(Call& call);

// Bytes of an object's field sets as FieldsV1.
uint64_t field_set_bytes(const ownership::Owners& owners);
uint64_t field_set_bytes(std::span<const ownership::ManagedEntry> entries);

}  // namespace holdfast::call
