// DELETE of one object and of collections.
#include <algorithm>

#include "base/api_error.h"
#include "call/call.h"
#include "codec/codec.h"
#include "codec/typed.h"
#include "crd/crd.h"
#include "custom/conversions.h"
#include "render/status.h"
#include "verbs/deletes.h"
#include "verbs/each.h"
#include "verbs/reads.h"
#include "write/body.h"

namespace holdfast::verbs {
namespace {

constexpr std::string_view kOrphan = "orphan";
constexpr std::string_view kForeground = "foregroundDeletion";

bool has_finalizer(const Value& object, std::string_view name) {
  const std::span<const Value> all = object.items_at("metadata", "finalizers");
  return std::any_of(all.begin(), all.end(),
                     [&](const Value& item) { return item.is_string() && item.as_string() == name; });
}

// How to handle dependents, according to the options, the object's finalizers and the kind, in this order.
struct Dependents {
  bool orphan = false;
  bool foreground = false;
};
Dependents dependents_of(kinds::Propagation propagation, const Value& object, const request::DeleteOptions& options) {
  Dependents dependents;
  if (propagation == kinds::Propagation::None) return dependents;
  if (options.orphan_dependents) {
    dependents.orphan = *options.orphan_dependents;
  } else if (options.propagation_policy) {
    dependents.orphan = *options.propagation_policy == "Orphan";
    dependents.foreground = *options.propagation_policy == "Foreground";
  } else if (has_finalizer(object, kOrphan)) {
    dependents.orphan = true;
  } else if (has_finalizer(object, kForeground)) {
    dependents.foreground = true;
  } else {
    dependents.orphan = propagation == kinds::Propagation::Orphan;
  }
  return dependents;
}

// Like dependents_of(), for marking a namespace: `orphanDependents: false` means foreground deletion there, and
// without options its finalizers stay as they are.
Dependents namespace_dependents(const Value& object, const request::DeleteOptions& options) {
  if (options.orphan_dependents)
    return {.orphan = *options.orphan_dependents, .foreground = !*options.orphan_dependents};
  if (options.propagation_policy) {
    return {.orphan = *options.propagation_policy == "Orphan",
            .foreground = *options.propagation_policy == "Foreground"};
  }
  return {.orphan = has_finalizer(object, kOrphan), .foreground = has_finalizer(object, kForeground)};
}

// Sets the finalizers required by the deletion policy.
void set_finalizers(Arena& arena, Draft::Node object, const Dependents& dependents) {
  const Value before = object.value();
  ListBuilder list(arena);
  for (const Value& item : before.items_at("metadata", "finalizers")) {
    if (item.is_string() && (item.as_string() == kOrphan || item.as_string() == kForeground)) continue;
    list.add(item);
  }
  if (dependents.orphan) list.add(Value::string(kOrphan));
  if (dependents.foreground) list.add(Value::string(kForeground));
  if (dependents.orphan == has_finalizer(before, kOrphan) &&
      dependents.foreground == has_finalizer(before, kForeground)) {
    return;
  }
  if (list.count() == 0) {
    object.child("metadata").remove("finalizers");
  } else {
    object.child("metadata").set("finalizers", list.build());
  }
}

void bump_generation(Draft::Node metadata) {
  const int64_t generation = metadata.value().int_at_or(0, "generation");
  if (generation > 0) metadata.set("generation", Value::integer(generation + 1));
}

void set_deletion_time(Arena& arena, Draft::Node metadata, UnixTime time, int64_t grace) {
  metadata.set("deletionTimestamp", Value::string(arena, format_rfc3339(time)));
  metadata.set("deletionGracePeriodSeconds", Value::integer(grace));
}

// The effect of this request on a kind with graceful deletion.
struct Grace {
  bool graceful = false;  // The object is marked and remains at least until its grace period ends ...
  bool pending = false;   // ... or was already marked, and this request changes nothing.
  int64_t seconds = 0;
};
Grace apply_grace(call::Call& call, Draft::Node object, const request::DeleteOptions& options) {
  Grace grace;
  if (call.served->rules->deletion != kinds::Deletion::Graceful) return grace;
  std::optional<int64_t> requested = options.grace_period_seconds;
  if (requested && *requested < 0) requested = 1;
  Draft::Node metadata = object.child("metadata");
  const UnixTime now = call.view.now;
  if (const std::string_view marked = metadata.value().text_at("deletionTimestamp"); !marked.empty()) {
    const int64_t existing = metadata.value().int_at_or(0, "deletionGracePeriodSeconds");
    if (existing == 0) return grace;
    if (!requested || *requested >= existing) {
      grace.pending = true;
      return grace;
    }
    int64_t period = *requested;
    UnixTime time = parse_rfc3339(marked).value_or(now);
    time.seconds += period - existing;
    if (time.seconds < now.seconds) {
      time = now;
      if (period != 0) period = 1;
    }
    set_deletion_time(call.arena, metadata, time, period);
    grace.graceful = true;
    grace.seconds = period;
    return grace;
  }
  grace.graceful = true;
  grace.seconds = kinds::grace_period(*call.served->rules, object.value(), requested);
  set_deletion_time(call.arena, metadata, {now.seconds + grace.seconds, 0}, grace.seconds);
  bump_generation(metadata);
  return grace;
}

Value delete_options_value(Arena& arena, const request::DeleteOptions& options) {
  MapBuilder map(arena);
  map.add("kind", Value::string("DeleteOptions"));
  map.add("apiVersion", Value::string("meta.k8s.io/v1"));
  if (options.grace_period_seconds) map.add("gracePeriodSeconds", Value::integer(*options.grace_period_seconds));
  if (options.uid || options.resource_version) {
    MapBuilder preconditions(arena);
    if (options.uid) preconditions.add("uid", Value::string(arena, *options.uid));
    if (options.resource_version) preconditions.add("resourceVersion", Value::string(arena, *options.resource_version));
    map.add("preconditions", preconditions.build());
  }
  if (options.orphan_dependents) map.add("orphanDependents", Value::boolean(*options.orphan_dependents));
  if (options.propagation_policy) map.add("propagationPolicy", Value::string(arena, *options.propagation_policy));
  if (options.is_dry_run()) {
    static const Value kAll[] = {Value::string("All")};
    map.add("dryRun", Value::list(kAll));
  }
  return map.build();
}

// nullopt if the object was changed concurrently.
using DeleteAttempt = std::optional<Deleted>;

// Stores the object marked for deletion.
Task<Result<DeleteAttempt>> mark_object(call::Call& call, const write::LiveObject& live, Value marked, bool dry_run) {
  Result<write::Attempt> stored = co_await write::store_own_change(call, live, marked, dry_run);
  if (!stored) co_return stored.take_error();
  if (!*stored) co_return DeleteAttempt();
  co_return DeleteAttempt(Deleted{.returns_object = true, .object = std::move(**stored)});
}

// Removes the object at revision `at`. If it no longer exists, that counts as success with `may_be_gone`.
Task<Result<DeleteAttempt>> remove_object(call::Call& call, write::Writer& writer, const write::LiveObject& live,
                                          write::Written last, Revision at, bool dry_run, bool may_be_gone) {
  Deleted deleted{
      .removed = true, .returns_object = call.served->rules->delete_returns_object, .object = std::move(last)};
  if (dry_run) co_return DeleteAttempt(std::move(deleted));
  Result<store::WriteResult> removed = co_await writer.remove(call, live, at);
  if (!removed) co_return removed.take_error();
  if (const auto* conflict = std::get_if<store::Conflict>(&*removed)) {
    if (conflict->current || !may_be_gone) co_return DeleteAttempt();
  } else {
    const Revision revision = std::get<store::Committed>(*removed).revision;
    deleted.object.body = call.storage().codec().with_revision(deleted.object.body, revision);
  }
  co_return DeleteAttempt(std::move(deleted));
}

// The first DELETE of a namespace marks it; further ones have no effect while spec.finalizers hold it.
Task<Result<DeleteAttempt>> delete_held_namespace_once(call::Call& call, const write::LiveObject& live,
                                                       const request::DeleteOptions& options) {
  if (!live.stored.text_at("metadata", "deletionTimestamp").empty()) {
    co_return DeleteAttempt(Deleted{.returns_object = true, .object = write::unchanged(call, live)});
  }
  Draft draft(call.arena, live.stored);
  draft.root().child("metadata").set("deletionTimestamp", Value::string(call.arena, format_rfc3339(call.view.now)));
  draft.root().child("status").set("phase", Value::string("Terminating"));
  set_finalizers(call.arena, draft.root(), namespace_dependents(live.stored, options));
  co_return co_await mark_object(call, live, draft.value(), options.is_dry_run());
}

// A definition is deleted after its objects: it is only marked here, and cleaned up after the response.
Task<Result<DeleteAttempt>> delete_definition_once(call::Call& call, const write::LiveObject& live,
                                                   const request::DeleteOptions& options) {
  Draft draft(call.arena, live.stored);
  Draft::Node metadata = draft.root().child("metadata");
  metadata.set("deletionTimestamp", Value::string(call.arena, format_rfc3339(call.view.now)));
  if (!has_finalizer(live.stored, crd::kCleanupFinalizer)) {
    metadata.append("finalizers", Value::string(crd::kCleanupFinalizer));
  }
  const Value terminating = crd::with_condition(
      call.arena, draft.value(), "Terminating", "True", "InstanceDeletionPending",
      "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon", call.view.now);
  co_return co_await mark_object(call, live, terminating, options.is_dry_run());
}

Task<Result<DeleteAttempt>> delete_once(call::Call& call, write::Writer& writer, const write::LiveObject& live,
                                        const request::DeleteOptions& options) {
  if (custom::is_definition(*call.served->stored) && live.stored.text_at("metadata", "deletionTimestamp").empty()) {
    co_return co_await delete_definition_once(call, live, options);
  }
  if (call.served->rules->deletion == kinds::Deletion::Namespace &&
      (live.stored.text_at("metadata", "deletionTimestamp").empty() ||
       !live.stored.items_at("spec", "finalizers").empty())) {
    co_return co_await delete_held_namespace_once(call, live, options);
  }
  const bool dry_run = options.is_dry_run();
  Draft draft(call.arena, live.stored);
  const Grace grace = apply_grace(call, draft.root(), options);
  if (grace.pending) {
    co_return DeleteAttempt(
        Deleted{.returns_object = call.served->rules->delete_returns_object, .object = write::unchanged(call, live)});
  }
  set_finalizers(call.arena, draft.root(), dependents_of(call.served->rules->propagation, live.stored, options));
  const bool held = !draft.value().items_at("metadata", "finalizers").empty();
  if (!grace.graceful) {
    if (!held) {
      co_return co_await remove_object(call, writer, live, write::unchanged(call, live), live.revision, dry_run, false);
    }
    Draft::Node metadata = draft.root().child("metadata");
    const std::string_view marked_at = metadata.value().text_at("deletionTimestamp");
    if (marked_at.empty()) bump_generation(metadata);
    const std::optional<UnixTime> before = parse_rfc3339(marked_at);
    if (!before || before->seconds > call.view.now.seconds) {
      metadata.set("deletionTimestamp", Value::string(call.arena, format_rfc3339(call.view.now)));
    }
    metadata.set("deletionGracePeriodSeconds", Value::integer(0));
  }
  Result<DeleteAttempt> marked = co_await mark_object(call, live, draft.value(), dry_run);
  if (!marked || !*marked || held || grace.seconds > 0) co_return marked;
  // Nothing holds a pod whose grace period is over: it is marked, so that watchers see it, and removed.
  if (dry_run) {
    (*marked)->removed = true;
    co_return marked;
  }
  const Revision at = (*marked)->object.revision;
  co_return co_await remove_object(call, writer, live, std::move((*marked)->object), at, dry_run, true);
}

void respond_deleted(call::Call& call, const Deleted& deleted, const request::DeleteOptions& options) {
  const int code = !deleted.removed && options.orphan_dependents && !*options.orphan_dependents ? 202 : 200;
  if (deleted.returns_object) return write::respond_written(call, code, deleted.object);
  const Value& object = deleted.object.stored;
  respond_status(call, code,
                 render::deleted_status(call.arena, call.served->resource->group, call.served->resource->plural,
                                        object.text_at("metadata", "name"), object.text_at("metadata", "uid")));
}

bool unsafe_deletes_are_on(const call::Call& call) {
  return call.settings.gates.on(Gate::AllowUnsafeMalformedObjectDeletion);
}

// Why a document is not DeleteOptions; empty if it is. DeleteOptions are accepted in every version, other kinds are
// not.
std::string delete_options_error(const Value& tree) {
  if (!tree.is_map() && !tree.is_null()) return write::not_an_object_error(tree);
  const std::string_view kind = tree.text_at("kind");
  if (kind == "Status") return "converting (v1.Status) to (v1.DeleteOptions): unknown conversion";
  if (std::string unreadable = write::type_meta_error(tree); !unreadable.empty()) return unreadable;
  if (kind.empty() || kind == "DeleteOptions" || tree.text_at("apiVersion").empty()) return {};
  return write::unregistered_kind_error(tree);
}

}  // namespace

Result<Unit> check_preconditions(const call::Call& call, const write::LiveObject& live, std::string_view name,
                                 const request::DeleteOptions& options) {
  const std::string uid(live.entry->uid());
  const std::string revision = std::to_string(live.revision.value);
  // Namespaces and definitions check preconditions themselves, before the store does.
  const bool is_namespace =
      call.served->rules->deletion == kinds::Deletion::Namespace || custom::is_definition(*call.served->resource);
  if (options.uid && *options.uid != uid) {
    if (is_namespace) {
      return conflict(call.group_resource(), name,
                      "Precondition failed: UID in precondition: " + *options.uid + ", UID in object meta: " + uid);
    }
    return conflict({call.served->stored->group, call.served->stored->kind}, name,
                    "the UID in the precondition (" + *options.uid + ") does not match the UID in record (" + uid +
                        "). The object might have been deleted and then recreated");
  }
  if (options.resource_version && *options.resource_version != revision) {
    if (is_namespace) {
      return conflict(call.group_resource(), name,
                      "Precondition failed: ResourceVersion in precondition: " + *options.resource_version +
                          ", ResourceVersion in object meta: " + revision);
    }
    return conflict({call.served->stored->group, call.served->stored->kind}, name,
                    "the ResourceVersion in the precondition (" + *options.resource_version +
                        ") does not match the ResourceVersion in record (" + revision +
                        "). The object might have been modified");
  }
  return Unit{};
}

Result<request::DeleteOptions> read_delete_options(call::Call& call, std::string_view bytes) {
  if (bytes.empty()) {
    Result<request::DeleteOptions> options = parse_delete_options(call.query);
    if (!options) return options;
    options->ignore_store_read_error = options->ignore_store_read_error && unsafe_deletes_are_on(call);
    Result<Unit> valid = validate(*options);
    if (!valid) return valid.take_error();
    return options;
  }
  Result<request::Format> format = request::body_format(call.request.headers.get("content-type"), call.settings.gates);
  if (!format) return format.take_error();
  static const types::Type& type = *types::find_type("meta/v1.DeleteOptions");
  Result<Value> tree = Value::null();
  switch (*format) {
    case request::Format::Json:
      tree = codec::decode_json(call.arena, bytes);
      if (!tree) return bad_request("couldn't get version/kind; json parse error: " + tree.error().message);
      break;
    case request::Format::Yaml:
      tree = codec::decode_yaml(call.arena, bytes);
      break;
    case request::Format::Cbor:
      tree = codec::decode_cbor(call.arena, bytes);
      break;
    case request::Format::Protobuf: {
      Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(bytes);
      if (!envelope) return envelope.take_error();
      tree = codec::decode_protobuf(call.arena, type, envelope->message, envelope->type);
      break;
    }
  }
  if (!tree) return tree.take_error();
  if (call.recording != nullptr && call.recording->wants_request) {
    record_request(call, request::Format::Json, codec::encode_json(*tree));
  }
  if (const std::string why = delete_options_error(*tree); !why.empty()) return bad_request(why);
  Result<Value> typed = codec::to_typed(call.arena, type, tree->is_null() ? Value::empty_map() : *tree);
  if (!typed) return typed.take_error();
  request::DeleteOptions options;
  if (const Value* grace = typed->find("gracePeriodSeconds"); grace != nullptr && grace->is_int()) {
    options.grace_period_seconds = grace->as_int();
  }
  if (const Value* uid = typed->get("preconditions", "uid"); uid != nullptr && uid->is_string()) {
    options.uid = std::string(uid->as_string());
  }
  if (const Value* revision = typed->get("preconditions", "resourceVersion");
      revision != nullptr && revision->is_string()) {
    options.resource_version = std::string(revision->as_string());
  }
  if (const Value* orphan = typed->find("orphanDependents"); orphan != nullptr && orphan->is_bool()) {
    options.orphan_dependents = orphan->as_bool();
  }
  if (const Value* policy = typed->find("propagationPolicy"); policy != nullptr && policy->is_string()) {
    options.propagation_policy = std::string(policy->as_string());
  }
  for (const Value& item : typed->items_at("dryRun")) {
    if (item.is_string()) options.dry_run.emplace_back(item.as_string());
  }
  if (const Value* ignore = typed->find(request::kIgnoreStoreReadError); ignore != nullptr && ignore->is_bool()) {
    options.ignore_store_read_error = ignore->as_bool() && unsafe_deletes_are_on(call);
  }
  // Like in Kubernetes, the query then does not matter: not even its dryRun (DeleteResource in handlers/delete.go).
  Result<Unit> valid = validate(options);
  if (!valid) return valid.take_error();
  return options;
}

Task<Result<Deleted>> delete_object(call::Call& call, write::Writer& writer, std::string name,
                                    request::DeleteOptions options) {
  for (int attempt = 0; attempt < write::kMaxAttempts; ++attempt) {
    Result<std::unique_ptr<write::LiveObject>> live = co_await write::read_live(call, name);
    if (!live) co_return as_read_error(call, name, live.take_error());
    if (*live == nullptr) co_return not_found(call.group_resource(), name);
    Result<Unit> fits = check_preconditions(call, **live, name, options);
    if (!fits) co_return fits.take_error();
    Result<Unit> admitted =
        co_await writer.admit_delete(call, delete_options_value(call.arena, options), **live, options.is_dry_run());
    if (!admitted) co_return admitted.take_error();
    Result<DeleteAttempt> done = co_await delete_once(call, writer, **live, options);
    if (!done) co_return done.take_error();
    if (*done) co_return std::move(**done);
  }
  co_return modified_conflict(call.group_resource(), name);
}

namespace {

// Deleting a Job orphans its pods unless the request specifies otherwise.
void warn_about_orphans(call::Call& call, const request::DeleteOptions& options) {
  const types::Resource& resource = *call.served->resource;
  if (resource.group != "batch" || resource.kind != "Job") return;
  if (options.propagation_policy || options.orphan_dependents) return;
  call.warnings.add(
      "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or "
      "set propagationPolicy=Orphan to suppress this warning");
}

bool is_stored_readable(call::Call& call, std::string_view short_key, const store::KeyValue& item) {
  Result<cache::EntryRef> entry = call.storage().cache().make_entry(short_key, *item.value, item.modified);
  if (!entry) return false;
  return is_readable(call, *(*entry)->body());
}

// Only removes a stored value that cannot be decoded: there is no object for admission, finalizers or preconditions
// (registry/generic/registry/corrupt_obj_deleter.go).
Task<Result<Unit>> delete_unreadable(call::Call& call, const write::Writer& writer, std::string name) {
  record_annotation(call, "apiserver.k8s.io/unsafe-delete-ignore-read-error", "");
  Result<Unit> allowed = writer.authorize_unsafe_delete(call);
  if (!allowed) co_return allowed.take_error();
  resource::Storage& storage = call.storage();
  const std::string short_key = storage.short_key(call.ns(), name);
  for (int attempt = 0; attempt < write::kMaxAttempts; ++attempt) {
    store::StoreResult<store::Got> got = co_await storage.read_stored(storage.key(short_key), call.executor());
    if (!got) co_return store::to_api_error(got.take_error());
    if (!got->item || is_stored_readable(call, short_key, *got->item)) {
      co_return invalid({call.served->resource->group, call.served->resource->plural}, name,
                        {field_invalid(std::string(request::kIgnoreStoreReadError), "true",
                                       "is exclusively used to delete corrupt object(s), try again by removing this "
                                       "option")});
    }
    Result<store::WriteResult> removed = co_await write::remove_key(call, storage.key(short_key), got->item->modified);
    if (!removed) co_return removed.take_error();
    if (std::holds_alternative<store::Committed>(*removed)) co_return Unit{};
  }
  co_return modified_conflict(call.group_resource(), name);
}

}  // namespace

Task<void> serve_delete(call::Call& call, write::Writer& writer) {
  Result<Unit> negotiated = negotiate_response(call);
  if (!negotiated) co_return respond_error(call, negotiated.error());
  Result<std::string> bytes = co_await read_body(call);
  if (!bytes) co_return respond_error(call, bytes.error());
  Result<request::DeleteOptions> options = read_delete_options(call, *bytes);
  if (!options) co_return respond_error(call, options.error());
  if (options->ignore_store_read_error) {
    Result<Unit> removed = co_await delete_unreadable(call, writer, std::string(call.info.name));
    if (!removed) co_return respond_error(call, removed.error());
    co_return respond_status(call, 200,
                             render::unread_deleted_status(call.arena, call.served->resource->kind, call.info.name));
  }
  warn_about_orphans(call, *options);
  if (const std::string_view why = kinds::deletion_forbidden_reason(*call.served->resource, call.info.name);
      !why.empty()) {
    co_return respond_error(call, forbidden(call.group_resource(), call.info.name, why));
  }
  Result<Deleted> deleted = co_await delete_object(call, writer, std::string(call.info.name), *options);
  if (!deleted) co_return respond_error(call, deleted.error());
  if (deleted->returns_object) {
    Result<Unit> prepared = co_await custom::convert_for_view(call, deleted->object.body);
    if (!prepared) co_return respond_error(call, prepared.error());
  }
  respond_deleted(call, *deleted, *options);
}

Task<void> serve_delete_collection(call::Call& call, write::Writer& writer) {
  Result<Unit> negotiated = negotiate_response(call);
  if (!negotiated) co_return respond_error(call, negotiated.error());
  Result<Selection> selection = resolve_selector(call);
  if (!selection) co_return respond_error(call, selection.error());
  const request::ListOptions& list_options = call.request_info.list()->options;
  Result<std::string> bytes = co_await read_body(call);
  if (!bytes) co_return respond_error(call, bytes.error());
  // The query's options are those of the list. The delete options come from the body, or else also from the query: a
  // resourceVersion there is then a precondition too, which no object meets.
  Result<request::DeleteOptions> options = read_delete_options(call, *bytes);
  if (!options) co_return respond_error(call, options.error());
  if (options->ignore_store_read_error) {
    co_return respond_error(call, request::invalid_delete_options(field_invalid(
                                      std::string(request::kIgnoreStoreReadError), "true",
                                      "is not allowed with DELETECOLLECTION, try again after removing the option")));
  }

  warn_about_orphans(call, *options);
  Result<Listed> listed = co_await list_entries(call, list_options, std::move(*selection));
  if (!listed) co_return respond_error(call, listed.error());
  for (const cache::EntryRef& entry : listed->entries) {
    Result<Deleted> deleted = co_await delete_object(call, writer, std::string(entry->name()), *options);
    if (!deleted && deleted.error().reason != Reason::NotFound) co_return respond_error(call, deleted.error());
  }
  co_await stream_list(call, std::move(*listed));
}

}  // namespace holdfast::verbs
