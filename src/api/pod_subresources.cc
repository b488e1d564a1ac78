// Subresources that are posted to: pods' binding and eviction, service accounts' token (token_request.cc); and a pod's
// log, which without a kubelet says only why there is none.
#include <algorithm>

#include "api/body.h"
#include "api/deletes.h"
#include "api/state.h"
#include "api/status.h"
#include "api/subresources.h"
#include "api/writes.h"
#include "base/api_error.h"

namespace holdfast::api {
namespace {

Value success_status(Arena& arena, int code) {
  MapBuilder status(arena);
  status.add("kind", Value::string("Status"));
  status.add("apiVersion", Value::string("v1"));
  status.add("metadata", Value::empty_map());
  status.add("status", Value::string("Success"));
  status.add("code", Value::integer(code));
  return status.build();
}

Task<Result<NextObject>> bind_live(Call& call, Value binding, const LiveObject* live) {
  kinds::Context context = context_of(call);
  Draft draft(call.arena, live->object);
  Result<Unit> bound = kinds::bind_pod(context, draft.root(), binding);
  if (!bound) co_return bound.take_error();
  NextObject next;
  next.object = draft.value();
  next.managed = live->managed;
  co_return next;
}

Task<void> serve_binding(Call& call, const std::string& bytes, Format format) {
  Result<WriteOptions> options = parse_write_options(call.query, WriteKind::Create);
  if (!options) co_return respond_error(call, options.error());
  Result<Value> decoded = decode_body(call, bytes, format, expected_of(call), options->field_validation);
  if (!decoded) co_return respond_error(call, decoded.error());
  Result<Value> placed = with_request_namespace(call, *decoded);
  if (!placed) co_return respond_error(call, placed.error());
  const std::string_view name = placed->text_at("metadata", "name");
  if (!name.empty() && name != call.info.name) {
    co_return respond_error(call, bad_request("name in URL does not match name in Binding object"));
  }
  WriteRequest request;
  request.options = *options;
  request.as_is = true;
  if (const std::string_view uid = placed->text_at("metadata", "uid"); !uid.empty()) request.uid = std::string(uid);
  const Value binding = *placed;
  Result<Written> written = co_await write_object(
      call, std::move(request), [&](const LiveObject* live) { return bind_live(call, binding, live); });
  if (!written) co_return respond_error(call, written.error());
  respond_status(call, 201, success_status(call.arena, 201));
}

Task<void> serve_eviction(Call& call, const std::string& bytes, Format format) {
  Result<WriteOptions> options = parse_write_options(call.query, WriteKind::Create);
  if (!options) co_return respond_error(call, options.error());
  Result<Value> decoded = decode_body(call, bytes, format, expected_of(call), options->field_validation);
  if (!decoded) co_return respond_error(call, decoded.error());
  const std::string_view name = decoded->text_at("metadata", "name");
  if (!name.empty() && name != call.info.name) {
    co_return respond_error(call, bad_request("name in URL does not match name in Eviction object"));
  }
  DeleteOptions deletion;
  if (const Value* given = decoded->find("deleteOptions"); given != nullptr && given->is_map()) {
    if (const Value* grace = given->find("gracePeriodSeconds"); grace != nullptr && grace->is_int()) {
      deletion.grace_period_seconds = grace->as_int();
    }
    if (const std::string_view uid = given->text_at("preconditions", "uid"); !uid.empty()) {
      deletion.uid = std::string(uid);
    }
    if (const std::string_view rv = given->text_at("preconditions", "resourceVersion"); !rv.empty()) {
      deletion.resource_version = std::string(rv);
    }
    for (const Value& item : given->items_at("dryRun")) {
      if (item.is_string()) deletion.dry_run.emplace_back(item.as_string());
    }
  }
  if (options->dry_run) deletion.dry_run = {"All"};
  Result<Unit> valid = validate(deletion);
  if (!valid) co_return respond_error(call, valid.error());
  Result<Deleted> deleted = co_await delete_object(call, std::string(call.info.name), deletion);
  if (!deleted) co_return respond_error(call, deleted.error());
  respond_status(call, 201, success_status(call.arena, 201));
}

}  // namespace

Task<void> create_subresource(Call& call, const std::string& bytes, Format format) {
  if (call.info.subresource == "binding") {
    co_await serve_binding(call, bytes, format);
  } else if (call.info.subresource == "eviction") {
    co_await serve_eviction(call, bytes, format);
  } else if (call.info.subresource == "token") {
    co_await serve_token_request(call, bytes, format);
  } else {
    respond_error(call, method_not_supported(call.group_resource(), "create"));
  }
}

Task<void> serve_pod_log(Call& call, const cache::Entry& entry) {
  const store::Blob body = entry.body();
  Result<Value> pod = call.storage().codec().tree(call.arena, *body);
  if (!pod) co_return respond_error(call, pod.error());
  const std::string name(pod->text_at("metadata", "name"));
  std::vector<std::string> names;
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const Value& container : pod->items_at("spec", list)) names.emplace_back(container.text_at("name"));
  }
  const std::string_view asked = call.query.get("container");
  if (asked.empty() && pod->items_at("spec", "containers").size() > 1) {
    std::string all;
    for (const Value& container : pod->items_at("spec", "containers")) {
      all += (all.empty() ? "" : " ") + std::string(container.text_at("name"));
    }
    co_return respond_error(
        call, bad_request("a container name must be specified for pod " + name + ", choose one of: [" + all + "]"));
  }
  if (!asked.empty() && std::find(names.begin(), names.end(), asked) == names.end()) {
    co_return respond_error(call, bad_request("container " + std::string(asked) + " is not valid for pod " + name));
  }
  const std::string_view node = pod->text_at("spec", "nodeName");
  if (node.empty()) {
    call.response.set_header("cache-control", "no-cache, private");
    (void)call.response.send(204);
    co_return;
  }
  co_return respond_error(call, not_found({"", "pods"}, node));
}

}  // namespace holdfast::api
