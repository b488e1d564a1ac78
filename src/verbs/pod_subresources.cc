// Subresources that are posted to: pods' binding and eviction (eviction.cc), service accounts' token
// (token_request.cc); and a pod's log, which without a kubelet says only why there is none.
#include "base/api_error.h"
#include "render/status.h"
#include "verbs/subresources.h"
#include "write/body.h"
#include "write/write.h"

namespace holdfast::verbs {
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

Task<Result<write::NextObject>> bind_live(call::Call& call, Value binding, const write::LiveObject* live) {
  const std::string_view wanted = binding.text_at("metadata", "resourceVersion");
  const std::string_view there = live == nullptr ? "" : live->object.text_at("metadata", "resourceVersion");
  if (!wanted.empty() && live != nullptr && wanted != there) {
    const std::string key = call.storage().key(call.storage().short_key(call.ns(), call.info.name));
    co_return conflict(call.group_resource(), call.info.name,
                       "StorageError: invalid object, Code: 4, Key: " + key +
                           ", ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: ResourceVersion in "
                           "precondition: " +
                           std::string(wanted) + ", ResourceVersion in object meta: " + std::string(there));
  }
  kinds::Context context = write::context_of(call);
  Draft draft(call.arena, live->object);
  Result<Unit> bound = kinds::bind_pod(context, draft.root(), binding);
  if (!bound) co_return bound.take_error();
  write::NextObject next;
  next.object = draft.value();
  next.managed = live->managed;
  co_return next;
}

Task<void> serve_binding(call::Call& call, write::Writer& writer, const std::string& bytes, request::Format format) {
  Result<request::WriteOptions> options = parse_write_options(call.query, request::WriteKind::Create);
  if (!options) co_return respond_error(call, options.error());
  Result<Value> decoded = write::decode_body(call, bytes, format, write::expected_of(call), *options);
  if (!decoded) co_return respond_error(call, decoded.error());
  Result<Value> placed = write::with_request_namespace(call, *decoded);
  if (!placed) co_return respond_error(call, placed.error());
  const bool legacy = call.subresource == nullptr;  // The older way: a POST to bindings.
  if (legacy) call.info.name = call.arena.copy(placed->text_at("metadata", "name"));
  if (placed->text_at("metadata", "name") != call.info.name) {
    co_return respond_error(call, bad_request("name in URL does not match name in Binding object"));
  }
  write::WriteRequest request;
  request.options = *options;
  request.as_is = true;
  // A POST to a collection has no say in the uid, as in any other creation.
  if (const std::string_view uid = placed->text_at("metadata", "uid"); !uid.empty() && !legacy) {
    request.uid = std::string(uid);
  }
  Result<Value> admitted = co_await writer.admit_subresource(call, write::AdmissionOperation::Create, *options, *placed,
                                                             Value::null(), true);
  if (!admitted) co_return respond_error(call, admitted.error());
  const Value binding = *admitted;
  if (legacy) call.served = call.registry->find("", "v1", "pods");
  Result<write::Written> written = co_await writer.write_object(
      call, std::move(request), [&](const write::LiveObject* live) { return bind_live(call, binding, live); });
  if (!written) co_return respond_error(call, written.error());
  respond_status(call, 201, success_status(call.arena, 201));
}

Task<void> serve_eviction(call::Call& call, write::Writer& writer, const std::string& bytes, request::Format format) {
  Result<request::WriteOptions> options = parse_write_options(call.query, request::WriteKind::Create);
  if (!options) co_return respond_error(call, options.error());
  Result<Value> decoded = write::decode_body(call, bytes, format, write::expected_of(call), *options);
  if (!decoded) co_return respond_error(call, decoded.error());
  Result<Value> placed = write::with_request_namespace(call, *decoded);
  if (!placed) co_return respond_error(call, placed.error());
  if (placed->text_at("metadata", "name") != call.info.name) {
    co_return respond_error(call, bad_request("name in URL does not match name in Eviction object"));
  }
  Result<Value> admitted = co_await writer.admit_subresource(call, write::AdmissionOperation::Create, *options, *placed,
                                                             Value::null(), true);
  if (!admitted) co_return respond_error(call, admitted.error());
  Result<Unit> evicted = co_await evict(call, writer, *admitted, options->dry_run);
  if (!evicted) co_return respond_error(call, evicted.error());
  respond_status(call, 201, success_status(call.arena, 201));
}

}  // namespace

Task<void> create_subresource(call::Call& call, write::Writer& writer, const TokenIssuer* issuer,
                              const std::string& bytes, request::Format format) {
  if (call.info.subresource == "binding" || call.subresource == nullptr) {
    co_await serve_binding(call, writer, bytes, format);
  } else if (call.info.subresource == "eviction") {
    co_await serve_eviction(call, writer, bytes, format);
  } else if (call.info.subresource == "token") {
    co_await serve_token_request(call, writer, issuer, bytes, format);
  } else {
    respond_error(call, method_not_supported(call.group_resource(), "create"));
  }
}

Result<Unit> check_container(const Value& pod, std::string_view asked) {
  const std::string name(pod.text_at("metadata", "name"));
  const std::span<const Value> containers = pod.items_at("spec", "containers");
  if (asked.empty()) {
    if (containers.size() <= 1) return Unit{};
    std::string all;
    for (const Value& container : containers) all += (all.empty() ? "" : " ") + std::string(container.text_at("name"));
    return bad_request("a container name must be specified for pod " + name + ", choose one of: [" + all + "]");
  }
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const Value& container : pod.items_at("spec", list)) {
      if (container.text_at("name") == asked) return Unit{};
    }
  }
  return bad_request("container " + std::string(asked) + " is not valid for pod " + name);
}

Task<void> serve_pod_log(call::Call& call, const cache::Entry& entry) {
  const store::Blob body = entry.body();
  Result<Value> pod = call.storage().codec().tree(call.arena, *body);
  if (!pod) co_return respond_error(call, pod.error());
  Result<Unit> chosen = check_container(*pod, call.query.get("container"));
  if (!chosen) co_return respond_error(call, chosen.error());
  const std::string_view node = pod->text_at("spec", "nodeName");
  if (node.empty()) {
    call.response.set_header("cache-control", "no-cache, private");
    (void)call.response.send(204);
    co_return;
  }
  co_return respond_error(call, not_found({"", "pods"}, node));
}

}  // namespace holdfast::verbs
