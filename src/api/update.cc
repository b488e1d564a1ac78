// PUT: an object in place of what is there, through the main endpoint or a subresource that shows the same object.
#include "api/body.h"
#include "api/conversions.h"
#include "api/patch.h"
#include "api/recording.h"
#include "api/state.h"
#include "api/subresources.h"
#include "api/writes.h"
#include "base/api_error.h"

namespace holdfast::api {
namespace {

Task<Result<NextObject>> replace(Call& call, const request::WriteOptions& options, kinds::Endpoint endpoint,
                                 Value object, const LiveObject* live) {
  if (live == nullptr) {
    Result<Unit> allowed = authorize_create(call);
    if (!allowed) co_return allowed.take_error();
  }
  Result<ownership::UpdateResult> owned = co_await with_conversions(call, [&] {
    return call.served->managers->at(endpoint).update(call.arena,
                                                      {.live = live == nullptr ? nullptr : &live->object,
                                                       .live_managed = live == nullptr ? nullptr : &live->managed,
                                                       .object = object,
                                                       .manager = options.field_manager,
                                                       .now = call.view.now});
  });
  if (!owned) co_return owned.take_error();
  Result<NextObject> next =
      co_await run_mutation(call, live == nullptr ? AdmissionOperation::Create : AdmissionOperation::Update, options,
                            options.field_manager, NextObject{owned->object, std::move(owned->managed)}, live);
  if (!next) co_return next.take_error();
  next->object = without_repeated_owners(call, next->object, true);
  co_return next;
}

Task<Result<Written>> update_from_body(Call& call, const std::string& bytes, request::Format format,
                                       kinds::Endpoint endpoint) {
  Result<WriteBody> body = read_write_body(call, request::WriteKind::Update, bytes, format);
  if (!body) co_return body.take_error();

  Result<Value> placed = with_request_namespace(call, body->object);
  if (!placed) co_return placed.take_error();
  Result<Unit> named = check_name(call, *placed);
  if (!named) co_return named.take_error();
  Draft draft(call.arena, without_repeated_owners(call, *placed, false));
  call.served->object_rules->set_defaults(call.arena, draft.root());
  const Value object = draft.value();
  record_request(call, object);

  WriteRequest request;
  request.options = body->options;
  request.endpoint = endpoint;
  request.may_create = endpoint == kinds::Endpoint::Main && call.served->rules->put_creates;
  if (const std::string_view uid = object.text_at("metadata", "uid"); !uid.empty()) request.uid = std::string(uid);
  co_return co_await write_object(call, std::move(request), [&](const LiveObject* live) {
    return replace(call, body->options, endpoint, object, live);
  });
}

}  // namespace

Result<Unit> authorize_create(Call& call) {
  auth::Attributes attributes;
  attributes.user = call.user.get();
  attributes.verb = "create";
  attributes.is_resource = true;
  attributes.group = call.served->resource->group;
  attributes.version = call.served->resource->version;
  attributes.resource = call.served->resource->plural;
  attributes.subresource = call.info.subresource;
  attributes.ns = call.info.ns;
  attributes.name = call.info.name;
  const auth::Decision decision = call.api.deps.authorizer->authorize(attributes);
  if (decision.allowed()) return Unit{};
  return auth::forbidden_error(attributes, decision.reason);
}

Task<void> serve_update(Call& call) {
  Result<Unit> negotiated = negotiate_answer(call);
  if (!negotiated) co_return respond_error(call, negotiated.error());
  Result<std::string> bytes = co_await read_body(call);
  if (!bytes) co_return respond_error(call, bytes.error());
  Result<request::Format> format = request::body_format(call.request.headers.get("content-type"));
  if (!format) co_return respond_error(call, format.error());
  if (call.info.subresource == "scale") {
    co_await update_scale(call, *bytes, *format);
    co_return;
  }
  const std::optional<kinds::Endpoint> endpoint = kinds::endpoint_of(call.info.subresource);
  if (!endpoint) co_return respond_error(call, method_not_supported(call.group_resource(), "update"));
  Result<Written> written = co_await update_from_body(call, *bytes, *format, *endpoint);
  if (!written) co_return respond_error(call, written.error());
  if (is_definition(*call.served->resource)) co_await settle_definition(call, call.info.name);
  Result<Unit> prepared = co_await prepare_to_show(call, written->body);
  if (!prepared) co_return respond_error(call, prepared.error());
  respond_written(call, written->created ? 201 : 200, *written);
}

}  // namespace holdfast::api
