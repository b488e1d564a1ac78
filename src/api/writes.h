// What the writing verbs share: reading what is there, the steps between a decoded object and the store, and the loop
// that starts again when somebody else was faster.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/admission_hook.h"
#include "api/call.h"
#include "cache/cache.h"
#include "kinds/kinds.h"
#include "ownership/ownership.h"
#include "resource/managers.h"

namespace holdfast::api {

// An object as it lies in the store at this moment.
struct LiveObject {
  cache::EntryRef entry;
  store::Blob body;             // Keeps the trees' texts alive.
  Value stored;                 // In the stored version, with resourceVersion, without managedFields.
  Value object;                 // The same in the requested version.
  ownership::Managed managed;   // Empty when it cannot be read.
  std::string managed_problem;  // Why.
  Revision revision;
};

// What a request wants to be there instead, in the requested version, after mutating admission.
struct NextObject {
  Value object;
  ownership::Managed managed;
  // Of a subresource with a kind of its own (Scale): what policies and webhooks validate instead, and what it was.
  Value seen = {}, seen_old = {};
};

// What came of a write.
struct Written {
  Value stored;      // In the stored version, with its resourceVersion (none for a create that was a dry run).
  std::string body;  // Canonical.
  std::vector<ownership::ManagedEntry> managed;
  bool created = false;
};

struct WriteRequest {
  request::WriteOptions options;
  kinds::Endpoint endpoint = kinds::Endpoint::Main;
  bool as_is = false;              // The server's own change (binding): no strategy, no validation.
  bool may_create = false;         // A missing object is created (apply; PUT of some kinds).
  std::optional<std::string> uid;  // Precondition.
  bool keeps_ownership_if_too_large =
      false;  // Apply: too large is an error rather than a reason to drop managedFields.
};

using Transform = std::function<Task<Result<NextObject>>(const LiveObject* live)>;

// CustomResourceDefinitions are followed by what they define before their writer is answered.
bool is_definition(const types::Resource& resource);
Task<void> settle_definition(Call& call, std::string_view name);

// Null: there is none.
Task<Result<std::unique_ptr<LiveObject>>> read_live(Call& call, std::string_view name);

// Update, or create where that is allowed: read, transform, check, store; again if it changed meanwhile.
Task<Result<Written>> write_object(Call& call, WriteRequest request, Transform transform);
// A new object, after mutating admission; its name is made here when it asks for one.
Task<Result<Written>> create_object(Call& call, const request::WriteOptions& options, NextObject next);

// Mutating admission. `next` and the result are in the requested version; `live` is null for a create.
Task<Result<NextObject>> run_mutation(Call& call, AdmissionOperation operation, const request::WriteOptions& options,
                                      std::string manager, NextObject next, const LiveObject* live);
// Validating admission of a create or an update: `object` is `next`'s as it will be stored, in the requested version.
Task<Result<Unit>> run_validation(Call& call, AdmissionOperation operation, const request::WriteOptions& options,
                                  const Value& object, const NextObject& next, const LiveObject* live);
// Mutating, then (`validates`) validating policies and webhooks about the body of a subresource that is of a kind of
// its own: a Scale, a Binding.
Task<Result<Value>> admit_subresource(Call& call, AdmissionOperation operation, const request::WriteOptions& options,
                                      Value object, Value old, bool validates);
// Both kinds of admission for a delete.
Task<Result<Unit>> admit_delete(Call& call, Value options, const LiveObject& live, bool dry_run);

// CreateOptions or UpdateOptions as admission shows them: patches too.
Value write_options_value(Arena& arena, std::string_view kind, const request::WriteOptions& options,
                          std::string_view manager);
// The object with its managedFields in it, as FieldsV1.
Value with_managed(Arena& arena, const Value& object, const ownership::Managed& managed, bool custom);

// Answers with what was written.
void respond_written(Call& call, int code, const Written& written);

// --- Small pieces ---

kinds::Context context_of(Call& call);
// An error of the store as clients see it.
Error write_error(Call& call, const store::StoreError& error);
Task<store::StoreResult<store::WriteResult>> commit(Call& call, store::Transaction transaction);
std::string new_uid();

}  // namespace holdfast::api
