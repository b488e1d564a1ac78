// GET of one object, and of subresources that return one.
#include "base/api_error.h"
#include "base/go_numbers.h"
#include "base/text.h"
#include "call/call.h"
#include "call/opt_out.h"
#include "custom/conversions.h"
#include "verbs/component_statuses.h"
#include "verbs/each.h"
#include "verbs/reads.h"
#include "verbs/subresources.h"

namespace holdfast::verbs {

Result<std::optional<Revision>> parse_revision(std::string_view text) {
  if (text.empty()) return std::optional<Revision>{};
  Result<uint64_t> value = go_parse_uint(text);
  if (!value) {
    return untyped("resourceVersion: Invalid value: " + go_quote(text) + ": " + value.error().message);
  }
  return std::optional<Revision>{Revision{*value}};
}

Error as_read_error(const call::Call& call, std::string_view name, Error error) {
  if (error.reason != Reason::StoreReadError) return error;
  // Kubernetes reports the key without the prefix added by its store.
  const std::string key = call.storage().key(call.storage().short_key(call.ns(), name));
  return corrupt_object(std::string_view(key).substr(call.settings.registry_prefix.size()), error.message);
}

bool bypasses_watch_cache(const call::Call& call) {
  return !call.settings.watch_cache || !call.served->rules->watch_cached;
}

Task<Result<cache::EntryRef>> read_entry(call::Call& call, std::string_view name, std::optional<Revision> revision) {
  resource::Storage& storage = call.storage();
  const std::string key = storage.short_key(call.ns(), name);
  if (!revision || bypasses_watch_cache(call)) {
    Result<cache::Cache::Latest> latest = co_await storage.cache().latest(key, call.executor());
    if (!latest) co_return as_read_error(call, name, latest.take_error());
    if (revision && *revision > latest->revision) {
      co_return too_large_resource_version(revision->value, latest->revision.value, 0);
    }
    if (!latest->entry) co_return not_found(call.group_resource(), name);
    co_return std::move(latest->entry);
  }
  Result<cache::Snapshot> snapshot =
      revision->value == 0 ? storage.cache().snapshot() : co_await storage.cache().at_least(*revision, call.executor());
  if (!snapshot) co_return snapshot.take_error();
  cache::EntryRef entry = snapshot->find(key);
  if (const cache::Unreadable* unreadable = snapshot->find_unreadable(key)) {
    co_return as_read_error(call, name, Error{Reason::StoreReadError, unreadable->why});
  }
  if (!entry) co_return not_found(call.group_resource(), name);
  co_return entry;
}

bool is_readable(call::Call& call, std::string_view body) {
  return call.storage().codec().tree(call.arena, call.arena.copy(body)).ok();
}

bool is_slow_to_render(const call::Call& call, size_t bytes) {
  // JSON and Protobuf are copied or transcoded; YAML is built from a tree, and strings are checked for quoting.
  return call.view.accepted.format == request::Format::Yaml ? bytes * 2 >= call::kLongBytes
                                                            : bytes / 4 >= call::kLongBytes;
}

Task<void> serve_get(call::Call& call, const Parts& parts) {
  Result<Unit> negotiated = negotiate_response(call);
  if (!negotiated) co_return respond_error(call, negotiated.error());
  if (call.served->storage == nullptr) {
    co_await serve_component_status(call);
    co_return;
  }
  if (call.info.subresource == "log") {
    co_await serve_pod_log(call, parts.connections);
    co_return;
  }
  if (call.query.has("export") && request::query_bool(call.query.get("export"))) {
    co_return respond_error(call, bad_request("the export parameter, deprecated since v1.14, is no longer supported"));
  }
  if (const Result<Unit> good = kinds::check_path_name(call.info.name); !good) {
    co_return respond_error(call, good.error());
  }
  Result<std::optional<Revision>> revision = parse_revision(call.query.get("resourceVersion"));
  if (!revision) co_return respond_error(call, revision.error());
  Result<cache::EntryRef> entry = co_await read_entry(call, call.info.name, *revision);
  if (!entry) co_return respond_error(call, entry.error());

  if (call.info.subresource == "scale") {
    co_await respond_scale(call, *entry);
    co_return;
  }
  const store::Blob body = (*entry)->body(cache::Entry::Use::Hot);
  // Protobuf without managedFields is the cached body itself and is sent without copying.
  const request::Accepted& accepted = call.view.accepted;
  if (accepted.format == request::Format::Protobuf && accepted.form == request::Form::Object &&
      call.view.omits_ownership() && call.view.drop.empty() && call.served->resource == call.served->stored &&
      !recorded_view(call)) {
    count_opt_out(call, call::field_set_bytes((*entry)->ownership()));
    co_return respond(call, 200, net::Body(net::Bytes(*body, body)), media_type(request::Format::Protobuf));
  }
  Result<Unit> prepared = co_await custom::convert_for_view(call, *body);
  if (!prepared) co_return respond_error(call, prepared.error());
  if (is_slow_to_render(call, body->size())) co_await leave_loop(call);
  Result<std::string> rendered = render_object(call.view, source_of(call.arena, call.view, **entry, *body));
  if (!rendered && !is_readable(call, *body)) {
    const Error error = cache::undecodable((*entry)->revision(), rendered.error().message);
    co_return respond_error(call, as_read_error(call, call.info.name, error));
  }
  if (!rendered) co_return respond_error(call, rendered.error());
  if (const std::optional<render::View> view = recorded_view(call)) {
    record_response(call, render_object(*view, source_of(call.arena, *view, **entry, *body)));
  }
  count_opt_out(call, call::field_set_bytes((*entry)->ownership()));
  respond(call, 200, std::move(*rendered));
}

}  // namespace holdfast::verbs
