// What the writing verbs share: request bodies as objects (body.h), reading what is there, the steps between a decoded
// object and the store, and the retries after a conflict.
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
  std::string field_manager = {};  // That the request names, in its query or in the object. Empty: it names none.
};

// What came of a write.
struct Written {
  Value stored;      // In the stored version, with its resourceVersion (none for a create that was a dry run).
  std::string body;  // Canonical.
  std::vector<ownership::ManagedEntry> managed;
  Revision revision = {};  // The same as in `stored`; 0 for a dry run.
  bool created = false;
};

// Nothing: another writer came first. The caller reads the object again and starts over.
using Attempt = std::optional<Written>;
// Writers of one object that keep overtaking each other end somewhere; upstream retries without a bound but within the
// request's time.
inline constexpr int kMaxAttempts = 200;

struct WriteRequest {
  request::WriteOptions options;
  kinds::Endpoint endpoint = kinds::Endpoint::Main;
  bool as_is = false;              // The server's own change (binding): no strategy, no validation.
  bool may_create = false;         // A missing object is created (apply; PUT of some kinds).
  std::optional<std::string> uid;  // Precondition.
  bool keeps_ownership_if_too_large =
      false;  // Apply: too large is an error rather than a reason to drop managedFields.
};

class Admission;

// What is shown to admission webhooks; null: they are called anonymously.
struct WebhookCredentials {
  std::shared_ptr<webhook::ClientCredentials> mutating, validating;
};

using Transform = std::function<Task<Result<NextObject>>(const LiveObject* live)>;

// Null: there is none.
Task<Result<std::unique_ptr<LiveObject>>> read_live(call::Call& call, std::string_view name);

// The writing verbs' way to the store. What becomes of one object:
//
//   read_live -> Transform (change it, mutate()) -> judge_change or judge_new (prepare, validate, default)
//             -> admission (validating) -> encode -> replace_live or store_object -> respond_written
//
// A deletion is neither transformed nor judged, and has the same tail:
//
//   read_live -> admit_delete -> store_own_change (it is marked) or remove -> respond_written
//
// All of it is run again when the object was changed meanwhile.
class Writer {
 public:
  // Everything outlives it.
  struct Parts {
    services::ServicePools& pools;
    const auth::Authorizer& authorizer;
    const access::RbacAuthorizer* rbac;  // The same authorizer; null: another one, which has no rules.
    resource::Storage& mutating_webhooks;
    resource::Storage& validating_webhooks;
    webhook::Caller& caller;
    const WebhookCredentials& webhook_credentials;
    const resource::Registry& registry;  // Where policies are.
    const admission::PluginChoice& plugins;
    own_calls::Handler own;
    MetricRegistry& metrics;
  };
  explicit Writer(const Parts& parts);
  ~Writer();

  // Update, or create where that is allowed: read, transform, check, store; again if it changed meanwhile.
  Task<Result<Written>> write_object(call::Call& call, WriteRequest request, Transform transform);
  // A new object, after mutating admission; its name is made here when it asks for one.
  Task<Result<Written>> create_object(call::Call& call, const request::WriteOptions& options, NextObject next);

  // Mutating admission. `next` and the result are in the requested version; `live` is null for a create.
  Task<Result<NextObject>> mutate(call::Call& call, AdmissionOperation operation, const request::WriteOptions& options,
                                  NextObject next, const LiveObject* live);
  // Validating admission: `object` is `next`'s as it will be stored or answered, in the requested version.
  Task<Result<Unit>> validate(call::Call& call, AdmissionOperation operation, const request::WriteOptions& options,
                              const Value& object, const NextObject& next, const LiveObject* live);
  // Mutating, then (`validates`) validating policies and webhooks about the body of a subresource of a kind of its own:
  // a Scale, a Binding.
  Task<Result<Value>> admit_subresource(call::Call& call, AdmissionOperation operation,
                                        const request::WriteOptions& options, Value object, Value old, bool validates);
  // Both kinds of admission for a delete.
  Task<Result<Unit>> admit_delete(call::Call& call, Value options, const LiveObject& live, bool dry_run);

  // Removes the object if it is still at the revision `at`; what it held (addresses, ports) is free then.
  Task<Result<store::WriteResult>> remove(call::Call& call, const LiveObject& live, Revision at);

  // Whether the user may create this object: a PUT or an apply is about to. 403.
  Result<Unit> authorize_create(const call::Call& call) const;
  // Whether the user may delete this object although it cannot be read. 403.
  Result<Unit> authorize_unsafe_delete(const call::Call& call) const;
  // Whether a write of this namespace has been charged to its quotas and may not be stored yet. Any thread.
  bool charges_quota(std::string_view ns) const;

 private:
  // An object that its kind's rules have prepared and accepted, in the version that they judge.
  struct Judged {
    Value object;
    std::string at_rest;           // The body for an etcd, where that differs from what is shown; else empty.
    services::ServiceLease lease;  // Of a Service.
  };
  Task<Result<Judged>> judge_new(call::Call& call, const request::WriteOptions& options, const Value& next);
  Task<Result<Judged>> judge_change(call::Call& call, const WriteRequest& request, const LiveObject& live,
                                    const Value& next);
  Task<Result<Unit>> admit_judged(call::Call& call, AdmissionOperation operation, const request::WriteOptions& options,
                                  const Judged& judged, const NextObject& next, const LiveObject* live);
  Task<Result<Attempt>> update_once(call::Call& call, const WriteRequest& request, const LiveObject& live,
                                    NextObject next);
  // What follows judging: admission, then the store.
  Task<Result<Attempt>> store_change(call::Call& call, const WriteRequest& request, const LiveObject& live,
                                     NextObject next, Judged& judged);
  Task<Result<std::optional<store::Conflict>>> store_new(call::Call& call, const request::WriteOptions& options,
                                                         const NextObject& next, Judged& judged, Written& written);
  // What a Service took is its own now, or, where nothing was stored, free again.
  Task<void> settle(call::Call& call, services::ServiceLease lease, const Value* stored);
  // Of an object that was deleted before and has lost its last finalizer by this update.
  Task<Result<Attempt>> remove_instead(call::Call& call, const WriteRequest& request, const LiveObject& live,
                                       Written last);

  services::ServicePools& pools_;
  const auth::Authorizer& authorizer_;
  const std::unique_ptr<Admission> admission_;
};

// The object with its managedFields in it, as FieldsV1.
Value with_managed(Arena& arena, const Value& object, const ownership::Managed& managed, bool custom);

// The object as it is, for a write that changes nothing.
Written unchanged(call::Call& call, const LiveObject& live);
// Stores a change that the server itself makes, in the stored version: its owners stay, and it is not validated.
Task<Result<Attempt>> store_own_change(call::Call& call, const LiveObject& live, Value next, bool dry_run);
// Removes a key of the call's resource if it is still at the revision `at`. What it held stays taken: see
// Writer::remove.
Task<Result<store::WriteResult>> remove_key(call::Call& call, std::string key, Revision at);

// Answers with what was written.
void respond_written(call::Call& call, int code, const Written& written);

// What the rules of a kind know about the request.
kinds::Context context_of(call::Call& call);

}  // namespace holdfast::write
