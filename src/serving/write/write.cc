#include "write/write.h"

#include <algorithm>
#include <random>

#include "base/api_error.h"
#include "base/go_numbers.h"
#include "base/strings.h"
#include "base/text.h"
#include "call/opt_out.h"
#include "custom/conversions.h"
#include "ownership/manager_places.h"
#include "resource/managed.h"
#include "resource/object_codec.h"
#include "resource/outdated.h"
#include "services/service_pools.h"
#include "write/admission.h"
#include "write/claim_access.h"
#include "write/field_protections.h"
#include "write/param_access.h"

namespace holdfast::write {

Writer::Writer(const Parts& parts)
    : pools_(parts.pools),
      authorizer_(parts.authorizer),
      admission_(std::make_unique<Admission>(parts)),
      protections_(std::make_unique<FieldProtections>(parts.registry)) {}

Writer::~Writer() = default;

bool Writer::charges_quota(std::string_view ns) const { return admission_->quotas().is_charged(ns); }

namespace {

constexpr int kMaxGeneratedNames = 8;

// Built-in kinds are prepared and validated in the stored version, custom ones in the requested version, since each
// version has its own rules.
const types::Resource& prepared_version(const call::Call& call) {
  return call.served->custom ? *call.served->resource : *call.served->stored;
}

std::chrono::seconds ttl_of(const call::Call& call) {
  return call.served->rules->expires ? call.settings.event_ttl : std::chrono::seconds(0);
}

// The etcd value of a built-in kind: as written by kube-apiserver, before the defaults applied on read (an unset phase
// of a claim). Empty if the object is stored as shown to clients.
Result<std::string> body_before_defaults(call::Call& call, const Value& prepared) {
  if (call.served->custom || call.settings.embedded_store) return std::string();
  return call.storage().codec().body_of(call.arena, prepared);
}

// Updates `written` to the stored object as it will be read back, with its new revision.
void set_revision(Arena& arena, const resource::ObjectCodec& codec, std::string_view body, Revision revision,
                  Written& written) {
  written.revision = revision;
  written.body = codec.with_revision(body, revision);
  written.stored =
      codec.as_read(arena, with_path(arena, written.stored,
                                     std::array{std::string_view("metadata"), std::string_view("resourceVersion")},
                                     Value::string(arena, std::to_string(revision.value))));
}

// The object a dry run would have stored, as it would be read back.
Result<Unit> show_unstored(call::Call& call, Written& written) {
  written.stored = call.storage().codec().as_read(call.arena, written.stored);
  Result<std::string> body = call.storage().codec().body_of(call.arena, written.stored);
  if (!body) return body.take_error();
  written.body = std::move(*body);
  return Unit{};
}

// Whether writing this would not change the object. Custom objects are read with the defaults of their storage version,
// which a request through another version does not write.
Result<bool> changes_nothing(call::Call& call, const Value& stored, std::string_view body, const LiveObject& live) {
  if (body == *live.body) return true;
  if (!call.served->custom || call.served->resource == call.served->stored) return false;
  const resource::ObjectCodec& codec = call.storage().codec();
  Result<std::string> read = codec.body_of(call.arena, codec.as_read(call.arena, stored));
  if (!read) return read.take_error();
  return *read == *live.body;
}

// Whether this update removes the object instead of storing it: it is terminating and has lost its last finalizer.
bool is_removed_by_update(const Value& next, const Value& old) {
  if (!next.items_at("metadata", "finalizers").empty()) return false;
  if (old.text_at("metadata", "deletionTimestamp").empty()) return false;
  return old.int_at_or(0, "metadata", "deletionGracePeriodSeconds") == 0;
}
// A namespace also waits for spec.finalizers.
bool namespace_still_held(const call::Call& call, const Value& next) {
  return call.served->rules->deletion == kinds::Deletion::Namespace && !next.items_at("spec", "finalizers").empty();
}

Result<Unit> check_revision(call::Call& call, const Value& object, const LiveObject& live) {
  const std::string_view text = object.text_at("metadata", "resourceVersion");
  uint64_t revision = 0;
  if (!text.empty()) {
    Result<uint64_t> parsed = go_parse_uint(text);
    if (!parsed) return untyped(parsed.error().message);
    revision = *parsed;
  }
  if (revision == 0) {
    if (call.served->rules->unconditional_update) return Unit{};
    return invalid({call.served->resource->group, call.served->resource->plural}, call.info.name,
                   {field_invalid("metadata.resourceVersion", "0", "must be specified for an update")});
  }
  if (revision != live.revision.value) return modified_conflict(call.group_resource(), call.info.name);
  return Unit{};
}

bool is_deleting(const call::Call& call, const store::Conflict& conflict) {
  if (!conflict.current || conflict.current->value == nullptr) return false;
  Result<cache::Decoded> decoded =
      call.storage().codec().decode(conflict.current->key, *conflict.current->value, conflict.current->modified);
  if (!decoded) return false;
  Arena arena;
  Result<Value> tree = call.storage().codec().tree(arena, decoded->body);
  return tree.ok() && !tree->text_at("metadata", "deletionTimestamp").empty();
}

Error name_taken(const call::Call& call, std::string_view name, bool generated, const store::Conflict& taken) {
  Error error = already_exists(call.group_resource(), name);
  if (is_deleting(call, taken)) error.message.insert(0, "object is being deleted: ");
  if (generated) {
    error.message += ", the server was not able to generate a unique name for the object";
    error.retry_after_seconds = 1;
  }
  return error;
}

// For a dry run: whether an object of this name exists.
Task<Result<std::optional<store::Conflict>>> find_existing(call::Call& call, std::string name) {
  resource::Storage& storage = call.storage();
  Result<cache::Cache::Latest> latest =
      co_await storage.cache().latest(storage.short_key(call.ns(), name), call.executor());
  if (!latest) co_return latest.take_error();
  std::optional<store::Conflict> taken;
  if (latest->entry) taken.emplace();
  co_return taken;
}

bool generates_name(const Value& object) {
  return !object.text_at("metadata", "generateName").empty() && object.text_at("metadata", "name").empty();
}

// Like in Kubernetes' store, values that are not numbers are ignored.
Result<Unit> check_no_revision(const Value& stored) {
  const std::string_view text = stored.text_at("metadata", "resourceVersion");
  if (text.empty()) return Unit{};
  const Result<uint64_t> revision = go_parse_uint(text);
  if (!revision || *revision == 0) return Unit{};
  return untyped("resourceVersion should not be set on objects to be created");
}

// The last step of preparing a new or changed object: removes fields that are never stored, so that only a dry run
// returns them; encodes the body for etcd, if it differs (see body_before_defaults); applies defaults again as on read,
// since prepared fields may require defaults of their own (labels of a Job); adds warnings.
Result<std::string> finish_preparation(call::Call& call, kinds::Context& context, kinds::Endpoint endpoint,
                                       Draft& draft, const Value* old, bool dry_run) {
  if (!dry_run) draft.root().child("metadata").remove("selfLink");
  Result<std::string> at_rest = body_before_defaults(call, draft.value());
  if (!at_rest) return at_rest;
  if (!call.served->custom) kinds::set_defaults(call.arena, *call.served->stored, draft.root());
  call.served->object_rules->add_warnings(context, endpoint, draft.value(), old, call.warnings);
  return at_rest;
}

// The result of validation with what is forbidden in front of its causes.
Result<Unit> with_forbidden(const call::Call& call, const Value& object, std::vector<Cause> forbidden,
                            Result<Unit> valid) {
  if (forbidden.empty()) return valid;
  if (!valid) {
    const std::vector<Cause>& others = valid.error().causes;
    forbidden.insert(forbidden.end(), others.begin(), others.end());
  }
  return invalid({call.served->resource->group, call.served->resource->kind}, object.text_at("metadata", "name"),
                 std::move(forbidden));
}

constexpr std::array<std::string_view, 2> kManagedFields = {"metadata", "managedFields"};

// The object with managedFields if an entry is invalid, for the validation of its kind: otherwise ownership is kept
// apart. Entries that were stored before, by a version that did not validate them, must not keep anyone from writing
// the object.
Value with_invalid_managers(Arena& arena, const NextObject& next, const LiveObject* live) {
  const Value object = without_path(arena, next.object, kManagedFields);
  if (std::all_of(next.managed.begin(), next.managed.end(), ownership::is_valid)) return object;
  ownership::Managed before = live == nullptr ? ownership::Managed() : live->managed;
  ownership::ManagerPlaces stored(before);
  MapBuilder other(arena);
  other.add("operation", Value::string("Update"));
  const Value valid = other.build();
  ListBuilder list(arena);
  bool invalid = false;
  for (const ownership::ManagerEntry& entry : next.managed) {
    if (ownership::is_valid(entry) || stored.find(entry) != before.size()) {
      list.add(valid);
      continue;
    }
    MapBuilder item(arena);
    item.add("manager", Value::string(entry.manager));
    item.add("operation", Value::string(name_of(entry.operation)));
    item.add("subresource", Value::string(entry.subresource));
    list.add(item.build());
    invalid = true;
  }
  return invalid ? with_path(arena, object, kManagedFields, list.build()) : object;
}

// Takes the managedFields out of an object again; null if it has none.
Value take_managers(Draft& draft) {
  const Value* found = draft.value().get("metadata", "managedFields");
  const Value managers = found == nullptr ? Value::null() : *found;
  draft.root().child("metadata").remove("managedFields");
  return managers;
}

// The prepared object as it is validated.
Value with_managers(Arena& arena, const Draft& draft, const Value& managers) {
  return managers.is_null() ? draft.value() : with_path(arena, draft.value(), kManagedFields, managers);
}

// An object that has too many managers already may keep as many.
Result<Unit> check_manager_count(const call::Call& call, const NextObject& next, const LiveObject* live) {
  const size_t most = std::max(ownership::kMaxManagers, live == nullptr ? 0 : live->managed.size());
  if (next.managed.size() <= most) return Unit{};
  return invalid({call.served->resource->group, call.served->resource->kind}, next.object.text_at("metadata", "name"),
                 {{"FieldValueTooMany",
                   "Too many: " + std::to_string(next.managed.size()) + ": must have at most " +
                       std::to_string(ownership::kMaxManagers) + " items",
                   "metadata.managedFields"}});
}

// Applies the update rules of the kind to the draft; returns the body for etcd like finish_preparation().
Result<std::string> prepare_and_validate_update(call::Call& call, const auth::Authorizer& authorizer,
                                                kinds::Context& context, kinds::Endpoint endpoint, Draft& draft,
                                                const Value& managers, const Value& old, bool dry_run) {
  call.served->object_rules->prepare_for_update(context, endpoint, draft.root(), old);
  std::vector<Cause> forbidden = forbidden_claim_changes(call, authorizer, draft.value(), &old);
  Result<Unit> valid = with_forbidden(
      call, draft.value(), std::move(forbidden),
      call.served->object_rules->validate_update(context, endpoint, with_managers(call.arena, draft, managers), old));
  if (!valid) return valid.take_error();
  valid = check_param_access(call, authorizer, draft.value(), &old);
  if (!valid) return valid.take_error();
  return finish_preparation(call, context, endpoint, draft, &old, dry_run);
}

// Same, for the create rules.
Result<std::string> prepare_and_validate_create(call::Call& call, const auth::Authorizer& authorizer,
                                                kinds::Context& context, Draft& draft, const Value& managers,
                                                bool dry_run) {
  call.served->object_rules->prepare_for_create(context, draft.root());
  for (const std::string& warning : context.early_warnings) call.warnings.add(warning);
  std::vector<Cause> forbidden = forbidden_claim_changes(call, authorizer, draft.value(), nullptr);
  Result<Unit> valid =
      with_forbidden(call, draft.value(), std::move(forbidden),
                     call.served->object_rules->validate_create(context, with_managers(call.arena, draft, managers)));
  if (!valid) return valid.take_error();
  valid = check_param_access(call, authorizer, draft.value(), nullptr);
  if (!valid) return valid.take_error();
  return finish_preparation(call, context, kinds::Endpoint::Main, draft, nullptr, dry_run);
}

// An object in the stored version, with all defaults.
struct Encoded {
  Value stored;
  std::string body;          // Canonical.
  std::string at_rest = {};  // The body for etcd if it differs from the one shown to clients; else empty.
};

Task<Result<Encoded>> encode(call::Call& call, Value prepared, std::string at_rest) {
  Result<Value> stored = co_await custom::convert_object(call, prepared_version(call), *call.served->stored, prepared);
  if (!stored) co_return stored.take_error();
  Result<std::string> body = call.storage().codec().body_of(call.arena, *stored);
  if (!body) co_return body.take_error();
  co_return Encoded{*stored, std::move(*body), std::move(at_rest)};
}

// Converts a store error for clients.
Error write_error(call::Call& call, const store::StoreError& error) {
  // 500, as kube-apiserver passes on etcd's error.
  if (error.kind == store::ErrorKind::TooLarge) return Error{Reason::Unknown, error.message};
  Error shown = store::to_api_error(error);
  if (shown.reason == Reason::ServerTimeout && !shown.details) {
    shown.details = ErrorDetails{std::string(to_string(call.info.verb)),
                                 std::string(call.served->resource->group),
                                 std::string(call.served->resource->plural),
                                 {}};
  }
  return shown;
}

// Whether a write may have been stored despite this error of the store, because no response arrived.
bool may_be_stored(const Error& error) {
  return error.reason == Reason::Timeout || error.reason == Reason::ServerTimeout ||
         error.reason == Reason::InternalError;
}

Task<store::StoreResult<store::WriteResult>> commit(call::Call& call, store::Transaction transaction) {
  store::StoreResult<store::WriteResult> result =
      co_await call.storage().write(std::move(transaction), call.executor());
  // Webhooks, policies and protections are looked up in the cache: wait until they take effect.
  if (result && (is_admission_configuration(*call.served->resource) || is_field_protection(*call.served->resource))) {
    if (const auto* committed = std::get_if<store::Committed>(&*result)) {
      (void)co_await call.storage().cache().at_least(committed->revision, call.executor());
    }
  }
  co_return result;
}

struct StoreOptions {
  std::chrono::seconds ttl{0};   // 0 for no expiration.
  bool may_drop_owners = false;  // Store the object without managedFields if it is too large with them.
};

// Creates the key, or updates it from `live`; returns the conflict if another writer was faster.
Task<Result<std::optional<store::Conflict>>> store_object(call::Call& call, std::string key,
                                                          std::optional<Revision> live, const Encoded& object,
                                                          StoreOptions options, Written& written) {
  resource::Storage& storage = call.storage();
  while (true) {
    Result<std::string> bytes = object.at_rest.empty()
                                    ? storage.stored_value(call.arena, object.stored, object.body, written.managed)
                                    : storage.stored_value(object.at_rest, written.managed);
    if (!bytes) co_return bytes.take_error();
    store::Blob value = store::make_blob(std::move(*bytes));
    store::StoreResult<store::WriteResult> result =
        live ? co_await commit(call, {store::update(key, *live, std::move(value), options.ttl)})
             : co_await commit(call, {store::create(key, std::move(value), options.ttl)});
    if (!result) {
      const bool may_drop =
          options.may_drop_owners && !written.managed.empty() && !call.settings.gates.on(Gate::RetainAllManagers);
      if (result.error().kind != store::ErrorKind::TooLarge || !may_drop) co_return write_error(call, result.error());
      written.managed.clear();
      continue;
    }
    std::optional<store::Conflict> overtaken;
    if (auto* conflict = std::get_if<store::Conflict>(&*result)) {
      overtaken = std::move(*conflict);
    } else {
      set_revision(call.arena, storage.codec(), object.body, std::get<store::Committed>(*result).revision, written);
    }
    co_return overtaken;
  }
}

// Stores `next` in place of the live object: the last step of an update, and of a delete that marks its object. A dry
// run stores nothing.
Task<Result<Attempt>> replace_live(call::Call& call, const LiveObject& live, const Encoded& next,
                                   std::vector<ownership::ManagedEntry> managed, StoreOptions options, bool dry_run) {
  Written written;
  written.stored = next.stored;
  written.body = next.body;
  written.managed = std::move(managed);
  if (dry_run) {
    Result<Unit> shown = show_unstored(call, written);
    if (!shown) co_return shown.take_error();
    co_return Attempt(std::move(written));
  }
  Result<std::optional<store::Conflict>> overtaken =
      co_await store_object(call, call.storage().key(live.entry->key()), live.revision, next, options, written);
  if (!overtaken) co_return overtaken.take_error();
  if (*overtaken) co_return Attempt();
  co_return Attempt(std::move(written));
}

}  // namespace

Written unchanged(call::Call& call, const LiveObject& live) {
  Written written;
  written.stored = live.stored;
  written.body = *live.body;
  written.managed = resource::stored_entries(call.arena, live.managed, call.served->custom);
  written.revision = live.revision;
  return written;
}

// Whether the object is stored in another version than the one in which it would be written now. Costs a read of the
// store only where such values have been seen.
Task<bool> is_outdated(call::Call& call, const LiveObject& live) {
  resource::Storage& storage = call.storage();
  const resource::OutdatedValues* outdated = resource::outdated_values(storage.codec());
  if (outdated == nullptr || !outdated->has_read_outdated()) co_return false;
  store::StoreResult<store::Got> got = co_await storage.read_stored(storage.key(live.entry->key()), call.executor());
  co_return got && got->item && got->item->modified == live.revision && outdated->is_outdated(*got->item->value);
}

Task<Result<Attempt>> store_own_change(call::Call& call, const LiveObject& live, Value next, bool dry_run) {
  Result<std::string> body = call.storage().codec().body_of(call.arena, next);
  if (!body) co_return body.take_error();
  if (*body == *live.body) co_return Attempt(unchanged(call, live));
  // No TTL, as upstream: an Event waiting for its finalizers does not expire.
  const Encoded encoded{next, std::move(*body)};
  co_return co_await replace_live(call, live, encoded,
                                  resource::stored_entries(call.arena, live.managed, call.served->custom), {}, dry_run);
}

Task<Result<store::WriteResult>> remove_key(call::Call& call, std::string key, Revision at) {
  store::StoreResult<store::WriteResult> result = co_await commit(call, {store::remove(std::move(key), at)});
  if (!result) co_return write_error(call, result.error());
  co_return std::move(*result);
}

Task<Result<Unit>> Writer::admit_prepared(call::Call& call, AdmissionOperation operation,
                                          const request::WriteOptions& options, const Prepared& prepared,
                                          const NextObject& next, const LiveObject* live) {
  Result<Value> requested =
      co_await custom::convert_object(call, prepared_version(call), *call.served->resource, prepared.object);
  if (!requested) co_return requested.take_error();
  co_return co_await admission_->validate(call, operation, options, *requested, next, live);
}

Task<Result<Writer::Prepared>> Writer::prepare_change(call::Call& call, const WriteRequest& request,
                                                      const LiveObject& live, const Value& next) {
  Result<Value> prepared = co_await custom::convert_object(call, *call.served->resource, prepared_version(call), next);
  if (!prepared) co_return prepared.take_error();
  const Value& old = call.served->custom ? live.object : live.stored;
  kinds::Context context = context_of(call);
  Draft draft(call.arena, *prepared);
  const Value managers = take_managers(draft);
  draft.root().child("metadata").set("resourceVersion", Value::string(call.arena, std::to_string(live.revision.value)));
  services::ServiceLease lease;
  if (services::is_service(*call.served->stored) && request.endpoint == kinds::Endpoint::Main) {
    Result<services::ServiceLease> taken =
        co_await pools_.lease_update(context, draft.root(), live.stored, request.options.dry_run, call.executor());
    if (!taken) co_return taken.take_error();
    lease = std::move(*taken);
  }
  const bool dry_run = request.options.dry_run;
  Result<std::string> at_rest =
      request.as_is
          ? finish_preparation(call, context, request.endpoint, draft, &old, dry_run)
          : prepare_and_validate_update(call, authorizer_, context, request.endpoint, draft, managers, old, dry_run);
  if (!at_rest) {
    if (!lease.empty()) co_await settle(call, std::move(lease), nullptr);
    co_return at_rest.take_error();
  }
  co_return Prepared{draft.value(), std::move(*at_rest), std::move(lease)};
}

Task<void> Writer::settle(call::Call& call, services::ServiceLease lease, const Value* stored) {
  if (stored != nullptr) {
    co_await pools_.keep(std::move(lease), *stored, call.executor());
  } else {
    co_await pools_.give_back(std::move(lease), call.executor());
  }
}

Task<Result<Attempt>> Writer::update_once(call::Call& call, const WriteRequest& request, const LiveObject& live,
                                          NextObject next) {
  Result<Unit> fresh = check_revision(call, next.object, live);
  if (!fresh) co_return fresh.take_error();
  if (!request.as_is) {
    Result<Unit> counted = check_manager_count(call, next, &live);
    if (!counted) co_return counted.take_error();
  }
  Result<Prepared> prepared =
      co_await prepare_change(call, request, live, with_invalid_managers(call.arena, next, &live));
  if (!prepared) co_return prepared.take_error();
  Result<Attempt> stored = co_await store_change(call, request, live, std::move(next), *prepared);
  if (!prepared->lease.empty()) {
    co_await settle(call, std::move(prepared->lease), stored && *stored ? &(*stored)->stored : nullptr);
  }
  co_return stored;
}

Task<Result<Attempt>> Writer::store_change(call::Call& call, const WriteRequest& request, const LiveObject& live,
                                           NextObject next, Prepared& prepared) {
  Result<Encoded> encoded = co_await encode(call, prepared.object, std::move(prepared.at_rest));
  if (!encoded) co_return encoded.take_error();
  Result<bool> same = changes_nothing(call, encoded->stored, encoded->body, live);
  if (!same) co_return same.take_error();
  const bool same_object = *same;
  // If only timestamps changed, keep the old ones.
  if ((same_object || call.served->object_rules->same(encoded->stored, live.stored)) &&
      ownership::differ_only_in_times(next.managed, live.managed)) {
    next.managed = live.managed;
  }
  if (!request.as_is) {
    Result<Unit> admitted =
        co_await admit_prepared(call, AdmissionOperation::Update, request.options, prepared, next, &live);
    if (!admitted) co_return admitted.take_error();
  }
  Result<FieldProtections::MatchingRef> protections = protections_->matching(call);
  if (!protections) co_return protections.take_error();
  Result<Unit> allowed = protections_->check(call, *protections, request.options, encoded->stored, next, &live);
  if (!allowed) co_return allowed.take_error();

  if (is_removed_by_update(encoded->stored, live.stored) && !namespace_still_held(call, encoded->stored)) {
    if (!prepared.lease.empty()) co_await settle(call, std::move(prepared.lease), nullptr);
    Written last;
    last.stored = encoded->stored;
    last.body = std::move(encoded->body);
    last.managed = resource::stored_entries(call.arena, next.managed, call.served->custom);
    co_return co_await remove_instead(call, request, live, std::move(last));
  }
  // Entries that could not be decoded are rewritten by any write that changes something.
  const bool same_owners = ownership::equal(next.managed, live.managed) && live.managed_problem.empty();
  if (same_object && same_owners && (request.options.dry_run || !co_await is_outdated(call, live))) {
    co_return Attempt(unchanged(call, live));
  }
  // Dropping the owners of a protected object would release its fields.
  const bool may_drop = !request.keeps_ownership_if_too_large && *protections == nullptr;
  const StoreOptions options{.ttl = ttl_of(call), .may_drop_owners = may_drop};
  Result<Attempt> stored = co_await replace_live(
      call, live, *encoded, resource::stored_entries(call.arena, next.managed, call.served->custom), options,
      request.options.dry_run);
  if (!stored && may_be_stored(stored.error())) pools_.leave(std::move(prepared.lease));
  co_return stored;
}

Task<Result<Attempt>> Writer::remove_instead(call::Call& call, const WriteRequest& request, const LiveObject& live,
                                             Written last) {
  if (request.options.dry_run) co_return Attempt(std::move(last));
  Result<store::WriteResult> removed = co_await remove(call, live, live.revision);
  if (!removed) co_return removed.take_error();
  if (std::holds_alternative<store::Conflict>(*removed)) co_return Attempt();
  co_return Attempt(std::move(last));
}

kinds::Context context_of(call::Call& call) {
  Arena& arena = call.arena;
  const auth::UserInfo& user = *call.user;
  std::vector<std::string_view> groups(user.groups.begin(), user.groups.end());
  kinds::Caller* caller = arena.make<kinds::Caller>();
  caller->name = user.name;
  caller->uid = user.uid;
  caller->groups = arena.copy(std::span<const std::string_view>(groups));
  if (!user.extra.empty()) caller->extra = webhook::extra_value(arena, user);
  return kinds::Context{.arena = arena,
                        .resource = *call.served->resource,
                        .now = call.view.now,
                        .caller = caller,
                        .service_ip_families = call.settings.service_ip_families,
                        .allow_privileged = call.settings.allow_privileged,
                        .sent = call.document};
}

Task<Result<std::unique_ptr<LiveObject>>> read_live(call::Call& call, std::string_view name) {
  if (Result<Unit> good = kinds::check_path_name(name); !good) co_return good.take_error();
  resource::Storage& storage = call.storage();
  Result<cache::Cache::Latest> latest =
      co_await storage.cache().latest(storage.short_key(call.ns(), name), call.executor());
  if (!latest) co_return latest.take_error();
  if (!latest->entry) co_return std::unique_ptr<LiveObject>();
  auto live = std::make_unique<LiveObject>();
  live->entry = std::move(latest->entry);
  if (live->entry->body_bytes() >= call::kLongBytes && !call.left_loop()) co_await leave_loop(call);
  live->body = live->entry->body(cache::Entry::Use::Hot);
  live->revision = live->entry->revision();
  Result<Value> tree = storage.codec().tree(call.arena, *live->body);
  if (!tree) co_return cache::undecodable(live->revision, tree.error().message);
  live->stored = *tree;
  Result<Value> requested = co_await custom::convert_object(
      call, call.served->object_rules->version_of(*tree, *call.served->stored), *call.served->resource, *tree);
  if (!requested) co_return requested.take_error();
  live->object = *requested;
  Result<ownership::Managed> managed = ownership::decode_managed(call.arena, live->entry->ownership(),
                                                                 {.fields_v2 = call.settings.gates.on(Gate::FieldsV2)});
  if (managed) {
    live->managed = std::move(*managed);
  } else {
    live->managed_problem = managed.error().message;
  }
  co_return live;
}

Task<Result<Written>> Writer::write_object(call::Call& call, WriteRequest request, Transform transform) {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    Result<std::unique_ptr<LiveObject>> read = co_await read_live(call, call.info.name);
    // Kubernetes returns this store error without a reason.
    if (!read && read.error().reason == Reason::StoreReadError) co_return untyped(read.error().message);
    if (!read) co_return read.take_error();
    const LiveObject* live = read->get();
    if (live == nullptr && !request.may_create) co_return not_found(call.group_resource(), call.info.name);
    if (request.uid) {
      const std::string_view uid = live == nullptr ? std::string_view{} : live->entry->uid();
      if (uid != *request.uid) {
        std::string key = call.storage().key(call.storage().short_key(call.ns(), call.info.name));
        // In a dry run, upstream's key does not have the store's prefix yet.
        if (request.options.dry_run) key.erase(0, call.settings.registry_prefix.size());
        co_return conflict(call.group_resource(), call.info.name,
                           "StorageError: invalid object, Code: 4, Key: " + key +
                               ", ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: " +
                               *request.uid + ", UID in object meta: " + std::string(uid));
      }
    }
    Result<NextObject> next = co_await transform(live);
    if (!next) co_return next.take_error();
    if (live == nullptr) {
      if (const std::string_view text = next->object.text_at("metadata", "resourceVersion"); !text.empty()) {
        if (const Result<uint64_t> revision = go_parse_uint(text); !revision)
          co_return untyped(revision.error().message);
      }
      next->object = without_path(call.arena, next->object,
                                  std::array{std::string_view("metadata"), std::string_view("resourceVersion")});
      Result<Written> created = co_await create_object(call, request.options, std::move(*next));
      if (!created && created.error().reason == Reason::AlreadyExists) continue;
      co_return created;
    }
    Result<Attempt> updated = co_await update_once(call, request, *live, std::move(*next));
    if (!updated) co_return updated.take_error();
    if (*updated) co_return std::move(**updated);
  }
  co_return modified_conflict(call.group_resource(), call.info.name);
}

