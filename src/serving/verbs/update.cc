// PUT: replaces an object, through the main endpoint or a subresource that is a view of the same object.
#include "base/api_error.h"
#include "call/call.h"
#include "custom/conversions.h"
#include "verbs/each.h"
#include "verbs/markers.h"
#include "verbs/patch.h"
#include "verbs/subresources.h"
#include "write/body.h"
#include "write/write.h"

namespace holdfast::verbs {
namespace {

Task<Result<write::NextObject>> replace(call::Call& call, write::Writer& writer, const request::WriteOptions& options,
                                        kinds::Endpoint endpoint, Value object, const write::LiveObject* live) {
  if (live == nullptr) {
    Result<Unit> allowed = writer.authorize_create(call);
    if (!allowed) co_return allowed.take_error();
  }
  const std::string manager = write::manager_of(call, options);
  Result<ownership::UpdateResult> owned =
      co_await custom::with_conversions(call, [&](resource::MissingConversions& missing) {
        return call.served->managers->at(endpoint).update(call.arena,
                                                          {.live = live == nullptr ? nullptr : &live->object,
                                                           .live_managed = live == nullptr ? nullptr : &live->managed,
                                                           .object = object,
                                                           .manager = manager,
                                                           .now = call.view.now,
                                                           .convert = call.served->managers->converter(missing)});
      });
  if (!owned) co_return owned.take_error();
  Result<write::NextObject> next = co_await writer.mutate(
      call, live == nullptr ? write::AdmissionOperation::Create : write::AdmissionOperation::Update, options,
      write::NextObject{owned->object, std::move(owned->managed)}, live);
  if (!next) co_return next.take_error();
  next->object = write::without_duplicate_owners(call, next->object, true);
  co_return next;
}

Task<Result<write::Written>> update_from_body(call::Call& call, write::Writer& writer, const std::string& bytes,
                                              request::Format format, kinds::Endpoint endpoint) {
  Result<write::WriteBody> body = write::read_placed_body(call, request::WriteKind::Update, bytes, format);
  if (!body) co_return body.take_error();
  Result<Unit> named = write::check_name(call, body->object);
  if (!named) co_return named.take_error();
  const Value object =
      call.served->object_rules->with_defaults(call.arena, write::without_duplicate_owners(call, body->object, false));
  record_request(call, object);

  write::WriteRequest request;
  request.options = body->options;
  request.endpoint = endpoint;
  request.may_create = endpoint == kinds::Endpoint::Main && call.served->rules->put_creates;
  if (const std::string_view uid = object.text_at("metadata", "uid"); !uid.empty()) request.uid = std::string(uid);
  Result<write::Written> written = co_await writer.write_object(
      call, std::move(request),
      [&](const write::LiveObject* live) { return replace(call, writer, body->options, endpoint, object, live); });
  warn_about_stored_markers(call, bytes, written);
  co_return written;
}

}  // namespace

Task<void> serve_update(call::Call& call, const Parts& parts) {
  Result<Unit> negotiated = negotiate_response(call);
  if (!negotiated) co_return respond_error(call, negotiated.error());
  Result<std::string> bytes = co_await read_body(call);
  if (!bytes) co_return respond_error(call, bytes.error());
  Result<request::Format> format = request::body_format(call.request.headers.get("content-type"), call.settings.gates);
  if (!format) co_return respond_error(call, format.error());
  if (call.info.subresource == "scale") {
    co_await update_scale(call, parts.writer, *bytes, *format);
    co_return;
  }
  const std::optional<kinds::Endpoint> endpoint = kinds::endpoint_of(call.info.subresource);
  if (!endpoint) co_return respond_error(call, method_not_supported(call.group_resource(), "update"));
  co_await respond_to_write(call, parts, co_await update_from_body(call, parts.writer, *bytes, *format, *endpoint));
}

}  // namespace holdfast::verbs
