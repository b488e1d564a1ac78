// Shared by the write verbs: decoding of bodies (body.h), reading the live object, the steps between a decoded object
// and the store, and retries after a conflict.
//
// Threading: everything runs where its call runs (Call::executor()), and calls of all loops share the Writer. What two
//   of them write at the same time is decided by the store.
// Lifetime: a Value lives as long as the call whose arena it is in, or the LiveObject whose strings it refers to.
// Errors: those of Kubernetes, for the client. A write that ends with Timeout may have been stored, or may still be.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "access/access.h"
#include "admission/admission.h"
#include "cache/cache.h"
#include "call/call.h"
#include "kinds/kinds.h"
#include "own_calls/own_calls.h"
#include "ownership/ownership.h"
#include "resource/managers.h"
#include "services/services.h"
#include "webhook/webhook.h"
#include "write/admission_request.h"
#include "write/body.h"

namespace holdfast::write {

// The object as currently stored.
struct LiveObject {
  cache::EntryRef entry;
  store::Blob body;             // Keeps the strings of the trees alive.
  Value stored;                 // In the stored version, with resourceVersion, without managedFields.
  Value object;                 // The same in the requested version.
  ownership::Managed managed;   // Empty if it cannot be decoded.
  std::string managed_problem;  // The decoding error, if any.
  Revision revision;
};

// The new state requested by a client, in the requested version, after mutating admission.
struct NextObject {
  Value object;
  ownership::Managed managed;
  // For a subresource with its own kind (Scale): the new and the old value that policies and webhooks validate instead.
  Value seen = {}, seen_old = {};
  std::string field_manager = {};  // As specified in the query or in the object; empty if unspecified.
  Value sent = {};                 // Of a create: the object as decoded, without defaults. Null if unknown.
};

// The result of a write.
struct Written {
  Value stored;      // In the stored version, with its resourceVersion (unset for a dry-run create).
  std::string body;  // Canonical.
  std::vector<ownership::ManagedEntry> managed;
  Revision revision = {};  // Same as in `stored`; 0 for a dry run.
  bool created = false;
};

// nullopt if another writer came first: the caller reads the object again and retries.
using Attempt = std::optional<Written>;
// Bounds the retries of writers that keep conflicting with each other; upstream has no limit except the request
// timeout.
inline constexpr int kMaxAttempts = 200;

struct WriteRequest {
  request::WriteOptions options;
  kinds::Endpoint endpoint = kinds::Endpoint::Main;
  bool as_is = false;              // A change by the server itself (binding): no strategy, no validation.
  bool may_create = false;         // Create the object if it does not exist (apply; PUT of some kinds).
  std::optional<std::string> uid;  // Precondition.
  // Apply: an object that is too large is an error, rather than stored without managedFields.
  bool keeps_ownership_if_too_large = false;
};

class Admission;
class FieldProtections;

// Presented to admission webhooks; null to call them anonymously.
struct WebhookCredentials {
  std::shared_ptr<webhook::ClientCredentials> mutating, validating;
};

using Transform = std::function<Task<Result<NextObject>>(const LiveObject* live)>;

// Null if the object does not exist.
Task<Result<std::unique_ptr<LiveObject>>> read_live(call::Call& call, std::string_view name);

// The path of a write verb to the store, for one object:
//
//   read_live -> Transform (change it, mutate()) -> prepare_change or prepare_new (prepare, validate, default)
//             -> admission (validating) -> encode -> protections -> replace_live or store_object -> respond_written
//
// A delete has neither a Transform nor a preparation, and ends the same way:
//
//   read_live -> admit_delete -> store_own_change (if it is only marked) or remove -> respond_written
//
// Everything is retried if the object was changed in the meantime.
class Writer {
 public:
  // Everything here must outlive the Writer.
  struct Parts {
    services::ServicePools& pools;
    const auth::Authorizer& authorizer;
    const access::RbacAuthorizer* rbac;  // The same authorizer; null if it is not RBAC.
    resource::Storage& mutating_webhooks;
    resource::Storage& validating_webhooks;
    webhook::Caller& caller;
    const WebhookCredentials& webhook_credentials;
    const resource::Registry& registry;  // Has the policies.
    const admission::PluginChoice& plugins;
    own_calls::Handler own;
    MetricRegistry& metrics;
  };
  explicit Writer(const Parts& parts);
  ~Writer();