Task<Result<Writer::Prepared>> Writer::prepare_new(call::Call& call, const request::WriteOptions& options,
                                                   const Value& next) {
  static thread_local std::mt19937_64 random{std::random_device{}()};
  Result<Value> prepared = co_await custom::convert_object(call, *call.served->resource, prepared_version(call), next);
  if (!prepared) co_return prepared.take_error();
  kinds::Context context = context_of(call);
  Draft draft(call.arena, *prepared);
  const Value managers = take_managers(draft);
  Draft::Node metadata = draft.root().child("metadata");
  metadata.set("uid", Value::string(call.arena, random_uuid()));
  metadata.set("creationTimestamp", Value::string(call.arena, format_rfc3339(call.view.now)));
  if (generates_name(next)) {
    const std::string_view prefix = next.text_at("metadata", "generateName");
    metadata.set("name",
                 Value::string(call.arena, call.served->rules->generates_names ? kinds::generate_name(prefix, random())
                                                                               : std::string(prefix)));
  } else if (call.served->rules->name_may_be_empty && next.text_at("metadata", "name").empty()) {
    metadata.set("name", Value::string(call.arena, random_uuid()));
  }
  services::ServiceLease lease;
  if (services::is_service(*call.served->stored)) {
    Result<services::ServiceLease> taken =
        co_await pools_.lease_create(context, draft.root(), options.dry_run, call.executor());
    if (!taken) co_return taken.take_error();
    lease = std::move(*taken);
  }
  Result<std::string> at_rest =
      prepare_and_validate_create(call, authorizer_, context, draft, managers, options.dry_run);
  if (!at_rest) {
    if (!lease.empty()) co_await settle(call, std::move(lease), nullptr);
    co_return at_rest.take_error();
  }
  co_return Prepared{draft.value(), std::move(*at_rest), std::move(lease)};
}

