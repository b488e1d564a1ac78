#include "write/admission.h"

#include <algorithm>

#include "base/api_error.h"

namespace holdfast::write {
namespace {

AdmissionRequest admission_request(call::Call& call, AdmissionOperation operation, const Value& object, bool dry_run) {
  AdmissionRequest request;
  request.operation = operation;
  request.resource = call.served->resource;
  request.subresource = call.info.subresource;
  request.ns = call.info.ns;
  request.name = call.info.name.empty() ? object.text_at("metadata", "name") : call.info.name;
  // The namespace of a Namespace is the object itself.
  const types::Resource& resource = *call.served->resource;
  if (request.ns.empty() && resource.group.empty() && resource.kind == "Namespace") request.ns = request.name;
  request.user = call.user.get();
  request.dry_run = dry_run;
  return request;
}

// CreateOptions or UpdateOptions (also for patches) as seen by policies and webhooks. A connect has none.
Value write_options_value(call::Call& call, AdmissionOperation operation, const request::WriteOptions& options,
                          std::string_view field_manager) {
  if (operation == AdmissionOperation::Connect) return Value::null();
  MapBuilder map(call.arena);
  map.add("kind", Value::string(operation == AdmissionOperation::Create ? "CreateOptions" : "UpdateOptions"));
  map.add("apiVersion", Value::string("meta.k8s.io/v1"));
  if (options.dry_run) {
    static const Value kAll[] = {Value::string("All")};
    map.add("dryRun", Value::list(kAll));
  }
  if (!field_manager.empty()) map.add("fieldManager", Value::string(call.arena, field_manager));
  if (const std::string_view said = call.query.get("fieldValidation"); !said.empty()) {
    map.add("fieldValidation", Value::string(said));
  }
  return map.build();
}

// Takes over the result of mutating admission on an object that was shown with its managedFields (`before`).
void take_changed(call::Call& call, const Value& changed, const Value* before, NextObject& next) {
  const Value* metadata = changed.find("metadata");
  const Value* managed = metadata == nullptr ? nullptr : metadata->find("managedFields");
  next.object = changed;
  if (managed != nullptr) {
    next.object = with_member(call.arena, changed, "metadata", without_member(call.arena, *metadata, "managedFields"));
  }
  const bool untouched = (managed == nullptr && before == nullptr) ||
                         (managed != nullptr && before != nullptr && equal(*managed, *before));
  if (untouched) return;
  // If managedFields cannot be decoded after admission, the previous ones are kept.
  Result<ownership::Managed> decoded =
      ownership::decode_managed(call.arena, managed == nullptr ? Value::null() : *managed);
  if (decoded) {
    next.managed = std::move(*decoded);
  } else {
    call.warnings.add(
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated "
        "mutating admission controller; please fix your requests: " +
        decoded.error().message);
  }
}

}  // namespace

Admission::Admission(const Writer::Parts& parts)
    : metrics_(parts.metrics),
      plugins_(parts.plugins, &parts.metrics),
      webhooks_(parts.mutating_webhooks, parts.validating_webhooks, parts.caller, parts.authorizer,
                parts.webhook_credentials, parts.plugins.disabled, metrics_),
      policies_(parts.registry, parts.authorizer, parts.plugins.disabled, parts.metrics),
      quotas_(parts.own,
              std::find(parts.plugins.disabled.begin(), parts.plugins.disabled.end(), admission::quota::kName) ==
                  parts.plugins.disabled.end(),
              parts.plugins.configuration.limited_resources),
      authorizer_(parts.authorizer),
      rbac_(parts.rbac),
      own_(parts.own) {}

bool Admission::is_shown(const call::Call& call, AdmissionOperation operation) const {
  return policies_.handles(call, operation) || webhooks_.handles(call);
}

// Policies, then webhooks: Kubernetes' order.
Task<Result<Value>> Admission::mutate_by_hooks(call::Call& call, AdmissionRequest& request, const KnownObjects& known,
                                               Reinvocation& reinvocation) {
  Result<Value> changed = co_await policies_.mutate(call, request, known, reinvocation);
  if (!changed) co_return changed.take_error();
  request.object = without_declared_options(call, *changed, "an admission policy");
  const auto asked = std::chrono::steady_clock::now();
  Result<Value> mutated = co_await webhooks_.mutate(call, request, known, reinvocation);
  call.response.waited += std::chrono::steady_clock::now() - asked;
  co_return mutated;
}

Task<Result<Unit>> Admission::validate_by_hooks(call::Call& call, const AdmissionRequest& request,
                                                const KnownObjects& known) {
  Result<Unit> accepted = co_await policies_.validate(call, request, known);
  if (!accepted) co_return accepted.take_error();
  const auto asked = std::chrono::steady_clock::now();
  Result<Unit> validated = co_await webhooks_.validate(call, request, known);
  call.response.waited += std::chrono::steady_clock::now() - asked;
  co_return validated;
}

Value with_managed(Arena& arena, const Value& object, const ownership::Managed& managed, bool custom) {
  const Value list = resource::managed_fields_value(arena, resource::stored_entries(arena, managed, custom));
  if (list.is_null()) return object;
  const Value* metadata = object.find("metadata");
  return with_member(arena, object, "metadata",
                     with_member(arena, metadata == nullptr ? Value::empty_map() : *metadata, "managedFields", list));
}

Task<Result<NextObject>> Admission::mutate_object(call::Call& call, AdmissionOperation operation,
                                                  const request::WriteOptions& options, NextObject next,
                                                  const LiveObject* live) {
  // Before any other admission, like forbidCreateAdmission in customresource_handler.go.
  if (operation == AdmissionOperation::Create && call.served->terminating) {
    co_return forbidden(call.group_resource(), next.object.text_at("metadata", "name"),
                        "create not allowed while custom resource definition is terminating");
  }
  Result<KnownObjects> known = co_await find_known_objects(call, plugins_, operation, next.object);
  if (!known) co_return known.take_error();
  Result<Unit> provided =
      co_await provide_namespace(call, plugins_, own_, operation, next.object, options.dry_run, *known);
  if (!provided) co_return provided.take_error();
  const Value* old = live == nullptr ? nullptr : &live->object;
  const bool shown = is_shown(call, operation);
  Reinvocation reinvocation;
  // Plugins and other webhooks may have to see a webhook's changes: at most one more round.
  for (const bool again : {false, true}) {
    reinvocation.again = again;
    Draft draft(call.arena, next.object);
    Result<Unit> admitted =
        admit_by_plugins(call, plugins_, authorizer_, operation, draft.root(), old, options.dry_run, *known);
    if (!admitted) co_return admitted.take_error();
    next.object = draft.value();
    if (!shown) co_return next;

    const bool custom = call.served->custom;
    AdmissionRequest request = admission_request(call, operation, next.object, options.dry_run);
    request.options = write_options_value(call, operation, options, options.field_manager);
    request.object = with_managed(call.arena, next.object, next.managed, custom);
    const Value* before = request.object.get("metadata", "managedFields");
    if (live != nullptr) request.old = with_managed(call.arena, live->object, live->managed, custom);
    Result<Value> changed = co_await mutate_by_hooks(call, request, *known, reinvocation);
    if (!changed) co_return changed.take_error();
    take_changed(call, *changed, before, next);
    if (!reinvocation.wanted) break;
  }
  co_return next;
}

Task<Result<NextObject>> Admission::mutate(call::Call& call, AdmissionOperation operation,
                                           const request::WriteOptions& options, NextObject next,
                                           const LiveObject* live) {
  next.field_manager = options.field_manager;
  const auto begun = std::chrono::steady_clock::now();
  Result<NextObject> mutated = co_await mutate_object(call, operation, options, std::move(next), live);
  metrics_.step_done(webhook::to_string(operation), "admit", !mutated, std::chrono::steady_clock::now() - begun);
  if (!mutated) co_return mutated;
  Result<Unit> allowed = co_await access::check_escalation(call, authorizer_, rbac_, mutated->object,
                                                           live == nullptr ? nullptr : &live->object);
  if (!allowed) co_return allowed.take_error();
  co_return mutated;
}

Task<Result<Unit>> Admission::validate(call::Call& call, AdmissionOperation operation,
                                       const request::WriteOptions& options, const Value& object,
                                       const NextObject& next, const LiveObject* live) {
  const auto begun = std::chrono::steady_clock::now();
  Result<Unit> valid = co_await validate_object(call, operation, options, object, next, live);
  metrics_.step_done(webhook::to_string(operation), "validate", !valid, std::chrono::steady_clock::now() - begun);
  co_return valid;
}

Task<Result<Unit>> Admission::validate_object(call::Call& call, AdmissionOperation operation,
                                              const request::WriteOptions& options, const Value& object,
                                              const NextObject& next, const LiveObject* live) {
  Result<KnownObjects> known = co_await find_known_objects(call, plugins_, operation, object);
  if (!known) co_return known.take_error();
  const Value* old = live == nullptr ? nullptr : &live->object;
  Result<Unit> accepted =
      validate_by_plugins(call, plugins_, authorizer_, operation, object, old, options.dry_run, *known);
  if (!accepted) co_return accepted.take_error();
  if (!is_shown(call, operation)) co_return co_await quotas_.charge(call, operation, object, old, options.dry_run);
  const bool custom = call.served->custom;
  AdmissionRequest request = admission_request(call, operation, object, options.dry_run);
  request.options = write_options_value(call, operation, options, next.field_manager);
  if (!next.seen.is_null()) {
    request.object = next.seen;
    request.old = next.seen_old;
  } else {
    request.object = with_managed(call.arena, object, next.managed, custom);
    if (live != nullptr) request.old = with_managed(call.arena, live->object, live->managed, custom);
  }
  Result<Unit> validated = co_await validate_by_hooks(call, request, *known);
  if (!validated) co_return validated.take_error();
  // Last, so that nothing is charged for writes that are rejected otherwise.
  co_return co_await quotas_.charge(call, operation, object, old, options.dry_run);
}

Task<Result<Value>> Admission::admit_subresource(call::Call& call, AdmissionOperation operation,
                                                 const request::WriteOptions& options, Value object, Value old,
                                                 bool validates) {
  const bool shown = is_shown(call, operation);
  if (!shown && !plugins_.handles(*call.served->resource, call.info.subresource, operation)) co_return object;
  Result<KnownObjects> known = co_await find_known_objects(call, plugins_, operation, object);
  if (!known) co_return known.take_error();
  const Value* before = old.is_null() ? nullptr : &old;
  Reinvocation reinvocation;
  for (const bool again : {false, true}) {
    reinvocation.again = again;
    Draft draft(call.arena, object);
    Result<Unit> admitted =
        admit_by_plugins(call, plugins_, authorizer_, operation, draft.root(), before, options.dry_run, *known);
    if (!admitted) co_return admitted.take_error();
    object = draft.value();
    if (!shown) break;
    AdmissionRequest request = admission_request(call, operation, object, options.dry_run);
    request.options = write_options_value(call, operation, options, options.field_manager);
    request.object = object;
    request.old = old;
    Result<Value> changed = co_await mutate_by_hooks(call, request, *known, reinvocation);
    if (!changed) co_return changed.take_error();
    object = *changed;
    if (!reinvocation.wanted) break;
  }
  if (validates) {
    Result<Unit> valid =
        validate_by_plugins(call, plugins_, authorizer_, operation, object, before, options.dry_run, *known);
    if (!valid) co_return valid.take_error();
    if (!shown) co_return object;
    AdmissionRequest request = admission_request(call, operation, object, options.dry_run);
    request.options = write_options_value(call, operation, options, options.field_manager);
    request.object = object;
    request.old = old;
    Result<Unit> accepted = co_await validate_by_hooks(call, request, *known);
    if (!accepted) co_return accepted.take_error();
  }
  co_return object;
}

Task<Result<Unit>> Admission::admit_delete(call::Call& call, Value options, const LiveObject& live, bool dry_run) {
  Result<KnownObjects> known = co_await find_known_objects(call, plugins_, AdmissionOperation::Delete, Value::null());
  if (!known) co_return known.take_error();
  // For an eviction, plugins and webhooks have already seen the Eviction.
  if (call.info.subresource.empty()) {
    Draft nothing(call.arena, Value::null());
    Result<Unit> admitted = admit_by_plugins(call, plugins_, authorizer_, admission::Operation::Delete, nothing.root(),
                                             &live.object, dry_run, *known);
    if (!admitted) co_return admitted.take_error();
    Result<Unit> accepted = validate_by_plugins(call, plugins_, authorizer_, admission::Operation::Delete,
                                                Value::null(), &live.object, dry_run, *known);
    if (!accepted) co_return accepted.take_error();
  }
  if (!is_shown(call, AdmissionOperation::Delete) || !call.info.subresource.empty()) {
    co_return co_await quotas_.charge(call, AdmissionOperation::Delete, Value::null(), &live.object, dry_run);
  }
  AdmissionRequest request = admission_request(call, AdmissionOperation::Delete, live.object, dry_run);
  request.name = call.info.name;  // Empty for deletecollection, as in Kubernetes.
  request.options = options;
  request.old = with_managed(call.arena, live.object, live.managed, call.served->custom);
  Reinvocation reinvocation;
  Result<Value> mutated = co_await mutate_by_hooks(call, request, *known, reinvocation);
  if (!mutated) co_return mutated.take_error();
  Result<Unit> validated = co_await validate_by_hooks(call, request, *known);
  if (!validated) co_return validated.take_error();
  co_return co_await quotas_.charge(call, AdmissionOperation::Delete, Value::null(), &live.object, dry_run);
}

}  // namespace holdfast::write