  // Update, or create if allowed: reads, transforms, checks and stores; retried on conflict.
  Task<Result<Written>> write_object(call::Call& call, WriteRequest request, Transform transform);
  // Creates an object, after mutating admission; generates its name if requested.
  Task<Result<Written>> create_object(call::Call& call, const request::WriteOptions& options, NextObject next);

  // Mutating admission. `next` and the result are in the requested version; `live` is null for a create.
  Task<Result<NextObject>> mutate(call::Call& call, AdmissionOperation operation, const request::WriteOptions& options,
                                  NextObject next, const LiveObject* live);
  // Validating admission: `object` is that of `next` as it will be stored or returned, in the requested version.
  Task<Result<Unit>> validate(call::Call& call, AdmissionOperation operation, const request::WriteOptions& options,
                              const Value& object, const NextObject& next, const LiveObject* live);
  // Runs mutating and, with `validates`, validating policies and webhooks on the body of a subresource with its own
  // kind (Scale, Binding).
  Task<Result<Value>> admit_subresource(call::Call& call, AdmissionOperation operation,
                                        const request::WriteOptions& options, Value object, Value old, bool validates);
  // Mutating and validating admission of a delete.
  Task<Result<Unit>> admit_delete(call::Call& call, Value options, const LiveObject& live, bool dry_run);

  // Removes the object if it is still at revision `at`, and frees its allocations (IPs, ports).
  Task<Result<store::WriteResult>> remove(call::Call& call, const LiveObject& live, Revision at);

  // Whether the user may create this object, for a PUT or an apply of a missing one. 403.
  Result<Unit> authorize_create(const call::Call& call) const;
  // Whether the user may delete this object although it cannot be decoded. 403.
  Result<Unit> authorize_unsafe_delete(const call::Call& call) const;
  // Whether a write in this namespace has been charged to its quotas but may not be stored yet. Any thread.
  bool charges_quota(std::string_view ns) const;

 private:
  // An object prepared and validated by the rules of its kind, in the version they apply to.
  struct Prepared {
    Value object;
    std::string at_rest;           // The body for etcd if it differs from the one shown to clients; else empty.
    services::ServiceLease lease;  // For Services.
  };
  Task<Result<Prepared>> prepare_new(call::Call& call, const request::WriteOptions& options, const Value& next);
  Task<Result<Prepared>> prepare_change(call::Call& call, const WriteRequest& request, const LiveObject& live,
                                        const Value& next);
  Task<Result<Unit>> admit_prepared(call::Call& call, AdmissionOperation operation,
                                    const request::WriteOptions& options, const Prepared& prepared,
                                    const NextObject& next, const LiveObject* live);
  Task<Result<Attempt>> update_once(call::Call& call, const WriteRequest& request, const LiveObject& live,
                                    NextObject next);
  // The steps after the preparation: admission, then the store.
  Task<Result<Attempt>> store_change(call::Call& call, const WriteRequest& request, const LiveObject& live,
                                     NextObject next, Prepared& prepared);
  Task<Result<std::optional<store::Conflict>>> store_new(call::Call& call, const request::WriteOptions& options,
                                                         const NextObject& next, Prepared& prepared, Written& written);
  // Keeps the allocations of a Service, or gives them back if nothing was stored.
  Task<void> settle(call::Call& call, services::ServiceLease lease, const Value* stored);
  // For an update that removes the last finalizer of a terminating object.
  Task<Result<Attempt>> remove_instead(call::Call& call, const WriteRequest& request, const LiveObject& live,
                                       Written last);

  services::ServicePools& pools_;
  const auth::Authorizer& authorizer_;
  const std::unique_ptr<Admission> admission_;
  const std::unique_ptr<FieldProtections> protections_;
};

// The object including its managedFields, as FieldsV1.
Value with_managed(Arena& arena, const Value& object, const ownership::Managed& managed, bool custom);

// The live object, for a write that changes nothing.
Written unchanged(call::Call& call, const LiveObject& live);
// Stores a change made by the server itself, in the stored version: managedFields are kept, and it is not validated.
Task<Result<Attempt>> store_own_change(call::Call& call, const LiveObject& live, Value next, bool dry_run);
// Removes a key of the call's resource if it is still at revision `at`. Allocations are not freed: see Writer::remove.
Task<Result<store::WriteResult>> remove_key(call::Call& call, std::string key, Revision at);

// Responds with the object that was written.
void respond_written(call::Call& call, int code, const Written& written);

// The request as seen by the rules of a kind.
kinds::Context context_of(call::Call& call);

}  // namespace holdfast::write