Task<Result<Written>> Writer::create_object(call::Call& call, const request::WriteOptions& options, NextObject next) {
  const bool generates = generates_name(next.object);
  Result<Unit> counted = check_manager_count(call, next, nullptr);
  if (!counted) co_return counted.take_error();
  const Value object = with_invalid_managers(call.arena, next, nullptr);
  for (int attempt = 1;; ++attempt) {
    Result<Prepared> prepared = co_await prepare_new(call, options, object);
    if (!prepared) co_return prepared.take_error();
    Written written;
    Result<std::optional<store::Conflict>> taken = co_await store_new(call, options, next, *prepared, written);
    if (!prepared->lease.empty()) {
      co_await settle(call, std::move(prepared->lease), taken && !*taken ? &written.stored : nullptr);
    }
    if (!taken) co_return taken.take_error();
    if (!*taken) co_return written;
    if (generates && attempt < kMaxGeneratedNames) continue;
    co_return name_taken(call, written.stored.text_at("metadata", "name"), generates, **taken);
  }
}

Task<Result<std::optional<store::Conflict>>> Writer::store_new(call::Call& call, const request::WriteOptions& options,
                                                               const NextObject& next, Prepared& prepared,
                                                               Written& written) {
  Result<Unit> admitted = co_await admit_prepared(call, AdmissionOperation::Create, options, prepared, next, nullptr);
  if (!admitted) co_return admitted.take_error();
  Result<Encoded> encoded = co_await encode(call, prepared.object, std::move(prepared.at_rest));
  if (!encoded) co_return encoded.take_error();
  Result<FieldProtections::MatchingRef> protections = protections_->matching(call);
  if (!protections) co_return protections.take_error();
  Result<Unit> allowed = protections_->check(call, *protections, options, encoded->stored, next, nullptr);
  if (!allowed) co_return allowed.take_error();
  written.created = true;
  written.stored = encoded->stored;
  written.managed = resource::stored_entries(call.arena, next.managed, call.served->custom);
  written.body = encoded->body;
  const std::string name(encoded->stored.text_at("metadata", "name"));
  if (options.dry_run) {
    // Only checks whether the name is taken.
    Result<std::optional<store::Conflict>> taken = co_await find_existing(call, name);
    if (!taken || *taken) co_return taken;
    if (Result<Unit> shown = show_unstored(call, written); !shown) co_return shown.take_error();
    co_return taken;
  }
  Result<Unit> unset = check_no_revision(encoded->stored);
  if (!unset) co_return unset.take_error();
  Result<std::optional<store::Conflict>> taken =
      co_await store_object(call, call.storage().key(call.storage().short_key(call.ns(), name)), std::nullopt, *encoded,
                            {.ttl = ttl_of(call), .may_drop_owners = *protections == nullptr}, written);
  if (!taken && may_be_stored(taken.error())) pools_.leave(std::move(prepared.lease));
  co_return taken;
}

