// POST: creates an object in a collection.
#include "call/call.h"
#include "custom/conversions.h"
#include "verbs/each.h"
#include "verbs/markers.h"
#include "verbs/subresources.h"
#include "write/body.h"
#include "write/write.h"

namespace holdfast::verbs {
namespace {

// Removes fields that only the server sets, so that no manager owns them.
Value without_system_metadata(Arena& arena, const Value& object) {
  const Value* metadata = object.find("metadata");
  if (metadata == nullptr) return object;
  Value bare = *metadata;
  for (const std::string_view key :
       {"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"}) {
    if (bare.has(key)) bare = without_member(arena, bare, key);
  }
  return bare.same(*metadata) ? object : with_member(arena, object, "metadata", bare);
}

Task<Result<write::Written>> create_from_body(call::Call& call, write::Writer& writer, const std::string& bytes,
                                              request::Format format) {
  Result<write::WriteBody> body = write::read_write_body(call, request::WriteKind::Create, bytes, format);
  if (!body) co_return body.take_error();

  Result<Value> placed = write::with_request_namespace(call, without_system_metadata(call.arena, body->object));
  if (!placed) co_return placed.take_error();
  const Value object =
      call.served->object_rules->with_defaults(call.arena, write::without_duplicate_owners(call, *placed, false));
  record_request(call, object);

  const std::string manager = write::manager_of(call, body->options);
  Result<ownership::UpdateResult> owned =
      co_await custom::with_conversions(call, [&](resource::MissingConversions& missing) {
        return call.served->managers->at(kinds::Endpoint::Main)
            .update(call.arena, {.object = object,
                                 .manager = manager,
                                 .now = call.view.now,
                                 .convert = call.served->managers->converter(missing)});
      });
  if (!owned) co_return owned.take_error();
  Result<write::NextObject> next =
      co_await writer.mutate(call, write::AdmissionOperation::Create, body->options,
                             write::NextObject{owned->object, std::move(owned->managed)}, nullptr);
  if (!next) co_return next.take_error();
  next->object = write::without_duplicate_owners(call, next->object, true);
  next->sent = *placed;
  Result<write::Written> written = co_await writer.create_object(call, body->options, std::move(*next));
  warn_about_stored_markers(call, bytes, written);
  co_return written;
}

}  // namespace

Task<void> serve_create(call::Call& call, const Parts& parts) {
  Result<Unit> negotiated = negotiate_response(call);
  if (!negotiated) co_return respond_error(call, negotiated.error());
  Result<request::Format> format = request::body_format(call.request.headers.get("content-type"), call.settings.gates);
  if (!format) co_return respond_error(call, format.error());
  Result<std::string> bytes = co_await read_body(call);
  if (!bytes) co_return respond_error(call, bytes.error());
  const types::Resource& resource = *call.served->resource;
  if (call.subresource != nullptr || (resource.group.empty() && resource.plural == "bindings")) {
    co_await create_subresource(call, parts.writer, parts.token_issuer, *bytes, *format);
    co_return;
  }
  if (call.served->storage == nullptr) {
    co_await serve_review(call, parts, *bytes, *format);
    co_return;
  }
  co_await respond_to_write(call, parts, co_await create_from_body(call, parts.writer, *bytes, *format));
}

}  // namespace holdfast::verbs
