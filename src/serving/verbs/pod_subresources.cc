// Subresources with POST: binding and eviction of pods (eviction.cc), token of service accounts (token_request.cc).
#include "base/api_error.h"
#include "render/status.h"
#include "verbs/subresources.h"
#include "write/body.h"
#include "write/write.h"

namespace holdfast::verbs {
namespace {

void respond_created(call::Call& call) {
  respond_status(call, 201, with_member(call.arena, render::success_status(call.arena), "code", Value::integer(201)));
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
  const Result<write::WriteBody> body = write::read_placed_body(call, request::WriteKind::Create, bytes, format);
  if (!body) co_return respond_error(call, body.error());
  const bool legacy = call.subresource == nullptr;  // The legacy form: a POST to bindings.
  const std::string_view name = body->object.text_at("metadata", "name");
  if (legacy) call.info.name = call.arena.copy(name);
  if (name != call.info.name) {
    co_return respond_error(call, bad_request("name in URL does not match name in Binding object"));
  }
  write::WriteRequest request;
  request.options = body->options;
  request.as_is = true;
  // As in any create, a POST to a collection ignores the uid.
  if (const std::string_view uid = body->object.text_at("metadata", "uid"); !uid.empty() && !legacy) {
    request.uid = std::string(uid);
  }
  Result<Value> admitted = co_await writer.admit_subresource(call, write::AdmissionOperation::Create, body->options,
                                                             body->object, Value::null(), true);
  if (!admitted) co_return respond_error(call, admitted.error());
  const Value binding = *admitted;
  if (legacy) call.served = call.registry->find("", "v1", "pods");
  Result<write::Written> written = co_await writer.write_object(
      call, std::move(request), [&](const write::LiveObject* live) { return bind_live(call, binding, live); });
  if (!written) co_return respond_error(call, written.error());
  respond_created(call);
}

Task<void> serve_eviction(call::Call& call, write::Writer& writer, const std::string& bytes, request::Format format) {
  const Result<write::WriteBody> body = write::read_placed_body(call, request::WriteKind::Create, bytes, format);
  if (!body) co_return respond_error(call, body.error());
  if (body->object.text_at("metadata", "name") != call.info.name) {
    co_return respond_error(call, bad_request("name in URL does not match name in Eviction object"));
  }
  Result<Value> admitted = co_await writer.admit_subresource(call, write::AdmissionOperation::Create, body->options,
                                                             body->object, Value::null(), true);
  if (!admitted) co_return respond_error(call, admitted.error());
  Result<Unit> evicted = co_await evict(call, writer, *admitted, body->options.dry_run);
  if (!evicted) co_return respond_error(call, evicted.error());
  respond_created(call);
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

}  // namespace holdfast::verbs