Task<Result<NextObject>> Writer::mutate(call::Call& call, AdmissionOperation operation,
                                        const request::WriteOptions& options, NextObject next, const LiveObject* live) {
  return admission_->mutate(call, operation, options, std::move(next), live);
}

Task<Result<Unit>> Writer::validate(call::Call& call, AdmissionOperation operation,
                                    const request::WriteOptions& options, const Value& object, const NextObject& next,
                                    const LiveObject* live) {
  return admission_->validate(call, operation, options, object, next, live);
}

Task<Result<Value>> Writer::admit_subresource(call::Call& call, AdmissionOperation operation,
                                              const request::WriteOptions& options, Value object, Value old,
                                              bool validates) {
  return admission_->admit_subresource(call, operation, options, object, old, validates);
}

Task<Result<Unit>> Writer::admit_delete(call::Call& call, Value options, const LiveObject& live, bool dry_run) {
  Result<Unit> admitted = co_await admission_->admit_delete(call, options, live, dry_run);
  if (!admitted) co_return admitted.take_error();
  Result<FieldProtections::MatchingRef> protections = protections_->matching(call);
  if (!protections) co_return protections.take_error();
  co_return protections_->check_delete(call, *protections, live);
}

Task<Result<store::WriteResult>> Writer::remove(call::Call& call, const LiveObject& live, Revision at) {
  Result<store::WriteResult> removed = co_await remove_key(call, call.storage().key(live.entry->key()), at);
  if (!removed) co_return removed;
  if (std::holds_alternative<store::Committed>(*removed) && services::is_service(*call.served->stored)) {
    co_await pools_.release(live.stored, call.executor());
  }
  co_return removed;
}

Result<Unit> Writer::authorize_create(const call::Call& call) const {
  return authorizer_.check(call.attributes("create"));
}

Result<Unit> Writer::authorize_unsafe_delete(const call::Call& call) const {
  constexpr std::string_view kVerb = "unsafe-delete-ignore-read-errors";
  const auth::Decision decision = authorizer_.authorize(call.attributes(kVerb));
  if (decision.allowed()) return Unit{};
  return forbidden(call.group_resource(), call.info.name,
                   "not permitted to do " + go_quote(kVerb) + ", reason: " + decision.reason);
}

void respond_written(call::Call& call, int code, const Written& written) {
  render::ObjectSource source{written.body, {}};
  std::vector<ownership::ManagedEntry> shown;
  if (!call.view.omits_ownership()) {
    if (call.view.accepted.ownership == request::Ownership::V2) {
      shown = resource::as_fields_v2(call.arena, written.managed);
      source.managed = shown;
    } else {
      source.managed = written.managed;
    }
  }
  Result<std::string> body = render_object(call.view, source);
  if (!body) return respond_error(call, body.error());
  if (const std::optional<render::View> view = recorded_view(call)) {
    record_response(call, render_object(*view, {written.body, written.managed}));
  }
  count_opt_out(call, call::field_set_bytes(written.managed));
  respond(call, code, std::move(*body));
}

}  // namespace holdfast::write
